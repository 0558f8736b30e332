//! What a policy sees and what it can do.

use layerlab_profiles::Nanos;

use super::super::error::VideoError;
use super::world::ReplayWorld;

/// What has happened. Frames are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplayEvent {
    /// The phone's answer to the frame is there, its confidence calibrated.
    Answered(usize),
    /// The link is idle after the frame.
    LinkIdle(usize),
    /// The frame is there.
    Arrived(usize),
}

/// What to do with a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayCommand {
    /// Have it answered by a model on the phone, once the NPU is idle.
    RunLocal {
        /// The frame.
        frame: usize,
        /// The model on the phone.
        model: usize,
    },
    /// Send it, once the link is idle.
    Send {
        /// The frame.
        frame: usize,
        /// The model on the server.
        model: usize,
        /// The resolution.
        resolution: usize,
    },
}

/// What has been done with a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReplayFrameState {
    /// The model on the phone that it was given to, and when the answer and its calibrated confidence are there.
    pub local: Option<(usize, Nanos)>,
    /// The model on the server and the resolution it was sent in, and when the answer is there; none if never.
    pub remote: Option<(usize, usize, Option<Nanos>)>,
}

/// What a policy can see at an event.
#[derive(Clone, Copy, Debug)]
pub struct ReplayView<'a> {
    /// What has happened.
    pub event: ReplayEvent,
    /// The time; frame 0 arrives at 0.
    pub now: Nanos,
    /// The world. A policy for real phones looks at no frame that has not arrived.
    pub world: &'a ReplayWorld,
    /// Of each frame that has arrived, what has been done with it.
    pub frames: &'a [ReplayFrameState],
    /// When the NPU is idle if it is given nothing more; may be past.
    pub npu_idle: Nanos,
    /// When the link is idle if it is given nothing more; may be past.
    pub link_idle: Nanos,
    /// What the phone believes the bandwidth to be, in bits per second.
    pub bandwidth_bps: u64,
}

/// Decides what becomes of frames.
pub trait ReplayPolicy {
    /// What to do at an event, in that order. An error ends the replay; no command leaves everything as it is.
    fn decide(&mut self, view: &ReplayView) -> Result<Vec<ReplayCommand>, VideoError>;
}
