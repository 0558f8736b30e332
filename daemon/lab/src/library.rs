//! The lab's own copies of models and evaluation sets, each named by its SHA-256: what users do to their files after
//! they submitted a job is no concern of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use layerlab_model::ModelError;
use layerlab_profiles::accuracy::SetError;
use layerlab_profiles::sha256;

use super::job::{ModelSpec, TwinSpec};
use layerlab_campaign::{ModelFile, QuantisedTwin, SetFile};
use layerlab_farm::folders::write_whole;

/// The folder of copies.
#[derive(Clone, Debug)]
pub struct Library {
    folder: PathBuf,
}

/// Why a copy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It cannot be read, or is not what was put there.
    #[error("the lab's copy of {what} cannot be used: {source}; submit the job again")]
    Read {
        /// What was copied, in words: a model or an evaluation set.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// It is no model any more.
    #[error(
        "the lab's copy of {what} was kept by another version of layerlab: {source}; submit the job again"
    )]
    Model {
        /// The model that was copied, in words.
        what: String,
        /// Why this version cannot read the copy.
        source: ModelError,
    },
    /// It is no evaluation set any more.
    #[error(
        "the lab's copy of {what} was kept by another version of layerlab: {source}; submit the job again"
    )]
    Set {
        /// The evaluation set that was copied, in words.
        what: String,
        /// Why this version cannot read the copy.
        source: SetError,
    },
}

impl Library {
    /// The library in the folder `state`.
    pub fn in_state(state: &Path) -> Library {
        Library {
            folder: state.join("lab/files"),
        }
    }

    /// The library in `folder`, which several hosts may share.
    pub fn in_folder(folder: &Path) -> Library {
        Library {
            folder: folder.to_owned(),
        }
    }

    /// Where the copies are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The copies, with their hashes.
    pub fn copies(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let copy = |entry: io::Result<std::fs::DirEntry>| {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            Ok((name.to_string_lossy().into_owned(), path))
        };
        entries.map(copy).collect()
    }

    /// Keeps `bytes`, whose hash is `sha256`, whole or not at all.
    pub fn put(&self, bytes: &[u8], sha256: &str) -> io::Result<()> {
        let path = self.path(sha256)?;
        // A copy of another length was altered, and is mended.
        match std::fs::metadata(&path) {
            // It is as good as new, and not one to be removed for its age.
            Ok(there) if there.len() == bytes.len() as u64 => File::options()
                .append(true)
                .open(&path)?
                .set_modified(SystemTime::now()),
            _ => write_whole(&path, bytes),
        }
    }

    /// Whether anything is kept under `sha256`; what it is shows when it is read.
    pub fn has(&self, sha256: &str) -> bool {
        self.path(sha256).is_ok_and(|path| path.is_file())
    }

    /// What was kept under `sha256`, if it still has that hash.
    pub fn get(&self, sha256: &str) -> io::Result<Vec<u8>> {
        let path = self.path(sha256)?;
        let bytes = std::fs::read(&path)?;
        if self::sha256(&bytes) == sha256 {
            return Ok(bytes);
        }
        // The next to submit it puts a sound one there.
        let _ = std::fs::remove_file(&path);
        let message = format!("{} was altered", path.display());
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }

    /// The model that a job asks for, as it was when the job was submitted.
    pub fn model(&self, spec: &ModelSpec) -> Result<ModelFile, LibraryError> {
        let what = || format!("the model `{}`", spec.path.display());
        let onnx = (self.get(&spec.sha256)).map_err(|source| LibraryError::Read {
            what: what(),
            source,
        })?;
        let (source_sha256, external) = (spec.source_sha256.clone(), spec.external_weights.clone());
        let restored = ModelFile::restore(onnx, source_sha256, external);
        let mut model = restored.map_err(|source| LibraryError::Model {
            what: what(),
            source,
        })?;
        model.quantised = spec
            .quantised
            .as_ref()
            .map(|twin| self.twin(twin))
            .transpose()?;
        Ok(model)
    }

    /// The quantised twin that a job asks for, as it was when the job was submitted.
    fn twin(&self, spec: &TwinSpec) -> Result<QuantisedTwin, LibraryError> {
        let onnx = self
            .get(&spec.sha256)
            .map_err(|source| LibraryError::Read {
                what: format!("the quantised model `{}`", spec.path.display()),
                source,
            })?;
        Ok(QuantisedTwin {
            onnx,
            sha256: spec.sha256.clone(),
            source: spec.source.clone(),
        })
    }

    /// The evaluation set whose file has the hash `sha256`.
    pub fn set(&self, sha256: &str) -> Result<SetFile, LibraryError> {
        let what = || format!("the evaluation set {}", sha256.get(..12).unwrap_or(sha256));
        let bytes = self.get(sha256).map_err(|source| LibraryError::Read {
            what: what(),
            source,
        })?;
        SetFile::from_bytes(bytes).map_err(|source| LibraryError::Set {
            what: what(),
            source,
        })
    }

    /// Hashes come from elsewhere, and must not lead out of the folder.
    fn path(&self, sha256: &str) -> io::Result<PathBuf> {
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if sha256.len() == 64 && sha256.bytes().all(hexadecimal) {
            return Ok(self.folder.join(sha256));
        }
        let message = format!("`{sha256}` is no SHA-256");
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

#[cfg(test)]
mod tests;
