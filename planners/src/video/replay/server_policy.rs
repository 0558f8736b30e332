//! CBO's baseline Server: every frame is sent.

use super::super::cbo::{EdgeConditions, server_resolution};
use super::super::error::VideoError;
use super::super::uplink::Uplink;
use super::policy::{ReplayCommand, ReplayEvent, ReplayPolicy, ReplayView};
use super::world::ReplayWorld;

/// Sends every frame, when it arrives, in the best resolution that leaves the link idle for the next frame, to the first model
/// on the server; a frame without such a resolution is skipped.
#[derive(Clone, Copy, Debug)]
pub struct ServerPolicy;

impl ReplayPolicy for ServerPolicy {
    fn decide(&mut self, view: &ReplayView) -> Result<Vec<ReplayCommand>, VideoError> {
        let ReplayEvent::Arrived(frame) = view.event else {
            return Ok(Vec::new());
        };
        let conditions = edge_conditions(view)?;
        let sizes = &view.world.frames[frame].sizes;
        let resolution = server_resolution(&conditions, view.world.stream.interval(), sizes)?;
        let send = |resolution| ReplayCommand::Send {
            frame,
            model: 0,
            resolution,
        };
        Ok(resolution.map(send).into_iter().collect())
    }
}

/// The first model on the server, as the phone believes it can be reached.
pub(super) fn edge_conditions(view: &ReplayView) -> Result<EdgeConditions, VideoError> {
    conditions(
        view.world,
        Uplink::new(view.bandwidth_bps, view.world.round_trip),
    )
}

/// The first model on the server, reached by `uplink`.
pub(super) fn conditions(
    world: &ReplayWorld,
    uplink: Uplink,
) -> Result<EdgeConditions, VideoError> {
    let server = world.models.remote().first().ok_or(VideoError::NoModels)?;
    let within = world.stream.within();
    EdgeConditions::new(uplink, server.time, within, server.accuracies.clone())
}
