//! What can be wrong with the files of planners' inputs for video.

use std::path::PathBuf;

use crate::document::DocumentError;
use crate::folder::FolderError;

/// Why a document could not be read or written. Each message is one sentence with the file in it.
#[derive(Debug, thiserror::Error)]
pub enum VideoDocumentError {
    /// As of any document.
    #[error(transparent)]
    Folder(#[from] FolderError),
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

impl From<DocumentError> for VideoDocumentError {
    fn from(error: DocumentError) -> VideoDocumentError {
        FolderError::from(error).into()
    }
}
