//! What a job file may say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use crate::recurrence::Recurrence;
use crate::window::Window;
use layerlab_campaign::{AccuracySettings, VideoSettings};

/// All but the sections.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Content {
    pub(super) name: Option<String>,
    pub(super) models: Vec<ModelEntry>,
    pub(super) repeats: u32,
    pub(super) priority: i32,
    #[serde(deserialize_with = "moment")]
    pub(super) not_before: Option<String>,
    #[serde(deserialize_with = "moment")]
    pub(super) deadline: Option<String>,
    pub(super) window: Option<Window>,
    pub(super) every: Option<Recurrence>,
    pub(super) profiles: Option<PathBuf>,
    // Sections are parsed by themselves, so that errors name their keys.
    pub(super) devices: Vec<Table>,
    pub(super) measure: Table,
    pub(super) accuracy: Option<Table>,
    pub(super) video: Option<Table>,
}

impl Default for Content {
    fn default() -> Content {
        Content {
            name: None,
            models: Vec::new(),
            repeats: 1,
            priority: 0,
            not_before: None,
            deadline: None,
            window: None,
            every: None,
            profiles: None,
            devices: Vec::new(),
            measure: Table::new(),
            accuracy: None,
            video: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "write paths in quotes, or tables such as { file = \"net.onnx\", dims = { N = 1 } }"
)]
pub(super) enum ModelEntry {
    Path(PathBuf),
    Table(ModelTable),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable {
    pub(super) file: PathBuf,
    /// The model's quantised twin.
    #[serde(default)]
    pub(super) quantised: Option<PathBuf>,
    #[serde(default)]
    pub(super) dims: BTreeMap<String, u64>,
}

impl ModelEntry {
    pub(super) fn table(self) -> ModelTable {
        match self {
            ModelEntry::Path(file) => ModelTable {
                file,
                quantised: None,
                dims: BTreeMap::new(),
            },
            ModelEntry::Table(table) => table,
        }
    }
}

/// `[accuracy]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Accuracy {
    pub(super) set: PathBuf,
    pub(super) processors: Vec<String>,
    pub(super) placements: usize,
    pub(super) answers: Option<usize>,
    pub(super) stop_at_percent: Option<f64>,
    pub(super) seed: u64,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy {
            set: PathBuf::new(),
            processors: Vec::new(),
            placements: AccuracySettings::PLACEMENTS,
            answers: None,
            stop_at_percent: None,
            seed: AccuracySettings::SEED,
        }
    }
}

/// `[video]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Video {
    pub(super) set: PathBuf,
    pub(super) processor: Option<String>,
    pub(super) answers: Option<u64>,
    pub(super) frames: u64,
    pub(super) seed: u64,
}

impl Default for Video {
    fn default() -> Video {
        Video {
            set: PathBuf::new(),
            processor: None,
            answers: None,
            frames: VideoSettings::FRAMES,
            seed: VideoSettings::SEED,
        }
    }
}

/// A point in time in quotes, or one of TOML's own.
fn moment<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(from)? {
        Value::String(text) => Ok(Some(text)),
        Value::Datetime(at) => Ok(Some(at.to_string())),
        other => Err(serde::de::Error::custom(format!(
            "`{other}` is no point in time; write one such as \"22:00\", \"tomorrow 07:00\" or \"8h\""
        ))),
    }
}
