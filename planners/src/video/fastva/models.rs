//! The models on the phone and on the server: what they take and how often they are right (fastva Table II, Figure 4).

use layerlab_profiles::Nanos;
use serde::{Deserialize, Serialize};

use super::super::error::{VideoError, refuse_unless_fraction};
use super::choice::FrameChoice;

/// A model on the phone's NPU, whose input is the frame in full resolution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalModel {
    /// What it is called.
    pub name: String,
    /// T_j^npu, its time for a frame.
    pub time: Nanos,
    /// a(j, r_max), the share of frames about which it is right.
    pub accuracy: f64,
}

/// A model on the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoteModel {
    /// What it is called.
    pub name: String,
    /// T_j^o, its time for a frame.
    pub time: Nanos,
    /// a(j, r), the share of frames about which it is right, for each resolution.
    pub accuracies: Vec<f64>,
}

/// The models on both sides, which are two sets: a network on both is a model on each.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoModels {
    local: Vec<LocalModel>,
    remote: Vec<RemoteModel>,
    resolutions: usize,
}

impl VideoModels {
    /// Puts models together; there is at least one, on whichever side. All remote models have as many resolutions.
    pub fn new(
        local: Vec<LocalModel>,
        remote: Vec<RemoteModel>,
    ) -> Result<VideoModels, VideoError> {
        if local.is_empty() && remote.is_empty() {
            return Err(VideoError::NoModels);
        }
        for model in &local {
            refuse_unless_fraction(
                || format!("the accuracy of {} on the phone", model.name),
                model.accuracy,
            )?;
        }
        let resolutions = remote.first().map_or(0, |model| model.accuracies.len());
        for model in &remote {
            if model.accuracies.len() != resolutions {
                return Err(VideoError::Resolutions {
                    what: format!("{} on the server", model.name),
                    found: model.accuracies.len(),
                    resolutions,
                });
            }
            for &accuracy in &model.accuracies {
                refuse_unless_fraction(
                    || format!("an accuracy of {} on the server", model.name),
                    accuracy,
                )?;
            }
        }
        Ok(VideoModels {
            local,
            remote,
            resolutions,
        })
    }

    /// Those on the phone.
    pub fn local(&self) -> &[LocalModel] {
        &self.local
    }

    /// Those on the server.
    pub fn remote(&self) -> &[RemoteModel] {
        &self.remote
    }

    /// In how many resolutions frames can be sent; 0 where there is no model on the server.
    pub fn resolutions(&self) -> usize {
        self.resolutions
    }

    /// The accuracy of what `choice` answers; 0 where that is nothing, and where no model is so called.
    pub fn accuracy(&self, choice: FrameChoice) -> f64 {
        let accuracy = match choice {
            FrameChoice::Local { model } => self.local.get(model).map(|model| model.accuracy),
            FrameChoice::Remote { model, resolution } => {
                let model = self.remote.get(model);
                model.and_then(|model| model.accuracies.get(resolution).copied())
            }
            FrameChoice::Skipped => None,
        };
        accuracy.unwrap_or(0.0)
    }
}
