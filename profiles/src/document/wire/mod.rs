//! The files as they lie on disk. Each has a row type of its own, which becomes the in-memory type by
//! `TryFrom` and comes from it by `From`, so that neither can change without the other noticing.

mod block_row;
mod combination_row;
mod cut_row;
mod layer_row;
mod load_row;
mod placement_row;
mod profile_json;
mod sample_row;
mod segment_row;
mod table;
mod time_row;
mod unresolved;
mod unsupported_row;

pub(super) use block_row::{BLOCKS, BlockRow};
pub(super) use combination_row::{COMBINATIONS, CombinationRow};
pub(super) use cut_row::{CUTS, CutRow};
pub(super) use layer_row::{LAYERS, LayerRow};
pub(super) use load_row::{LOADS, LoadRow};
pub(super) use placement_row::{PLACEMENTS, PlacementRow};
pub(super) use profile_json::{Files, ProfileJson};
pub(super) use sample_row::{REJECTED, SAMPLES, SampleRow};
pub(super) use segment_row::{SEGMENTS, SegmentRow};
pub(super) use table::Table;
pub(super) use time_row::{TIMES, TimeRow};
pub(super) use unsupported_row::{UNSUPPORTED, UnsupportedRow};

pub use profile_json::schema;

/// Joins several names in one field.
const JOINT: &str = "+";
