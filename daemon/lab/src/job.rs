//! What a job asks for: models, or a link, devices, and how to measure.

mod kind;
mod selector;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use layerlab_profiles::document::HashedFile;
use layerlab_profiles::{Nanos, sha256};
use layerlab_protocol::{Hygiene, MeterChoice};
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::recurrence::Recurrence;
use super::window::Window;
use layerlab_campaign::{
    AccuracySettings, EnergySettings, LinkSettings, Placements, SteadySettings, TimesSettings,
    VideoSettings,
};

pub use kind::RunKind;
pub use selector::{Requirement, Selector};

/// A job has at most so many runs: thousands of nights for one phone. All of them are in the daemon's memory, and in what
/// `layerlab jobs` reads.
pub const MOST_RUNS: usize = 10_000;

/// A job, with its models and evaluation set found and hashed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// What users call it.
    pub name: String,
    /// What to profile; nothing of a job that measures a link.
    pub models: Vec<ModelSpec>,
    /// The devices to profile on; each selector asks for one device, or for each that matches.
    pub devices: Vec<Selector>,
    /// The hosts whose devices will do; those of all hosts of the lab if it names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// How often each.
    pub repeats: u32,
    /// Jobs with more go first.
    pub priority: i32,
    /// Not worked on before.
    pub not_before: Option<Timestamp>,
    /// What is not done then is given up.
    pub deadline: Option<Timestamp>,
    /// When it may be worked on; else the lab's window counts.
    pub window: Option<Window>,
    /// Of a job that recurs: when.
    pub every: Option<Recurrence>,
    /// The folder in which its profiles are published; else the lab's.
    pub profiles: Option<PathBuf>,
    /// How to measure times.
    pub measure: MeasureSpec,
    /// How to measure accuracy, if at all.
    pub accuracy: Option<AccuracySpec>,
    /// How to answer the frames of a video. A job that says so publishes that, and no profiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoSpec>,
    /// The link to measure. A job that says so publishes that, and no profiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkSettings>,
}

/// A model of a job. The lab keeps its own copy, by hash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// What the model is called in lists and reports.
    pub name: String,
    /// SHA-256 of the self-contained file that the lab keeps.
    pub sha256: String,
    /// SHA-256 of the user's file.
    pub source_sha256: String,
    /// The files beside the user's that hold its weights; `None` in jobs from before this was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_weights: Option<Vec<HashedFile>>,
    /// The model's quantised twin, if the job has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantised: Option<TwinSpec>,
    /// Where the user's file was.
    pub path: PathBuf,
}

/// The quantised twin of a model of a job. The lab keeps its own copy, by hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwinSpec {
    /// SHA-256 of the self-contained file that the lab keeps.
    pub sha256: String,
    /// The name of the user's file without its extension, and its SHA-256.
    pub source: HashedFile,
    /// Where the user's file was.
    pub path: PathBuf,
}

/// The sizes that a user gives to a model's symbolic dimensions, by their names.
pub type SymbolicSizes = BTreeMap<String, u64>;

/// How to measure times: the choices of `layerlab profile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeasureSpec {
    /// The processors; all that a device has if there are none.
    pub processors: Vec<String>,
    /// Which segments to measure on accelerators.
    pub design: layerlab_profiles::design::Design,
    /// How wide intervals may be with the design adaptive, in percent of their number on either side.
    pub target_ci_percent: f64,
    /// The most device time per accelerator with the design adaptive.
    #[serde(with = "written_duration")]
    pub budget: std::time::Duration,
    /// Samples of each segment with other designs.
    pub samples: u64,
    /// In how many visits they are taken.
    #[serde(skip_serializing_if = "is_usual_visits")]
    pub visits: u64,
    /// For how long each processor is kept busy to find out what is steady there; `None` where the device is to be cool.
    #[serde(
        with = "written_duration::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub steady: Option<std::time::Duration>,
    /// How long the windows are in which a power meter is read; `None` where energy is not measured.
    #[serde(
        with = "written_duration::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub energy: Option<std::time::Duration>,
    /// How often each segment is run for energy.
    #[serde(skip_serializing_if = "is_usual_energy_visits")]
    pub energy_visits: u32,
    /// The idle time before each inference, in microseconds.
    pub gap_us: u64,
    /// How long a device that became slower may rest, in all.
    #[serde(with = "written_duration", skip_serializing_if = "is_usual_cool_down")]
    pub cool_down: std::time::Duration,
    /// Seeds inputs and order.
    pub seed: u64,
}

impl Default for MeasureSpec {
    fn default() -> MeasureSpec {
        MeasureSpec {
            processors: Vec::new(),
            design: TimesSettings::DESIGN,
            target_ci_percent: TimesSettings::TARGET_PERCENT,
            budget: TimesSettings::BUDGET,
            samples: TimesSettings::SAMPLES,
            visits: TimesSettings::VISITS,
            steady: None,
            energy: None,
            energy_visits: EnergySettings::VISITS,
            gap_us: TimesSettings::GAP_US,
            cool_down: Hygiene::COOL_DOWN,
            seed: TimesSettings::SEED,
        }
    }
}

// What jobs could not ask for before is left out where nobody asks for it: the hash of such jobs is what it was.
fn is_usual_visits(visits: &u64) -> bool {
    *visits == TimesSettings::VISITS
}

fn is_usual_energy_visits(visits: &u32) -> bool {
    *visits == EnergySettings::VISITS
}

fn is_usual_cool_down(cool_down: &std::time::Duration) -> bool {
    *cool_down == Hygiene::COOL_DOWN
}

impl MeasureSpec {
    /// The same as a campaign takes it. Durations that job files are refused for ask for nothing.
    pub fn settings(&self) -> TimesSettings {
        TimesSettings {
            processors: self.processors.clone(),
            design: self.design,
            samples_per_segment: self.samples,
            visits: self.visits,
            steady: (self.steady).and_then(|duration| SteadySettings::of(duration.into()).ok()),
            energy: self.energy.map(|window| EnergySettings {
                window: window.into(),
                visits: self.energy_visits,
                meter: MeterChoice::Any,
            }),
            gap: Nanos::from_micros(self.gap_us),
            hygiene: Hygiene::default().resting_for(self.cool_down.into()),
            seed: self.seed,
            target: self.target_ci_percent / 100.0,
            budget: self.budget.into(),
            ..TimesSettings::default()
        }
    }
}

/// How to measure accuracy: the choices of `layerlab profile --set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracySpec {
    /// SHA-256 of the evaluation set, of which the lab keeps its own copy.
    pub set_sha256: String,
    /// Where the user's file was.
    pub path: PathBuf,
    /// The processors of the placements' digits, the CPU first; the first CPU and the first accelerator if there
    /// are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<String>,
    /// How many random placements.
    pub placements: usize,
    /// How many answers; all if none.
    pub answers: Option<usize>,
    /// No more answers of a placement when half the width of its loss's interval is at most this, in percent.
    pub stop_at_percent: Option<f64>,
    /// Seeds the placements and the order of the answers.
    pub seed: u64,
}

impl AccuracySpec {
    /// The same as a campaign takes it.
    pub fn settings(&self) -> AccuracySettings {
        AccuracySettings {
            cpu: self.processors.first().cloned(),
            accelerators: self.processors.iter().skip(1).cloned().collect(),
            placements: Placements::Random(self.placements),
            seed: self.seed,
            answers: self.answers,
            stop_at_half_width: self.stop_at_percent.map(|percent| percent / 100.0),
            ..AccuracySettings::default()
        }
    }
}

/// How to measure what answering the frames of a video costs, and how often the answers are right: the choices of
/// `layerlab video measure`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VideoSpec {
    /// SHA-256 of the evaluation set whose images are the frames, of which the lab keeps its own copy.
    pub set_sha256: String,
    /// Where the user's file was.
    pub path: PathBuf,
    /// The processor that answers; the device's first accelerator if none is named, without one its first CPU.
    pub processor: Option<String>,
    /// How many images to answer; all if none.
    pub answers: Option<u64>,
    /// How many of them, at most, to answer in all forms.
    pub frames: u64,
    /// What images and halves are drawn from.
    pub seed: u64,
}

impl VideoSpec {
    /// The same as a campaign takes it.
    pub fn settings(&self) -> VideoSettings {
        VideoSettings {
            parts: Vec::new(),
            processor: self.processor.clone(),
            answers: self.answers,
            frames: self.frames,
            seed: self.seed,
        }
    }
}

impl Default for JobSpec {
    fn default() -> JobSpec {
        JobSpec {
            name: String::new(),
            models: Vec::new(),
            devices: Vec::new(),
            hosts: Vec::new(),
            repeats: 1,
            priority: 0,
            not_before: None,
            deadline: None,
            window: None,
            every: None,
            profiles: None,
            measure: MeasureSpec::default(),
            accuracy: None,
            video: None,
            link: None,
        }
    }
}

impl JobSpec {
    /// What each of its runs gives.
    pub fn kind(&self) -> RunKind {
        match (&self.video, &self.link) {
            (None, None) => RunKind::Profile,
            (Some(_), _) => RunKind::Video,
            (None, Some(_)) => RunKind::Link,
        }
    }

    /// How much is measured on each device: its models, or its link.
    pub fn subjects(&self) -> usize {
        match &self.link {
            None => self.models.len(),
            Some(_) => 1,
        }
    }

    /// What is measured by a run with the place `model`: the name of that model, or of the link.
    pub fn subject(&self, model: usize) -> Option<&str> {
        match &self.link {
            None => self.models.get(model).map(|model| model.name.as_str()),
            Some(link) => Some(&link.name),
        }
    }

    /// Whether `selector`, which is one of the job's, means `device`. A simulated device has no link of its own.
    pub fn means(&self, selector: &Selector, device: &Device) -> bool {
        selector.matches(device) && (self.takes_simulated() || !device.simulated)
    }

    /// Whether simulated devices can do what the job asks for.
    pub fn takes_simulated(&self) -> bool {
        self.link.is_none()
    }

    /// Its evaluation sets: where the users' files were, and the SHA-256 of the lab's copies.
    pub fn sets(&self) -> impl Iterator<Item = (&Path, &str)> {
        let accuracy = self.accuracy.iter();
        let accuracy = accuracy.map(|of| (of.path.as_path(), of.set_sha256.as_str()));
        let video = self.video.iter();
        accuracy.chain(video.map(|of| (of.path.as_path(), of.set_sha256.as_str())))
    }

    /// The lab's copies that it needs: their SHA-256, and where the users' files were.
    pub fn copies(&self) -> impl Iterator<Item = (&str, &Path)> {
        let models = self.models.iter().flat_map(|model| {
            let twin = model.quantised.iter();
            let twin = twin.map(|twin| (twin.sha256.as_str(), twin.path.as_path()));
            twin.chain([(model.sha256.as_str(), model.path.as_path())])
        });
        models.chain(self.sets().map(|(path, sha256)| (sha256, path)))
    }

    /// What the job asks for, apart from its name and from when: jobs with the same hash do the same.
    pub fn content_sha256(&self) -> String {
        let of_model = |model: &'_ ModelSpec| match &model.quantised {
            None => model.sha256.clone(),
            Some(twin) => format!("{}+{}", model.sha256, twin.sha256),
        };
        let mut models: Vec<String> = self.models.iter().map(of_model).collect();
        models.sort_unstable();
        let mut content: BTreeMap<&str, serde_json::Value> = BTreeMap::from([
            ("models", serde_json::json!(models)),
            ("devices", serde_json::json!(self.devices)),
            ("repeats", serde_json::json!(self.repeats)),
            ("every", serde_json::json!(self.every)),
            ("profiles", serde_json::json!(self.profiles)),
            ("measure", serde_json::json!(self.measure)),
            (
                "accuracy",
                serde_json::json!(self.accuracy.as_ref().map(|accuracy| AccuracySpec {
                    path: PathBuf::new(),
                    ..accuracy.clone()
                })),
            ),
        ]);
        // The hash of jobs that measure no frames and choose no hosts is what it was.
        if let Some(video) = &self.video {
            let video = VideoSpec {
                path: PathBuf::new(),
                ..video.clone()
            };
            content.insert("video", serde_json::json!(video));
        }
        if !self.hosts.is_empty() {
            content.insert("hosts", serde_json::json!(self.hosts));
        }
        if let Some(link) = &self.link {
            let link = LinkSettings {
                token_file: PathBuf::new(),
                ..link.clone()
            };
            content.insert("link", serde_json::json!(link));
        }
        sha256(serde_json::json!(content).to_string().as_bytes())
    }
}

/// Durations as users write them, for serde.
pub(crate) mod written_duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::when;

    pub(crate) fn serialize<S: Serializer>(period: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&humantime::format_duration(*period))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        when::period(&text).map_err(serde::de::Error::custom)
    }

    /// Durations that may be left out.
    pub(crate) mod optional {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(
            period: &Option<Duration>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match period {
                Some(period) => super::serialize(period, to),
                None => to.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Duration>, D::Error> {
            let text: Option<String> = Option::deserialize(from)?;
            let period = text.map(|text| when::period(&text).map_err(serde::de::Error::custom));
            period.transpose()
        }
    }
}
