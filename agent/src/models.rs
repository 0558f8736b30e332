//! The models on the phone: files named by their SHA-256, checked when they are opened.

use std::path::{Path, PathBuf};

use layerlab_model::{ModelError, Network};
use sha2::{Digest, Sha256};

/// The folder that models are pushed into.
#[derive(Clone, Debug)]
pub struct Models {
    folder: PathBuf,
}

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// The file is not there, or cannot be read.
    #[error(
        "the model {sha256} is not on the device ({source}); push it before ordering work on it"
    )]
    Missing {
        /// The model.
        sha256: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not what its name says.
    #[error(
        "the model file {sha256} on the device has other content than its name says; push it again"
    )]
    Corrupt {
        /// The model.
        sha256: String,
    },
    /// The file is no model.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl Models {
    /// The models in `folder`, which is made if it is missing.
    pub fn open(folder: &Path) -> std::io::Result<Models> {
        std::fs::create_dir_all(folder)?;
        Ok(Models {
            folder: folder.to_owned(),
        })
    }

    /// Whether the model was pushed. Its content is checked when it is opened.
    pub fn contains(&self, sha256: &str) -> bool {
        self.path(sha256).is_some_and(|path| path.is_file())
    }

    /// Reads the model and takes it apart into layers.
    pub fn network(&self, sha256: &str) -> Result<Network, ModelsError> {
        let missing = |source| ModelsError::Missing {
            sha256: sha256.to_owned(),
            source,
        };
        let path = self.path(sha256).ok_or_else(|| {
            missing(std::io::Error::other(
                "no SHA-256 in lower-case hexadecimal",
            ))
        })?;
        let bytes = std::fs::read(path).map_err(missing)?;
        let found: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if found != sha256 {
            return Err(ModelsError::Corrupt {
                sha256: sha256.to_owned(),
            });
        }
        Ok(Network::from_onnx(&bytes)?)
    }

    /// Names from outside become paths only when they are hashes.
    fn path(&self, sha256: &str) -> Option<PathBuf> {
        let is_hash =
            sha256.len() == 64 && sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        is_hash.then(|| self.folder.join(format!("{sha256}.onnx")))
    }
}
