//! Confidence-based offloading: the NPU answers every frame, and frames it is not sure of are sent as well (cbo §IV).
//!
//! [`plan_offloads`] is Algorithm 1, run whenever the link is idle, on the frames that the NPU has answered. [`optimal`] knows
//! all frames beforehand and bounds what any threshold could do. [`server_resolution`] is the baseline that sends every frame;
//! the baseline that sends none needs no decision, FastVA and Compress are [`super::fastva`] with the NPU's or a compressed
//! model on the phone, and CBO without calibration is Algorithm 1 on uncalibrated confidences.

mod conditions;
mod frame;
mod offload_plan;
mod online;
mod optimal;
mod sending;
mod server;

pub use conditions::EdgeConditions;
pub use frame::AnsweredFrame;
pub use offload_plan::{OffloadPlan, OffloadedFrame};
pub use online::{SendingOrder, plan_offloads};
pub use optimal::optimal;
pub use server::server_resolution;
