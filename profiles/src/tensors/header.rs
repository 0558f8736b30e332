//! `tensors.json`: which tensors of which network were compressed on what, of which pictures, how, where and when.

use serde::{Deserialize, Serialize};

use super::TensorCodec;
use crate::accuracy::Metric;
use crate::document::{Device, Origin, Processor, Provenance};
use crate::units::Bytes;

/// What the field `format` says.
pub const TENSORS_FORMAT: &str = "layerlab-tensors";

/// The version of the format that is written and read.
pub const TENSORS_VERSION: u32 = 1;

/// All of `tensors.json` but the hashes of the files beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorsHeader {
    /// `layerlab-tensors`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The device that ran the network and compressed.
    pub device: Device,
    /// Its processor that ran the layers.
    pub processor: Processor,
    /// Whether compressing was timed.
    pub timed: Timed,
    /// The network.
    pub model: TensorsModel,
    /// The pictures.
    pub set: TensorsSet,
    /// What each tensor was packed by, in the order of the rows.
    pub codecs: Vec<TensorCodec>,
    /// The tensors that cross cuts, those that are left out among them.
    pub tensors: Vec<TensorDescription>,
    /// Whether answers were judged with what crosses a cut rounded to 8 bits.
    pub judged: bool,
    /// What the pictures were drawn by.
    pub seed: u64,
    /// How many of the set's pictures were answered.
    pub pictures: u64,
    /// What differs between two measurements.
    pub provenance: Provenance,
}

/// Whether compressing was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timed {
    /// On the device itself: its CPU, one thread.
    Device,
    /// It was not: the device is simulated, and the machine that plays it is another one.
    No,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorsModel {
    /// Its name.
    pub name: String,
    /// SHA-256 of the file that the user gave.
    pub sha256: String,
    /// SHA-256 of its quantised twin, which 8-bit processors ran; `null` without one.
    pub quantised_sha256: Option<String>,
    /// How many layers it has.
    pub layers: u32,
}

/// The pictures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorsSet {
    /// The evaluation set's name.
    pub name: String,
    /// SHA-256 of its file.
    pub sha256: String,
    /// How many pictures it has.
    pub images: u64,
    /// How answers are judged.
    pub metric: Metric,
}

/// A tensor that crosses cuts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorDescription {
    /// Its name in the model.
    pub tensor: String,
    /// The layer that gives it; 0 of the network's input.
    pub producer_layer: u32,
    /// The layers that take it.
    pub consumer_layers: Vec<u32>,
    /// Whether the network answers with it.
    pub is_output: bool,
    /// The length of each axis.
    pub shape: Vec<u64>,
    /// Its size as it is.
    pub bytes: Bytes,
    /// Why it is not compressed; absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// Why a tensor is not compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// No more than one of its axes is longer than 1, as of what fully connected layers give (jointdnn §4.2).
    OneAxis,
    /// Its elements are no 32-bit floats.
    NoFloats,
}

impl TensorDescription {
    /// How many numbers it has.
    pub fn elements(&self) -> u64 {
        let axes = self.shape.iter();
        axes.fold(1, |all, &axis| all.saturating_mul(axis))
    }

    /// Whether it crosses the cut after this layer.
    pub fn crosses(&self, cut: u32) -> bool {
        let is_needed = self.consumer_layers.iter().any(|&layer| layer > cut);
        self.producer_layer <= cut && (self.is_output || is_needed)
    }
}

impl TensorsHeader {
    /// The tensors that are compressed.
    pub fn compressed(&self) -> impl Iterator<Item = &TensorDescription> {
        self.tensors.iter().filter(|it| it.left_out.is_none())
    }

    /// The cuts that a tensor crosses which is compressed: after which layer each is, the first one first.
    pub fn cuts(&self) -> Vec<u32> {
        let is_crossed = |&cut: &u32| self.compressed().any(|tensor| tensor.crosses(cut));
        (0..=self.model.layers).filter(is_crossed).collect()
    }

    /// Where what was measured comes from.
    pub fn origin_of_measured(&self) -> Origin {
        match (self.device.simulated, self.processor.emulated) {
            (true, _) => Origin::Simulated,
            (_, true) => Origin::Emulated,
            _ => Origin::Measured,
        }
    }

    /// Where what is calculated from that comes from.
    pub fn origin_of_derived(&self) -> Origin {
        match self.origin_of_measured() {
            Origin::Simulated => Origin::DerivedFromSimulated,
            Origin::Emulated => Origin::DerivedFromEmulated,
            _ => Origin::Derived,
        }
    }
}
