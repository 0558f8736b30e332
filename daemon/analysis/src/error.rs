//! Why a profile's rows are not in the tables.

use std::io;
use std::path::PathBuf;

use layerlab_profiles::document::DocumentError;
use parquet::errors::ParquetError;

/// Why a profile was not exported. Nothing of it is in the tables that was not there before.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The profile cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The profile does not say when it was measured, by which its rows are filed.
    #[error(
        "{}: `{text}` is no time: {reason}; `layerlab check` says what else is wrong with the profile", folder.display()
    )]
    Time {
        /// The profile's folder.
        folder: PathBuf,
        /// What stands in the place of a time.
        text: String,
        /// Why that is none.
        reason: jiff::Error,
    },
    /// A row of the profile names a layer or a processor that the profile does not have.
    #[error(
        "{}: there are rows of {what}, which the profile does not have; `layerlab check` says what else is wrong with it",
        folder.display()
    )]
    Unknown {
        /// The profile's folder.
        folder: PathBuf,
        /// The layer or the processor.
        what: String,
    },
    /// The folder of the tables cannot be written.
    #[error("cannot write to {}: {source}; make room, or choose another folder", path.display())]
    Folder {
        /// The file or the folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A table cannot be written.
    #[error("cannot write to {}: {reason}; make room, or choose another folder", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What the writer said.
        reason: ParquetError,
    },
}

impl ExportError {
    /// Whether the profile is at fault, so that others may still be exported.
    pub fn is_of_profile(&self) -> bool {
        match self {
            ExportError::Document(_) | ExportError::Time { .. } | ExportError::Unknown { .. } => {
                true
            }
            ExportError::Folder { .. } | ExportError::Table { .. } => false,
        }
    }
}
