//! The vocabulary and the arithmetic of layerlab: units, layers, segments, placements, the designs that say which
//! segments to measure, the derivation of layer times from segment times, and the published profile.
//!
//! Everything here is pure: no clock, no network, no asynchrony. The same input gives the same output.

// Tests in this crate share files with the integration tests, which know it by its name.
#[cfg(test)]
extern crate self as layerlab_profiles;

pub mod accuracy;
pub mod between_sizes;
pub mod check;
pub mod class_overlap;
pub mod compare;
pub mod derive;
pub mod design;
pub mod document;
pub mod energy;
pub mod folder;
pub mod gate;
mod holm;
pub mod layer;
mod layer_time;
pub mod link;
pub mod loading;
mod method;
pub mod moved;
pub mod placement;
pub mod probe;
mod processor_kind;
pub mod ranks;
pub mod segment;
mod sha256;
pub mod shortcuts;
pub mod soak;
pub mod summary;
pub mod supported;
pub mod tensors;
pub mod time_model;
pub mod units;
pub mod video;

pub use layer::{Layer, Shortcut};
pub use placement::Placement;
pub use probe::Probe;
pub use segment::Segment;
pub use sha256::{Hash, sha256};
pub use shortcuts::Shortcuts;
pub use supported::SupportedLayers;
pub use units::{Bytes, MilliCelsius, NanoJoules, Nanos, SignedNanos};
