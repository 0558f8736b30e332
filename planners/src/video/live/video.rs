//! The policies in the place where things happen.

use layerlab_profiles::{Bytes, Nanos};

use super::super::calibration::CalibrationError;
use super::super::error::VideoError;
use super::super::fastva::{Scheduled, ServerMode, VideoModels};
use super::super::replay::{
    ReplayBandwidth, ReplayCommand, ReplayEvent, ReplayFrame, ReplayFrameState, ReplayPolicy,
    ReplayView, ReplayWorld, follower,
};
use super::super::stream::VideoStream;
use super::link::{LiveLink, NEVER};
use super::settings::LiveSettings;

/// Why nothing can be decided.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LiveError {
    /// What is known of the video makes no sense.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// The phone's scores cannot be calibrated.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// Something is said of a frame that has not arrived, or was not asked for.
    #[error("an answer to frame {frame} has come that was not asked for; please report this")]
    NotAsked {
        /// The frame, counted from 0.
        frame: usize,
    },
}

/// What the phone's scores say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveAnswer {
    /// The class.
    pub class: usize,
    /// How sure that is, from 0 to 1, after calibration.
    pub confidence: f64,
}

/// Decides about frames as they come. Times are on one clock, at whose 0 frame 0 is captured, and never go back.
///
/// A policy decides about a frame when it is there in all resolutions, which takes the phone a while. Policies are told times
/// without that while, and a round trip with it, as in a replay: by the paper, a frame can be sent when it arrives.
pub struct LiveVideo {
    settings: LiveSettings,
    policy: Box<dyn ReplayPolicy>,
    /// The frames that have arrived, and all else that policies look at.
    world: ReplayWorld,
    states: Vec<ReplayFrameState>,
    npu_idle: Nanos,
    /// Frames that were given to the phone and are not answered.
    unanswered: usize,
    link: LiveLink,
    bandwidth_bps: u64,
}

impl LiveVideo {
    /// Follows the policy of `settings`; a frame where it must answer every frame and cannot from there on.
    ///
    /// # Errors
    /// When the settings make no sense, or the policy plans ahead.
    pub fn new(settings: LiveSettings) -> Result<Scheduled<LiveVideo>, VideoError> {
        if let Some(why) = settings.policy.not_live() {
            return Err(VideoError::NotLive(settings.policy.name(), why));
        }
        let models = VideoModels::new(vec![settings.local.clone()], vec![settings.remote.clone()])?;
        let world = ReplayWorld {
            stream: VideoStream::new(settings.interval, settings.within)?,
            frames: Vec::new(),
            bandwidth: ReplayBandwidth::Constant(settings.bandwidth_bps),
            round_trip: settings.round_trip + settings.prepare,
            models,
            server: ServerMode::Pipelined,
            calibration: Nanos::ZERO,
            seed: 0,
        };
        let follower = follower(&world, settings.frames, settings.policy, &settings.settings)?;
        Ok(match follower {
            Scheduled::Infeasible { frame } => Scheduled::Infeasible { frame },
            Scheduled::Planned(policy) => Scheduled::Planned(LiveVideo {
                bandwidth_bps: settings.bandwidth_bps,
                settings,
                policy,
                world,
                states: Vec::new(),
                npu_idle: Nanos::ZERO,
                unanswered: 0,
                link: LiveLink::default(),
            }),
        })
    }

    /// The next frame is there at `now`, and has so many bytes in each resolution. What to do, in that order.
    ///
    /// # Errors
    /// When the sizes are not one for each resolution.
    pub fn arrived(
        &mut self,
        now: Nanos,
        sizes: Vec<Bytes>,
    ) -> Result<Vec<ReplayCommand>, LiveError> {
        let frame = self.states.len();
        self.states.push(ReplayFrameState::default());
        self.world.frames.push(ReplayFrame {
            sizes,
            local: vec![0.0],
            uncalibrated: 0.0,
            by_class: None,
            right: None,
        });
        self.decide(now, ReplayEvent::Arrived(frame))
    }

    /// The phone has answered `frame` with these scores at `now`. What they say, and what to do.
    ///
    /// # Errors
    /// When the frame was not given to the phone, or its scores cannot be calibrated.
    pub fn answered(
        &mut self,
        now: Nanos,
        frame: usize,
        scores: &[f32],
    ) -> Result<(LiveAnswer, Vec<ReplayCommand>), LiveError> {
        let probabilities = self.settings.confidence.probabilities(scores);
        let (class, confidence) = self.settings.calibrator.answer(&probabilities)?;
        let told = self.told(now);
        let asked = self.states.get_mut(frame).and_then(|it| it.local.as_mut());
        let (Some((_, answered)), Some(seen)) = (asked, self.world.frames.get_mut(frame)) else {
            return Err(LiveError::NotAsked { frame });
        };
        *answered = told;
        seen.local = vec![confidence];
        seen.by_class = self.settings.by_class.get(class).cloned();
        seen.uncalibrated = probabilities.into_iter().fold(0.0, f64::max);
        self.unanswered = self.unanswered.saturating_sub(1);
        self.npu_idle = (0..self.unanswered).fold(told, |idle, _| idle + self.settings.local.time);
        let commands = self.decide(now, ReplayEvent::Answered(frame))?;
        Ok((LiveAnswer { class, confidence }, commands))
    }

    /// The server's answer to `frame` has come at `now`; the server had the frame for `served`.
    ///
    /// # Errors
    /// When the frame was not sent.
    pub fn served(&mut self, now: Nanos, frame: usize, served: Nanos) -> Result<(), LiveError> {
        let told = self.told(now);
        let sent = self.states.get_mut(frame).and_then(|it| it.remote.as_mut());
        let (_, _, answered) = sent.ok_or(LiveError::NotAsked { frame })?;
        *answered = Some(told);
        let left = told - served - self.settings.round_trip;
        self.link.answered(frame, left, told);
        Ok(())
    }

    /// How many frames come after a frame and before it is due: of older ones nothing is decided any more.
    pub fn frames_within(&self) -> usize {
        self.world.stream.frames_within()
    }

    /// When to call [`LiveVideo::woken`], unless something happens before.
    pub fn wake(&self) -> Option<Nanos> {
        Some(self.link.wake()? + self.settings.prepare)
    }

    /// It is `now`. What to do.
    ///
    /// # Errors
    /// When what is known of the video makes no sense.
    pub fn woken(&mut self, now: Nanos) -> Result<Vec<ReplayCommand>, LiveError> {
        match self.link.tell(self.told(now)) {
            Some(frame) => self.decide(now, ReplayEvent::LinkIdle(frame)),
            None => Ok(Vec::new()),
        }
    }

    /// The server is gone: from now on there is no link.
    pub fn lost(&mut self) {
        self.link.lost();
        self.bandwidth_bps = 0;
    }

    /// The time as policies are told it.
    fn told(&self, now: Nanos) -> Nanos {
        now - self.settings.prepare
    }

    fn decide(&mut self, now: Nanos, event: ReplayEvent) -> Result<Vec<ReplayCommand>, LiveError> {
        let now = self.told(now);
        let commands = self.policy.decide(&ReplayView {
            event,
            now,
            world: &self.world,
            frames: &self.states,
            npu_idle: self.npu_idle,
            link_idle: self.link.idle(),
            bandwidth_bps: self.bandwidth_bps,
        })?;
        for &command in &commands {
            self.note(now, command)?;
        }
        Ok(commands)
    }

    /// Takes it that `command` is obeyed.
    fn note(&mut self, now: Nanos, command: ReplayCommand) -> Result<(), VideoError> {
        match command {
            ReplayCommand::RunLocal { frame, model } => {
                let state = self.states.get_mut(frame);
                let state = state.filter(|it| it.local.is_none() && model == 0);
                let state = state.ok_or(VideoError::Command {
                    frame,
                    asked: "an answer on the phone",
                })?;
                state.local = Some((model, NEVER));
                self.unanswered += 1;
                self.npu_idle = self.npu_idle.max(now) + self.settings.local.time;
            }
            ReplayCommand::Send {
                frame,
                model,
                resolution,
            } => {
                let seen = self.world.frames.get(frame);
                let size = seen.and_then(|it| it.sizes.get(resolution).copied());
                let state = self.states.get_mut(frame);
                let state = state.filter(|it| it.remote.is_none() && model == 0);
                let (Some(state), Some(size)) = (state, size) else {
                    return Err(VideoError::Command {
                        frame,
                        asked: "a sending",
                    });
                };
                state.remote = Some((model, resolution, None));
                let left = match self.bandwidth_bps {
                    0 => None,
                    _ => self.world.bandwidth.sent(self.link.idle().max(now), size),
                };
                match left {
                    Some(left) => self.link.send(frame, now, left),
                    // It occupies the link for ever.
                    None => self.link.lost(),
                }
            }
        }
        Ok(())
    }
}
