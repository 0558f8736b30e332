//! What the daemon and the agent say to each other. PROTOCOL.md is the prose; the bytes of each
//! version are frozen in `tests/`.
//!
//! One JSON value per line, UTF-8, ended by a line feed. The daemon sends [`Request`]s, the agent
//! [`Response`]s. What the agent measures is in its journal, of which each line is an [`Entry`].

mod conditions;
mod description;
mod edge_plan;
mod frames;
mod framing;
mod journal;
mod link;
mod message;
mod meter_choice;
mod order;
mod placed;
mod stream;
mod tensors;

pub use conditions::Conditions;
pub use description::{Clock, Device, Library, Numerics, Processor, ProcessorKind};
pub use edge_plan::{
    EdgeAgreement, EdgeImages, EdgeInference, EdgePacking, EdgePart, EdgePlan, EdgeSide,
};
pub use frames::FormAnswer;
pub use framing::{FramingError, MAX_LINE_BYTES, decode, encode};
pub use journal::{Disturbance, Entry, Event, Failure, FailureKind, Rejection};
pub use link::{
    Carried, ExchangeKind, Exchanged, MeasureLink, RequestsOverLink, ShapedLink, TraceDirection,
};
pub use message::{Refusal, Request, Response};
pub use meter_choice::{BadMeterChoice, MeterChoice};
pub use order::{BadRunId, Hygiene, Order, Part, RunId, TimingSettings, WarmUp, Work};
pub use placed::{Placed, PlacedNode};
pub use stream::{FrameStream, PhoneAnswer, SentFrame, ServerAnswer, StreamedFrame};
pub use tensors::{PackedTensor, Packing};

/// The version of the protocol that this crate speaks. Daemon and agent must speak the same.
pub const VERSION: u32 = 3;
