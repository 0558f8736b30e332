//! `profile.json`: what was measured, where, how and when.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Measurement, Processor, Program, Provenance};
use crate::soak::Thermal;

/// The value of the field `format` in every profile.
pub const FORMAT: &str = "layerlab-profile";

/// The newest version of the format, the only one that is written. Older ones become it as they are read.
pub const VERSION: u32 = 5;

/// Everything about a profile that is not a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `layerlab-profile`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// True when any time or output comes from a simulated processor. Such a profile describes no real phone.
    pub simulated: bool,
    /// True when any processor was played by its maker's emulator: its times are no device's, its answers are.
    pub emulated: bool,
    /// Of what state of the device the times are. Where that is not said, of a cool one.
    #[serde(default, skip_serializing_if = "Thermal::is_cold")]
    pub thermal: Thermal,
    /// The network that was measured.
    pub model: Model,
    /// The device that it was measured on.
    pub device: Device,
    /// The device's processors that have rows in the tables.
    pub processors: Vec<Processor>,
    /// How each processor was measured, in the order of `processors`.
    pub measurements: Vec<Measurement>,
    /// What differs between two runs of the same measurement: times, versions, the host.
    pub provenance: Provenance,
    /// The program that wrote the profile's files; absent where that was not recorded.
    pub written_by: Option<Program>,
}

impl Header {
    /// What people are told beside the device's name wherever it is named: `simulated` if the device is, `emulated` if
    /// one of its processors is, `steady` if it was hot, nothing if all numbers are a cool real device's.
    pub fn mark(&self) -> Option<&'static str> {
        match (self.simulated, self.emulated, self.thermal) {
            (true, _, Thermal::Cold) => Some("simulated"),
            (true, _, Thermal::Steady) => Some("simulated, steady"),
            (false, true, Thermal::Cold) => Some("emulated"),
            (false, true, Thermal::Steady) => Some("emulated, steady"),
            (false, false, Thermal::Steady) => Some("steady"),
            (false, false, Thermal::Cold) => None,
        }
    }

    /// Each processor's place in `processors`, by its name; the first of two that share a name.
    pub(crate) fn places(&self) -> BTreeMap<&str, usize> {
        let mut places = BTreeMap::new();
        for (place, processor) in self.processors.iter().enumerate() {
            places.entry(processor.name.as_str()).or_insert(place);
        }
        places
    }
}

/// The network that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model file's name without its extension.
    pub name: String,
    /// SHA-256 of the model file that the user gave, in hexadecimal.
    pub sha256: String,
    /// The files beside it that hold its weights, sorted by name; none where it holds all of them itself, absent where
    /// that was not recorded.
    pub external_weights: Option<Vec<HashedFile>>,
    /// The quantised twin that processors with 8-bit arithmetic ran where their runtime needs one: its file's name
    /// without its extension, and the SHA-256 of the file that the user gave; absent where there was none.
    pub quantised: Option<HashedFile>,
    /// The version of ONNX's default operator set.
    pub opset: i64,
    /// How many layers the model has: the rows of `layers.csv`.
    pub layers: u32,
    /// What it takes, in its own order; absent where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<ModelInput>>,
}

impl Model {
    /// Whether it takes one image, so that an evaluation set can judge its answers; nothing where its inputs were not recorded.
    pub fn takes_an_image(&self) -> Option<bool> {
        let inputs = self.inputs.as_ref()?;
        let shapes: Vec<&[u64]> = inputs.iter().map(|input| &input.shape[..]).collect();
        Some(matches!(shapes[..], [[1, 1 | 3, _, _]]))
    }
}

/// A tensor that a network takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelInput {
    /// Its name in the model.
    pub name: String,
    /// Its axes as they were measured, with no open ones.
    pub shape: Vec<u64>,
}

/// A file that is known by its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HashedFile {
    /// Its name.
    pub name: String,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

/// The device that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// A short name that a person recognises.
    pub name: String,
    /// True when the device is a description played by the simulator.
    pub simulated: bool,
    /// What the times were read from.
    pub clock: Clock,
}

/// What durations were read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The device's monotonic clock.
    Monotonic,
    /// A simulated clock that is advanced by modelled times; nothing waits.
    SimulatedExact,
    /// The device's monotonic clock around simulated times that were slept.
    SimulatedReal,
}
