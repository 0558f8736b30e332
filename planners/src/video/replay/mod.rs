//! A small discrete-event simulator in which every policy meets the same frames, phone, link and server.
//!
//! [`replay`] moves one clock from event to event: a frame arrives, the NPU has answered one, one has left the phone. After each
//! the [`ReplayPolicy`] may run frames on the NPU or send them. The NPU and the link take what they are given in that order.
//! Nothing is measured and nothing waits: the same world and policy give the same results.

mod bandwidth;
mod cbo_policy;
mod engine;
mod fastva_policy;
mod policy;
mod result;
mod schedule_policy;
mod server_policy;
mod video_policy;
mod world;

pub use bandwidth::ReplayBandwidth;
pub use cbo_policy::{CboKnowledge, CboModel, CboOptimalPolicy, CboPolicy};
pub use engine::{outcome, replay};
pub use fastva_policy::{FastVaAlgorithm, FastVaPolicy};
pub use policy::{ReplayCommand, ReplayEvent, ReplayFrameState, ReplayPolicy, ReplayView};
pub use result::{FrameResult, ReplayResults};
pub use schedule_policy::SchedulePolicy;
pub use server_policy::ServerPolicy;
pub(super) use video_policy::follower;
pub use video_policy::{BadPolicy, PolicySettings, VideoPolicy, replay_policy};
pub use world::{ReplayFrame, ReplayWorld, RightAnswers};
