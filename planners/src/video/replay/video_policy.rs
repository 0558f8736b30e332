//! Every policy of both papers by its name, and a replay of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::super::cbo::{self, AnsweredFrame, SendingOrder};
use super::super::error::VideoError;
use super::super::fastva::{
    BufferedFrames, FastVaProblem, FrameChoice, Scheduled, VideoGoal, VideoSchedule, local, optimal,
};
use super::super::uplink::Uplink;
use super::bandwidth::ReplayBandwidth;
use super::cbo_policy::{CboKnowledge, CboModel, CboOptimalPolicy, CboPolicy};
use super::engine::replay;
use super::fastva_policy::{FastVaAlgorithm, FastVaPolicy};
use super::policy::ReplayPolicy;
use super::result::ReplayResults;
use super::schedule_policy::SchedulePolicy;
use super::server_policy::{ServerPolicy, conditions};
use super::world::ReplayWorld;

/// What decides about frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VideoPolicy {
    /// cbo Algorithm 1.
    Cbo,
    /// The same on uncalibrated confidences: CBO-w/o.
    CboUncalibrated,
    /// The same with a threshold for each class.
    CboByClass,
    /// The same where each frame is answered by one of several models or placements on the phone.
    CboPlacements,
    /// The optimum of cbo §IV-C, which knows all frames beforehand.
    CboOptimal,
    /// cbo's Local: the first model on the phone answers every frame.
    CboLocal,
    /// cbo's Server: every frame is sent.
    Server,
    /// fastva Algorithm 1, which is also cbo's FastVA.
    MaxAccuracy,
    /// fastva Algorithm 2.
    MaxUtility,
    /// FastVA's Offload: nothing runs on the phone.
    Offload,
    /// FastVA's Local: the best that the phone's models can do together.
    Local,
    /// One way of answering for each window.
    DeepDecision,
    /// FastVA's optimum, which knows all frames beforehand.
    FastvaOptimal,
}

/// A text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no policy; choose of {}", names())]
pub struct BadPolicy {
    name: String,
}

fn names() -> String {
    let names: Vec<&str> = VideoPolicy::ALL.iter().map(|one| one.name()).collect();
    names.join(", ")
}

impl VideoPolicy {
    /// All of them: CBO's, then FastVA's.
    pub const ALL: [VideoPolicy; 13] = [
        VideoPolicy::Cbo,
        VideoPolicy::CboUncalibrated,
        VideoPolicy::CboByClass,
        VideoPolicy::CboPlacements,
        VideoPolicy::CboOptimal,
        VideoPolicy::CboLocal,
        VideoPolicy::Server,
        VideoPolicy::MaxAccuracy,
        VideoPolicy::MaxUtility,
        VideoPolicy::Offload,
        VideoPolicy::Local,
        VideoPolicy::DeepDecision,
        VideoPolicy::FastvaOptimal,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            VideoPolicy::Cbo => "cbo",
            VideoPolicy::CboUncalibrated => "cbo-uncalibrated",
            VideoPolicy::CboByClass => "cbo-by-class",
            VideoPolicy::CboPlacements => "cbo-placements",
            VideoPolicy::CboOptimal => "cbo-optimal",
            VideoPolicy::CboLocal => "cbo-local",
            VideoPolicy::Server => "server",
            VideoPolicy::MaxAccuracy => "max-accuracy",
            VideoPolicy::MaxUtility => "max-utility",
            VideoPolicy::Offload => "offload",
            VideoPolicy::Local => "local",
            VideoPolicy::DeepDecision => "deep-decision",
            VideoPolicy::FastvaOptimal => "fastva-optimal",
        }
    }

    /// Why it cannot decide about the frames of a stream as they come, if it cannot.
    pub fn not_live(self) -> Option<&'static str> {
        match self {
            VideoPolicy::CboOptimal | VideoPolicy::FastvaOptimal => {
                Some("knows all frames beforehand, and a stream's have not come yet")
            }
            VideoPolicy::CboPlacements => {
                Some("answers frames in several ways, and a streaming phone has loaded one")
            }
            _ => None,
        }
    }
}

impl fmt::Display for VideoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for VideoPolicy {
    type Err = BadPolicy;

    fn from_str(name: &str) -> Result<VideoPolicy, BadPolicy> {
        let named = VideoPolicy::ALL.into_iter().find(|one| one.name() == name);
        named.ok_or_else(|| BadPolicy {
            name: name.to_owned(),
        })
    }
}

/// How the papers' open choices are made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicySettings {
    /// In which order CBO sends.
    pub order: SendingOrder,
    /// Which frames count as arriving while FastVA sends one.
    pub buffered: BufferedFrames,
    /// What FastVA's baselines are to have most of.
    pub goal: VideoGoal,
    /// How many frames DeepDecision's windows have.
    pub window: usize,
}

impl Default for PolicySettings {
    /// The earliest deadline first, the floor, accuracy, and a window of one second at 30 frames per second.
    fn default() -> PolicySettings {
        PolicySettings {
            order: SendingOrder::EarliestDeadline,
            buffered: BufferedFrames::Floor,
            goal: VideoGoal::Accuracy,
            window: 30,
        }
    }
}

/// What `policy` makes of `world`; a frame where nothing can answer every frame in time, as that policy must.
///
/// # Errors
/// When the world or the settings make no sense, or a policy that plans ahead meets a recorded link.
pub fn replay_policy(
    world: &ReplayWorld,
    policy: VideoPolicy,
    settings: &PolicySettings,
) -> Result<Scheduled<ReplayResults>, VideoError> {
    world.refuse_unfit()?;
    Ok(
        match follower(world, world.frames.len(), policy, settings)? {
            Scheduled::Planned(mut follower) => {
                Scheduled::Planned(replay(world, follower.as_mut())?)
            }
            Scheduled::Infeasible { frame } => Scheduled::Infeasible { frame },
        },
    )
}

/// What follows `policy` in `world`, of which `frames` frames will arrive.
pub(in super::super) fn follower(
    world: &ReplayWorld,
    frames: usize,
    policy: VideoPolicy,
    settings: &PolicySettings,
) -> Result<Scheduled<Box<dyn ReplayPolicy>>, VideoError> {
    let fastva = |algorithm| FastVaPolicy::new(algorithm, settings.buffered);
    let cbo = |knowledge, model| CboPolicy {
        order: settings.order,
        knowledge,
        model,
    };
    let planned = |schedule: VideoSchedule| SchedulePolicy::new(schedule.choices().to_vec());
    let follower: Box<dyn ReplayPolicy> = match policy {
        VideoPolicy::Cbo => Box::new(cbo(CboKnowledge::Calibrated, CboModel::First)),
        VideoPolicy::CboUncalibrated => Box::new(cbo(CboKnowledge::Uncalibrated, CboModel::First)),
        VideoPolicy::CboByClass => Box::new(cbo(CboKnowledge::ByClass, CboModel::First)),
        VideoPolicy::CboPlacements => Box::new(cbo(CboKnowledge::Calibrated, CboModel::Chosen)),
        VideoPolicy::CboOptimal => Box::new(CboOptimalPolicy::new(&best_offloads(world)?)),
        VideoPolicy::CboLocal => {
            let all = vec![FrameChoice::Local { model: 0 }; frames];
            Box::new(SchedulePolicy::new(all))
        }
        VideoPolicy::Server => Box::new(ServerPolicy),
        VideoPolicy::MaxAccuracy => Box::new(fastva(FastVaAlgorithm::MaxAccuracy)),
        VideoPolicy::MaxUtility => {
            let weight = match settings.goal {
                VideoGoal::Utility { weight } => weight,
                VideoGoal::Accuracy => return Err(VideoError::NoWeight),
            };
            Box::new(fastva(FastVaAlgorithm::MaxUtility { weight }))
        }
        VideoPolicy::Offload => Box::new(fastva(FastVaAlgorithm::Offload(settings.goal))),
        VideoPolicy::DeepDecision => Box::new(fastva(FastVaAlgorithm::DeepDecision {
            window: settings.window,
            goal: settings.goal,
        })),
        VideoPolicy::Local => {
            let uplink = Uplink::new(0, world.round_trip);
            let problem = problem(world, uplink, settings);
            match local(&problem, frames, settings.goal)? {
                Scheduled::Planned(schedule) => Box::new(planned(schedule)),
                Scheduled::Infeasible { frame } => return Ok(Scheduled::Infeasible { frame }),
            }
        }
        VideoPolicy::FastvaOptimal => {
            let problem = problem(world, constant_uplink(world)?, settings);
            let sizes: Vec<_> = world.frames.iter().map(|it| it.sizes.clone()).collect();
            let schedules = optimal(&problem, &sizes)?;
            let best = match settings.goal {
                VideoGoal::Accuracy => schedules.most_accurate().clone(),
                VideoGoal::Utility { weight } => schedules.most_useful(&problem, weight)?.clone(),
            };
            Box::new(planned(best))
        }
    };
    Ok(Scheduled::Planned(follower))
}

/// The plan of CBO's optimum for a world: its frames can be sent once the NPU has answered and the confidence is calibrated.
fn best_offloads(world: &ReplayWorld) -> Result<cbo::OffloadPlan, VideoError> {
    let npu = world.models.local().first().ok_or(VideoError::NoModels)?;
    let conditions = conditions(world, constant_uplink(world)?)?;
    let conditions = conditions.with_preprocessing(npu.time + world.calibration);
    let frames = world.frames.iter().enumerate();
    let frames: Vec<AnsweredFrame> = frames
        .map(|(place, frame)| AnsweredFrame {
            arrival: world.stream.arrival(place),
            confidence: frame.local[0],
            sizes: frame.sizes.clone(),
            server: None,
        })
        .collect();
    cbo::optimal(&conditions, &frames)
}

fn constant_uplink(world: &ReplayWorld) -> Result<Uplink, VideoError> {
    match world.bandwidth {
        ReplayBandwidth::Constant(bps) => Ok(Uplink::new(bps, world.round_trip)),
        ReplayBandwidth::Trace { .. } => Err(VideoError::NotConstant),
    }
}

fn problem(world: &ReplayWorld, uplink: Uplink, settings: &PolicySettings) -> FastVaProblem {
    FastVaProblem {
        server: world.server,
        buffered: settings.buffered,
        ..FastVaProblem::new(world.stream, uplink, world.models.clone())
    }
}
