//! FastVA and its baselines that decide frame by frame or window by window.

use std::collections::VecDeque;

use super::super::error::VideoError;
use super::super::fastva::{
    BufferedFrames, FastVaDecision, FastVaProblem, FrameChoice, Scheduled, VideoBacklog, VideoGoal,
    deep_decision, max_accuracy, max_utility, offload,
};
use super::super::uplink::Uplink;
use super::policy::{ReplayCommand, ReplayEvent, ReplayPolicy, ReplayView};
use super::schedule_policy::command;

/// What decides about frames that arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FastVaAlgorithm {
    /// Algorithm 1.
    MaxAccuracy,
    /// Algorithm 2.
    MaxUtility {
        /// α.
        weight: f64,
    },
    /// Nothing runs on the phone.
    Offload(VideoGoal),
    /// One way of answering for each window.
    DeepDecision {
        /// How many frames a window has.
        window: usize,
        /// What windows are compared by.
        goal: VideoGoal,
    },
}

/// Follows one of FastVA's algorithms: asks it about a frame that nothing is decided about yet, then does what it says about
/// the next ones.
#[derive(Clone, Debug)]
pub struct FastVaPolicy {
    algorithm: FastVaAlgorithm,
    buffered: BufferedFrames,
    decided: VecDeque<FrameChoice>,
}

impl FastVaPolicy {
    /// Follows `algorithm`, which counts frames as arriving while one is sent by `buffered`.
    pub fn new(algorithm: FastVaAlgorithm, buffered: BufferedFrames) -> FastVaPolicy {
        FastVaPolicy {
            algorithm,
            buffered,
            decided: VecDeque::new(),
        }
    }

    /// What is decided about the frame `place`, which arrives now.
    fn ask(&self, view: &ReplayView, place: usize) -> Result<FastVaDecision, VideoError> {
        let world = view.world;
        let problem = FastVaProblem {
            stream: world.stream,
            uplink: Uplink::new(view.bandwidth_bps, world.round_trip),
            models: world.models.clone(),
            server: world.server,
            buffered: self.buffered,
        };
        let backlog = VideoBacklog {
            npu: view.npu_idle - view.now,
            uplink: view.link_idle - view.now,
        };
        let sizes = &world.frames[place].sizes;
        let only = |first| FastVaDecision {
            first,
            next: Vec::new(),
            value: world.models.accuracy(first),
        };
        let or_skip = |decision: Scheduled<FastVaDecision>| {
            decision.planned().unwrap_or(only(FrameChoice::Skipped))
        };
        Ok(match self.algorithm {
            FastVaAlgorithm::MaxAccuracy => or_skip(max_accuracy(&problem, backlog, sizes)?),
            FastVaAlgorithm::MaxUtility { weight } => {
                max_utility(&problem, backlog, sizes, weight)?
            }
            // It decides only when the link is idle.
            FastVaAlgorithm::Offload(_) if backlog.uplink.as_nanos() > 0 => {
                only(FrameChoice::Skipped)
            }
            FastVaAlgorithm::Offload(goal) => only(offload(&problem, sizes, goal)?),
            FastVaAlgorithm::DeepDecision { window, goal } => {
                or_skip(deep_decision(&problem, backlog, sizes, window, goal)?)
            }
        })
    }
}

impl ReplayPolicy for FastVaPolicy {
    fn decide(&mut self, view: &ReplayView) -> Result<Vec<ReplayCommand>, VideoError> {
        let ReplayEvent::Arrived(frame) = view.event else {
            return Ok(Vec::new());
        };
        let choice = match self.decided.pop_front() {
            Some(choice) => choice,
            None => {
                let decision = self.ask(view, frame)?;
                self.decided.extend(decision.next);
                decision.first
            }
        };
        Ok(command(frame, choice))
    }
}
