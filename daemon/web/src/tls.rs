//! What is sent is encrypted, and the lab proves who it is by its certificate.

use std::path::Path;
use std::sync::Arc;

use layerlab_lab::config::WebConfig;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::WebError;

/// What encrypts, if the configuration has a certificate.
pub(crate) fn acceptor(config: &WebConfig) -> Result<Option<TlsAcceptor>, WebError> {
    let (cert, key) = match (&config.cert, &config.key) {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => (cert, key),
        (Some(_), None) => return Err(WebError::Half { missing: "key" }),
        (None, Some(_)) => return Err(WebError::Half { missing: "cert" }),
    };
    let unusable = |path: &Path, reason: String| WebError::Certificate {
        path: path.to_owned(),
        reason,
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(cert, error.to_string()));
    let chain = chain?;
    if chain.is_empty() {
        return Err(unusable(cert, "there is no certificate in it".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.map_err(|error| unusable(key, error.to_string()))?;
    let mut tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|tls| tls.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| unusable(cert, error.to_string()))?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(tls))))
}
