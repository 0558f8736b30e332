//! What can be wrong with the files of compressed tensors.

use std::path::PathBuf;

use crate::document::DocumentError;

/// Why a document could not be read or written. Each message is one sentence with the file in it.
#[derive(Debug, thiserror::Error)]
pub enum TensorsDocumentError {
    /// A file cannot be read, written, or is no table.
    #[error(transparent)]
    File(#[from] DocumentError),
    /// `tensors.json` is some other document.
    #[error("{} is no measurement of layerlab tensors: its field `format` is not \"{}\"", path.display(), super::TENSORS_FORMAT)]
    Format {
        /// The path of the `tensors.json` that was read.
        path: PathBuf,
    },
    /// The document has a version that this program does not know.
    #[error(
        "{} has version {version} of the format, of which this layerlab knows version {}; update layerlab",
        path.display(),
        super::TENSORS_VERSION
    )]
    Version {
        /// The path of the `tensors.json` that was read.
        path: PathBuf,
        /// The version that it states.
        version: u64,
    },
    /// `tensors.json` lacks a field, has an unknown one or is no JSON.
    #[error("{} is not as docs/edge.md says: {reason}", path.display())]
    Json {
        /// The path of the `tensors.json` that was read.
        path: PathBuf,
        /// The field and the place.
        reason: serde_json::Error,
    },
}
