//! What came of each image, and of each form of it.

use super::{FrameForm, Half};
use crate::units::{Bytes, Nanos};

/// What the network answered to one image as the camera delivers it, brought to the network's size without being encoded.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameAnswer {
    /// The image's place in the set, counted from 0.
    pub image: u64,
    /// What it is used for.
    pub half: Half,
    /// The classes that it shows.
    pub labels: Vec<u32>,
    /// The class of the largest score; none where no score is finite.
    pub predicted: Option<u32>,
    /// The largest of the scores as probabilities, before calibration.
    pub confidence: f64,
    /// How long the inference took.
    pub infer: Nanos,
    /// The scores of all classes, as answered.
    pub scores: Vec<f32>,
}

/// One image in one form: brought to that size, encoded, decoded, brought to the network's size and answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// The image's place in the set, counted from 0.
    pub image: u64,
    /// The form.
    pub form: FrameForm,
    /// The encoded frame's size.
    pub bytes: Bytes,
    /// From the image to the form's size.
    pub resize: Nanos,
    /// From pixels to a file in memory.
    pub encode: Nanos,
    /// And back.
    pub decode: Nanos,
    /// From the form's size to the network's.
    pub upscale: Nanos,
    /// The inference.
    pub infer: Nanos,
    /// The class that the network said; none where no score is finite.
    pub predicted: Option<u32>,
    /// Whether the image shows it.
    pub hit: bool,
}

impl FrameRow {
    /// What the sender's side takes: resizing and encoding.
    pub fn prepare(&self) -> Nanos {
        self.resize + self.encode
    }

    /// What the receiver's side takes: decoding, resizing and the inference.
    pub fn serve(&self) -> Nanos {
        self.decode + self.upscale + self.infer
    }
}
