//! FastVA: each frame is answered either by a model on the phone's NPU or by one on the server (fastva §IV, §V).
//!
//! [`max_accuracy`] and [`max_utility`] are the paper's Algorithms 1 and 2, asked when a frame arrives and the link is idle:
//! they decide about that frame and those that arrive while it is sent. [`local`], [`offload`] and [`deep_decision`] are the
//! baselines; [`optimal`] knows all frames beforehand.
//!
//! Frames have one order, that of their arrival, in which the NPU, the link and (where it is serial) the server take them.

mod choice;
mod decision;
mod deep_decision;
mod goal;
mod local;
mod max_accuracy;
mod max_utility;
mod models;
mod npu;
mod offload;
mod optimal;
mod problem;
mod remote;
mod schedule;

pub use choice::FrameChoice;
pub use decision::{FastVaDecision, Scheduled};
pub use deep_decision::deep_decision;
pub use goal::{VideoGoal, utility};
pub use local::local;
pub use max_accuracy::max_accuracy;
pub use max_utility::max_utility;
pub use models::{LocalModel, RemoteModel, VideoModels};
pub use offload::offload;
pub use optimal::{OptimalSchedules, optimal};
pub use problem::{BufferedFrames, FastVaProblem, ServerMode, VideoBacklog};
pub use schedule::VideoSchedule;
