//! From segment times to layer times.

mod differencing;
pub mod graph;
mod median;

pub use differencing::{DifferencingError, differencing};
pub use median::{MissingLayer, medians};

pub use crate::layer_time::{Includes, LayerTime};
