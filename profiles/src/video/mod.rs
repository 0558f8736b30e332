//! What answering the frames of a video costs a device, and how often its answers are right: the published inputs of planners
//! for video (`layerlab_planners::video`).
//!
//! [`VideoDocument`] is what is published: `video.json`, four tables and the score vectors. docs/video.md says what is measured,
//! and every field and column.

mod derived;
mod document;
mod error;
mod files;
mod findings;
mod form;
mod halves;
mod header;
mod records;
mod rows;
mod scores;
#[cfg(test)]
mod tests;

pub use derived::{ResolutionAccuracy, ResolutionTimes, wilson_ci95};
pub use document::{SCORES_FILE, VIDEO_JSON, VideoDocument};
pub use error::VideoDocumentError;
pub use findings::{check_video, check_video_directory};
pub use form::{BadForm, FrameForm, FrameFormat};
pub use halves::{Half, halves};
pub use header::{
    Coded, VIDEO_FORMAT, VIDEO_VERSION, VideoHeader, VideoModel, VideoPart, VideoSet,
};
pub use rows::{FrameAnswer, FrameRow};
pub use scores::{Confidence, top};
