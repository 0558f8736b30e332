//! A tunnel to a server on this machine, for as long as a phone measures the link that it is, or runs a plan over it.

use std::time::Duration;

use layerlab_farm::adb::{AdbError, Phone, Printable};
use tokio::runtime::Builder;
use tokio::time::timeout;

/// How long closing may take. The tunnel of a phone that is gone by then is gone as well.
const CLOSE: Duration = Duration::from_secs(10);

/// A tunnel. Dropping this closes it.
pub struct Tunnel {
    phone: Phone,
    /// The phone's port, where it begins.
    port: u16,
}

impl Tunnel {
    /// A tunnel from the phone to `port` of the adb server's machine.
    ///
    /// # Errors
    /// When the phone is gone, or its adb knows no tunnels.
    pub async fn open(phone: Phone, port: u16) -> Result<Tunnel, AdbError> {
        let port = phone.open_tunnel(port).await?;
        Ok(Tunnel { phone, port })
    }

    /// Where the phone reaches the server.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    async fn close(&self) -> Option<String> {
        match timeout(CLOSE, self.phone.close_tunnel(self.port)).await {
            Ok(closed) => closed.err().map(|error| error.to_string()),
            Err(_) => Some("it does not answer".to_owned()),
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        // What is dropped cannot wait for its own runtime: that may have ended.
        let closed = std::thread::scope(|scope| {
            let work = scope.spawn(|| {
                let runtime = Builder::new_current_thread().enable_all().build();
                runtime.map(|runtime| runtime.block_on(self.close()))
            });
            work.join()
        });
        let complaint = match closed {
            Ok(Ok(complaint)) => complaint,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("closing it failed".to_owned()),
        };
        if let Some(complaint) = complaint {
            tracing::warn!(
                "the tunnel from port {} of {} may still be there: {complaint}; it goes when the phone is unplugged",
                self.port,
                Printable(self.phone.name())
            );
        }
    }
}

/// A server to which no tunnel leads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a tunnel leads to the machine of the adb server alone, and {server} may be elsewhere: write 127.0.0.1:PORT, or leave out \
     the tunnel"
)]
pub struct TunnelElsewhere {
    server: String,
}

/// The port of a server on this machine, where tunnels lead.
///
/// # Errors
/// When the server may be elsewhere.
pub fn port_here(server: &str) -> Result<u16, TunnelElsewhere> {
    let port = server
        .rsplit_once(':')
        .filter(|(host, _)| ["127.0.0.1", "localhost", "[::1]"].contains(host))
        .and_then(|(_, port)| port.parse().ok());
    port.ok_or_else(|| TunnelElsewhere {
        server: server.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_lead_to_this_machine() {
        for (server, port) in [
            ("127.0.0.1:7377", Some(7377)),
            ("localhost:1", Some(1)),
            ("[::1]:65535", Some(65_535)),
            ("192.168.1.2:7377", None),
            ("127.0.0.1", None),
            ("127.0.0.1:65536", None),
        ] {
            let found = port_here(server);
            assert_eq!(found.as_ref().ok(), port.as_ref(), "{server}");
            if let Err(elsewhere) = found {
                assert!(elsewhere.to_string().contains(server), "{elsewhere}");
            }
        }
    }
}
