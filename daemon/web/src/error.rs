//! Why the lab is not on the web.

use std::io;
use std::net::SocketAddr;

/// Why the lab is not on the web.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// What is sent to it could be read on the way.
    #[error(
        "`web.listen` is {address}, which other machines reach, and what layerlab sends is not encrypted; listen at \
         127.0.0.1:{}, or put a proxy that encrypts before it and say `behind-proxy = true`", address.port()
    )]
    Open {
        /// The address of the configuration.
        address: SocketAddr,
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
