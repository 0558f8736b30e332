//! The ways to send one frame.

use layerlab_profiles::{Bytes, Nanos};

use super::choice::FrameChoice;
use super::problem::{FastVaProblem, ServerMode};

/// A way to send a frame that is answered in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteOption {
    pub(super) model: usize,
    pub(super) resolution: usize,
    pub(super) accuracy: f64,
    /// How long sending it occupies the link, with the server's time where that is serial.
    pub(super) occupied: Nanos,
    /// When the link is idle again, on the clock of `start`.
    pub(super) idle: Nanos,
}

impl RemoteOption {
    pub(super) fn choice(&self) -> FrameChoice {
        FrameChoice::Remote {
            model: self.model,
            resolution: self.resolution,
        }
    }
}

/// All ways to send a frame of `sizes` from `start` on so that it is answered by `due`: S/B + T_j^o + T_c after the start.
pub(super) fn remote_options(
    problem: &FastVaProblem,
    sizes: &[Bytes],
    start: Nanos,
    due: Nanos,
) -> Vec<RemoteOption> {
    let mut options = Vec::new();
    for (resolution, &size) in sizes.iter().enumerate() {
        let Some(sending) = problem.uplink.sending(size) else {
            continue;
        };
        for (model, remote) in problem.models.remote().iter().enumerate() {
            let occupied = match problem.server {
                ServerMode::Pipelined => sending,
                ServerMode::Serial => sending + remote.time,
            };
            let round_trip = problem.uplink.round_trip().as_nanos();
            let times = [sending.as_nanos(), remote.time.as_nanos(), round_trip];
            let answered = times
                .into_iter()
                .try_fold(start.as_nanos(), |sum, time| sum.checked_add(time));
            if answered.is_some_and(|answered| answered <= due.as_nanos()) {
                options.push(RemoteOption {
                    model,
                    resolution,
                    accuracy: remote.accuracies[resolution],
                    occupied,
                    idle: start + occupied,
                });
            }
        }
    }
    options
}
