//! `video.json`: which model answered which images on what, how, where and when.

use serde::{Deserialize, Serialize};

use super::Confidence;
use crate::Segment;
use crate::accuracy::{Metric, Preprocessing};
use crate::document::{Device, Origin, Processor, Provenance};

/// What the field `format` says.
pub const VIDEO_FORMAT: &str = "layerlab-video";

/// The version of the format that is written and read.
pub const VIDEO_VERSION: u32 = 1;

/// All of `video.json` but the hashes of the files beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoHeader {
    /// `layerlab-video`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The device that answered.
    pub device: Device,
    /// Its processor that answered; of a placement, the first of its parts that is emulated, else the first accelerator, without
    /// one the first part's.
    pub processor: Processor,
    /// The parts of the network, one after the other, where they did not all run on that processor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<VideoPart>,
    /// What encoded and decoded the frames.
    pub coded: Coded,
    /// The network.
    pub model: VideoModel,
    /// The images.
    pub set: VideoSet,
    /// How its scores become numbers between 0 and 1.
    pub confidence: Confidence,
    /// What images and halves were drawn from.
    pub seed: u64,
    /// How many of the set's images were answered.
    pub answers: u64,
    /// What differs between two measurements.
    pub provenance: Provenance,
}

/// Layers that ran as one segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoPart {
    /// The layers.
    pub segment: Segment,
    /// The name of the processor.
    pub processor: String,
}

/// What encoded and decoded the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coded {
    /// The device itself: its CPU, one thread.
    Device,
    /// The machine that plays a simulated device: real times, but none of the device that is simulated.
    PlayingMachine,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoModel {
    /// Its name.
    pub name: String,
    /// SHA-256 of the file that the user gave.
    pub sha256: String,
    /// SHA-256 of its quantised twin, which 8-bit processors ran; `null` without one.
    pub quantised_sha256: Option<String>,
    /// The width of its input in pixels.
    pub width: u32,
    /// The height of its input in pixels.
    pub height: u32,
}

/// The images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoSet {
    /// The evaluation set's name.
    pub name: String,
    /// SHA-256 of its file.
    pub sha256: String,
    /// How many images it has.
    pub images: u64,
    /// The width of its images in pixels: that of a frame as the camera delivers it.
    pub width: u32,
    /// Their height.
    pub height: u32,
    /// The classes, in the order of the scores.
    pub classes: Vec<String>,
    /// How an image becomes the network's input.
    pub preprocessing: Preprocessing,
    /// One class for each image, or any number.
    pub metric: Metric,
}

impl VideoHeader {
    /// What answered, as users write it: a processor, or the parts of a placement, such as `1-4:cpu,5-11:npu`.
    pub fn answered_by(&self) -> String {
        if self.placement.is_empty() {
            return self.processor.name.clone();
        }
        let part = |part: &VideoPart| {
            let (first, last) = (part.segment.first(), part.segment.last());
            format!("{first}-{last}:{}", part.processor)
        };
        let parts: Vec<String> = self.placement.iter().map(part).collect();
        parts.join(",")
    }

    /// Where times come from. Those of a simulated device are simulated, also where a real machine encoded for it.
    pub fn origin_of_times(&self) -> Origin {
        match (self.device.simulated, self.processor.emulated) {
            (true, _) => Origin::Simulated,
            (_, true) => Origin::Emulated,
            _ => Origin::Measured,
        }
    }

    /// Where what is calculated from them comes from.
    pub fn origin_of_derived(&self) -> Origin {
        match self.origin_of_times() {
            Origin::Simulated => Origin::DerivedFromSimulated,
            Origin::Emulated => Origin::DerivedFromEmulated,
            _ => Origin::Derived,
        }
    }
}
