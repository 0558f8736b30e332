//! The clock, the NPU, the link and the server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use layerlab_profiles::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::error::VideoError;
use super::super::fastva::{FrameChoice, ServerMode};
use super::policy::{ReplayCommand, ReplayEvent, ReplayFrameState, ReplayPolicy, ReplayView};
use super::result::{FrameResult, ReplayResults};
use super::world::ReplayWorld;

/// Lets `policy` decide about all frames of `world`.
pub fn replay(
    world: &ReplayWorld,
    policy: &mut dyn ReplayPolicy,
) -> Result<ReplayResults, VideoError> {
    world.refuse_unfit()?;
    let mut machine = Machine {
        world,
        events: BinaryHeap::new(),
        frames: Vec::with_capacity(world.frames.len()),
        npu_idle: Nanos::ZERO,
        link_idle: Nanos::ZERO,
    };
    for frame in 0..world.frames.len() {
        let arrival = world.stream.arrival(frame);
        machine
            .events
            .push(Reverse((arrival, ReplayEvent::Arrived(frame))));
    }
    // At one time, what ends comes before what arrives.
    while let Some(Reverse((now, event))) = machine.events.pop() {
        if let ReplayEvent::Arrived(_) = event {
            machine.frames.push(ReplayFrameState::default());
        }
        let commands = policy.decide(&ReplayView {
            event,
            now,
            world,
            frames: &machine.frames,
            npu_idle: machine.npu_idle,
            link_idle: machine.link_idle,
            bandwidth_bps: world.bandwidth.estimate_bps(now),
        })?;
        for command in commands {
            machine.obey(now, command)?;
        }
    }
    Ok(outcome(world, &machine.frames))
}

/// What came of frames of which this was done, as many as the world has.
pub fn outcome(world: &ReplayWorld, states: &[ReplayFrameState]) -> ReplayResults {
    let mut random = ChaCha8Rng::seed_from_u64(world.seed);
    let states = states.iter().take(world.frames.len()).enumerate();
    let results = states.map(|(place, state)| result(world, place, state, random.random()));
    ReplayResults {
        frames: results.collect(),
    }
}

struct Machine<'a> {
    world: &'a ReplayWorld,
    events: BinaryHeap<Reverse<(Nanos, ReplayEvent)>>,
    /// Of those that have arrived.
    frames: Vec<ReplayFrameState>,
    npu_idle: Nanos,
    link_idle: Nanos,
}

impl Machine<'_> {
    fn obey(&mut self, now: Nanos, command: ReplayCommand) -> Result<(), VideoError> {
        match command {
            ReplayCommand::RunLocal { frame, model } => {
                let refused = VideoError::Command {
                    frame,
                    asked: "an answer on the phone",
                };
                let state = self.frames.get_mut(frame);
                let (Some(local), Some(state)) = (self.world.models.local().get(model), state)
                else {
                    return Err(refused);
                };
                if state.local.is_some() {
                    return Err(refused);
                }
                self.npu_idle = self.npu_idle.max(now) + local.time;
                let answered = self.npu_idle + self.world.calibration;
                state.local = Some((model, answered));
                self.events
                    .push(Reverse((answered, ReplayEvent::Answered(frame))));
            }
            ReplayCommand::Send {
                frame,
                model,
                resolution,
            } => {
                let refused = VideoError::Command {
                    frame,
                    asked: "a sending",
                };
                let state = self.frames.get_mut(frame);
                let (Some(remote), Some(state)) = (self.world.models.remote().get(model), state)
                else {
                    return Err(refused);
                };
                let sizes = &self.world.frames[frame].sizes;
                let (None, Some(&size)) = (state.remote, sizes.get(resolution)) else {
                    return Err(refused);
                };
                let start = self.link_idle.max(now);
                let Some(sent) = self.world.bandwidth.sent(start, size) else {
                    // It occupies the link for ever.
                    self.link_idle = Nanos::from_nanos(u64::MAX);
                    state.remote = Some((model, resolution, None));
                    return Ok(());
                };
                let served = sent + remote.time;
                let answered = served + self.world.round_trip;
                state.remote = Some((model, resolution, Some(answered)));
                self.link_idle = match self.world.server {
                    ServerMode::Pipelined => sent,
                    ServerMode::Serial => served,
                };
                let idle = (self.link_idle, ReplayEvent::LinkIdle(frame));
                self.events.push(Reverse(idle));
            }
        }
        Ok(())
    }
}

/// What came of a frame. Where nobody knows whether its answer is right, it is if `luck`, from 0 to 1, is below its accuracy.
fn result(world: &ReplayWorld, place: usize, state: &ReplayFrameState, luck: f64) -> FrameResult {
    let arrival = world.stream.arrival(place);
    let in_time = |answered: Nanos| {
        let delay = answered - arrival;
        (delay <= world.stream.within()).then_some(delay)
    };
    let remote = state.remote.and_then(|(model, resolution, answered)| {
        let by = FrameChoice::Remote { model, resolution };
        Some((by, in_time(answered?)?, world.models.accuracy(by)))
    });
    let local = || {
        let (model, answered) = state.local?;
        let accuracy = world.frames[place].local[model];
        Some((FrameChoice::Local { model }, in_time(answered)?, accuracy))
    };
    match remote.or_else(local) {
        Some((by, delay, accuracy)) => FrameResult {
            by,
            delay: Some(delay),
            accuracy,
            right: match &world.frames[place].right {
                Some(right) => right.of(by),
                None => luck < accuracy,
            },
        },
        None => FrameResult {
            by: FrameChoice::Skipped,
            delay: None,
            accuracy: 0.0,
            right: false,
        },
    }
}
