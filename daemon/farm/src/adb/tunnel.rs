//! A port on a phone that leads to one of the adb server's host, as `adb reverse` makes it.

use std::time::Duration;

use super::error::AdbError;
use super::fault::Fault;
use super::phone::{Phone, Way};
use super::wire::{Wire, within};

/// How long adbd may take to listen on a port, or to leave it.
const DEADLINE: Duration = Duration::from_secs(10);

impl Phone {
    /// Has the phone's adbd listen on a free port of the phone itself, from where the server leads connections to `port`
    /// of its own host. Returns the phone's port, which is open to everything on the phone until
    /// [`Phone::close_tunnel`] or the phone is gone.
    ///
    /// # Errors
    /// When the phone is reached without a server, is gone, or does not do it.
    pub async fn open_tunnel(&self, port: u16) -> Result<u16, AdbError> {
        const WHAT: &str = "make a tunnel";
        self.reverse(WHAT, &format!("forward:tcp:0;tcp:{port}"), async |wire| {
            let said = wire.text().await?;
            let nonsense = |_| wire.refused(WHAT, format!("`{said}` is no port"));
            said.trim().parse().map_err(nonsense)
        })
        .await
    }

    /// Has the phone's adbd leave the port of a tunnel.
    ///
    /// # Errors
    /// When the phone is gone, or has no such tunnel any more.
    pub async fn close_tunnel(&self, port: u16) -> Result<(), AdbError> {
        let request = format!("killforward:tcp:{port}");
        self.reverse("close a tunnel", &request, async |_| Ok(()))
            .await
    }

    async fn reverse<T>(
        &self,
        what: &'static str,
        request: &str,
        answer: impl AsyncFnOnce(&mut Wire) -> Result<T, AdbError>,
    ) -> Result<T, AdbError> {
        let Way::Server { server, transport } = &self.way else {
            return Err(AdbError::NoTunnel {
                name: self.name().to_owned(),
            });
        };
        within(self.name(), what, Fault::Shell, DEADLINE, async {
            let mut wire = server.to_phone(*transport, self.name()).await?;
            // The server has passed it on, and then the phone has done it.
            wire.request(&format!("reverse:{request}"), what).await?;
            wire.status(what).await?;
            answer(&mut wire).await
        })
        .await
    }
}
