//! At which addresses the lab may be on the web.

use std::net::SocketAddr;

use layerlab_lab::config::WebConfig;

use crate::WebError;
use crate::tls::acceptor;

/// The address at which the lab is to be on the web, if it is to be, unless others could read what is sent, or its certificate
/// is of no use.
pub fn check_address(config: &WebConfig) -> Result<Option<SocketAddr>, WebError> {
    let is_encrypted = config.behind_proxy || acceptor(config)?.is_some();
    match config.listen {
        Some(address) if !address.ip().is_loopback() && !is_encrypted => {
            Err(WebError::Open { address })
        }
        address => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_lab::config::Config;

    #[test]
    fn an_address_that_others_reach_is_refused_unless_a_proxy_encrypts() {
        let config = |listen: &str, behind_proxy| WebConfig {
            listen: Some(listen.parse().expect("an address")),
            behind_proxy,
            ..Config::default().web
        };
        for loopback in ["127.0.0.1:8722", "[::1]:8722"] {
            check_address(&config(loopback, false)).expect("nobody else reaches it");
        }
        for open in ["0.0.0.0:8722", "[::]:8722", "192.168.1.7:8722"] {
            let error = check_address(&config(open, false)).expect_err("others reach it");
            assert!(error.to_string().contains("behind-proxy"), "{error}");
            check_address(&config(open, true)).expect("a proxy encrypts");
        }
    }
}
