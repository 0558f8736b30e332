//! What a phone must know before the first frame comes.

use layerlab_profiles::Nanos;
use layerlab_profiles::video::Confidence;
use serde::{Deserialize, Serialize};

use super::super::calibration::Calibrator;
use super::super::fastva::{LocalModel, RemoteModel};
use super::super::replay::{PolicySettings, VideoPolicy};

/// What decides, and by what numbers. It crosses to the phone as JSON; times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveSettings {
    /// What decides. None that plans ahead.
    pub policy: VideoPolicy,
    /// How the papers' open choices are made.
    pub settings: PolicySettings,
    /// How many frames will come.
    pub frames: usize,
    /// γ, the time between two frames.
    pub interval: Nanos,
    /// T, the time from a frame's capture to when its answer is due.
    pub within: Nanos,
    /// What the link to the server is believed to carry, in bits per second.
    pub bandwidth_bps: u64,
    /// Its round trip, the answer's way back included.
    pub round_trip: Nanos,
    /// How long the phone is believed to take from a frame's capture until it is there in all resolutions.
    pub prepare: Nanos,
    /// The model on the phone.
    pub local: LocalModel,
    /// The model on the server.
    pub remote: RemoteModel,
    /// How the phone's scores become probabilities.
    pub confidence: Confidence,
    /// What makes them say how often they are right.
    pub calibrator: Calibrator,
    /// For each class that the phone may answer, how often the server is right then in each resolution; none where that is not
    /// to be known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_class: Vec<Vec<f64>>,
}
