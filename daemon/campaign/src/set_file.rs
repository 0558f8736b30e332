//! An evaluation set as the user gave it, and as it is sent to devices.

use std::io;
use std::path::Path;

use layerlab_profiles::accuracy::{EvaluationSet, SetError};
use layerlab_profiles::sha256;

use super::drive::File;

/// An evaluation set as it was read from a file.
pub struct SetFile {
    /// The evaluation set, as the file says.
    pub set: EvaluationSet,
    /// SHA-256 of the file.
    pub sha256: String,
    bytes: Vec<u8>,
}

impl SetFile {
    /// Reads the set at `path`.
    pub fn open(path: &Path) -> Result<SetFile, SetError> {
        let read = |path: &Path| match std::fs::metadata(path)?.is_file() {
            true => std::fs::read(path),
            // It may never end.
            false => Err(io::Error::other("it is no regular file")),
        };
        let bytes = read(path).map_err(|reason| SetError::Read {
            path: path.to_owned(),
            reason,
        })?;
        SetFile::from_bytes(bytes)
    }

    /// The set whose file has these bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<SetFile, SetError> {
        Ok(SetFile {
            set: EvaluationSet::from_bytes(&bytes)?,
            sha256: sha256(&bytes),
            bytes,
        })
    }

    /// The file as it is sent to devices.
    pub fn file(&self) -> File<'_> {
        File {
            sha256: &self.sha256,
            content: &self.bytes,
        }
    }

    /// The file's content, as it is sent to devices.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
