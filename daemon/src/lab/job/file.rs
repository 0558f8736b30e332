//! The file in which a user says what a job is; `example-job.toml` explains every key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use super::keys::{self, BadKey};
use super::{AccuracySpec, JobSpec, MeasureSpec, ModelSpec, Selector};
use crate::evaluation_set::fits_network;
use crate::lab::library::Library;
use crate::lab::recurrence::Recurrence;
use crate::lab::when::{self, Direction};
use crate::lab::window::Window;
use crate::measure::{ModelFile, SetFile};

/// The file that explains every key.
pub const EXAMPLE: &str = include_str!("../../../example-job.toml");

const PRIORITIES: std::ops::RangeInclusive<i32> = -100..=100;

/// More are a slip of the finger.
const MOST_REPEATS: u32 = 1000;

/// A job file that was read; what it names was not looked at yet.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    path: PathBuf,
    content: Content,
    devices: Vec<Selector>,
    measure: MeasureSpec,
    accuracy: Option<Accuracy>,
}

/// Why a file is no job.
#[derive(Debug, thiserror::Error)]
pub enum JobFileError {
    /// It cannot be read.
    #[error("cannot read the job file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no TOML.
    #[error("{} is no TOML, line {line}: {problem}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What the parser said.
        problem: String,
    },
    /// A value that cannot be, or that is missing.
    #[error("{}: `{key}`: {problem}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key with its section.
        key: String,
        /// What is wrong and what to write.
        problem: String,
    },
    /// What it names cannot be kept.
    #[error("cannot keep a copy of {what} in {}: {source}", folder.display())]
    Library {
        /// Of what.
        what: String,
        /// Where copies are.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// All but the sections.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Content {
    name: Option<String>,
    models: Vec<ModelEntry>,
    repeats: u32,
    priority: i32,
    #[serde(deserialize_with = "moment")]
    not_before: Option<String>,
    #[serde(deserialize_with = "moment")]
    deadline: Option<String>,
    window: Option<Window>,
    every: Option<Recurrence>,
    profiles: Option<PathBuf>,
    // Sections are parsed by themselves, so that errors name their keys.
    devices: Vec<Table>,
    measure: Table,
    accuracy: Option<Table>,
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
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "write paths in quotes, or tables such as { file = \"net.onnx\", dims = { N = 1 } }"
)]
enum ModelEntry {
    Path(PathBuf),
    Table(ModelTable),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    file: PathBuf,
    #[serde(default)]
    dims: BTreeMap<String, u64>,
}

impl ModelEntry {
    fn parts(self) -> (PathBuf, BTreeMap<String, u64>) {
        match self {
            ModelEntry::Path(file) => (file, BTreeMap::new()),
            ModelEntry::Table(ModelTable { file, dims }) => (file, dims),
        }
    }
}

/// `[accuracy]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Accuracy {
    set: PathBuf,
    placements: usize,
    answers: Option<usize>,
    stop_at_percent: Option<f64>,
    seed: u64,
}

impl Default for Accuracy {
    fn default() -> Accuracy {
        Accuracy {
            set: PathBuf::new(),
            placements: 300,
            answers: None,
            stop_at_percent: None,
            seed: 1,
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

impl JobFile {
    /// Reads the job file at `path`.
    pub fn read(path: &Path) -> Result<JobFile, JobFileError> {
        let text = std::fs::read_to_string(path).map_err(|source| JobFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        let table: Table =
            toml::from_str(&text).map_err(|error| syntax(path.to_owned(), &text, &error))?;
        JobFile::parse(path, &table).map_err(|BadKey { key, problem }| JobFileError::Key {
            path: path.to_owned(),
            key,
            problem,
        })
    }

    fn parse(path: &Path, table: &Table) -> Result<JobFile, BadKey> {
        let content: Content = keys::parse(table, "")?;
        let devices = content.devices.iter();
        let devices: Result<Vec<Selector>, BadKey> = devices
            .map(|table| keys::parse(table, "devices."))
            .collect();
        let accuracy = content.accuracy.as_ref();
        let accuracy = accuracy.map(|table| keys::parse(table, "accuracy."));
        let file = JobFile {
            path: path.to_owned(),
            devices: devices?,
            measure: keys::parse(&content.measure, "measure.")?,
            accuracy: accuracy.transpose()?,
            content,
        };
        match file.problems().into_iter().find(|(wrong, ..)| *wrong) {
            Some((_, key, problem)) => Err(bad(key, problem)),
            None => Ok(file),
        }
    }

    /// What can be wrong with single values, and whether it is.
    fn problems(&self) -> Vec<(bool, &'static str, String)> {
        let Content {
            models,
            repeats,
            priority,
            profiles,
            name,
            ..
        } = &self.content;
        let MeasureSpec {
            target_ci_percent,
            budget,
            samples,
            processors,
            ..
        } = &self.measure;
        let no_size = |entry: &ModelEntry| match entry {
            ModelEntry::Path(_) => false,
            ModelEntry::Table(table) => table.dims.values().any(|size| *size == 0),
        };
        let named_twice =
            |names: &[String]| (1..names.len()).any(|place| names[..place].contains(&names[place]));
        let home = |path: &Path| path.starts_with("~");
        let mut problems = vec![
            (
                name.as_ref().is_some_and(|name| name.trim().is_empty()),
                "name",
                "a name is missing; write one, or leave the key out and the job is called what its file is"
                    .to_owned(),
            ),
            (
                models.is_empty(),
                "models",
                "there is nothing to profile; write a list of ONNX files, such as [\"net.onnx\"]".to_owned(),
            ),
            (
                models.iter().any(no_size),
                "models",
                "0 is no size of a dimension; write a whole number of at least 1".to_owned(),
            ),
            (
                models.iter().any(|entry| home(&entry.clone().parts().0)),
                "models",
                "`~` is not replaced in job files; write paths that begin with /, or from the job file's folder"
                    .to_owned(),
            ),
            (
                self.devices.is_empty(),
                "devices",
                "there is nothing to profile on; write [[devices]], and under it a serial, soc, abi, android or pool"
                    .to_owned(),
            ),
            (
                self.devices.iter().any(Selector::is_empty),
                "devices",
                "one of them says nothing; under each [[devices]] write a serial, soc, abi, android or pool, such as \
                 abi = \"arm64-v8a\""
                    .to_owned(),
            ),
            (
                !(1..=MOST_REPEATS).contains(repeats),
                "repeats",
                format!("`{repeats}` is not how often something is done; write a whole number from 1 to {MOST_REPEATS}"),
            ),
            (
                !PRIORITIES.contains(priority),
                "priority",
                format!(
                    "`{priority}` is out of range; write a whole number from {} to {}, of which the greatest comes \
                     first",
                    PRIORITIES.start(),
                    PRIORITIES.end()
                ),
            ),
            (
                (profiles.as_ref()).is_some_and(|path| home(path) || path.as_os_str().is_empty()),
                "profiles",
                "this is no folder; write one that begins with /, or one from the job file's folder".to_owned(),
            ),
            (
                !(*target_ci_percent > 0.0 && *target_ci_percent <= 100.0),
                "measure.target-ci-percent",
                format!("`{target_ci_percent}` is no width of an interval; write a number above 0 and up to 100"),
            ),
            (
                budget.is_zero(),
                "measure.budget",
                "nothing can be measured in no time; write a duration such as \"10m\"".to_owned(),
            ),
            (
                *samples == 0,
                "measure.samples",
                "`0` samples are none; write a whole number of at least 1, better 6, below which there are no intervals"
                    .to_owned(),
            ),
            (
                processors.iter().any(|name| name.trim().is_empty()) || named_twice(processors),
                "measure.processors",
                "each processor needs a name of its own; write those that a profile of the device lists, or leave the \
                 key out for all of them"
                    .to_owned(),
            ),
        ];
        if let Some(accuracy) = &self.accuracy {
            let stop_at = accuracy.stop_at_percent.unwrap_or(1.0);
            problems.extend([
                (
                    accuracy.set.as_os_str().is_empty(),
                    "accuracy.set",
                    "the evaluation set is missing; write the file that `layerlab set` made".to_owned(),
                ),
                (
                    accuracy.answers == Some(0),
                    "accuracy.answers",
                    "`0` answers are none; write a whole number of at least 1, or leave the key out for all".to_owned(),
                ),
                (
                    !(stop_at > 0.0 && stop_at < 100.0),
                    "accuracy.stop-at-percent",
                    format!("`{stop_at}` is no width of an interval; write a number above 0 and below 100"),
                ),
            ]);
        }
        problems
    }

    /// The job as the lab takes it at `now`, with copies of its models and of its set in `library`.
    pub fn resolve(self, now: Timestamp, library: &Library) -> Result<JobSpec, JobFileError> {
        let path = self.path.clone();
        self.found(now, library).map_err(|refusal| match refusal {
            Refusal::Key(BadKey { key, problem }) => JobFileError::Key { path, key, problem },
            Refusal::Library { what, source } => JobFileError::Library {
                what,
                folder: library.folder().to_owned(),
                source,
            },
        })
    }

    fn found(self, now: Timestamp, library: &Library) -> Result<JobSpec, Refusal> {
        let folder = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = folder.parent().unwrap_or(Path::new("/"));
        let (not_before, deadline) = self.times(now)?;
        let content = self.content;
        let set = match &self.accuracy {
            Some(accuracy) => {
                let set = SetFile::open(&folder.join(&accuracy.set));
                Some(set.map_err(|error| bad("accuracy.set", error.to_string()))?)
            }
            None => None,
        };
        let mut models: Vec<ModelSpec> = Vec::new();
        for entry in content.models {
            let (file, dims) = entry.parts();
            let path = folder.join(file);
            let model =
                ModelFile::open(&path, &dims).map_err(|error| bad("models", error.to_string()))?;
            if let Some(set) = &set {
                fits_network(&set.set, &model.network)
                    .map_err(|error| bad("accuracy.set", error.to_string()))?;
            }
            if let Some(same) = models.iter().find(|known| known.sha256 == model.sha256) {
                let (one, other) = (same.path.display(), path.display());
                let problem = format!(
                    "`{one}` and `{other}` are the same model; leave one out, and write `repeats` for more profiles of it"
                );
                return Err(bad("models", problem).into());
            }
            keep(library, "the model", &path, &model.onnx, &model.sha256)?;
            models.push(ModelSpec {
                name: model.network.name().to_owned(),
                sha256: model.sha256,
                source_sha256: model.source_sha256,
                path,
            });
        }
        let accuracy = match (self.accuracy, set) {
            (Some(accuracy), Some(set)) => {
                let path = folder.join(accuracy.set);
                keep(library, "the set", &path, set.bytes(), &set.sha256)?;
                Some(AccuracySpec {
                    set_sha256: set.sha256,
                    path,
                    placements: accuracy.placements,
                    answers: accuracy.answers,
                    stop_at_percent: accuracy.stop_at_percent,
                    seed: accuracy.seed,
                })
            }
            _ => None,
        };
        let stem = self.path.file_stem().unwrap_or_default();
        Ok(JobSpec {
            name: (content.name).unwrap_or_else(|| stem.to_string_lossy().into_owned()),
            models,
            devices: self.devices,
            repeats: content.repeats,
            priority: content.priority,
            not_before,
            deadline,
            window: content.window,
            every: content.every,
            profiles: content.profiles.map(|profiles| folder.join(profiles)),
            measure: self.measure,
            accuracy,
        })
    }

    /// From when and until when.
    fn times(&self, now: Timestamp) -> Result<(Option<Timestamp>, Option<Timestamp>), BadKey> {
        let zone = TimeZone::system();
        let point = |key: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => when::point(text, now, Direction::Next, &zone)
                .map(Some)
                .map_err(|error| bad(key, error.to_string())),
        };
        if self.content.every.is_some() && self.content.deadline.is_some() {
            let problem = "it would be the same one whenever the job comes again; leave it or `every` out, and end the \
                           job by `layerlab job cancel`";
            return Err(bad("deadline", problem.to_owned()));
        }
        let not_before = point("not-before", &self.content.not_before)?;
        let deadline = point("deadline", &self.content.deadline)?;
        let Some(end) = deadline else {
            return Ok((not_before, None));
        };
        let told = |at| when::moment(at, now, &zone);
        if end <= now {
            let problem = format!("{} is over; write a later point in time", told(end));
            return Err(bad("deadline", problem));
        }
        match not_before {
            Some(start) if end <= start => {
                let problem = format!(
                    "{} is not after `not-before`, {}; write a later point in time",
                    told(end),
                    told(start)
                );
                Err(bad("deadline", problem))
            }
            _ => Ok((not_before, deadline)),
        }
    }
}

enum Refusal {
    Key(BadKey),
    Library {
        what: String,
        source: std::io::Error,
    },
}

impl From<BadKey> for Refusal {
    fn from(key: BadKey) -> Refusal {
        Refusal::Key(key)
    }
}

fn bad(key: &str, problem: String) -> BadKey {
    BadKey {
        key: key.to_owned(),
        problem,
    }
}

fn keep(
    library: &Library,
    what: &str,
    path: &Path,
    bytes: &[u8],
    sha256: &str,
) -> Result<(), Refusal> {
    library.put(bytes, sha256).map_err(|source| {
        let what = format!("{what} `{}`", path.display());
        Refusal::Library { what, source }
    })
}

fn syntax(path: PathBuf, text: &str, error: &toml::de::Error) -> JobFileError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = &text.as_bytes()[..start];
    let words: Vec<&str> = error.message().split_whitespace().collect();
    JobFileError::Syntax {
        path,
        line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        problem: words.join(" "),
    }
}

#[cfg(test)]
mod tests;
