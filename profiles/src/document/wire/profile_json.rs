//! `profile.json` as it lies on disk: the header, and the hash of each table beside it.

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

use super::{
    BLOCKS, COMBINATIONS, CUTS, ENERGY, LAYER_ENERGY, LAYERS, LOADS, MINUTES, PLACEMENTS, PROBES,
    REJECTED, SAMPLES, SEGMENTS, SOAK, TIMES, UNSUPPORTED,
};
use crate::document::opened::Opened;
use crate::document::{
    Additivity, Device, Evaluation, FORMAT, Header, MeasuredEnergy, Measurement, Model, Moving,
    Processor, Profile, Program, Provenance, Soak, VERSION,
};
use crate::soak::Thermal;

/// A layerlab profile: what was measured, where, how and when, and which tables belong to it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "layerlab profile, version 5: profile.json")]
pub(in crate::document) struct ProfileJson {
    /// Always `layerlab-profile`.
    #[schemars(extend("const" = FORMAT))]
    format: String,
    /// The version of the format.
    #[schemars(extend("const" = VERSION))]
    version: u32,
    /// True when any time or output comes from a simulated processor. Such a profile describes no real
    /// device.
    simulated: bool,
    /// True when any processor was played by its maker's emulator: its times are no device's, its answers are the
    /// processor's own.
    emulated: bool,
    /// Of what state of the device the times are: `steady` of one that was kept busy until they changed no more. Absent where
    /// it was cool.
    #[serde(default, skip_serializing_if = "Thermal::is_cold")]
    thermal: Thermal,
    /// The network that was measured.
    model: Model,
    /// The device that it was measured on.
    device: Device,
    /// The device's processors that have rows in the tables.
    processors: Vec<Processor>,
    /// How each processor was measured, in the order of `processors`.
    measurements: Vec<Measurement>,
    /// How well the times of segments add up, for each processor on which that was tested.
    additivity: Vec<Additivity>,
    /// What moving data in and out costs by probes, for each processor of which cuts were to be divided by them.
    moving: Vec<Moving>,
    /// How the accuracy of placements was measured, for each pair of processors for which it was.
    evaluations: Vec<Evaluation>,
    /// How the device became steady, for each processor, where these are steady times; absent elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    soaks: Vec<Soak>,
    /// How energy was measured, and what follows for each processor; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    energy: Option<MeasuredEnergy>,
    /// The SHA-256 of `steady/profile.json`, the profile of the same device in its steady state, in hexadecimal; absent where
    /// there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    steady: Option<String>,
    /// What differs between two runs of the same measurement: times, versions, the host.
    provenance: Provenance,
    /// The program that wrote these files; `null` where that was not recorded.
    written_by: Option<Program>,
    /// The tables that belong to this file.
    files: Files,
}

/// The SHA-256 of each table, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::document) struct Files {
    /// What each layer is.
    #[serde(rename = "layers.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) layers: String,
    /// What each layer costs on each processor.
    #[serde(rename = "times.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) times: String,
    /// What cutting between layers costs.
    #[serde(rename = "cuts.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) cuts: String,
    /// What the samples of each segment say.
    #[serde(rename = "segments.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) segments: String,
    /// Every inference that was timed.
    #[serde(rename = "samples.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) samples: String,
    /// The inferences whose blocks were rejected.
    #[serde(rename = "rejected.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) rejected: String,
    /// The blocks in which inferences were timed.
    #[serde(rename = "blocks.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) blocks: String,
    /// What placements lose of the model's accuracy.
    #[serde(rename = "combinations.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) combinations: String,
    /// What processors cannot run.
    #[serde(rename = "unsupported.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) unsupported: String,
    /// What it took to load segments.
    #[serde(rename = "loads.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) loads: String,
    /// Where runtimes placed the nodes of segments.
    #[serde(rename = "placements.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) placements: String,
    /// Every inference of a probe that was timed.
    #[serde(rename = "probes.csv")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) probes: String,
    /// What was timed while the device was kept busy; absent where these are no steady times.
    #[serde(rename = "soak.csv", default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) soak: Option<String>,
    /// The same minute by minute; absent likewise.
    #[serde(
        rename = "minutes.csv",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) minutes: Option<String>,
    /// What was read of a power meter; absent where energy was not measured.
    #[serde(
        rename = "energy.csv",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) energy: Option<String>,
    /// What each layer draws; absent likewise.
    #[serde(
        rename = "layer_energy.csv",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(in crate::document) layer_energy: Option<String>,
}

impl From<(&Profile, Files, Option<String>)> for ProfileJson {
    /// Of a profile with the hashes of its tables, and of the steady profile beside it.
    fn from((profile, files, steady): (&Profile, Files, Option<String>)) -> Self {
        let header = profile.header.clone();
        ProfileJson {
            format: header.format,
            version: header.version,
            simulated: header.simulated,
            emulated: header.emulated,
            thermal: header.thermal,
            model: header.model,
            device: header.device,
            processors: header.processors,
            measurements: header.measurements,
            additivity: profile.additivity.clone(),
            moving: profile.moving.clone(),
            evaluations: profile.evaluations.clone(),
            soaks: profile.soaking.found.clone(),
            energy: profile.energy.as_ref().map(|energy| energy.found.clone()),
            steady,
            provenance: header.provenance,
            written_by: header.written_by,
            files,
        }
    }
}

impl From<ProfileJson> for Opened {
    fn from(json: ProfileJson) -> Self {
        let files = json.files;
        let optional = [
            (SOAK.file, files.soak),
            (MINUTES.file, files.minutes),
            (ENERGY.file, files.energy),
            (LAYER_ENERGY.file, files.layer_energy),
        ];
        let optional = optional.into_iter();
        let optional = optional.filter_map(|(file, hash)| Some((file, hash?)));
        Opened {
            header: Header {
                format: json.format,
                version: json.version,
                simulated: json.simulated,
                emulated: json.emulated,
                thermal: json.thermal,
                model: json.model,
                device: json.device,
                processors: json.processors,
                measurements: json.measurements,
                provenance: json.provenance,
                written_by: json.written_by,
            },
            additivity: json.additivity,
            moving: json.moving,
            evaluations: json.evaluations,
            soaks: json.soaks,
            energy: json.energy,
            steady: json.steady,
            hashes: [
                (LAYERS.file, files.layers),
                (TIMES.file, files.times),
                (CUTS.file, files.cuts),
                (SEGMENTS.file, files.segments),
                (SAMPLES.file, files.samples),
                (REJECTED.file, files.rejected),
                (BLOCKS.file, files.blocks),
                (COMBINATIONS.file, files.combinations),
                (UNSUPPORTED.file, files.unsupported),
                (LOADS.file, files.loads),
                (PLACEMENTS.file, files.placements),
                (PROBES.file, files.probes),
            ]
            .into_iter()
            .chain(optional)
            .collect(),
            version: VERSION,
            has_digest: true,
        }
    }
}

/// The JSON Schema of `profile.json`, which is committed as `profile.schema.json`.
pub fn schema() -> Schema {
    schema_for!(ProfileJson)
}
