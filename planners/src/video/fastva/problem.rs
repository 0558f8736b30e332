//! All that is known when a frame is decided about, but for the frame.

use layerlab_profiles::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use super::super::error::VideoError;
use super::super::stream::VideoStream;
use super::super::uplink::Uplink;
use super::models::VideoModels;

/// Whether sending a frame and answering the one before it overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerMode {
    /// They do: the link is idle once a frame has left (fastva Algorithm 1).
    Pipelined,
    /// They do not: the link is idle once the server has answered (fastva Eq. 3).
    Serial,
}

/// Which frames count as arriving while the link is busy for t: n_l of fastva §IV-B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BufferedFrames {
    /// ⌊t/γ⌋, as printed: one that arrives just when the link becomes idle, too.
    Floor,
    /// ⌈t/γ⌉ - 1: one that arrives just then can itself be sent.
    CeilingLessOne,
}

/// A stream, a link, models, and how they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct FastVaProblem {
    /// When frames arrive and are due.
    pub stream: VideoStream,
    /// The way to the server.
    pub uplink: Uplink,
    /// What can answer frames.
    pub models: VideoModels,
    /// Whether sending and answering overlap; usually they do.
    pub server: ServerMode,
    /// Which frames are buffered; usually the floor.
    pub buffered: BufferedFrames,
}

/// What is still busy with earlier frames, as times after the arrival of the frame to decide about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VideoBacklog {
    /// When the NPU is idle (T^idle).
    pub npu: Nanos,
    /// When the link is idle; 0 in the paper, which decides only then.
    pub uplink: Nanos,
}

impl FastVaProblem {
    /// The papers' reading: pipelined, with the floor.
    pub fn new(stream: VideoStream, uplink: Uplink, models: VideoModels) -> FastVaProblem {
        FastVaProblem {
            stream,
            uplink,
            models,
            server: ServerMode::Pipelined,
            buffered: BufferedFrames::Floor,
        }
    }

    /// Refuses a frame, counted from 0, whose `sizes` are not one for each resolution.
    pub(super) fn refuse_unfit(&self, frame: usize, sizes: &[Bytes]) -> Result<(), VideoError> {
        match sizes.len() == self.models.resolutions() {
            true => Ok(()),
            false => Err(VideoError::Resolutions {
                what: format!("frame {frame}"),
                found: sizes.len(),
                resolutions: self.models.resolutions(),
            }),
        }
    }
}
