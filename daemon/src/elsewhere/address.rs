//! Where a lab elsewhere is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ureq::http::Uri;
use ureq::http::uri::Scheme;

/// The URL of a lab: `https://lab.example`, without anything after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabUrl(String);

/// Why a text is not taken for the URL of a lab.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UrlError {
    /// Nobody could ask it.
    #[error(
        "`{0}` is no lab's URL; write one such as https://lab.example or http://127.0.0.1:8722, with nothing after it"
    )]
    Wrong(String),
    /// Others could read the token on its way.
    #[error(
        "`{0}` is on another machine, and http:// is not encrypted; write https://, or lead a port of this machine there \
         (ssh -L) and name that"
    )]
    Open(String),
}

impl LabUrl {
    /// What its path `path` is called.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is on this machine, so that nobody on the way can listen.
    pub(super) fn is_here(&self) -> bool {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest.parse::<ureq::http::uri::Authority>();
        host.is_ok_and(|host| is_here(host.host()))
    }

    pub(super) fn host(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, rest)| rest)
    }
}

fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

impl fmt::Display for LabUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LabUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<LabUrl, UrlError> {
        let wrong = || UrlError::Wrong(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(wrong());
        };
        let is_plain = *scheme == Scheme::HTTP;
        let is_known = is_plain || *scheme == Scheme::HTTPS;
        let is_bare = uri.path_and_query().is_none_or(|rest| rest == "/");
        if !is_known || !is_bare || authority.as_str().contains('@') || authority.host().is_empty()
        {
            return Err(wrong());
        }
        if is_plain && !is_here(authority.host()) {
            return Err(UrlError::Open(text.to_owned()));
        }
        Ok(LabUrl(
            format!("{scheme}://{authority}").to_ascii_lowercase(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_lab_has_a_host_and_nothing_after_it() {
        for (text, expected) in [
            ("https://lab.example", "https://lab.example"),
            ("https://Lab.example:8722/", "https://lab.example:8722"),
            ("http://127.0.0.1:8722", "http://127.0.0.1:8722"),
            ("http://localhost:1", "http://localhost:1"),
            ("http://[::1]:8722/", "http://[::1]:8722"),
        ] {
            let url: LabUrl = text.parse().expect(text);
            assert_eq!(url.as_str(), expected);
        }
        for text in [
            "",
            "lab.example",
            "lab.example:8722",
            "ftp://lab.example",
            "https://",
            "https://lab.example/api/v1",
            "https://lab.example?x=1",
            "https://somebody@lab.example",
        ] {
            let error = text.parse::<LabUrl>().expect_err(text).to_string();
            assert!(error.contains("no lab's URL"), "{text}: {error}");
        }
    }

    #[test]
    fn a_token_is_sent_to_other_machines_only_encrypted() {
        for text in ["http://lab.example", "http://192.168.1.7:8722"] {
            let error = text.parse::<LabUrl>().expect_err(text).to_string();
            assert!(error.contains("not encrypted"), "{text}: {error}");
        }
    }
}
