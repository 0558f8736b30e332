//! A layer combination as a set of bits: what searches copy, compare and change by the thousand.

use layerlab_profiles::Combination;

/// The most layers that a placement can hold.
pub const MOST_LAYERS: usize = 64 * WORDS;

const WORDS: usize = 4;

/// Which layers run on the NPU: the papers' `L`, layer `l` being bit `l - 1`.
///
/// The order of placements is arbitrary but fixed; it decides between plans that are equal in all else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    words: [u64; WORDS],
    layers: u16,
}

/// A model that has more layers than a placement can hold, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model has {layers} layers; the planners take 1 to {MOST_LAYERS}")]
pub struct LayerCountError {
    /// How many layers there are.
    pub layers: usize,
}

impl Placement {
    /// All of `layers` layers on the CPU.
    pub fn all_cpu(layers: usize) -> Result<Placement, LayerCountError> {
        match u16::try_from(layers) {
            Ok(count) if (1..=MOST_LAYERS).contains(&layers) => Ok(Placement {
                words: [0; WORDS],
                layers: count,
            }),
            _ => Err(LayerCountError { layers }),
        }
    }

    /// All of `layers` layers on the NPU.
    pub fn all_npu(layers: usize) -> Result<Placement, LayerCountError> {
        let mut placement = Placement::all_cpu(layers)?;
        for index in 0..layers {
            placement.words[index / 64] |= 1 << (index % 64);
        }
        Ok(placement)
    }

    /// The same placement as `combination`.
    pub fn of(combination: &Combination) -> Result<Placement, LayerCountError> {
        let mut placement = Placement::all_cpu(combination.layers())?;
        for (index, &on_npu) in combination.on_npu().iter().enumerate() {
            placement.words[index / 64] |= u64::from(on_npu) << (index % 64);
        }
        Ok(placement)
    }

    /// The placement as the profile writes it.
    pub fn combination(&self) -> Combination {
        Combination::new((0..self.layers()).map(|index| self.on_npu(index)).collect())
    }

    /// How many layers the model has.
    pub fn layers(&self) -> usize {
        usize::from(self.layers)
    }

    /// Whether the layer at `index`, counted from 0, runs on the NPU; false beyond the last layer.
    pub fn on_npu(&self, index: usize) -> bool {
        self.words
            .get(index / 64)
            .is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// How many layers run on the NPU.
    pub fn npu_layers(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// The placement with the layer at `index`, counted from 0, on the other processor.
    pub(crate) fn flipped(mut self, index: usize) -> Placement {
        self.words[index / 64] ^= 1 << (index % 64);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_is_the_combination_it_was_made_of() {
        for text in ["1", "0", "0110", &"10".repeat(100)] {
            let combination: Combination = text.parse().expect("zeros and ones");
            let placement = Placement::of(&combination).expect("few layers");
            assert_eq!(placement.combination(), combination);
            assert_eq!(placement.npu_layers(), text.matches('1').count());
        }
    }

    #[test]
    fn no_layers_and_too_many_are_refused() {
        for layers in [0, MOST_LAYERS + 1, 100_000] {
            assert_eq!(Placement::all_cpu(layers), Err(LayerCountError { layers }));
            assert_eq!(Placement::all_npu(layers), Err(LayerCountError { layers }));
        }
    }
}
