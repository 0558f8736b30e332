//! The program that runs on the phone: it times segments in the order it is told to, keeps what it
//! measured in a journal, and goes on without the daemon.

pub mod beside;
mod chain;
pub mod compression;
pub mod description;
pub mod device;
pub mod edge_models;
mod ended;
mod evaluate;
mod evaluation_sessions;
pub mod files;
mod frames;
pub mod hygiene;
pub mod journal;
mod kept;
pub mod link;
pub mod machine;
mod model_with_twin;
mod models;
mod pictures;
pub mod pipe;
pub mod queue;
mod reach;
pub mod reading_cost;
pub mod runtime;
pub mod serve;
mod set_images;
pub mod stream;
mod survey;
mod tensors;
mod timing;
pub mod truth;
mod walk;
pub mod wire_tensors;
pub mod work;

pub use model_with_twin::ModelWithTwin;
