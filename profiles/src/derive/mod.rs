//! From segment times to layer times.

mod differencing;
mod differencing_in_visits;
pub mod graph;
mod median;

pub use differencing::{DifferencingError, differencing};
pub use differencing_in_visits::differencing_in_visits;
pub use median::{MissingLayer, medians};

pub use crate::layer_time::{Includes, LayerTime};
