//! The process in which ONNX Runtime is loaded, and which may die of it: a child of the agent, one for each processor.

mod convert;
mod engine;
pub(super) mod frames;
mod log;
pub(super) mod messages;
mod serve;

pub use self::serve::serve_runtime;
