//! Visits to a segment: the blocks in which it was timed, those that do not count among them.

use std::collections::BTreeMap;

use layerlab_profiles::document::{Profile, Rejected, Sample, SegmentRow};

/// A visit to a segment: a block in which it was timed.
pub(super) struct Visit<'a> {
    /// The order.
    pub(super) order: u32,
    /// The block of that order.
    pub(super) block: u32,
    /// Why it does not count.
    pub(super) rejection: Option<Rejected>,
    /// What was timed, in the order of time.
    pub(super) samples: Vec<&'a Sample>,
}

/// The visits to a segment, in the order of time.
pub(super) fn visits_to<'a>(profile: &'a Profile, row: &SegmentRow) -> Vec<Visit<'a>> {
    let blocks = profile
        .blocks
        .iter()
        .map(|block| ((block.order, block.number), block.rejection));
    let rejections: BTreeMap<(u32, u32), Option<Rejected>> = blocks.collect();
    let mut visits: BTreeMap<(u32, u32), Vec<&Sample>> = BTreeMap::new();
    for sample in profile.samples.iter().chain(&profile.rejected) {
        if sample.processor == row.processor && sample.segment == row.segment {
            visits
                .entry((sample.order, sample.block))
                .or_default()
                .push(sample);
        }
    }
    let visits = visits.into_iter().map(|((order, block), mut samples)| {
        samples.sort_by_key(|sample| (sample.started, sample.index));
        Visit {
            order,
            block,
            rejection: rejections.get(&(order, block)).copied().flatten(),
            samples,
        }
    });
    visits.collect()
}
