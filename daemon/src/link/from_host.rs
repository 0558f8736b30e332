//! A link measured from this machine.

use std::thread;

use anyhow::anyhow;
use indicatif::ProgressBar;
use layerlab_edge::{Cancel, EdgeError, LinkErrand, Measured, Progress};
use layerlab_profiles::link::LinkKind;
use tokio::sync::oneshot;

use crate::exit::{Code, ExitWith, Failure};

/// Measures on a thread of its own, for it waits with blocking sockets.
pub(super) async fn measure(
    errand: LinkErrand,
    carrier: LinkKind,
    bar: ProgressBar,
) -> Result<Measured, Failure> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        // Nobody waits for it any more when layerlab was interrupted.
        let _ = sender.send(measure_here(&errand, carrier, &bar));
    };
    let started = thread::Builder::new().name("link".to_owned()).spawn(work);
    started.exit_with(Code::Internal)?;
    receiver.await.exit_with(Code::Internal)?
}

fn measure_here(
    errand: &LinkErrand,
    carrier: LinkKind,
    bar: &ProgressBar,
) -> Result<Measured, Failure> {
    let failed = |error: EdgeError| Failure::new(Code::Device, error);
    let reached = errand.reach().map_err(failed)?;
    if reached.ip().is_loopback() && matches!(carrier, LinkKind::Wifi | LinkKind::Cellular) {
        let error = anyhow!(
            "{} is this machine itself, and no {carrier} is between: say --kind usb-tunnel or ethernet, or measure a \
             server elsewhere",
            errand.server
        );
        return Err(Failure::new(Code::Usage, error));
    }
    let measured = errand.measure(reached, &Cancel::default(), |progress| match progress {
        Progress::Exchanges { done, of } => {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        }
        Progress::Trace(direction) => bar.set_message(format!("trace of the {direction}")),
    });
    measured.map_err(failed)
}
