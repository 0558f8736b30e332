//! What a lab keeps on this host's disk, and what of it goes first when that is too much. Pure but for [`usage`], which
//! looks at the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use layerlab_protocol::RunId;
use serde::Serialize;

use crate::journal;
use crate::library::Library;
use crate::query::indexed_profiles;
use crate::record::{Kept, Run};

/// Something that can be removed, and what is lost by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The raw journals of a run that is over; its profile has all samples.
    Journals,
    /// A copy of a model or an evaluation set that no open job needs; it is copied again with the next that does.
    Copy,
    /// An HTML report; `layerlab report` makes it again from the store.
    Report,
    /// A profile of which there is a newer one, of the same model on the same device.
    OlderProfile,
    /// What a phone logged around a failure.
    Artifacts,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Journals => "journals",
            Kind::Copy => "copy",
            Kind::Report => "report",
            Kind::OlderProfile => "older profile",
            Kind::Artifacts => "phone's logs",
        })
    }
}

/// One thing that can be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removable {
    /// What it is.
    pub kind: Kind,
    /// Which one, for a person.
    pub name: String,
    /// The file or the folder; none of what is in the store.
    pub path: Option<PathBuf>,
    /// Since when it is not needed any more.
    pub since: Timestamp,
    /// How much room it takes.
    pub bytes: u64,
}

/// What a lab keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// All that it keeps, in bytes.
    pub bytes: u64,
    /// What of it can be removed, the oldest first.
    pub removable: Vec<Removable>,
}

impl Usage {
    /// What goes, the oldest first, so that no more than `budget` bytes are left; all that can go if that is not enough.
    pub fn beyond(&self, budget: u64) -> Vec<&Removable> {
        let mut left = self.bytes;
        let mut goes = Vec::new();
        for one in &self.removable {
            if left <= budget {
                break;
            }
            left = left.saturating_sub(one.bytes);
            goes.push(one);
        }
        // Journals go by the time at which their runs ended: those of the same time go together.
        let last = goes.last().map(|one: &&Removable| (one.since, one.kind));
        let same =
            |one: &&Removable| one.kind == Kind::Journals && Some((one.since, one.kind)) == last;
        let rest = self.removable.iter().skip(goes.len()).filter(same);
        goes.extend(rest);
        goes
    }
}

/// Where a lab keeps things.
#[derive(Clone, Debug)]
pub struct Places {
    /// The state folder.
    pub state: PathBuf,
    /// The copies of models and evaluation sets.
    pub copies: Library,
    /// The folder with HTML reports.
    pub reports: PathBuf,
    /// Whether profiles are removed of which there is a newer one.
    pub older_profiles: bool,
    /// The folders of profiles that later ones are compared with, and that stay: baselines.
    pub baselines: BTreeSet<PathBuf>,
}

/// What the lab of `kept` keeps in `places`, with so many bytes of journals by their names.
///
/// # Errors
/// When a folder cannot be read.
pub fn usage(kept: &Kept, journals: &[(RunId, u64)], places: &Places) -> std::io::Result<Usage> {
    let lab = places.state.join("lab");
    let mut usage = Usage {
        bytes: size(&lab)? + size(&places.reports)?,
        removable: of_journals(kept, journals),
    };
    let needed = needed(kept);
    for (sha256, path) in places.copies.copies()? {
        if !needed.contains(sha256.as_str()) {
            let name = sha256.get(..12).unwrap_or(&sha256).to_owned();
            usage.removable.push(file(Kind::Copy, name, path)?);
        }
    }
    for path in files(&places.reports)? {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if name.ends_with(".html") {
            usage.removable.push(file(Kind::Report, name, path)?);
        }
    }
    for path in files(&artifacts_of_lab(&places.state))? {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let bytes = size(&path)?;
        let one = file(Kind::Artifacts, name, path)?;
        usage.removable.push(Removable { bytes, ..one });
    }
    let (mut seen, mut good) = (BTreeSet::new(), BTreeSet::new());
    // The newest of each model on each device comes first.
    for profile in indexed_profiles(kept, None, None) {
        let bytes = size(&profile.folder)?;
        usage.bytes += bytes;
        let of = (profile.model.clone(), profile.device.clone());
        let is_newest = seen.insert(of.clone());
        // The next one is compared with it.
        let is_good = kept.runs[&profile.run].worse().is_none();
        let is_last_good = is_good && good.insert(of);
        let is_needed = is_newest || is_last_good || places.baselines.contains(&profile.folder);
        if !is_needed && places.older_profiles && bytes > 0 {
            usage.removable.push(Removable {
                kind: Kind::OlderProfile,
                name: format!(
                    "{} on {}, run {}",
                    profile.model, profile.device, profile.run
                ),
                path: Some(profile.folder),
                since: profile.published,
                bytes,
            });
        }
    }
    usage.removable.sort_by_key(|one| (one.since, one.kind));
    Ok(usage)
}

/// Where the lab with this state folder keeps what phones logged around failures, a folder for each attempt.
pub fn artifacts_of_lab(state: &Path) -> PathBuf {
    state.join("lab/artifacts")
}

/// The journals of runs that are over.
fn of_journals(kept: &Kept, journals: &[(RunId, u64)]) -> Vec<Removable> {
    let sizes: BTreeMap<&RunId, u64> = journals.iter().map(|(run, bytes)| (run, *bytes)).collect();
    let of_run = |run: &Run| {
        if !run.has_journals_from_before(Timestamp::MAX) {
            return None;
        }
        let names = journal::names(&kept.lab, run);
        let bytes = names.iter().filter_map(|name| sizes.get(name)).sum();
        Some(Removable {
            kind: Kind::Journals,
            name: format!("run {} of job {}", run.number, run.job),
            path: None,
            since: run.ended?,
            bytes,
        })
    };
    let removable = kept.runs.values().filter_map(of_run);
    removable.filter(|one| one.bytes > 0).collect()
}

/// The hashes of what jobs that are not over need.
fn needed(kept: &Kept) -> BTreeSet<&str> {
    let jobs = kept.jobs.values().filter(|job| !job.state.is_over());
    let copies = jobs.flat_map(|job| job.spec.copies());
    copies.map(|(sha256, _)| sha256).collect()
}

fn file(kind: Kind, name: String, path: PathBuf) -> std::io::Result<Removable> {
    let metadata = std::fs::metadata(&path)?;
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(Removable {
        kind,
        name,
        since: Timestamp::try_from(modified).unwrap_or(Timestamp::UNIX_EPOCH),
        bytes: metadata.len(),
        path: Some(path),
    })
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// How much room the files in `folder` take, and in the folders in it.
fn size(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for path in files(folder)? {
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => bytes += size(&path)?,
            Ok(metadata) if metadata.is_file() => bytes += metadata.len(),
            // Sockets take none, and what has gone meanwhile takes none any more.
            _ => {}
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobSpec, ModelSpec, VideoSpec};
    use crate::record::{Job, JobState};

    fn removable(kind: Kind, second: i64, bytes: u64) -> Removable {
        Removable {
            kind,
            name: format!("{kind} of second {second}"),
            path: None,
            since: Timestamp::from_second(second).expect("a time"),
            bytes,
        }
    }

    #[test]
    fn what_an_open_job_needs_stays() {
        let video = VideoSpec {
            set_sha256: "the frames".to_owned(),
            path: "frames.set".into(),
            processor: None,
            answers: None,
            frames: 500,
            seed: 1,
        };
        let model = ModelSpec {
            sha256: "the model".to_owned(),
            ..ModelSpec::default()
        };
        let spec = JobSpec {
            models: vec![model],
            video: Some(video),
            ..JobSpec::default()
        };
        let job = |state| Job {
            id: 1,
            spec: spec.clone(),
            content_sha256: String::new(),
            submitted: Timestamp::UNIX_EPOCH,
            occurrence_of: None,
            state,
        };
        let kept = |state| Kept {
            jobs: [(1, job(state))].into(),
            ..Kept::default()
        };
        let needs = |state| needed(&kept(state)).len();
        assert_eq!(needs(JobState::Open), 2);
        assert_eq!(needs(JobState::Done), 0);
    }

    #[test]
    fn the_oldest_goes_until_the_budget_holds() {
        let usage = Usage {
            bytes: 100,
            removable: vec![
                removable(Kind::Report, 1, 10),
                removable(Kind::Journals, 2, 20),
                removable(Kind::Journals, 2, 5),
                removable(Kind::Copy, 3, 30),
            ],
        };
        let bytes = |budget| -> Vec<u64> {
            let goes = usage.beyond(budget);
            goes.iter().map(|one| one.bytes).collect()
        };
        assert_eq!(bytes(100), [] as [u64; 0]);
        assert_eq!(bytes(95), [10]);
        // What ended at the same time goes together.
        assert_eq!(bytes(80), [10, 20, 5]);
        assert_eq!(bytes(0), [10, 20, 5, 30]);
    }
}
