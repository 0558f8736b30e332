//! HTTP to an S3 server, over one pool of connections: by hyper, with TLS as the rest of layerlab has it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::deadline::carrying;

/// How long a server may take to take a connection.
const CONNECTING: Duration = Duration::from_secs(10);

/// Makes clients.
#[derive(Debug)]
pub(crate) struct Connector {
    /// The file with those who vouch for the server, unless those that browsers trust do.
    pub(crate) authorities: Option<PathBuf>,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let tls =
            tls(self.authorities.as_deref()).map_err(|source| object_store::Error::Generic {
                store: "S3",
                source,
            })?;
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECTING));
        tcp.set_nodelay(true);
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
        let may_be_plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        let builder = match may_be_plain.as_deref() {
            Some("true") => builder.https_or_http(),
            _ => builder.https_only(),
        };
        let connector = builder.enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(HttpClient::new(Service(client)))
    }
}

fn tls(authorities: Option<&Path>) -> Result<ClientConfig, Box<dyn Error + Send + Sync>> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?;
    let Some(path) = authorities else {
        return Ok(builder.with_webpki_roots().with_no_client_auth());
    };
    let unusable = |why: String| format!("AWS_CA_BUNDLE, {}: {why}", path.display());
    let mut trusted = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
    for certificate in all {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        let added = trusted.add(certificate);
        added.map_err(|error| unusable(error.to_string()))?;
    }
    if trusted.is_empty() {
        return Err(unusable("there is no certificate in it".to_owned()).into());
    }
    Ok(builder
        .with_root_certificates(trusted)
        .with_no_client_auth())
}

#[derive(Debug)]
struct Service(Client<HttpsConnector<TcpConnector>, HttpRequestBody>);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let deadline = carrying(request.body().content_length() as u64);
        let answer = match timeout(deadline, self.0.request(request)).await {
            Ok(answer) => answer,
            Err(late) => return Err(HttpError::new(HttpErrorKind::Timeout, late)),
        };
        let answer = answer.map_err(|error| {
            let kind = match error.is_connect() {
                true => HttpErrorKind::Connect,
                false => HttpErrorKind::Interrupted,
            };
            HttpError::new(kind, error)
        })?;
        let interrupted = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(answer.map(|body| HttpResponseBody::new(body.map_err(interrupted))))
    }
}
