//! Runtimes in processes of their own: children of the agent, one for each processor. A driver that crashes takes its process
//! with it and no other, and what is loaded for one visit lies elsewhere in memory than for the next.
//!
//! Here is what is the same for every runtime: the agent's end of a child (connection, loading, session), the child's end
//! (serve, around an [`Engine`]), and what they say to each other (messages, frames).

mod cache;
mod connection;
mod engine;
mod frames;
mod loading;
mod messages;
mod near;
mod serve;
mod session;

pub use self::connection::CHILD_COMMAND;

pub(in crate::runtime) use self::cache::{CompileCache, hexadecimal};
pub(in crate::runtime) use self::connection::{ChildProgram, RuntimeChild};
pub(in crate::runtime) use self::engine::{Engine, LoadedModel, ModelNotLoaded};
pub(in crate::runtime) use self::loading::{LoadFailure, PlacementTerms, SharedChild};
pub(in crate::runtime) use self::messages::{RuntimeSetup, TensorHeader, tensors};
pub(in crate::runtime) use self::near::bring_near;
pub(in crate::runtime) use self::serve::serve;
