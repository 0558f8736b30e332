//! The file in which a user says what a job is; `example-job.toml` explains every key.

mod content;
mod keys;
mod problems;
mod sent;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use toml::Table;

use crate::job::{
    AccuracySpec, JobSpec, MeasureSpec, ModelSpec, RunKind, Selector, SymbolicSizes, TwinSpec,
    VideoSpec,
};
use crate::toml_file::{self, TomlFileError};
use crate::when::{self, Direction};
use content::{Accuracy, Content, Link, ModelTable, Video};
use keys::BadKey;
use layerlab_campaign::evaluation_set::fits_network;
use layerlab_campaign::{FrameSizes, LinkCampaign, ModelFile, SetFile, UnfitFrames};

pub use sent::{OutgoingFile, OutgoingJob, SentJob};

/// The file that explains every key.
pub const EXAMPLE: &str = include_str!("../../example-job.toml");

/// What a job is called that came from elsewhere and does not say so itself.
const ELSEWHERE: &str = "job.toml";

/// A job file that was read; what it names was not looked at yet.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    path: PathBuf,
    content: Content,
    devices: Vec<Selector>,
    measure: MeasureSpec,
    accuracy: Option<Accuracy>,
    video: Option<Video>,
    link: Option<Link>,
}

/// A job as the lab takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedJob {
    /// What it asks for, with the hashes of its files as they are now.
    pub spec: JobSpec,
    /// The sizes of symbolic dimensions, for each model.
    pub sizes: Vec<SymbolicSizes>,
    /// What the user may not expect of it, each in a sentence.
    pub notes: Vec<String>,
}

impl JobFile {
    /// Reads the job file at `path`.
    pub fn read(path: &Path) -> Result<JobFile, TomlFileError> {
        let table = toml_file::read("job file", path)?;
        JobFile::parse(path, &table).map_err(|wrong| wrong.within(path.to_owned()))
    }

    /// The same job on these hosts, whatever the file says; as it says if there are none.
    #[must_use]
    pub fn on_hosts(mut self, hosts: &[String]) -> JobFile {
        if !hosts.is_empty() {
            self.content.hosts = hosts.to_vec();
        }
        self
    }

    /// The text of the job file that says the same as `job`, in JSON.
    pub fn text_of_json(job: &serde_json::Value) -> Result<String, toml::ser::Error> {
        toml::to_string(&Table::try_from(job)?)
    }

    /// What users call the job.
    pub fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        let own = self.content.name.clone();
        own.unwrap_or_else(|| stem.to_string_lossy().into_owned())
    }

    /// What each run of the job gives.
    pub fn kind(&self) -> RunKind {
        match (&self.video, &self.link) {
            (None, None) => RunKind::Profile,
            (Some(_), _) => RunKind::Video,
            (None, Some(_)) => RunKind::Link,
        }
    }

    /// Whether the job comes again.
    pub fn recurs(&self) -> bool {
        self.content.every.is_some()
    }

    /// No secret leaves its host, and nobody elsewhere has this host connect to a server.
    fn measures_no_link(&self) -> Result<(), BadKey> {
        match &self.link {
            None => Ok(()),
            Some(_) => Err(bad(
                "link",
                "the server's secret stays on the lab's host, where links are measured; submit the job there".to_owned(),
            )),
        }
    }

    fn names_files_alone(&self) -> Result<(), BadKey> {
        if self.content.profiles.is_some() {
            let problem =
                "a job from elsewhere is published where the lab's profiles are; leave it out";
            return Err(bad("profiles", problem.to_owned()));
        }
        let models = self.content.models.iter().flat_map(|entry| {
            let ModelTable {
                file, quantised, ..
            } = entry.clone().table();
            std::iter::once(file).chain(quantised)
        });
        let accuracy = self.accuracy.iter().map(|accuracy| accuracy.set.clone());
        let video = self.video.iter().map(|video| video.set.clone());
        let files = models.map(|file| ("models", file));
        let files = files.chain(accuracy.map(|file| ("accuracy.set", file)));
        let mut files = files.chain(video.map(|file| ("video.set", file)));
        match files.find(|(_, file)| Path::new(file.file_name().unwrap_or_default()) != file) {
            Some((key, file)) => Err(bad(
                key,
                format!(
                    "`{}` is a path; a job from elsewhere names files of the lab's folder for models by their names alone",
                    file.display()
                ),
            )),
            None => Ok(()),
        }
    }

    fn parse(path: &Path, table: &Table) -> Result<JobFile, BadKey> {
        let content: Content = keys::parse(table, "")?;
        let devices = content.devices.iter();
        let devices: Result<Vec<Selector>, BadKey> = devices
            .map(|table| keys::parse(table, "devices."))
            .collect();
        let accuracy = content.accuracy.as_ref();
        let accuracy = accuracy.map(|table| keys::parse(table, "accuracy."));
        let video = content.video.as_ref();
        let video = video.map(|table| keys::parse(table, "video."));
        let link = content.link.as_ref();
        let link = link.map(|table| keys::parse(table, "link."));
        let file = JobFile {
            path: path.to_owned(),
            devices: devices?,
            measure: keys::parse(&content.measure, "measure.")?,
            accuracy: accuracy.transpose()?,
            video: video.transpose()?,
            link: link.transpose()?,
            content,
        };
        match file.problems().into_iter().find(|(wrong, ..)| *wrong) {
            Some((_, key, problem)) => Err(bad(key, problem)),
            None => Ok(file),
        }
    }

    /// The job as the lab takes it at `now`. Its models and its set are looked at, and stay where they are.
    pub fn resolve(self, now: Timestamp) -> Result<ResolvedJob, TomlFileError> {
        let path = self.path.clone();
        let found = self.found(now);
        found.map_err(|wrong| wrong.within(path))
    }

    fn found(self, now: Timestamp) -> Result<ResolvedJob, BadKey> {
        let folder = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = folder.parent().unwrap_or(Path::new("/"));
        let (not_before, deadline) = self.times(now)?;
        let name = self.name();
        let content = self.content;
        let set = match &self.accuracy {
            Some(accuracy) => {
                let set = SetFile::open(&folder.join(&accuracy.set));
                Some(set.map_err(|error| bad("accuracy.set", error.to_string()))?)
            }
            None => None,
        };
        let frames = match self.video {
            Some(video) => Some(Frames::open(video, folder)?),
            None => None,
        };
        let link = self.link.map(|link| link.settings(folder));
        if let Some(link) = &link {
            let found = LinkCampaign::prepare(link.clone());
            found.map_err(|error| bad("link.token-file", error.to_string()))?;
        }
        let mut models: Vec<ModelSpec> = Vec::new();
        let (mut sizes, mut notes) = (Vec::new(), Vec::new());
        for entry in content.models {
            let ModelTable {
                file,
                quantised,
                dims,
            } = entry.table();
            let path = folder.join(file);
            let twin = quantised.map(|quantised| folder.join(quantised));
            for path in std::iter::once(&path).chain(&twin) {
                let is_endless = std::fs::metadata(path).is_ok_and(|it| !it.is_file());
                if is_endless {
                    let problem = format!(
                        "`{}` is no regular file; write an ONNX file",
                        path.display()
                    );
                    return Err(bad("models", problem));
                }
            }
            let model = ModelFile::open(&path, &dims)
                .and_then(|model| model.with_quantised(twin.as_deref(), &dims));
            let model = model.map_err(|error| bad("models", error.to_string()))?;
            if let Some(set) = &set {
                fits_network(&set.set, &model.network)
                    .map_err(|error| bad("accuracy.set", error.to_string()))?;
            }
            if let Some(frames) = &frames {
                // The camera's pictures are the same for all models.
                notes = frames.fit(&model)?.left_out().into_iter().collect();
            }
            if let Some(same) = models.iter().find(|known| known.sha256 == model.sha256) {
                let (one, other) = (same.path.display(), path.display());
                let problem = format!(
                    "`{one}` and `{other}` are the same model; leave one out, and write `repeats` for more profiles of it"
                );
                return Err(bad("models", problem));
            }
            sizes.push(dims);
            models.push(ModelSpec {
                name: model.network.name().to_owned(),
                sha256: model.sha256,
                source_sha256: model.source_sha256,
                external_weights: model.external_weights,
                quantised: model.quantised.zip(twin).map(|(given, path)| TwinSpec {
                    sha256: given.sha256,
                    source: given.source,
                    path,
                }),
                path,
            });
        }
        let accuracy = match (self.accuracy, set) {
            (Some(accuracy), Some(set)) => {
                let path = folder.join(accuracy.set);
                Some(AccuracySpec {
                    set_sha256: set.sha256,
                    path,
                    processors: accuracy.processors,
                    placements: accuracy.placements,
                    answers: accuracy.answers,
                    stop_at_percent: accuracy.stop_at_percent,
                    seed: accuracy.seed,
                })
            }
            _ => None,
        };
        let spec = JobSpec {
            name,
            models,
            devices: self.devices,
            hosts: content.hosts,
            repeats: content.repeats,
            priority: content.priority,
            not_before,
            deadline,
            window: content.window,
            every: content.every,
            profiles: content.profiles.map(|profiles| folder.join(profiles)),
            measure: self.measure,
            accuracy,
            video: frames.map(|frames| frames.spec),
            link,
        };
        Ok(ResolvedJob { spec, sizes, notes })
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

/// The frames of `[video]`.
struct Frames {
    spec: VideoSpec,
    set: SetFile,
}

impl Frames {
    fn open(video: Video, folder: &Path) -> Result<Frames, BadKey> {
        let path = folder.join(&video.set);
        let set = SetFile::open(&path).map_err(|error| bad("video.set", error.to_string()))?;
        let spec = VideoSpec {
            set_sha256: set.sha256.clone(),
            path,
            processor: video.processor,
            answers: video.answers,
            frames: video.frames,
            seed: video.seed,
        };
        Ok(Frames { spec, set })
    }

    /// Whether `model` can answer them.
    fn fit(&self, model: &ModelFile) -> Result<FrameSizes, BadKey> {
        let sizes = FrameSizes::of(&self.set.set, &model.network, &self.spec.settings());
        sizes.map_err(|unfit| match unfit {
            UnfitFrames::TooFewImages { .. } => bad("video.answers", unfit.to_string()),
            unfit => bad("video.set", unfit.to_string()),
        })
    }
}

fn bad(key: &str, problem: String) -> BadKey {
    BadKey {
        key: key.to_owned(),
        problem,
    }
}

#[cfg(test)]
mod tests;
