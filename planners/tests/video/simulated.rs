//! Simulated videos at the papers' sizes.

use layerlab_planners::video::papers::{self, PaperSettings};
use layerlab_planners::video::replay::ReplayWorld;

pub(crate) fn settings(seed: u64, fps: u64, bandwidth_bps: u64, frames: usize) -> PaperSettings {
    PaperSettings {
        frames_per_second: fps as f64,
        ..PaperSettings::usual(bandwidth_bps, frames, seed)
    }
}

/// A video for FastVA.
pub(crate) fn fastva_world(seed: u64, fps: u64, bandwidth_bps: u64, frames: usize) -> ReplayWorld {
    papers::fastva_world(&settings(seed, fps, bandwidth_bps, frames)).expect("sensible")
}

/// A video for CBO.
pub(crate) fn cbo_world(seed: u64, fps: u64, bandwidth_bps: u64, frames: usize) -> ReplayWorld {
    papers::cbo_world(&settings(seed, fps, bandwidth_bps, frames)).expect("sensible")
}
