//! Why the lab is not on the web.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the lab is not on the web.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// What is sent to it could be read on the way.
    #[error(
        "`web.listen` is {address}, which other machines reach, and what layerlab sends is not encrypted; name a certificate by \
         `web.cert` and `web.key`, listen at 127.0.0.1:{}, or put a proxy that encrypts before it and say `behind-proxy = true`",
        address.port()
    )]
    Open {
        /// The address of the configuration.
        address: SocketAddr,
    },
    /// A certificate is of no use without its key, nor a key without its certificate.
    #[error(
        "the configuration has no `web.{missing}`; `cert` and `key` belong together: name both, or leave both empty"
    )]
    Half {
        /// The key of the configuration that is empty.
        missing: &'static str,
    },
    /// Nobody would trust it, or it cannot be read.
    #[error("cannot use the certificate or key in {}: {reason}; name files in PEM that belong together", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another program has the address, say.
    #[error("cannot listen at {address}: {source}; choose another address for `web.listen`")]
    Listen {
        /// The address of the configuration.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}
