//! The models and evaluation sets on the phone: files named by their SHA-256, proved before work on them is taken on.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use layerlab_model::{ModelError, Network};
use layerlab_profiles::Hash;
use layerlab_profiles::accuracy::{EvaluationSet, SetError};

/// As much of a file as stays in a processor's own memory between being read and being hashed.
const PORTION: usize = 256 * 1024;

/// The folder that files are pushed into.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    /// The files whose content was found to be what their names say.
    proved: Arc<Mutex<HashMap<String, Stamp>>>,
}

/// What changes when a file is replaced or written to: its device, number, size and time of change.
type Stamp = (u64, u64, u64, i64, i64);

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The file is not there, or cannot be read.
    #[error("the file {sha256} is not on the device ({source}); push it first")]
    Missing {
        /// The file's SHA-256 in hexadecimal, which is its name on the device.
        sha256: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file was not what its name says, and is gone.
    #[error(
        "the file {sha256} on the device had other content than its name says, and was removed; push it again"
    )]
    Corrupt {
        /// The file's SHA-256 in hexadecimal, which is its name on the device.
        sha256: String,
    },
    /// The file is no model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The file is no evaluation set.
    #[error(transparent)]
    Set(#[from] SetError),
}

impl Files {
    /// The files in `folder`, which is made if it is missing.
    pub fn open(folder: &Path) -> io::Result<Files> {
        std::fs::create_dir_all(folder)?;
        Ok(Files {
            folder: folder.to_owned(),
            proved: Arc::default(),
        })
    }

    /// Reads a model and takes it apart into layers.
    pub fn network(&self, sha256: &str) -> Result<Network, FilesError> {
        Ok(Network::from_onnx(&self.read(sha256)?)?)
    }

    /// Reads an evaluation set.
    pub fn set(&self, sha256: &str) -> Result<EvaluationSet, FilesError> {
        Ok(EvaluationSet::from_bytes(&self.read(sha256)?)?)
    }

    fn read(&self, sha256: &str) -> Result<Vec<u8>, FilesError> {
        self.prove(sha256)?;
        self.attempt(sha256, |path| std::fs::read(path))
    }

    /// How large a file is.
    pub fn bytes(&self, sha256: &str) -> Result<u64, FilesError> {
        self.attempt(sha256, |path| Ok(path.metadata()?.len()))
    }

    /// Has the file's content hashed, unless that was done since it was last changed. What is not what its name says
    /// is removed, so that it can be pushed again.
    pub fn prove(&self, sha256: &str) -> Result<(), FilesError> {
        let proved = || self.proved.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.attempt(sha256, |path| {
            let file = File::open(path)?;
            let stamp = stamp(&file)?;
            if proved().get(sha256) == Some(&stamp) {
                return Ok(Some(stamp));
            }
            let is_right = hash(file)? == sha256;
            if !is_right {
                std::fs::remove_file(path)?;
            }
            Ok(is_right.then_some(stamp))
        })?;
        let stamp = found.ok_or_else(|| FilesError::Corrupt {
            sha256: sha256.to_owned(),
        })?;
        proved().insert(sha256.to_owned(), stamp);
        Ok(())
    }

    /// Does something with the path of a file. Names from outside become paths only when they are hashes.
    fn attempt<T>(
        &self,
        sha256: &str,
        what: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<T, FilesError> {
        let is_hash =
            sha256.len() == 64 && sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        let done = match is_hash {
            true => what(&self.folder.join(sha256)),
            false => Err(io::Error::other("no SHA-256 in lower-case hexadecimal")),
        };
        done.map_err(|source| FilesError::Missing {
            sha256: sha256.to_owned(),
            source,
        })
    }
}

fn stamp(file: &File) -> io::Result<Stamp> {
    let found = file.metadata()?;
    Ok((
        found.dev(),
        found.ino(),
        found.size(),
        found.ctime(),
        found.ctime_nsec(),
    ))
}

fn hash(mut file: File) -> io::Result<String> {
    let mut hash = Hash::default();
    let mut portion = vec![0; PORTION];
    loop {
        match file.read(&mut portion)? {
            0 => return Ok(hash.finish()),
            read => hash.update(&portion[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::sha256;

    use super::*;

    #[test]
    fn a_file_is_proved_again_when_it_changes_and_removed_if_it_is_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::open(folder.path()).expect("a folder");
        let name = sha256(b"a model");
        let path = folder.path().join(&name);
        let is_missing = |found| matches!(found, Err(FilesError::Missing { .. }));
        assert!(is_missing(files.prove(&name)));
        assert!(is_missing(files.prove("../etc/passwd")));

        std::fs::write(&path, b"a model").expect("room");
        files.prove(&name).expect("it is right");
        assert_eq!(files.proved.lock().expect("no panic").len(), 1);
        assert_eq!(files.read(&name).expect("it is right"), b"a model");

        // As a push does it that was damaged on its way: the same size, under the same name.
        let partial = folder.path().join("partial");
        std::fs::write(&partial, b"a modeL").expect("room");
        std::fs::rename(&partial, &path).expect("it is there");
        let found = files.prove(&name);
        assert!(
            matches!(found, Err(FilesError::Corrupt { .. })),
            "{found:?}"
        );
        assert!(!path.exists());
        assert!(is_missing(files.read(&name).map(drop)));
    }
}
