//! A tunnel to a server on this machine, for as long as a phone measures the link that it is.

use std::time::Duration;

use layerlab_farm::adb::{Phone, Printable};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::exit::{Code, ExitWith, Failure};
use crate::output;

/// How long closing may take. The tunnel of a phone that is gone by then is gone as well.
const CLOSE: Duration = Duration::from_secs(10);

/// A tunnel. Dropping this closes it.
pub(super) struct Tunnel {
    phone: Phone,
    /// The phone's port, where it begins.
    port: u16,
}

impl Tunnel {
    /// A tunnel from the phone to `port` of the adb server's machine.
    pub(super) async fn open(phone: Phone, port: u16) -> Result<Tunnel, Failure> {
        let port = phone.open_tunnel(port).await.exit_with(Code::Device)?;
        Ok(Tunnel { phone, port })
    }

    /// Where the phone reaches the server.
    pub(super) fn address(&self) -> String {
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
            output::note(format_args!(
                "layerlab: the tunnel from port {} of {} may still be there: {complaint}; it goes when the phone is \
                 unplugged",
                self.port,
                Printable(self.phone.name())
            ));
        }
    }
}
