//! Profiles in, decisions out: which layers of a network should run on the NPU.
pub mod features;
mod interval;
pub mod placement;
pub mod regress;
pub mod rows;
pub mod scaling;
pub mod times;
