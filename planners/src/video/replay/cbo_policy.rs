//! Confidence-based offloading: the NPU answers every frame, some are sent as well.

use std::collections::VecDeque;

use super::super::cbo::{AnsweredFrame, OffloadPlan, SendingOrder, plan_offloads};
use super::super::error::VideoError;
use super::policy::{ReplayCommand, ReplayEvent, ReplayPolicy, ReplayView};
use super::server_policy::edge_conditions;

/// Algorithm 1 whenever the link is idle, by the first model on each side.
#[derive(Clone, Copy, Debug)]
pub struct CboPolicy {
    /// The order in which it sends.
    pub order: SendingOrder,
    /// Whether it knows calibrated confidences; CBO-w/o does not.
    pub is_calibrated: bool,
}

impl ReplayPolicy for CboPolicy {
    fn decide(&mut self, view: &ReplayView) -> Result<Vec<ReplayCommand>, VideoError> {
        if let ReplayEvent::Arrived(frame) = view.event {
            return Ok(vec![ReplayCommand::RunLocal { frame, model: 0 }]);
        }
        if view.link_idle > view.now {
            return Ok(Vec::new());
        }
        let (places, frames) = self.candidates(view);
        let plan = plan_offloads(&edge_conditions(view)?, &frames, view.now, self.order)?;
        let send = plan.sent().first().map(|first| ReplayCommand::Send {
            frame: places[first.frame],
            model: 0,
            resolution: first.resolution,
        });
        Ok(send.into_iter().collect())
    }
}

impl CboPolicy {
    /// The frames that the phone has answered and that are not due yet nor sent, with their places.
    fn candidates(self, view: &ReplayView) -> (Vec<usize>, Vec<AnsweredFrame>) {
        let stream = view.world.stream;
        let recent = view.frames.len().saturating_sub(stream.frames_within() + 1);
        let places = (recent..view.frames.len()).filter(|&place| {
            let state = view.frames[place];
            let is_answered = state
                .local
                .is_some_and(|(_, answered)| answered <= view.now);
            is_answered && state.remote.is_none()
        });
        let frame = |place: usize| {
            let frame = &view.world.frames[place];
            AnsweredFrame {
                arrival: stream.arrival(place),
                confidence: match self.is_calibrated {
                    true => frame.local[0],
                    false => frame.uncalibrated,
                },
                sizes: frame.sizes.clone(),
            }
        };
        places.map(|place| (place, frame(place))).unzip()
    }
}

/// Sends what a plan for all frames says, each once the phone has answered it and the link is idle.
#[derive(Clone, Debug)]
pub struct CboOptimalPolicy {
    /// (frame, resolution), in the order of sending.
    left: VecDeque<(usize, usize)>,
}

impl CboOptimalPolicy {
    /// Follows `plan`, which is [`super::super::cbo::optimal`]'s for all frames of the video.
    pub fn new(plan: &OffloadPlan) -> CboOptimalPolicy {
        let sent = plan.sent().iter();
        CboOptimalPolicy {
            left: sent.map(|one| (one.frame, one.resolution)).collect(),
        }
    }
}

impl ReplayPolicy for CboOptimalPolicy {
    fn decide(&mut self, view: &ReplayView) -> Result<Vec<ReplayCommand>, VideoError> {
        if let ReplayEvent::Arrived(frame) = view.event {
            return Ok(vec![ReplayCommand::RunLocal { frame, model: 0 }]);
        }
        let is_ready = |frame: usize| {
            let local = view.frames.get(frame).and_then(|state| state.local);
            local.is_some_and(|(_, answered)| answered <= view.now)
        };
        let next = self.left.front().copied();
        let next = next.filter(|next| view.link_idle <= view.now && is_ready(next.0));
        let Some((frame, resolution)) = next else {
            return Ok(Vec::new());
        };
        self.left.pop_front();
        Ok(vec![ReplayCommand::Send {
            frame,
            model: 0,
            resolution,
        }])
    }
}
