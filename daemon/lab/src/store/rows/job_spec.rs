//! What a job asks for, in the store. Windows, recurrences, designs, shapes and requirements are texts that users write, and
//! stand in the store as those.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use layerlab_campaign::{LinkSettings, WrittenShape};
use layerlab_profiles::design::Design;
use layerlab_profiles::document::HashedFile;
use layerlab_profiles::link::LinkKind;
use serde::{Deserialize, Serialize};

use crate::job::{
    AccuracySpec, JobSpec, MeasureSpec, ModelSpec, Requirement, Selector, TwinSpec, VideoSpec,
    written_duration,
};
use crate::recurrence::Recurrence;
use crate::window::Window;

#[derive(Serialize, Deserialize)]
pub(super) struct JobSpecRow {
    name: String,
    models: Vec<ModelRow>,
    devices: Vec<SelectorRow>,
    repeats: u32,
    priority: i32,
    not_before: Option<Timestamp>,
    deadline: Option<Timestamp>,
    window: Option<Window>,
    every: Option<Recurrence>,
    profiles: Option<PathBuf>,
    measure: MeasureRow,
    accuracy: Option<AccuracyRow>,
    // Since version 3.
    #[serde(default)]
    video: Option<VideoRow>,
    // Since version 4.
    #[serde(default)]
    link: Option<LinkRow>,
    // Since version 5.
    #[serde(default)]
    hosts: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct ModelRow {
    name: String,
    sha256: String,
    source_sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external_weights: Option<Vec<HashedFileRow>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quantised: Option<TwinRow>,
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct TwinRow {
    sha256: String,
    source: HashedFileRow,
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct HashedFileRow {
    name: String,
    sha256: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct SelectorRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    soc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abi: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    android: Option<Requirement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    each: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct MeasureRow {
    processors: Vec<String>,
    design: Design,
    target_ci_percent: f64,
    #[serde(with = "written_duration")]
    budget: Duration,
    samples: u64,
    visits: u64,
    #[serde(with = "written_duration::optional")]
    steady: Option<Duration>,
    #[serde(with = "written_duration::optional")]
    energy: Option<Duration>,
    energy_visits: u32,
    gap_us: u64,
    // Since version 6.
    #[serde(with = "written_duration")]
    cool_down: Duration,
    seed: u64,
}

#[derive(Serialize, Deserialize)]
struct AccuracyRow {
    set_sha256: String,
    path: PathBuf,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    processors: Vec<String>,
    placements: usize,
    answers: Option<usize>,
    stop_at_percent: Option<f64>,
    seed: u64,
}

#[derive(Serialize, Deserialize)]
struct VideoRow {
    set_sha256: String,
    path: PathBuf,
    processor: Option<String>,
    answers: Option<u64>,
    frames: u64,
    seed: u64,
}

#[derive(Serialize, Deserialize)]
struct LinkRow {
    name: String,
    carrier: LinkKind,
    server: String,
    token_file: PathBuf,
    tunnel: bool,
    shape: Option<WrittenShape>,
    repeats: u32,
    echoes: u32,
    connections: Option<u32>,
    gap_us: u64,
    #[serde(with = "written_duration::optional")]
    trace: Option<Duration>,
    seed: u64,
}

impl From<JobSpec> for JobSpecRow {
    fn from(spec: JobSpec) -> JobSpecRow {
        JobSpecRow {
            name: spec.name,
            models: spec.models.into_iter().map(Into::into).collect(),
            devices: spec.devices.into_iter().map(Into::into).collect(),
            repeats: spec.repeats,
            priority: spec.priority,
            not_before: spec.not_before,
            deadline: spec.deadline,
            window: spec.window,
            every: spec.every,
            profiles: spec.profiles,
            measure: spec.measure.into(),
            accuracy: spec.accuracy.map(Into::into),
            video: spec.video.map(Into::into),
            link: spec.link.map(Into::into),
            hosts: spec.hosts,
        }
    }
}

impl From<JobSpecRow> for JobSpec {
    fn from(row: JobSpecRow) -> JobSpec {
        JobSpec {
            name: row.name,
            models: row.models.into_iter().map(Into::into).collect(),
            devices: row.devices.into_iter().map(Into::into).collect(),
            repeats: row.repeats,
            priority: row.priority,
            not_before: row.not_before,
            deadline: row.deadline,
            window: row.window,
            every: row.every,
            profiles: row.profiles,
            measure: row.measure.into(),
            accuracy: row.accuracy.map(Into::into),
            video: row.video.map(Into::into),
            link: row.link.map(Into::into),
            hosts: row.hosts,
        }
    }
}

impl From<ModelSpec> for ModelRow {
    fn from(model: ModelSpec) -> ModelRow {
        ModelRow {
            name: model.name,
            sha256: model.sha256,
            source_sha256: model.source_sha256,
            external_weights: model.external_weights.map(all_into),
            quantised: model.quantised.map(Into::into),
            path: model.path,
        }
    }
}

impl From<ModelRow> for ModelSpec {
    fn from(row: ModelRow) -> ModelSpec {
        ModelSpec {
            name: row.name,
            sha256: row.sha256,
            source_sha256: row.source_sha256,
            external_weights: row.external_weights.map(all_into),
            quantised: row.quantised.map(Into::into),
            path: row.path,
        }
    }
}

impl From<TwinSpec> for TwinRow {
    fn from(twin: TwinSpec) -> TwinRow {
        TwinRow {
            sha256: twin.sha256,
            source: twin.source.into(),
            path: twin.path,
        }
    }
}

impl From<TwinRow> for TwinSpec {
    fn from(row: TwinRow) -> TwinSpec {
        TwinSpec {
            sha256: row.sha256,
            source: row.source.into(),
            path: row.path,
        }
    }
}

impl From<HashedFile> for HashedFileRow {
    fn from(HashedFile { name, sha256 }: HashedFile) -> HashedFileRow {
        HashedFileRow { name, sha256 }
    }
}

impl From<HashedFileRow> for HashedFile {
    fn from(HashedFileRow { name, sha256 }: HashedFileRow) -> HashedFile {
        HashedFile { name, sha256 }
    }
}

fn all_into<A, B: From<A>>(all: Vec<A>) -> Vec<B> {
    all.into_iter().map(B::from).collect()
}

impl From<Selector> for SelectorRow {
    fn from(selector: Selector) -> SelectorRow {
        SelectorRow {
            serial: selector.serial,
            soc: selector.soc,
            abi: selector.abi,
            android: selector.android,
            pool: selector.pool,
            each: selector.each,
        }
    }
}

impl From<SelectorRow> for Selector {
    fn from(row: SelectorRow) -> Selector {
        Selector {
            serial: row.serial,
            soc: row.soc,
            abi: row.abi,
            android: row.android,
            pool: row.pool,
            each: row.each,
        }
    }
}

/// What a body leaves out was not asked for.
impl Default for MeasureRow {
    fn default() -> MeasureRow {
        MeasureSpec::default().into()
    }
}

impl From<MeasureSpec> for MeasureRow {
    fn from(measure: MeasureSpec) -> MeasureRow {
        MeasureRow {
            processors: measure.processors,
            design: measure.design,
            target_ci_percent: measure.target_ci_percent,
            budget: measure.budget,
            samples: measure.samples,
            visits: measure.visits,
            steady: measure.steady,
            energy: measure.energy,
            energy_visits: measure.energy_visits,
            gap_us: measure.gap_us,
            cool_down: measure.cool_down,
            seed: measure.seed,
        }
    }
}

impl From<MeasureRow> for MeasureSpec {
    fn from(row: MeasureRow) -> MeasureSpec {
        MeasureSpec {
            processors: row.processors,
            design: row.design,
            target_ci_percent: row.target_ci_percent,
            budget: row.budget,
            samples: row.samples,
            visits: row.visits,
            steady: row.steady,
            energy: row.energy,
            energy_visits: row.energy_visits,
            gap_us: row.gap_us,
            cool_down: row.cool_down,
            seed: row.seed,
        }
    }
}

impl From<AccuracySpec> for AccuracyRow {
    fn from(accuracy: AccuracySpec) -> AccuracyRow {
        AccuracyRow {
            set_sha256: accuracy.set_sha256,
            path: accuracy.path,
            processors: accuracy.processors,
            placements: accuracy.placements,
            answers: accuracy.answers,
            stop_at_percent: accuracy.stop_at_percent,
            seed: accuracy.seed,
        }
    }
}

impl From<AccuracyRow> for AccuracySpec {
    fn from(row: AccuracyRow) -> AccuracySpec {
        AccuracySpec {
            set_sha256: row.set_sha256,
            path: row.path,
            processors: row.processors,
            placements: row.placements,
            answers: row.answers,
            stop_at_percent: row.stop_at_percent,
            seed: row.seed,
        }
    }
}

impl From<VideoSpec> for VideoRow {
    fn from(video: VideoSpec) -> VideoRow {
        VideoRow {
            set_sha256: video.set_sha256,
            path: video.path,
            processor: video.processor,
            answers: video.answers,
            frames: video.frames,
            seed: video.seed,
        }
    }
}

impl From<VideoRow> for VideoSpec {
    fn from(row: VideoRow) -> VideoSpec {
        VideoSpec {
            set_sha256: row.set_sha256,
            path: row.path,
            processor: row.processor,
            answers: row.answers,
            frames: row.frames,
            seed: row.seed,
        }
    }
}

impl From<LinkSettings> for LinkRow {
    fn from(link: LinkSettings) -> LinkRow {
        LinkRow {
            name: link.name,
            carrier: link.carrier,
            server: link.server,
            token_file: link.token_file,
            tunnel: link.tunnel,
            shape: link.shape,
            repeats: link.repeats,
            echoes: link.echoes,
            connections: link.connections,
            gap_us: link.gap_us,
            trace: link.trace,
            seed: link.seed,
        }
    }
}

impl From<LinkRow> for LinkSettings {
    fn from(row: LinkRow) -> LinkSettings {
        LinkSettings {
            name: row.name,
            carrier: row.carrier,
            server: row.server,
            token_file: row.token_file,
            tunnel: row.tunnel,
            shape: row.shape,
            repeats: row.repeats,
            echoes: row.echoes,
            connections: row.connections,
            gap_us: row.gap_us,
            trace: row.trace,
            seed: row.seed,
        }
    }
}
