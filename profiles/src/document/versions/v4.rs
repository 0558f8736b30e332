//! Version 4: `blocks.csv` had fewer readings of the device, and `provenance` said neither which phone it was nor whether it
//! was fit to be measured. All else is as in the newest version.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::accuracy::{Metric, Preprocessing};
use crate::document::opened::Opened;
use crate::document::wire::{
    BLOCKS, COMBINATIONS, CUTS, Files, LAYERS, LOADS, PLACEMENTS, PROBES, REJECTED, SAMPLES,
    SEGMENTS, TIMES, Table, UNSUPPORTED, parse_by_group,
};
use crate::document::{
    self, Additivity, Block, BlockEnd, Conditions, Device, Header, Host, Measurement, Model,
    Moving, Origin, Processor, Program, Rejected, RowError,
};
use crate::soak::Thermal;
use crate::units::{MilliCelsius, Nanos};

/// `profile.json` as version 4 has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileJsonV4 {
    format: String,
    #[expect(dead_code, reason = "it was read before, to come here")]
    version: u32,
    simulated: bool,
    emulated: bool,
    model: Model,
    device: Device,
    processors: Vec<Processor>,
    measurements: Vec<Measurement>,
    additivity: Vec<Additivity>,
    moving: Vec<Moving>,
    evaluations: Vec<EvaluationV4>,
    provenance: ProvenanceV4,
    written_by: Option<Program>,
    files: Files,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EvaluationV4 {
    cpu: String,
    accelerator: String,
    set: String,
    set_sha256: String,
    preprocessing: Preprocessing,
    metric: Metric,
    answers: u64,
    samples: u64,
    seed: u64,
    stop_at_half_width: Option<f64>,
    executed_flop: u64,
    naive_flop: u64,
    provenance: Option<ProvenanceV4>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProvenanceV4 {
    started_at: String,
    finished_at: String,
    host_program: Program,
    device_program: Program,
    run: String,
    link: String,
    device_system: String,
    host: Host,
}

impl From<ProfileJsonV4> for Opened {
    fn from(json: ProfileJsonV4) -> Self {
        let files = json.files;
        Opened {
            header: Header {
                format: json.format,
                version: document::VERSION,
                simulated: json.simulated,
                emulated: json.emulated,
                thermal: Thermal::Cold,
                model: json.model,
                device: json.device,
                processors: json.processors,
                measurements: json.measurements,
                provenance: json.provenance.into(),
                written_by: json.written_by,
            },
            additivity: json.additivity,
            moving: json.moving,
            evaluations: json.evaluations.into_iter().map(Into::into).collect(),
            soaks: Vec::new(),
            energy: None,
            steady: None,
            hashes: BTreeMap::from([
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
            ]),
            version: 4,
            has_digest: true,
        }
    }
}

impl From<EvaluationV4> for document::Evaluation {
    fn from(evaluation: EvaluationV4) -> Self {
        document::Evaluation {
            cpu: evaluation.cpu,
            accelerator: evaluation.accelerator,
            set: evaluation.set,
            set_sha256: evaluation.set_sha256,
            preprocessing: evaluation.preprocessing,
            metric: evaluation.metric,
            answers: evaluation.answers,
            samples: evaluation.samples,
            seed: evaluation.seed,
            as_runs: false,
            stop_at_half_width: evaluation.stop_at_half_width,
            executed_flop: evaluation.executed_flop,
            naive_flop: evaluation.naive_flop,
            provenance: evaluation.provenance.map(Into::into),
        }
    }
}

impl From<ProvenanceV4> for document::Provenance {
    fn from(provenance: ProvenanceV4) -> Self {
        document::Provenance {
            started_at: provenance.started_at,
            finished_at: provenance.finished_at,
            host_program: provenance.host_program,
            device_program: provenance.device_program,
            run: provenance.run,
            link: provenance.link,
            device_system: provenance.device_system,
            host: provenance.host,
            phone: None,
            fitness: None,
        }
    }
}

/// `blocks.csv` as versions 3 and 4 have it.
pub(in crate::document) const BLOCKS_V4: Table = Table {
    file: "blocks.csv",
    columns: &[
        "processor",
        "order",
        "block",
        "rested_ns",
        "sentinel_before_ns",
        "sentinel_after_ns",
        "thermal_status_before",
        "thermal_status_after",
        "temperature_before_millicelsius",
        "temperature_after_millicelsius",
        "battery_before_percent",
        "battery_after_percent",
        "frequency_caps_before_khz",
        "frequency_caps_after_khz",
        "rejection",
        "origin",
    ],
};

/// A row of it.
#[derive(Deserialize)]
pub(in crate::document) struct BlockRecordV4<'a> {
    processor: Cow<'a, str>,
    order: u32,
    block: u32,
    rested_ns: Nanos,
    sentinel_before_ns: Nanos,
    sentinel_after_ns: Nanos,
    thermal_status_before: Option<u8>,
    thermal_status_after: Option<u8>,
    temperature_before_millicelsius: Option<MilliCelsius>,
    temperature_after_millicelsius: Option<MilliCelsius>,
    battery_before_percent: Option<u8>,
    battery_after_percent: Option<u8>,
    frequency_caps_before_khz: String,
    frequency_caps_after_khz: String,
    rejection: Option<Rejected>,
    pub(in crate::document) origin: Origin,
}

impl TryFrom<BlockRecordV4<'_>> for Block {
    type Error = RowError;
    fn try_from(row: BlockRecordV4<'_>) -> Result<Self, RowError> {
        Ok(Block {
            processor: row.processor.into_owned(),
            order: row.order,
            number: row.block,
            rested: row.rested_ns,
            before: BlockEnd {
                sentinel: row.sentinel_before_ns,
                conditions: Conditions {
                    thermal_status: row.thermal_status_before,
                    temperature_millicelsius: row.temperature_before_millicelsius,
                    battery_percent: row.battery_before_percent,
                    frequency_caps_khz: parse_by_group(&row.frequency_caps_before_khz)?,
                    ..Conditions::default()
                },
            },
            after: BlockEnd {
                sentinel: row.sentinel_after_ns,
                conditions: Conditions {
                    thermal_status: row.thermal_status_after,
                    temperature_millicelsius: row.temperature_after_millicelsius,
                    battery_percent: row.battery_after_percent,
                    frequency_caps_khz: parse_by_group(&row.frequency_caps_after_khz)?,
                    ..Conditions::default()
                },
            },
            rejection: row.rejection,
            disturbance: None,
        })
    }
}
