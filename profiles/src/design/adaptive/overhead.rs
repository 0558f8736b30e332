//! What measuring costs beside the inferences.

use std::collections::BTreeMap;

use crate::segment::Segment;
use crate::units::Nanos;

/// Device time beside the timed inferences, by the device's own clock. The planner weighs what a segment would
/// tell per nanosecond of device time: that of its timed inferences, of the gaps before them, and of loading it.
/// Warm-up and sentinels are not part of that; the budget pays for them all the same, since it counts all time that
/// passes from the first sample on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overhead {
    /// For each sample: the idle gap before it.
    pub per_sample: Nanos,
    /// For each segment of a block: loading it, on average.
    pub per_segment: Nanos,
    /// For each block: loading the whole model, or the longest segment that memory holds, its sentinel.
    pub per_block: Nanos,
    /// How long loading each segment took that was loaded.
    pub loads: BTreeMap<Segment, Nanos>,
}

impl Overhead {
    /// The same gap, with what loading cost so far: of each segment that was loaded, how long that took. Until others were,
    /// loading one is taken to cost what the `longest` did, the sentinel.
    #[must_use]
    pub fn with_loads(&self, longest: Segment, loads: &BTreeMap<Segment, Nanos>) -> Overhead {
        let (whole, others): (Vec<_>, Vec<_>) =
            loads.iter().partition(|(segment, _)| **segment == longest);
        let whole = whole.first().map(|&(_, &load)| load);
        let sum: Nanos = others.iter().map(|&(_, &load)| load).sum();
        let count = others.len() as u64;
        let mean = (count > 0).then(|| Nanos::from_nanos(sum.as_nanos() / count));
        Overhead {
            per_sample: self.per_sample,
            per_segment: mean.or(whole).unwrap_or_default(),
            per_block: whole.unwrap_or_default(),
            loads: loads.clone(),
        }
    }

    /// About how long loading a segment takes, in ns: what it took before, or as long as its layers one by one, because it
    /// is their weights that take long. Where one of them was not loaded by itself, what segments took on average.
    pub(super) fn load_ns(&self, segment: Segment) -> f64 {
        let known = |segment: Segment| self.loads.get(&segment).copied();
        let of_layers = || {
            let layers = segment.first()..=segment.last();
            layers.map(|layer| known(Segment::single(layer))).sum()
        };
        let load: Option<Nanos> = known(segment).or_else(of_layers);
        load.unwrap_or(self.per_segment).as_nanos() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_loads_as_it_did_or_as_its_layers_do() {
        let loads = [(1, 1, 4), (2, 2, 900), (1, 2, 850), (1, 3, 1000)];
        let loads = loads.map(|(first, last, millis)| {
            let segment = Segment::new(first, last).expect("a segment");
            (segment, Nanos::from_millis(millis))
        });
        let overhead = Overhead::default().with_loads(Segment::whole(3), &loads.into());
        let load_ms =
            |first, last| overhead.load_ns(Segment::new(first, last).expect("a segment")) / 1e6;
        assert_eq!(load_ms(1, 1), 4.0);
        assert_eq!(load_ms(1, 2), 850.0);
        // Layer 3 was not loaded by itself: the average of the segments that were, but for the whole.
        let average = (4.0 + 900.0 + 850.0) / 3.0;
        assert!((load_ms(2, 3) - average).abs() < 1e-5);
        let with_third = [(Segment::single(3), Nanos::from_millis(6))];
        let loads = overhead.loads.clone().into_iter().chain(with_third);
        let overhead = Overhead::default().with_loads(Segment::whole(3), &loads.collect());
        let pair = Segment::new(2, 3).expect("a segment");
        assert_eq!(overhead.load_ns(pair), 906e6);
    }
}
