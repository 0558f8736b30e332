//! Measurements without a phone and without numerics: the planted times of simulated devices with the
//! simulator's own noise, so that thousands of runs take seconds. What the estimator makes of them is
//! compared with what was planted.

pub mod bound;
pub mod device;
pub mod energy;
pub mod figure;
pub mod machine_noise;
pub mod planted;
pub mod plot;
pub mod probed;
pub mod table;
pub mod yolo_small;

pub use device::{Measured, SimulatedProcessor};
pub use planted::Planted;
