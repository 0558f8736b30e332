//! What a phone and a server beside it say to each other, and how the link between them is measured. PROTOCOL.md is the
//! prose; the bytes of each version are frozen in `tests/`.
//!
//! Both ends use blocking sockets with a deadline on every wait: the phone's agent has no async runtime. [`Server`]
//! serves and has its [`Models`] run layers, [`Client`] asks, [`measure()`] times what it asks, [`Shaper`] stands between the two and slows them down, and a
//! [`LinkErrand`] is all of that for one link, wherever it is measured from.

mod cancel;
mod client;
mod connection;
mod errand;
mod error;
mod fields;
mod frame;
mod infer;
mod listening;
mod measure;
mod message;
mod models;
mod packed;
mod picture;
mod pictures;
mod plan;
mod server;
mod shaper;
mod text;
mod token;
mod trace;
mod turn;

pub use cancel::Cancel;
pub use client::{Answer, Client};
pub use connection::Patience;
pub use errand::LinkErrand;
pub use error::EdgeError;
pub use frame::{
    FrameError, FrameHeader, FrameKind, HEADER_BYTES, MAX_FIELDS_BYTES, MAX_PAYLOAD_BYTES, VERSION,
};
pub use infer::{InferRequest, Inferred, Stretch, TensorShape, hash_bytes, payload_bytes};
pub use measure::{Measured, Progress, measure};
pub use message::{ECHO_BYTES, MessageError, Reply, Request};
pub use models::Models;
pub use packed::{PackedAnswer, PackedBytes, PackedRequest};
pub use picture::PictureRequest;
pub use pictures::{PictureReceiver, PictureSender};
pub use plan::{MeasurePlan, TimedRequests};
pub use server::{Server, ServerLimits};
pub use shaper::{Cuts, Shape, Shaper};
pub use token::{Token, TokenFileError};
pub use trace::TRACE_INTERVAL;
