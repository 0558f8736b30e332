//! What can be wrong with the files of planners' inputs for video.

use std::path::PathBuf;

use crate::document::DocumentError;

/// Why a document could not be read or written. Each message is one sentence with the file in it.
#[derive(Debug, thiserror::Error)]
pub enum VideoDocumentError {
    /// A file cannot be read, written, or is no table.
    #[error(transparent)]
    File(#[from] DocumentError),
    /// `video.json` is some other document.
    #[error("{} is no measurement of layerlab video: its field `format` is not \"{}\"", path.display(), super::VIDEO_FORMAT)]
    Format {
        /// The path of the `video.json` that was read.
        path: PathBuf,
    },
    /// The document has a version that this program does not know.
    #[error(
        "{} has version {version} of the format, of which this layerlab knows version {}; update layerlab",
        path.display(),
        super::VIDEO_VERSION
    )]
    Version {
        /// The path of the `video.json` that was read.
        path: PathBuf,
        /// The version that it states.
        version: u64,
    },
    /// `video.json` lacks a field, has an unknown one or is no JSON.
    #[error("{} is not as docs/video.md says: {reason}", path.display())]
    Json {
        /// The path of the `video.json` that was read.
        path: PathBuf,
        /// The field and the place.
        reason: serde_json::Error,
    },
    /// The score vectors are cut off, or too long.
    #[error("{} has {found} bytes, and the rows of answers.csv need {expected}; get it again from where it was published", path.display())]
    Scores {
        /// The path of the `answers.f32` that was read.
        path: PathBuf,
        /// How many bytes it has.
        found: usize,
        /// How many it must have.
        expected: usize,
    },
}
