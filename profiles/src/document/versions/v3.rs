//! Version 3: no `unsupported.csv`, `loads.csv` and `placements.csv`, and less in `profile.json`. Every processor ran every layer, else
//! there was no profile; the sentinel was the whole model. What it did not record is absent.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::accuracy::{Metric, Preprocessing};
use crate::design::Design;
use crate::document::opened::Opened;
use crate::document::wire::{
    BLOCKS, COMBINATIONS, CUTS, LAYERS, REJECTED, SAMPLES, SEGMENTS, TIMES,
};
use crate::document::{self, Additivity, Device, Header, Host, Method, Numerics, ProcessorKind};
use crate::segment::Segment;
use crate::soak::Thermal;
use crate::units::{Bytes, Nanos};

/// The only program that ran measurements when version 3 was written.
const HOST_PROGRAM: &str = "layerlab";

/// The only program that measured on devices then.
const DEVICE_PROGRAM: &str = "layerlab-agent";

/// `profile.json` as version 3 has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileJsonV3 {
    format: String,
    #[expect(dead_code, reason = "it was read before, to come here")]
    version: u32,
    simulated: bool,
    model: ModelV3,
    device: Device,
    processors: Vec<ProcessorV3>,
    measurements: Vec<MeasurementV3>,
    additivity: Vec<Additivity>,
    evaluations: Vec<EvaluationV3>,
    provenance: ProvenanceV3,
    files: FilesV3,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelV3 {
    name: String,
    sha256: String,
    opset: i64,
    layers: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessorV3 {
    name: String,
    kind: ProcessorKind,
    numerics: Numerics,
    runtime: String,
    runtime_version: String,
    memory_bytes: Option<Bytes>,
    threads: Option<u32>,
    pinned_to_cores: Option<Vec<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MeasurementV3 {
    processor: String,
    design: Design,
    samples_per_segment: u64,
    gap_ns: Nanos,
    method: Method,
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EvaluationV3 {
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
    #[serde(default)]
    provenance: Option<ProvenanceV3>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProvenanceV3 {
    started_at: String,
    finished_at: String,
    layerlab_version: String,
    agent_version: String,
    run: String,
    link: String,
    device_system: String,
    host: Host,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilesV3 {
    #[serde(rename = "layers.csv")]
    layers: String,
    #[serde(rename = "times.csv")]
    times: String,
    #[serde(rename = "cuts.csv")]
    cuts: String,
    #[serde(rename = "segments.csv")]
    segments: String,
    #[serde(rename = "samples.csv")]
    samples: String,
    #[serde(rename = "rejected.csv")]
    rejected: String,
    #[serde(rename = "blocks.csv")]
    blocks: String,
    #[serde(rename = "combinations.csv")]
    combinations: String,
}

impl From<ProfileJsonV3> for Opened {
    fn from(json: ProfileJsonV3) -> Self {
        let layers = json.model.layers;
        let sentinel = (layers > 0).then(|| Segment::whole(layers));
        let measurements = json.measurements.into_iter();
        Opened {
            header: Header {
                format: json.format,
                version: document::VERSION,
                simulated: json.simulated,
                emulated: false,
                thermal: Thermal::Cold,
                model: json.model.into(),
                device: json.device,
                processors: json.processors.into_iter().map(Into::into).collect(),
                measurements: measurements.map(|one| one.upgraded(sentinel)).collect(),
                provenance: json.provenance.into(),
                written_by: None,
            },
            additivity: json.additivity,
            moving: Vec::new(),
            evaluations: json.evaluations.into_iter().map(Into::into).collect(),
            soaks: Vec::new(),
            energy: None,
            steady: None,
            hashes: json.files.into(),
            version: 3,
            has_digest: false,
        }
    }
}

impl From<ModelV3> for document::Model {
    fn from(model: ModelV3) -> Self {
        document::Model {
            name: model.name,
            sha256: model.sha256,
            external_weights: None,
            quantised: None,
            opset: model.opset,
            layers: model.layers,
            inputs: None,
        }
    }
}

impl From<ProcessorV3> for document::Processor {
    fn from(processor: ProcessorV3) -> Self {
        document::Processor {
            name: processor.name,
            kind: processor.kind,
            numerics: processor.numerics,
            emulated: false,
            runtime: processor.runtime,
            runtime_version: processor.runtime_version,
            runtime_options: None,
            runtime_libraries: None,
            memory_bytes: processor.memory_bytes,
            threads: processor.threads,
            pinned_to_cores: processor.pinned_to_cores,
        }
    }
}

impl MeasurementV3 {
    fn upgraded(self, sentinel: Option<Segment>) -> document::Measurement {
        document::Measurement {
            processor: self.processor,
            design: self.design,
            samples_per_segment: self.samples_per_segment,
            visits: None,
            gap_ns: self.gap_ns,
            method: self.method,
            seed: self.seed,
            target: None,
            budget_ns: None,
            sentinel,
        }
    }
}

impl From<EvaluationV3> for document::Evaluation {
    fn from(evaluation: EvaluationV3) -> Self {
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
            stop_at_half_width: evaluation.stop_at_half_width,
            as_runs: false,
            executed_flop: evaluation.executed_flop,
            naive_flop: evaluation.naive_flop,
            provenance: evaluation.provenance.map(Into::into),
        }
    }
}

impl From<ProvenanceV3> for document::Provenance {
    fn from(provenance: ProvenanceV3) -> Self {
        let program = |name: &str, version| document::Program {
            name: name.to_owned(),
            version,
        };
        document::Provenance {
            started_at: provenance.started_at,
            finished_at: provenance.finished_at,
            host_program: program(HOST_PROGRAM, provenance.layerlab_version),
            device_program: program(DEVICE_PROGRAM, provenance.agent_version),
            run: provenance.run,
            link: provenance.link,
            device_system: provenance.device_system,
            host: provenance.host,
            phone: None,
            fitness: None,
        }
    }
}

impl From<FilesV3> for BTreeMap<&'static str, String> {
    fn from(files: FilesV3) -> Self {
        BTreeMap::from([
            (LAYERS.file, files.layers),
            (TIMES.file, files.times),
            (CUTS.file, files.cuts),
            (SEGMENTS.file, files.segments),
            (SAMPLES.file, files.samples),
            (REJECTED.file, files.rejected),
            (BLOCKS.file, files.blocks),
            (COMBINATIONS.file, files.combinations),
        ])
    }
}
