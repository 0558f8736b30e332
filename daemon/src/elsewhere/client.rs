//! Asks a lab over HTTP. Calls block, each for so long at most.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use layerlab_web::VERSION_HEADER;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::{Method, Request, Response};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, SendBody};

use super::{ElsewhereError, LabUrl};

/// Who does not take a connection within this is not there.
const CONNECT: Duration = Duration::from_secs(10);

/// Longer than the lab takes for an answer: it copies the models of a job first.
const ANSWER: Duration = Duration::from_secs(660);

/// A connection on which nothing moves for so long is lost.
const STALL: Duration = Duration::from_secs(60);

/// More than a lab of many years tells at once.
const MOST_BYTES: u64 = 1 << 30;

/// A lab with who asks it.
#[derive(Clone)]
pub(super) struct Client {
    agent: Agent,
    pub(super) url: LabUrl,
    token: String,
}

/// A problem document, as far as it is told.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    exit_code: u8,
}

impl Client {
    /// Asks the lab at `url` with `token`. It is trusted if an authority of `authorities` vouches for it, a file, or else one that
    /// browsers trust.
    pub(super) fn new(
        url: LabUrl,
        token: String,
        authorities: Option<&Path>,
    ) -> Result<Client, ElsewhereError> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = authorities {
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates(path)?));
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A token goes to nobody else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("layerlab/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(ANSWER))
            .timeout_per_read(Some(STALL))
            .timeout_per_write(Some(STALL))
            .tls_config(tls.build());
        if url.is_here() {
            config = config.proxy(None);
        }
        Ok(Client {
            agent: config.build().new_agent(),
            url,
            token,
        })
    }

    /// What is at `path`, in JSON.
    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ElsewhereError> {
        let answer = self.send(Method::GET, path, &[], SendBody::none())?;
        self.json(answer)
    }

    /// What is at `path`, byte by byte.
    pub(super) fn bytes(&self, path: &str) -> Result<Vec<u8>, ElsewhereError> {
        self.content(self.send(Method::GET, path, &[], SendBody::none())?)
    }

    /// Sends `body`, if there is one, to `path`, and takes no answer but that it is done.
    pub(super) fn tell(
        &self,
        method: Method,
        path: &str,
        body: Option<&serde_json::Value>,
    ) -> Result<(), ElsewhereError> {
        let Some(body) = body else {
            return self.send(method, path, &[], SendBody::none()).map(drop);
        };
        let (text, json) = (body.to_string(), [("content-type", "application/json")]);
        let mut bytes = text.as_bytes();
        self.send(method, path, &json, SendBody::from_reader(&mut bytes))
            .map(drop)
    }

    /// Sends `body` to `path`, and takes JSON.
    pub(super) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        media_type: &str,
        body: &str,
    ) -> Result<T, ElsewhereError> {
        let mut bytes = body.as_bytes();
        let body = SendBody::from_reader(&mut bytes);
        let answer = self.send(Method::POST, path, &[("content-type", media_type)], body)?;
        self.json(answer)
    }

    /// Sends what is in the file `from` after its first `offset` bytes to `path`.
    pub(super) fn put(&self, path: &str, from: &Path, offset: u64) -> Result<(), ElsewhereError> {
        let failed = |source| ElsewhereError::Read {
            path: from.to_owned(),
            source,
        };
        let mut file = File::open(from).map_err(failed)?;
        let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
        file.seek(SeekFrom::Start(offset.min(length)))
            .map_err(failed)?;
        let rest = length.saturating_sub(offset).to_string();
        let headers = [
            ("content-type", "application/octet-stream"),
            ("content-length", rest.as_str()),
            // What is too long is refused before it is sent.
            ("expect", "100-continue"),
        ];
        let body = SendBody::from_owned_reader(file);
        self.send(Method::PUT, path, &headers, body).map(drop)
    }

    /// What the lab answers, unless it refuses.
    fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: SendBody<'_>,
    ) -> Result<Response<Body>, ElsewhereError> {
        let mut request = Request::builder().method(method).uri(self.url.at(path));
        request = request.header("authorization", format!("Bearer {}", self.token));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).map_err(|error| self.strange(error))?;
        let answer = self.agent.run(request);
        let answer = self.of_lab(answer.map_err(|error| self.failed(error))?)?;
        match answer.status().as_u16() {
            200..300 => Ok(answer),
            status => Err(self.refused(status, answer)),
        }
    }

    /// The answer, if it is a lab's that this program understands.
    fn of_lab(&self, answer: Response<Body>) -> Result<Response<Body>, ElsewhereError> {
        let url = self.url.clone();
        let version = answer.headers().get(VERSION_HEADER);
        let Some(theirs) = version.and_then(|version| version.to_str().ok()) else {
            let reason = format!("it says {}", answer.status());
            return Err(ElsewhereError::NoLab { url, reason });
        };
        if series(theirs) != series(env!("CARGO_PKG_VERSION")) {
            let theirs = theirs.to_owned();
            return Err(ElsewhereError::Version { url, theirs });
        }
        Ok(answer)
    }

    fn refused(&self, status: u16, answer: Response<Body>) -> ElsewhereError {
        let problem = self.json::<Problem>(answer);
        let Ok(Problem { detail, exit_code }) = problem else {
            return self.strange(format_args!("the status {status} without a problem"));
        };
        match status {
            401 => ElsewhereError::Token {
                url: self.url.clone(),
                said: detail,
            },
            404 => ElsewhereError::Missing { said: detail },
            _ => ElsewhereError::Refused {
                code: exit_code,
                said: detail,
            },
        }
    }

    fn json<T: DeserializeOwned>(&self, answer: Response<Body>) -> Result<T, ElsewhereError> {
        let content = self.content(answer)?;
        serde_json::from_slice(&content).map_err(|error| self.strange(error))
    }

    fn content(&self, answer: Response<Body>) -> Result<Vec<u8>, ElsewhereError> {
        let mut content = Vec::new();
        let body = answer.into_body().into_with_config().limit(MOST_BYTES);
        let read = body.reader().read_to_end(&mut content);
        match read {
            Ok(_) => Ok(content),
            Err(error) => Err(self.lost(error)),
        }
    }

    fn strange(&self, reason: impl ToString) -> ElsewhereError {
        ElsewhereError::Strange {
            url: self.url.clone(),
            reason: reason.to_string(),
        }
    }

    fn lost(&self, reason: impl ToString) -> ElsewhereError {
        ElsewhereError::Lost {
            url: self.url.clone(),
            reason: reason.to_string(),
        }
    }

    fn failed(&self, error: ureq::Error) -> ElsewhereError {
        use std::io::ErrorKind;
        use ureq::{Error, Timeout};
        let url = self.url.clone();
        let reason = error.to_string();
        match error {
            Error::HostNotFound => ElsewhereError::NoHost { url },
            Error::ConnectionFailed | Error::ConnectProxyFailed(_) => {
                ElsewhereError::Unreachable { url, reason }
            }
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                ElsewhereError::Unreachable { url, reason }
            }
            Error::Io(error) => match certificate_problem(&error) {
                Some(reason) => ElsewhereError::Untrusted { url, reason },
                // As the standard library says it, which has no kind for it.
                None if reason.contains("failed to lookup address") => {
                    ElsewhereError::NoHost { url }
                }
                None if error.kind() == ErrorKind::ConnectionRefused => {
                    ElsewhereError::Unreachable { url, reason }
                }
                None if error.kind() == ErrorKind::InvalidData => {
                    ElsewhereError::NoLab { url, reason }
                }
                None => ElsewhereError::Lost { url, reason },
            },
            Error::Rustls(rustls::Error::InvalidCertificate(_)) => {
                ElsewhereError::Untrusted { url, reason }
            }
            Error::Rustls(_) | Error::Tls(_) | Error::Protocol(_) | Error::Http(_) => {
                ElsewhereError::NoLab { url, reason }
            }
            _ => ElsewhereError::Lost { url, reason },
        }
    }
}

/// What is wrong with a certificate, if that is what an error of the connection is about.
fn certificate_problem(error: &std::io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(_) => Some(error.to_string()),
        _ => None,
    }
}

/// The versions that understand each other.
fn series(version: &str) -> Option<(&str, &str)> {
    let (major, rest) = version.split_once('.')?;
    Some((major, rest.split_once('.')?.0))
}

/// The certificates in the PEM file `path`; there is at least one.
fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, ElsewhereError> {
    let failed = |reason: String| ElsewhereError::Authority {
        path: path.to_owned(),
        reason,
    };
    let pem = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(one) = item.map_err(|error| failed(error.to_string()))? {
            certificates.push(one);
        }
    }
    match certificates.is_empty() {
        true => Err(failed("there is none in it".to_owned())),
        false => Ok(certificates),
    }
}
