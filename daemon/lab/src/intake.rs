//! Takes in what a job brings: the daemon copies its models and its evaluation set into the library, and so into the object
//! store if there is one, before it takes the job, and sees that its profiles can be published. Whoever submits it has said which content was checked; a file that has other content since is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::job::{JobSpec, SymbolicSizes, TwinSpec};
use crate::library::{Library, SharingError};
use crate::talk::{Answer, RefusalCode, Request};
use layerlab_campaign::{ModelFile, QuantisedTwin, SetFile, publish};

/// Copies what jobs bring.
#[derive(Clone, Debug)]
pub struct Intake {
    library: Library,
    /// Where profiles are published of jobs that do not say so themselves.
    profiles: PathBuf,
}

/// Why a job is not taken in.
#[derive(Debug, thiserror::Error)]
enum IntakeError {
    /// Its profiles could not be published.
    #[error(
        "profiles cannot be published in {}: {source}; let the daemon's user write there, or name another folder by \
         `profiles` in the job file{}", folder.display(), if *is_own { "" } else { " or in the configuration" }
    )]
    Profiles {
        /// The folder for profiles.
        folder: PathBuf,
        /// Whether the job names it itself.
        is_own: bool,
        /// What the system said.
        source: std::io::Error,
    },
    /// It was another when the job was checked.
    #[error("{what} `{}` has changed since the job was read; submit it again", path.display())]
    Changed {
        /// What it is, in words: a model or an evaluation set.
        what: &'static str,
        /// The user's file.
        path: PathBuf,
    },
    /// It could be read when the job was checked.
    #[error("{what} cannot be read any more: {reason}; mend it, and submit the job again")]
    Unreadable {
        /// What it is, in words.
        what: &'static str,
        /// What is wrong, with the file's path.
        reason: String,
    },
    /// There is no place for a copy.
    #[error("cannot keep a copy of {what} `{}` in {}: {source}", path.display(), folder.display())]
    Library {
        /// What it is, in words.
        what: &'static str,
        /// The user's file.
        path: PathBuf,
        /// Where copies are.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Hosts would not find a copy.
    #[error(
        "the job's files cannot be kept for all hosts: {0}; submit the job again once that is mended"
    )]
    NotShared(#[from] SharingError),
}

impl IntakeError {
    fn refusal(self) -> Answer {
        let code = match self {
            IntakeError::Changed { .. } | IntakeError::Unreadable { .. } => {
                RefusalCode::FileChanged
            }
            IntakeError::Library { .. } => RefusalCode::NoCopy,
            IntakeError::NotShared(_) => RefusalCode::NotShared,
            IntakeError::Profiles { .. } => RefusalCode::NoPublication,
        };
        Answer::Refused {
            code,
            message: self.to_string(),
        }
    }
}

impl Intake {
    /// For the lab that keeps its copies in `library` and publishes profiles in `profiles`.
    pub fn new(library: Library, profiles: PathBuf) -> Intake {
        Intake { library, profiles }
    }

    /// Copies what `request` brings, if it submits a job; the error is the refusal.
    pub async fn take_in(&self, request: &Request) -> Result<(), Answer> {
        let Request::Submit { spec, sizes, .. } = request else {
            return Ok(());
        };
        let hashes: Vec<String> = (spec.copies())
            .map(|(sha256, _)| sha256.to_owned())
            .collect();
        // Until they are in the object store.
        let _in_use = self.library.using(&hashes);
        let (intake, spec, sizes) = (self.clone(), spec.clone(), sizes.clone());
        let copied = tokio::task::spawn_blocking(move || {
            intake.probe(&spec)?;
            copy_all(&intake.library, &spec, &sizes)
        });
        match copied.await {
            Ok(copied) => copied.map_err(IntakeError::refusal)?,
            Err(error) => {
                return Err(Answer::Refused {
                    code: RefusalCode::NoCopy,
                    message: format!("the job's files could not be copied: {error}"),
                });
            }
        }
        let shared = self.library.share(&hashes).await;
        shared.map_err(|error| IntakeError::from(error).refusal())
    }
}

impl Intake {
    /// Before anything is measured, rather than after hours of it.
    fn probe(&self, spec: &JobSpec) -> Result<(), IntakeError> {
        let folder = spec.profiles.as_ref().unwrap_or(&self.profiles);
        publish::probe(folder).map_err(|source| IntakeError::Profiles {
            folder: folder.clone(),
            is_own: spec.profiles.is_some(),
            source,
        })
    }
}

fn copy_all(library: &Library, spec: &JobSpec, sizes: &[SymbolicSizes]) -> Result<(), IntakeError> {
    let none = BTreeMap::new();
    for (place, model) in spec.models.iter().enumerate() {
        let (what, path) = ("the model", &model.path);
        let sizes = sizes.get(place).unwrap_or(&none);
        let found = ModelFile::open(path, sizes);
        let found = found.map_err(|error| unreadable(what, &error))?;
        let same_file = found.source_sha256 == model.source_sha256
            && found.external_weights == model.external_weights;
        if found.sha256 != model.sha256 || !same_file {
            return Err(changed(what, path));
        }
        keep(library, what, path, &found.onnx, &found.sha256)?;
        if let Some(twin) = &model.quantised {
            copy_twin(library, found, twin, sizes)?;
        }
    }
    for (path, sha256) in spec.sets() {
        let what = "the evaluation set";
        let found = SetFile::open(path).map_err(|error| unreadable(what, &error))?;
        if found.sha256 != sha256 {
            return Err(changed(what, path));
        }
        keep(library, what, path, found.bytes(), &found.sha256)?;
    }
    Ok(())
}

fn copy_twin(
    library: &Library,
    model: ModelFile,
    twin: &TwinSpec,
    sizes: &SymbolicSizes,
) -> Result<(), IntakeError> {
    let (what, path) = ("the quantised model", &twin.path);
    let found = model.with_quantised(Some(path), sizes);
    let found = found.map_err(|error| unreadable(what, &error))?.quantised;
    let same =
        |found: &QuantisedTwin| (&found.sha256, &found.source) == (&twin.sha256, &twin.source);
    match found.filter(same) {
        Some(found) => keep(library, what, path, &found.onnx, &found.sha256),
        None => Err(changed(what, path)),
    }
}

fn changed(what: &'static str, path: &Path) -> IntakeError {
    IntakeError::Changed {
        what,
        path: path.to_owned(),
    }
}

fn unreadable(what: &'static str, error: &dyn std::error::Error) -> IntakeError {
    IntakeError::Unreadable {
        what,
        reason: error.to_string(),
    }
}

fn keep(
    library: &Library,
    what: &'static str,
    path: &Path,
    bytes: &[u8],
    sha256: &str,
) -> Result<(), IntakeError> {
    (library.put(bytes, sha256)).map_err(|source| IntakeError::Library {
        what,
        path: path.to_owned(),
        folder: library.folder().to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
