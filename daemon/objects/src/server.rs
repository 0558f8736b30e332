//! An S3 server, as the variables describe it.

use std::path::PathBuf;
use std::time::Duration;

use hyper::http::Uri;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, RetryConfig};

use crate::ObjectsError;
use crate::http::Connector;
use crate::variables::{ACCESS_KEY_ID, S3Variables, SECRET_ACCESS_KEY};

/// What was cut off, or what a server cannot do now, is asked again so often.
const RETRIES: usize = 3;

/// And not after so long.
const RETRYING: Duration = Duration::from_secs(10);

/// The bucket of this name.
pub(crate) fn bucket(name: &str, variables: &S3Variables) -> Result<AmazonS3, ObjectsError> {
    for needed in [ACCESS_KEY_ID, SECRET_ACCESS_KEY] {
        if variables.get(needed).is_none() {
            return Err(ObjectsError::NoKey { needed });
        }
    }
    let is_allowed = variables.get("AWS_ALLOW_HTTP") == Some("true");
    let endpoint = variables
        .get("AWS_ENDPOINT_URL_S3")
        .or(variables.get("AWS_ENDPOINT_URL"));
    let is_plain = match endpoint {
        Some(endpoint) => is_plain(endpoint, is_allowed)?,
        None => false,
    };
    let mut builder = AmazonS3Builder::new().with_bucket_name(name);
    for (name, value) in variables.iter() {
        // The others are ours.
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    let connector = Connector {
        authorities: variables.get("AWS_CA_BUNDLE").map(PathBuf::from),
    };
    let built = builder
        .with_allow_http(is_plain)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(2),
                base: 3.0,
            },
            max_retries: RETRIES,
            retry_timeout: RETRYING,
        })
        .with_http_connector(connector)
        .build();
    built.map_err(|error| ObjectsError::Settings {
        reason: crate::error::deepest(&error),
    })
}

/// Whether what goes to `endpoint` is not encrypted, if that may be.
fn is_plain(endpoint: &str, is_allowed: bool) -> Result<bool, ObjectsError> {
    let no_url = || ObjectsError::Endpoint;
    let uri: Uri = endpoint.parse().map_err(|_| no_url())?;
    let authority = uri.authority().ok_or_else(no_url)?;
    if authority.as_str().contains('@') {
        return Err(no_url());
    }
    let host = authority.host().trim_matches(['[', ']']);
    let is_own = host == "localhost"
        || (host.parse()).is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    match uri.scheme_str() {
        Some("https") => Ok(false),
        Some("http") if is_own || is_allowed => Ok(true),
        Some("http") => Err(ObjectsError::Plain {
            host: host.to_owned(),
        }),
        _ => Err(no_url()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(pairs: &[(&str, &str)]) -> Result<AmazonS3, String> {
        let key = [(ACCESS_KEY_ID, "key"), (SECRET_ACCESS_KEY, "secret")];
        let pairs = key.iter().chain(pairs);
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        bucket("lab", &S3Variables::of(pairs)).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_goes_over_a_network_unencrypted_unless_that_is_said() {
        for endpoint in [
            "https://s3.example",
            "http://localhost:9000",
            "http://127.0.0.1:9000",
            "http://[::1]:9000",
        ] {
            assert!(
                opened(&[("AWS_ENDPOINT_URL", endpoint)]).is_ok(),
                "{endpoint}"
            );
        }
        let plain = ("AWS_ENDPOINT_URL", "http://s3.example:9000");
        let refused = opened(&[plain]).expect_err("it is plain");
        assert_eq!(
            refused,
            "what goes to s3.example is not encrypted; begin AWS_ENDPOINT_URL with https://, or set AWS_ALLOW_HTTP=true if \
             everybody on that network may read it"
        );
        assert!(opened(&[plain, ("AWS_ALLOW_HTTP", "true")]).is_ok());
        // The endpoint for S3 goes before the one for all services.
        let own = ("AWS_ENDPOINT_URL_S3", "https://s3.example");
        assert!(opened(&[plain, own]).is_ok());
    }

    #[test]
    fn what_leads_to_no_server_is_refused_without_being_repeated() {
        for endpoint in [
            "s3.example",
            "ftp://s3.example",
            "https://key:secret@s3.example",
        ] {
            let refused = opened(&[("AWS_ENDPOINT_URL", endpoint)]).expect_err(endpoint);
            assert_eq!(
                refused,
                "AWS_ENDPOINT_URL is no URL of a server; write one such as https://s3.example, without a key in it"
            );
        }
        let without = bucket("lab", &S3Variables::default()).map_err(|error| error.to_string());
        assert_eq!(
            without.expect_err("no key"),
            "AWS_ACCESS_KEY_ID is not set, and without it no S3 server lets anybody in; set it for the daemon, or write it into \
             a file that `objects-credentials-file` names"
        );
        let bundle = opened(&[("AWS_CA_BUNDLE", "/nowhere/ca.pem")]).expect_err("no file");
        assert!(bundle.contains("/nowhere/ca.pem"), "{bundle}");
    }
}
