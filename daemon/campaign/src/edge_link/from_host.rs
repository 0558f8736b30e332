//! A link measured from this machine.

use std::io;
use std::thread;

use layerlab_edge::{Cancel, LinkErrand, Measured, Progress};
use layerlab_profiles::link::LinkKind;
use tokio::sync::oneshot;

use super::LinkCampaignError;

/// Ends a measurement that nobody waits for any more.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Measures on a thread of its own, for it waits with blocking sockets. Dropping the future ends that.
pub(super) async fn measure(
    errand: LinkErrand,
    carrier: LinkKind,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<Measured, LinkCampaignError> {
    let (sender, receiver) = oneshot::channel();
    let cancel = CancelOnDrop(Cancel::default());
    let cancelled = cancel.0.clone();
    let work = move || {
        // Nobody waits for it any more when it was interrupted.
        let _ = sender.send(measure_here(&errand, carrier, &cancelled, progress));
    };
    let started = thread::Builder::new().name("link".to_owned()).spawn(work);
    started.map_err(|source| LinkCampaignError::Thread { source })?;
    let measured = receiver.await;
    measured.map_err(|error| LinkCampaignError::Thread {
        source: io::Error::other(error),
    })?
}

fn measure_here(
    errand: &LinkErrand,
    carrier: LinkKind,
    cancel: &Cancel,
    tell: impl Fn(u64, u64),
) -> Result<Measured, LinkCampaignError> {
    let reached = errand.reach()?;
    if reached.ip().is_loopback() && matches!(carrier, LinkKind::Wifi | LinkKind::Cellular) {
        return Err(LinkCampaignError::Here {
            server: errand.server.clone(),
            carrier,
        });
    }
    let measured = errand.measure(reached, cancel, |progress| {
        if let Progress::Exchanges { done, of } = progress {
            tell(done as u64, of as u64);
        }
    });
    Ok(measured?)
}
