//! Which profile is the baseline of a model on a device with its runtimes: what somebody has said that later ones are to be
//! compared with. A small file in the lab's folder, changed under a lock and replaced in one rename; commands use it with
//! and without a daemon.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use layerlab_farm::folders::{make_private, write_whole};
use layerlab_profiles::document::{DocumentError, Profile, ProfileDigest};
use layerlab_profiles::gate::ProfileSubject;
use serde::{Deserialize, Serialize};

/// The version of the file.
const VERSION: u32 = 1;

/// A profile that others of the same subject are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The model, the device and its runtimes.
    pub subject: ProfileSubject,
    /// What the lab calls the device, if the lab published the profile: phones of one kind may all have one name.
    pub lab_device: Option<String>,
    /// The folder of the profile.
    pub folder: PathBuf,
    /// The digest that it had when it was chosen.
    pub digest: String,
    /// When it was chosen.
    pub since: Timestamp,
}

impl Baseline {
    /// Whether it is of `subject` on the device that the lab calls `lab_device`, if that is known.
    pub fn is_of(&self, subject: &ProfileSubject, lab_device: Option<&str>) -> bool {
        let is_same_device = match (self.lab_device.as_deref(), lab_device) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        is_same_device && self.subject.is_same(subject)
    }

    /// The profile, if it is still the one that was chosen.
    pub fn read(&self) -> Result<Profile, BaselineError> {
        let digest = ProfileDigest::of_folder(&self.folder)?;
        if digest.as_str() != self.digest {
            return Err(BaselineError::Changed {
                folder: self.folder.clone(),
            });
        }
        Ok(Profile::read(&self.folder)?)
    }
}

/// A baseline cannot be used, found or kept.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The file with the baselines cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file or folder that failed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is of a newer layerlab.
    #[error(
        "{} is of version {version}, and this layerlab knows {VERSION}; use the newer one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version that it says.
        version: u32,
    },
    /// The profile cannot be read.
    #[error("{0}; choose a profile that can be read by `layerlab baseline set`")]
    Profile(#[from] DocumentError),
    /// The profile is another one by now.
    #[error(
        "the baseline {} was changed since it was chosen; choose it again by `layerlab baseline set`",
        folder.display()
    )]
    Changed {
        /// Its folder.
        folder: PathBuf,
    },
    /// There is none.
    #[error(
        "there is no baseline of {subject}; `layerlab baseline set PROFILE` chooses one, and `layerlab baseline list` says \
         which there are"
    )]
    None {
        /// What it would be of.
        subject: Box<ProfileSubject>,
    },
    /// There are several, of devices that profiles do not tell apart.
    #[error(
        "there are baselines of {subject} for the devices {devices}, and this profile does not say which of them it is of; \
         compare with the profile that you mean"
    )]
    Several {
        /// What they are of.
        subject: Box<ProfileSubject>,
        /// What the lab calls the devices.
        devices: String,
    },
}

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    baselines: Vec<Baseline>,
}

/// The baselines of this host.
#[derive(Clone, Debug)]
pub struct Baselines {
    path: PathBuf,
}

impl Baselines {
    /// Those kept in the folder `state`.
    pub fn in_state(state: &Path) -> Baselines {
        Baselines {
            path: state.join("lab/baselines.json"),
        }
    }

    /// All of them, in the order in which they were chosen.
    pub fn list(&self) -> Result<Vec<Baseline>, BaselineError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let text = match std::fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.map_err(|source| self.failed(source))?,
        };
        let unreadable = |error: serde_json::Error| {
            self.failed(io::Error::other(format!("{error}; remove the file")))
        };
        let Versioned { version } = serde_json::from_slice(&text).map_err(unreadable)?;
        if version > VERSION {
            let path = self.path.clone();
            return Err(BaselineError::Newer { path, version });
        }
        let document: Document = serde_json::from_slice(&text).map_err(unreadable)?;
        Ok(document.baselines)
    }

    /// That of `subject` on the device that the lab calls `lab_device`, if that is known.
    pub fn of(
        &self,
        subject: &ProfileSubject,
        lab_device: Option<&str>,
    ) -> Result<Option<Baseline>, BaselineError> {
        let mut found = self.list()?;
        found.retain(|one| one.is_of(subject, lab_device));
        let own = |one: &Baseline| one.lab_device.is_some() && lab_device.is_some();
        if found.iter().any(own) {
            found.retain(own);
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => {
                let devices = found.iter().map(|one| match &one.lab_device {
                    Some(device) => device.as_str(),
                    None => "any",
                });
                Err(BaselineError::Several {
                    subject: Box::new(subject.clone()),
                    devices: devices.collect::<Vec<_>>().join(", "),
                })
            }
        }
    }

    /// Makes the profile in `folder` the baseline of what it is of, in place of an earlier one.
    pub fn set(
        &self,
        folder: &Path,
        lab_device: Option<&str>,
        now: Timestamp,
    ) -> Result<Baseline, BaselineError> {
        let profile = Profile::read(folder)?;
        let folder = folder.canonicalize().map_err(|source| {
            let path = folder.to_owned();
            BaselineError::File { path, source }
        })?;
        let baseline = Baseline {
            subject: ProfileSubject::of(&profile.header),
            lab_device: lab_device.map(str::to_owned),
            digest: ProfileDigest::of_folder(&folder)?.as_str().to_owned(),
            folder,
            since: now,
        };
        self.change(|baselines| {
            baselines.retain(|one| !one.is_for_the_same(&baseline));
            baselines.push(baseline.clone());
        })?;
        Ok(baseline)
    }

    /// Forgets the baseline in `folder`; the profile stays. False if it is none.
    pub fn remove(&self, folder: &Path) -> Result<bool, BaselineError> {
        // Its folder may be gone.
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let mut removed = false;
        self.change(|baselines| {
            let before = baselines.len();
            baselines.retain(|one| one.folder != folder);
            removed = baselines.len() < before;
        })?;
        Ok(removed)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Baseline>)) -> Result<(), BaselineError> {
        let lock = self.path.with_extension("lock");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| BaselineError::File { path, source }
        };
        if let Some(folder) = self.path.parent() {
            make_private(folder).map_err(failed(folder))?;
        }
        let file = File::create(&lock).map_err(failed(&lock))?;
        // Held for two file operations: whoever has it gives it back at once.
        file.lock().map_err(failed(&lock))?;
        let mut baselines = self.list()?;
        change(&mut baselines);
        let document = Document {
            version: VERSION,
            baselines,
        };
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        write_whole(&self.path, text.as_bytes()).map_err(failed(&self.path))
    }

    fn failed(&self, source: io::Error) -> BaselineError {
        let path = self.path.clone();
        BaselineError::File { path, source }
    }
}

impl Baseline {
    /// Whether one of the two takes the place of the other.
    fn is_for_the_same(&self, other: &Baseline) -> bool {
        self.lab_device == other.lab_device && self.subject.is_same(&other.subject)
    }
}

#[cfg(test)]
mod tests;
