//! What can be wrong with a link's files.

use std::path::PathBuf;

use crate::document::DocumentError;

/// Why a link's document could not be read or written. Each message is one sentence with the file in it.
#[derive(Debug, thiserror::Error)]
pub enum LinkDocumentError {
    /// A file cannot be read, written, or is no table.
    #[error(transparent)]
    File(#[from] DocumentError),
    /// `link.json` is some other document.
    #[error("{} is no measured link: its field `format` is not \"{}\"", path.display(), super::LINK_FORMAT)]
    Format {
        /// The path of the `link.json` that was read.
        path: PathBuf,
    },
    /// The document has a version that this program does not know.
    #[error(
        "{} has version {version} of the format of links, of which this layerlab knows version {}; update layerlab",
        path.display(),
        super::LINK_VERSION
    )]
    Version {
        /// The path of the `link.json` that was read.
        path: PathBuf,
        /// The version that it states.
        version: u64,
    },
    /// `link.json` lacks a field, has an unknown one or is no JSON.
    #[error("{} is not as docs/edge.md says: {reason}", path.display())]
    Json {
        /// The path of the `link.json` that was read.
        path: PathBuf,
        /// The field and the place.
        reason: serde_json::Error,
    },
}
