//! `unsupported.csv`: what a processor cannot run, and why.

use super::{Header, Profile};
use crate::segment::Segment;
use crate::supported::SupportedLayers;
use crate::units::Bytes;

/// Layers that a processor cannot run as one unit. A single layer is one that it cannot run at all: that layer has no
/// times there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The layers, mostly a single one.
    pub segment: Segment,
    /// Why the processor cannot run them, as its runtime says.
    pub reason: String,
    /// What they need of the processor's memory, where that does not hold them; `None` where another reason says why they
    /// cannot run. What contains layers that memory does not hold is not held either.
    pub needed: Option<Bytes>,
}

impl Profile {
    /// The layers that a processor can run.
    pub fn supported(&self, processor: &str) -> SupportedLayers {
        supported(self.header.model.layers, processor, &self.unsupported)
    }

    /// Why a processor cannot run a layer; `None` where it can.
    pub fn why_unsupported(&self, processor: &str, layer: u32) -> Option<&str> {
        let mut rows = self.unsupported.iter();
        let row = rows.find(|row| {
            row.processor == processor
                && (row.segment.first(), row.segment.last()) == (layer, layer)
        })?;
        Some(&row.reason)
    }
}

/// The layers of a model of `layers` layers that a processor can run, and which segments of them its memory holds.
pub fn supported(layers: u32, processor: &str, unsupported: &[Unsupported]) -> SupportedLayers {
    let rows = unsupported.iter();
    let of_it = rows.filter(|row| row.processor == processor);
    let (too_large, lacked): (Vec<&Unsupported>, Vec<_>) =
        of_it.partition(|row| row.needed.is_some());
    SupportedLayers::in_memory(
        layers,
        lacked.into_iter().map(|row| row.segment),
        too_large.into_iter().map(|row| row.segment),
    )
}

/// Sorts by processor in the header's order, then segment, and keeps the first reason for each.
pub(super) fn sort(header: &Header, unsupported: &mut Vec<Unsupported>) {
    let places = header.places();
    let key = |row: &Unsupported| (places.get(row.processor.as_str()).copied(), row.segment);
    // Stable, so that of several reasons the one that was told first stays first.
    unsupported.sort_by_key(key);
    unsupported.dedup_by_key(|row| key(row));
}
