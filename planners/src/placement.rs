//! A placement as a set of bits: what searches copy, compare and change by the thousand.

use layerlab_profiles::Placement;
use serde::{Deserialize, Serialize};

/// The most layers that a placement can hold.
pub const MOST_LAYERS: usize = 64 * WORDS;

/// The most processors that a placement can tell apart: two bits for each layer.
pub const MOST_PROCESSORS: usize = 4;

const WORDS: usize = 4;

/// Which layer runs on which processor: the papers' `L`. Layer `l` has bit `l - 1` of two planes, which
/// together count the processor from 0.
///
/// The order of placements is arbitrary but fixed; it decides between plans that are equal in all else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PackedPlacement {
    /// Before `low`, so that placements on two processors have the order of their bits.
    high: [u64; WORDS],
    low: [u64; WORDS],
    layers: u16,
}

/// A model or a placement that planners do not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementLimitError {
    /// There are too many layers, or none.
    #[error("the model has {layers} layers; the planners take 1 to {MOST_LAYERS}")]
    Layers {
        /// How many layers there are.
        layers: usize,
    },
    /// There are too many processors, or fewer than two.
    #[error("there are {processors} processors; the planners take 2 to {MOST_PROCESSORS}")]
    Processors {
        /// How many processors there are.
        processors: usize,
    },
}

impl PlacementLimitError {
    /// Refuses a number of processors that planners do not take.
    pub(crate) fn refuse_processors(processors: usize) -> Result<(), PlacementLimitError> {
        match processors {
            2..=MOST_PROCESSORS => Ok(()),
            _ => Err(PlacementLimitError::Processors { processors }),
        }
    }
}

impl PackedPlacement {
    /// All of `layers` layers on processor 0, the CPU.
    pub fn all_cpu(layers: usize) -> Result<PackedPlacement, PlacementLimitError> {
        match u16::try_from(layers) {
            Ok(count) if (1..=MOST_LAYERS).contains(&layers) => Ok(PackedPlacement {
                high: [0; WORDS],
                low: [0; WORDS],
                layers: count,
            }),
            _ => Err(PlacementLimitError::Layers { layers }),
        }
    }

    /// All of `layers` layers on processor 1, of two processors the NPU.
    pub fn all_npu(layers: usize) -> Result<PackedPlacement, PlacementLimitError> {
        PackedPlacement::all_on(1, layers)
    }

    /// All of `layers` layers on one processor, counted from 0.
    pub fn all_on(processor: usize, layers: usize) -> Result<PackedPlacement, PlacementLimitError> {
        if processor >= MOST_PROCESSORS {
            let processors = processor + 1;
            return Err(PlacementLimitError::Processors { processors });
        }
        let start = PackedPlacement::all_cpu(layers)?;
        Ok((0..layers).fold(start, |placement, index| placement.placed(index, processor)))
    }

    /// The same placement as `combination`.
    pub fn of(combination: &Placement) -> Result<PackedPlacement, PlacementLimitError> {
        let mut placement = PackedPlacement::all_cpu(combination.layers())?;
        for (index, &processor) in combination.processors().iter().enumerate() {
            let processor = usize::from(processor);
            if processor >= MOST_PROCESSORS {
                let processors = processor + 1;
                return Err(PlacementLimitError::Processors { processors });
            }
            placement = placement.placed(index, processor);
        }
        Ok(placement)
    }

    /// The placement as the profile writes it.
    pub fn combination(&self) -> Placement {
        let processors = (0..self.layers()).map(|index| self.processor(index) as u8);
        Placement::new(processors.collect())
    }

    /// How many layers the model has.
    pub fn layers(&self) -> usize {
        usize::from(self.layers)
    }

    /// The processor of the layer at `index`, both counted from 0; 0 beyond the last layer.
    pub fn processor(&self, index: usize) -> usize {
        let bit = |plane: &[u64; WORDS]| {
            plane
                .get(index / 64)
                .map_or(0, |word| (word >> (index % 64) & 1) as usize)
        };
        bit(&self.low) | bit(&self.high) << 1
    }

    /// How many layers run elsewhere than on processor 0: of two processors, on the NPU.
    pub fn layers_off_cpu(&self) -> usize {
        let planes = self.low.iter().zip(&self.high);
        planes
            .map(|(low, high)| (low | high).count_ones() as usize)
            .sum()
    }

    /// The placement with the layer at `index` on the processor `to`, both counted from 0.
    pub(crate) fn placed(mut self, index: usize, to: usize) -> PackedPlacement {
        let (word, place) = (index / 64, index % 64);
        let set = |plane: &mut [u64; WORDS], bit: usize| {
            plane[word] = plane[word] & !(1 << place) | (bit as u64 & 1) << place;
        };
        set(&mut self.low, to);
        set(&mut self.high, to >> 1);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(text: &str) -> PackedPlacement {
        PackedPlacement::of(&text.parse().expect("digits")).expect("few layers")
    }

    #[test]
    fn a_placement_is_the_combination_it_was_made_of() {
        for text in [
            "1",
            "0",
            "0110",
            "0123",
            &"10".repeat(100),
            &"3".repeat(256),
        ] {
            let placement = placement(text);
            assert_eq!(placement.combination().to_string(), text);
            assert_eq!(
                placement.layers_off_cpu(),
                text.len() - text.matches('0').count()
            );
        }
    }

    #[test]
    fn a_layer_is_placed_anywhere_from_anywhere() {
        for from in 0..MOST_PROCESSORS {
            for to in 0..MOST_PROCESSORS {
                let all = PackedPlacement::all_on(from, 200).expect("few layers");
                let placed = all.placed(130, to);
                assert_eq!(placed.processor(130), to);
                assert_eq!(placed.placed(130, from), all);
            }
        }
    }

    /// Ties between plans were always broken so, and published plans stay what they are.
    #[test]
    fn placements_on_two_processors_are_ordered_by_their_bits_the_last_layer_first() {
        let mut all = ["11", "10", "00", "01"].map(placement);
        all.sort_unstable();
        assert_eq!(all, ["00", "10", "01", "11"].map(placement));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for layers in [0, MOST_LAYERS + 1, 100_000] {
            let error = Err(PlacementLimitError::Layers { layers });
            assert_eq!(PackedPlacement::all_cpu(layers), error);
            assert_eq!(PackedPlacement::all_npu(layers), error);
        }
        let error =
            PackedPlacement::of(&"014".parse().expect("digits")).expect_err("five processors");
        assert_eq!(
            error.to_string(),
            "there are 5 processors; the planners take 2 to 4"
        );
        assert!(PackedPlacement::all_on(4, 3).is_err());
    }
}
