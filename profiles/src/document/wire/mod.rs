//! The files as they lie on disk. Each has a row type of its own, which becomes the in-memory type by
//! `TryFrom` and comes from it by `From`, so that neither can change without the other noticing.

mod block_row;
mod combination_row;
mod cut_row;
mod layer_row;
mod load_row;
mod profile_json;
mod sample_row;
mod segment_row;
mod table;
mod time_row;
mod unresolved;
mod unsupported_row;

pub(super) use block_row::{BLOCKS, BlockRecord};
pub(super) use combination_row::{COMBINATIONS, CombinationRecord};
pub(super) use cut_row::{CUTS, CutRecord};
pub(super) use layer_row::{LAYERS, LayerRecord};
pub(super) use load_row::{LOADS, LoadRecord};
pub(super) use profile_json::{Files, ProfileJson};
pub(super) use sample_row::{REJECTED, SAMPLES, SampleRecord};
pub(super) use segment_row::{SEGMENTS, SegmentRecord};
pub(super) use table::Table;
pub(super) use time_row::{TIMES, TimeRecord};
pub(super) use unsupported_row::{UNSUPPORTED, UnsupportedRecord};

pub use profile_json::schema;

/// Joins several names in one field.
const JOINT: &str = "+";
