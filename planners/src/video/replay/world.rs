//! What every policy meets.

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::{VideoError, refuse_unless_fraction};
use super::super::fastva::{FrameChoice, ServerMode, VideoModels};
use super::super::stream::VideoStream;
use super::bandwidth::ReplayBandwidth;

/// A frame, and what the phone's models make of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayFrame {
    /// Its bytes in each resolution.
    pub sizes: Vec<Bytes>,
    /// For each model on the phone, the probability that its answer is right: what its calibrated confidence says, or its mean
    /// accuracy where nothing is known of the frame.
    pub local: Vec<f64>,
    /// The uncalibrated confidence of the first model on the phone.
    pub uncalibrated: f64,
    /// The share of right answers of the server's first model, in each resolution, to frames of the class that the phone's first
    /// model answers, where it is known.
    pub by_class: Option<Vec<f64>>,
    /// Which answers are right, where that was measured; else it is drawn with their probabilities. No policy looks at it.
    pub right: Option<RightAnswers>,
}

/// Which answers to a frame are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RightAnswers {
    /// Of each model on the phone.
    pub local: Vec<bool>,
    /// Of each model on the server, in each resolution.
    pub remote: Vec<Vec<bool>>,
}

impl RightAnswers {
    /// Whether what `choice` answers is right; false where nothing answers.
    pub(super) fn of(&self, choice: FrameChoice) -> bool {
        let right = match choice {
            FrameChoice::Local { model } => self.local.get(model),
            FrameChoice::Remote { model, resolution } => self
                .remote
                .get(model)
                .and_then(|model| model.get(resolution)),
            FrameChoice::Skipped => None,
        };
        right.copied().unwrap_or(false)
    }
}

/// A video, a phone, a link and a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayWorld {
    /// When frames arrive and are due.
    pub stream: VideoStream,
    /// The frames, in order.
    pub frames: Vec<ReplayFrame>,
    /// How fast frames leave.
    pub bandwidth: ReplayBandwidth,
    /// The round trip, the answer's way back included.
    pub round_trip: Nanos,
    /// The models on both sides.
    pub models: VideoModels,
    /// Whether sending a frame and answering the one before it overlap.
    pub server: ServerMode,
    /// From when the NPU has answered until the confidence is calibrated; the NPU is idle meanwhile.
    pub calibration: Nanos,
    /// Decides which answers are right; the same for all policies.
    pub seed: u64,
}

impl ReplayWorld {
    /// Refuses frames that do not belong to the models.
    pub(super) fn refuse_unfit(&self) -> Result<(), VideoError> {
        if self.frames.is_empty() {
            return Err(VideoError::NoFrames);
        }
        for (place, frame) in self.frames.iter().enumerate() {
            let (resolutions, local) = (self.models.resolutions(), self.models.local().len());
            if frame.sizes.len() != resolutions {
                return Err(VideoError::Resolutions {
                    what: format!("frame {place}"),
                    found: frame.sizes.len(),
                    resolutions,
                });
            }
            if frame.local.len() != local {
                return Err(VideoError::LocalAnswers {
                    frame: place,
                    found: frame.local.len(),
                    models: local,
                });
            }
            if let Some(by_class) = &frame.by_class
                && by_class.len() != resolutions
            {
                return Err(VideoError::Resolutions {
                    what: format!("what is known of the class of frame {place}"),
                    found: by_class.len(),
                    resolutions,
                });
            }
            for &accuracy in frame.local.iter().chain([&frame.uncalibrated]) {
                refuse_unless_fraction(|| format!("a confidence of frame {place}"), accuracy)?;
            }
        }
        Ok(())
    }
}
