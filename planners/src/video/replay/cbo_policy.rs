//! Confidence-based offloading: the NPU answers every frame, some are sent as well.

use std::collections::VecDeque;

use layerlab_profiles::Nanos;

use super::super::cbo::{AnsweredFrame, OffloadPlan, SendingOrder, plan_offloads};
use super::super::error::VideoError;
use super::super::fastva::LocalModel;
use super::policy::{ReplayCommand, ReplayEvent, ReplayPolicy, ReplayView};
use super::server_policy::edge_conditions;

/// What CBO knows of a frame that the phone has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CboKnowledge {
    /// The uncalibrated confidence: CBO-w/o.
    Uncalibrated,
    /// The calibrated confidence.
    Calibrated,
    /// That, and how often the server is right about frames of the class that the phone answers: each class has a threshold of
    /// its own.
    ByClass,
}

/// Which of the phone's models answers a frame. Placements of one network are models here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CboModel {
    /// The first one, always.
    First,
    /// The most accurate one that takes no way of sending the frame that the fastest one would leave.
    Chosen,
}

/// Algorithm 1 whenever the link is idle, by the first model on the server.
#[derive(Clone, Copy, Debug)]
pub struct CboPolicy {
    /// The order in which it sends.
    pub order: SendingOrder,
    /// What it knows of frames.
    pub knowledge: CboKnowledge,
    /// What answers on the phone.
    pub model: CboModel,
}

impl ReplayPolicy for CboPolicy {
    fn decide(&mut self, view: &ReplayView) -> Result<Vec<ReplayCommand>, VideoError> {
        if let ReplayEvent::Arrived(frame) = view.event {
            let model = match self.model {
                CboModel::First => 0,
                CboModel::Chosen => PhoneTimes::new(view, frame)?.most_accurate(),
            };
            return Ok(vec![ReplayCommand::RunLocal { frame, model }]);
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
        let answered = (recent..view.frames.len()).filter_map(|place| {
            let state = view.frames[place];
            let (model, answered) = state.local?;
            (answered <= view.now && state.remote.is_none()).then_some((place, model))
        });
        let frame = |place: usize, model: usize| {
            let frame = &view.world.frames[place];
            AnsweredFrame {
                arrival: stream.arrival(place),
                confidence: match self.knowledge {
                    CboKnowledge::Uncalibrated => frame.uncalibrated,
                    CboKnowledge::Calibrated | CboKnowledge::ByClass => frame.local[model],
                },
                sizes: frame.sizes.clone(),
                server: match self.knowledge {
                    CboKnowledge::ByClass => frame.by_class.clone(),
                    CboKnowledge::Uncalibrated | CboKnowledge::Calibrated => None,
                },
            }
        };
        answered
            .map(|(place, model)| (place, frame(place, model)))
            .unzip()
    }
}

/// When the phone's models would answer a frame that has just arrived.
struct PhoneTimes<'a> {
    models: &'a [LocalModel],
    /// The time of the fastest one.
    fastest: Nanos,
    /// When the processor begins with the frame.
    start: Nanos,
    /// From one frame's arrival to the next one's.
    interval: Nanos,
    calibration: Nanos,
    /// From a frame's arrival until its answer must be there.
    due_in: Nanos,
    arrival: Nanos,
}

impl<'a> PhoneTimes<'a> {
    fn new(view: &'a ReplayView<'_>, frame: usize) -> Result<PhoneTimes<'a>, VideoError> {
        let world = view.world;
        let conditions = edge_conditions(view)?;
        let models = world.models.local();
        let fastest = models.iter().map(|model| model.time).min();
        let mut times = PhoneTimes {
            models,
            fastest: fastest.ok_or(VideoError::NoModels)?,
            start: view.now.max(view.npu_idle),
            interval: world.stream.interval(),
            calibration: world.calibration,
            due_in: world.stream.within(),
            arrival: view.now,
        };
        let answered = times.answered(times.start, times.fastest);
        // What the fastest model leaves time for after its answer, the chosen one must leave time for, too.
        for &size in &world.frames[frame].sizes {
            let lasting = conditions.sent_in_time(Nanos::ZERO, size, Nanos::ZERO);
            let Some(sending) = lasting else { continue };
            let after = sending + conditions.server_time() + conditions.uplink().round_trip();
            let due_in = world.stream.within() - after;
            if answered <= times.arrival + due_in {
                times.due_in = times.due_in.min(due_in);
            }
        }
        Ok(times)
    }

    fn answered(&self, start: Nanos, time: Nanos) -> Nanos {
        start + time + self.calibration
    }

    /// The most accurate model in time, of equal ones the fastest; without any, the fastest.
    fn most_accurate(&self) -> usize {
        // The fastest model answers the next frame in time then, too, since it is no slower than frames come.
        let keeps_up = self.fastest <= self.interval;
        let in_time =
            |time: Nanos| keeps_up && self.answered(self.start, time) <= self.arrival + self.due_in;
        let models = self.models.iter().enumerate();
        let best = models
            .filter(|(_, model)| model.time == self.fastest || in_time(model.time))
            .max_by(|(_, one), (_, other)| {
                let accuracy = one.accuracy.total_cmp(&other.accuracy);
                accuracy.then(other.time.cmp(&one.time))
            });
        best.map_or(0, |(model, _)| model)
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
