//! What a job file may say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use crate::job::written_duration;
use crate::recurrence::Recurrence;
use crate::window::Window;
use layerlab_campaign::{AccuracySettings, LinkSettings, VideoSettings, WrittenShape};
use layerlab_profiles::link::LinkKind;

/// All but the sections.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Content {
    pub(super) name: Option<String>,
    pub(super) models: Vec<ModelEntry>,
    pub(super) hosts: Vec<String>,
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
    pub(super) link: Option<Table>,
}

impl Default for Content {
    fn default() -> Content {
        Content {
            name: None,
            models: Vec::new(),
            hosts: Vec::new(),
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
            link: None,
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

/// `[link]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) kind: Option<LinkKind>,
    pub(super) server: String,
    pub(super) token_file: PathBuf,
    pub(super) tunnel: bool,
    pub(super) shape: Option<WrittenShape>,
    pub(super) repeats: u32,
    pub(super) echoes: u32,
    pub(super) connections: Option<u32>,
    pub(super) gap_us: u64,
    #[serde(deserialize_with = "written_duration::optional::deserialize")]
    pub(super) trace: Option<Duration>,
    pub(super) seed: u64,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            name: String::new(),
            kind: None,
            server: String::new(),
            token_file: PathBuf::new(),
            tunnel: false,
            shape: None,
            repeats: LinkSettings::USUAL_REPEATS,
            echoes: LinkSettings::USUAL_ECHOES,
            connections: None,
            gap_us: LinkSettings::USUAL_GAP_US,
            trace: None,
            seed: LinkSettings::USUAL_SEED,
        }
    }
}

impl Link {
    /// The same as a campaign takes it, with the path of the token file from `folder`.
    pub(super) fn settings(&self, folder: &Path) -> LinkSettings {
        LinkSettings {
            name: self.name.clone(),
            // What is no kind of link is refused before.
            carrier: self.kind.unwrap_or(LinkKind::Shaped),
            server: self.server.clone(),
            token_file: folder.join(&self.token_file),
            tunnel: self.tunnel,
            shape: self.shape,
            repeats: self.repeats,
            echoes: self.echoes,
            connections: self.connections,
            gap_us: self.gap_us,
            trace: self.trace,
            seed: self.seed,
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
