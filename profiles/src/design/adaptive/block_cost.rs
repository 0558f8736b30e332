//! About how much device time blocks take, with all that is not their samples.

use std::collections::BTreeMap;

use super::Overhead;
use crate::derive::graph::Observations;
use crate::segment::Segment;

/// Inferences before a segment is warm, at least (docs/method.md §5).
const WARM_UP: f64 = 3.0;

/// Sentinels and warm-up of the whole model in each block (docs/method.md §5).
const OF_THE_WHOLE: f64 = 9.0;

/// What blocks cost, as far as it is known.
pub(super) struct BlockCost<'a> {
    pub(super) observations: &'a Observations,
    pub(super) overhead: &'a Overhead,
    /// How many layers the longest segment has.
    pub(super) longest: u32,
    pub(super) repetitions: u64,
    pub(super) segments_per_block: usize,
}

impl BlockCost<'_> {
    /// About the device time that measuring these segments takes, in ns: loading, warm-up, samples with the gaps before
    /// them, and the sentinels of their blocks. A segment takes as long as those of as many layers did on average; where
    /// there are none yet, its layers' share of the longest segment, which leaves the costs of cuts out.
    pub(super) fn of(&self, segments: &[Segment]) -> f64 {
        let Overhead {
            per_sample,
            per_block,
            ..
        } = self.overhead;
        let gap = per_sample.as_nanos() as f64;
        let averages_ns = self.averages_ns();
        let longest = self.observations.segments.iter();
        let longest_ns = longest.map(|one| one.time_ns).fold(0.0, f64::max);
        let blocks = segments.len().div_ceil(self.segments_per_block) as f64;
        let each = |segment: &Segment| {
            let share = f64::from(segment.layers()) / f64::from(self.longest);
            let average_ns = averages_ns.get(&segment.layers()).copied();
            let time_ns = average_ns.unwrap_or(longest_ns * share);
            let samples = WARM_UP + self.repetitions as f64;
            self.overhead.load_ns(*segment) + samples * (time_ns + gap)
        };
        let of_blocks = per_block.as_nanos() as f64 + OF_THE_WHOLE * (longest_ns + gap);
        blocks * of_blocks + segments.iter().map(each).sum::<f64>()
    }

    /// How long segments of so many layers took on average.
    fn averages_ns(&self) -> BTreeMap<u32, f64> {
        let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for one in &self.observations.segments {
            let (sum, count) = sums.entry(one.segment.layers()).or_default();
            *sum += one.time_ns;
            *count += 1.0;
        }
        let average = |(layers, (sum, count)): (u32, (f64, f64))| (layers, sum / count);
        sums.into_iter().map(average).collect()
    }
}
