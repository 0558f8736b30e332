//! The files as they lie on disk. Each has a row type of its own, which becomes the in-memory type by
//! `TryFrom` and comes from it by `From`, so that neither can change without the other noticing.

mod block_record;
mod combination_record;
mod cut_record;
mod energy_record;
mod layer_record;
mod load_record;
mod minute_record;
mod placement_record;
mod probe_record;
mod profile_json;
mod sample_record;
mod segment_record;
mod soak_record;
mod table;
mod time_record;
mod unresolved;
mod unsupported_record;

pub(super) use block_record::{
    BLOCKS, BLOCKS_WITH_DISTURBANCE, BlockRecord, DisturbedBlockRecord, parse_by_group,
};
pub(super) use combination_record::{COMBINATIONS, CombinationRecord};
pub(super) use cut_record::{CUTS, CutRecord};
pub(super) use energy_record::{ENERGY, EnergyRecord, LAYER_ENERGY};
pub(super) use layer_record::{
    LAYERS, LAYERS_BESIDE_CUTS, LAYERS_BESIDE_CUTS_WITH_SHORTCUTS, LAYERS_WITH_SHORTCUTS,
    LayerBesideCutsRecord, LayerRecord, WithShortcuts,
};
pub(super) use load_record::{LOADS, LoadRecord};
pub(super) use minute_record::{MINUTES, MinuteRecord};
pub(super) use placement_record::{PLACEMENTS, PlacementRecord};
pub(super) use probe_record::{PROBES, ProbeRecord};
pub(super) use profile_json::{Files, ProfileJson};
pub(super) use sample_record::{REJECTED, SAMPLES, SampleRecord};
pub(super) use segment_record::{SEGMENTS, SegmentRecord};
pub(super) use soak_record::{SOAK, SoakRecord};
pub(crate) use table::Table;
#[cfg(test)]
pub(crate) use table::assert_columns_are_fields;
pub(super) use time_record::{TIMES, TimeRecord};
pub(super) use unsupported_record::{
    InMemoryRecord, UNSUPPORTED, UNSUPPORTED_IN_MEMORY, UnsupportedRecord,
};

pub use profile_json::schema;

/// Joins several names in one field.
const JOINT: &str = "+";
