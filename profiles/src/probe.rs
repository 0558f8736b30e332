//! Probes: tiny networks with next to no arithmetic, whose layers take in and give out sizes that are known and differ
//! (docs/method.md §10). Here is what they are; `layerlab-model` makes them, `derive::graph` learns from their times.

use serde::{Deserialize, Serialize};

use crate::layer::Layer;
use crate::segment::Segment;
use crate::units::Bytes;

/// How many layers each probe has, all of which are timed one by one.
pub const PROBE_LAYERS: u32 = 3;

/// How many sizes there are: a line through fewer would hide a bend.
pub const PROBE_SIZES: usize = 5;

/// By how much the large tensor is longer and wider than the small one.
pub const PROBE_WINDOW: u64 = 4;

/// A small tensor of 32-bit floats and a large one of 16 times as many.
const RATIO: u64 = PROBE_WINDOW * PROBE_WINDOW;
const ELEMENT_BYTES: u64 = 4;

/// More channels than this and the small tensor gets longer and wider instead, as the tensors of networks do.
const MOST_CHANNELS: u64 = 32;

/// One probe: three layers in a row, of 32-bit floats, batch 1.
///
/// 1. as much out as in: maxima of 3 x 3 windows, one for each place, with a border of one place;
/// 2. much in and little out: maxima of 4 x 4 windows side by side, so that every byte that enters is looked at;
/// 3. little in and much out: maxima of windows of one place, which are the input itself, 16 times along the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// Channels of the small tensor.
    pub channels: u32,
    /// Its length and width.
    pub side: u32,
}

/// What one layer of a probe takes in, gives out and does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeLayer {
    /// What enters the processor.
    pub input: Bytes,
    /// What leaves it.
    pub output: Bytes,
    /// Floating-point operations, as `layers.csv` counts them.
    pub operations: u64,
}

impl Probe {
    /// The probes for a network with these frontiers between its layers: five sizes at equal ratios, from that of the smallest
    /// frontier to that of the largest. Frontiers that are nearly alike have smaller probes too, and tiny ones larger.
    /// None without a frontier.
    pub fn around(frontiers: impl IntoIterator<Item = Bytes>) -> Vec<Probe> {
        let sizes: Vec<u64> = frontiers.into_iter().map(Bytes::as_bytes).collect();
        let (Some(&least), Some(&most)) = (sizes.iter().min(), sizes.iter().max()) else {
            return Vec::new();
        };
        let [least, most] = [least, most].map(|bytes| (bytes.max(SMALLEST) as f64).ln());
        // Sizes that are all alike would leave nothing to draw a line through. Smaller ones cost next to nothing, and the
        // processor holds what the network itself moves.
        let least = least
            .min(most - LEAST_RANGE.ln())
            .max((SMALLEST as f64).ln());
        let most = most.max(least + LEAST_RANGE.ln());
        let step = (most - least) / (PROBE_SIZES as f64 - 1.0);
        (0..PROBE_SIZES)
            .map(|size| Probe::of_about((least + step * size as f64).exp()))
            .collect()
    }

    /// The probe whose large tensor takes about so many bytes.
    fn of_about(bytes: f64) -> Probe {
        let small = bytes / (RATIO * ELEMENT_BYTES) as f64;
        let mut side = 1_u32;
        while small / f64::from(side * side) > MOST_CHANNELS as f64 && side < MOST_SIDE {
            side *= 2;
        }
        let channels = (small / f64::from(side * side)).round().max(1.0);
        Probe {
            channels: channels as u32,
            side,
        }
    }

    /// Length and width of the large tensor as it enters.
    pub fn large_side(self) -> u64 {
        u64::from(self.side) * PROBE_WINDOW
    }

    /// How often the last layer gives its input out.
    pub const COPIES: u64 = RATIO;

    fn small_elements(self) -> u64 {
        let side = u64::from(self.side);
        u64::from(self.channels)
            .saturating_mul(side)
            .saturating_mul(side)
    }

    /// The larger of its two tensors.
    pub fn large(self) -> Bytes {
        Bytes::from_bytes(
            self.small_elements()
                .saturating_mul(RATIO)
                .saturating_mul(ELEMENT_BYTES),
        )
    }

    /// The smaller one.
    pub fn small(self) -> Bytes {
        Bytes::from_bytes(self.small_elements().saturating_mul(ELEMENT_BYTES))
    }

    /// Its layers, layer 1 first.
    pub fn layers(self) -> [ProbeLayer; PROBE_LAYERS as usize] {
        let (large, small) = (self.large(), self.small());
        let elements = self.small_elements();
        let comparisons = |of: u64, window: u64| of.saturating_mul(window - 1);
        [
            ProbeLayer {
                input: large,
                output: large,
                operations: comparisons(elements.saturating_mul(RATIO), 9),
            },
            ProbeLayer {
                input: large,
                output: small,
                operations: comparisons(elements, RATIO),
            },
            ProbeLayer {
                input: small,
                output: large,
                operations: 0,
            },
        ]
    }

    /// One of its layers, if there is such a one.
    pub fn layer(self, layer: u32) -> Option<ProbeLayer> {
        let place = (layer as usize).checked_sub(1)?;
        self.layers().get(place).copied()
    }

    /// What is timed of it: each layer alone.
    pub fn segments() -> impl Iterator<Item = Segment> {
        (1..=PROBE_LAYERS).map(Segment::single)
    }
}

/// The largest probe is at least so many times the smallest.
const LEAST_RANGE: f64 = 256.0;

/// The large tensor of the smallest probe there is, in bytes.
const SMALLEST: u64 = RATIO * ELEMENT_BYTES;

/// Longer and wider than any layer's tensor.
const MOST_SIDE: u32 = 4096;

/// What crosses each cut between neighbours of `layers`, the cut after layer 1 first.
pub fn frontiers(layers: &[Layer]) -> Vec<Bytes> {
    let inner = layers.len().saturating_sub(1);
    let layers = layers.iter().take(inner);
    layers.map(|layer| layer.output_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(frontiers: &[u64]) -> Vec<u64> {
        let probes = Probe::around(frontiers.iter().copied().map(Bytes::from_bytes));
        probes
            .iter()
            .map(|probe| probe.large().as_bytes())
            .collect()
    }

    #[test]
    fn probes_span_the_frontiers_of_the_network_at_equal_ratios() {
        let found = sizes(&[4_096, 1_048_576, 160_000]);
        assert_eq!(found, [4_096, 16_384, 65_536, 262_144, 1_048_576]);
    }

    /// A probe with larger tensors than the network has might not fit.
    #[test]
    fn frontiers_of_one_size_have_smaller_probes_too_and_none_much_larger() {
        for bytes in [1_000_000, 8_294_400] {
            let found = sizes(&[bytes, bytes]);
            assert_eq!(found.len(), PROBE_SIZES);
            let (least, most) = (found[0] as f64, found[PROBE_SIZES - 1] as f64);
            assert!((most / bytes as f64 - 1.0).abs() < 0.05, "{found:?}");
            assert!(most > 200.0 * least, "{found:?}");
        }
        assert_eq!(sizes(&[]), Vec::<u64>::new());
    }

    #[test]
    fn tiny_frontiers_have_larger_probes_too_and_never_the_same_twice() {
        for least in [0, 8, 40] {
            let found = sizes(&[least, 1]);
            assert_eq!(found, [64, 256, 1_024, 4_096, 16_384]);
        }
    }
}
