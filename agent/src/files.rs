//! The models and evaluation sets on the phone: files named by their SHA-256, checked when they are opened.

use std::path::{Path, PathBuf};

use layerlab_model::{ModelError, Network};
use layerlab_profiles::accuracy::{EvaluationSet, SetError};
use layerlab_profiles::sha256;

/// The folder that files are pushed into.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The file is not there, or cannot be read.
    #[error(
        "the file {sha256} is not on the device ({source}); push it before ordering work on it"
    )]
    Missing {
        /// The file.
        sha256: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not what its name says.
    #[error("the file {sha256} on the device has other content than its name says; push it again")]
    Corrupt {
        /// The file.
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
    pub fn open(folder: &Path) -> std::io::Result<Files> {
        std::fs::create_dir_all(folder)?;
        Ok(Files {
            folder: folder.to_owned(),
        })
    }

    /// Whether the file was pushed. Its content is checked when it is opened.
    pub fn contains(&self, sha256: &str) -> bool {
        self.path(sha256).is_some_and(|path| path.is_file())
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
        let missing = |source| FilesError::Missing {
            sha256: sha256.to_owned(),
            source,
        };
        let path = self.path(sha256).ok_or_else(|| {
            missing(std::io::Error::other(
                "no SHA-256 in lower-case hexadecimal",
            ))
        })?;
        let bytes = std::fs::read(path).map_err(missing)?;
        if self::sha256(&bytes) != sha256 {
            return Err(FilesError::Corrupt {
                sha256: sha256.to_owned(),
            });
        }
        Ok(bytes)
    }

    /// Names from outside become paths only when they are hashes.
    fn path(&self, sha256: &str) -> Option<PathBuf> {
        let is_hash =
            sha256.len() == 64 && sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        is_hash.then(|| self.folder.join(sha256))
    }
}
