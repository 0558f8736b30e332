//! Which placements are evaluated (docs/method.md §6, mlmp §4.2.1).

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::placement::Placement;

/// What a measured combination is for, to whoever learns losses from them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// To learn from: five sixths of the random combinations.
    Train,
    /// To judge what was learnt: the others.
    Test,
    /// Neither: all on the CPU, all on the accelerator, each single layer on the accelerator.
    Reference,
}

/// `samples` distinct random combinations of `layers` layers, the empty one left out; all there are when
/// there are no more. Draw k uniformly from 1..=n, put each layer on the NPU with probability k/n, repeat
/// until there are enough. In the order in which they were drawn; the same seed gives the same.
///
/// # Panics
/// When there are no layers.
pub fn sample(layers: u32, samples: usize, seed: u64) -> Vec<Placement> {
    assert!(layers > 0, "a network has layers");
    let all = 1_u128
        .checked_shl(layers)
        .map_or(u128::MAX, |count| count - 1);
    if all <= samples as u128 {
        let combination =
            |bits: u128| Placement::new((0..layers).map(|layer| bits >> layer & 1 == 1).collect());
        return (1..=all).map(combination).collect();
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut seen = BTreeSet::new();
    let mut drawn = Vec::new();
    while drawn.len() < samples {
        let on_npu = f64::from(random.random_range(1..=layers)) / f64::from(layers);
        let combination = Placement::new((0..layers).map(|_| random.random_bool(on_npu)).collect());
        let is_empty = !combination.on_npu().contains(&true);
        if !is_empty && seen.insert(combination.clone()) {
            drawn.push(combination);
        }
    }
    drawn
}

/// Which of so many random combinations are to learn from and which to judge by: one in six is left for
/// judging (250 and 50 of 300), chosen at random.
pub fn split(samples: usize, seed: u64) -> Vec<Part> {
    let tests = samples / 6;
    let mut parts = vec![Part::Train; samples];
    parts[..tests].fill(Part::Test);
    parts.shuffle(&mut ChaCha8Rng::seed_from_u64(seed ^ 0x7e57));
    parts
}

/// All on the CPU, all on the accelerator, and each single layer on the accelerator.
pub fn references(layers: u32) -> Vec<Placement> {
    let same = |on_npu| Placement::new(vec![on_npu; layers as usize]);
    let single = |on: u32| Placement::new((0..layers).map(|layer| layer == on).collect());
    let mut all = vec![same(false), same(true)];
    // Of one layer, the single is the whole.
    if layers > 1 {
        all.extend((0..layers).map(single));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_distinct_and_the_same_for_the_same_seed() {
        let drawn = sample(30, 300, 1);
        assert_eq!(drawn.len(), 300);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 300);
        assert_eq!(drawn, sample(30, 300, 1));
        assert_ne!(drawn, sample(30, 300, 2));
        assert!(drawn.iter().all(|one| one.on_npu().contains(&true)));
    }

    #[test]
    fn of_few_layers_every_combination_is_taken_once() {
        let drawn = sample(8, 300, 1);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 255);
        assert_eq!(sample(1, 300, 1).len(), 1);
    }

    /// k is uniform, so that few and many layers on the NPU are as probable as half of them.
    #[test]
    fn sizes_are_spread_evenly() {
        let mut by_third = [0; 3];
        for one in sample(30, 3_000, 5) {
            let on = one.on_npu().iter().filter(|&&on| on).count();
            by_third[(on - 1).min(29) / 10] += 1;
        }
        assert!(
            by_third.iter().all(|&count| (850..1_150).contains(&count)),
            "{by_third:?}"
        );
    }

    #[test]
    fn one_in_six_is_left_for_judging() {
        let parts = split(300, 1);
        assert_eq!(parts.iter().filter(|&&part| part == Part::Test).count(), 50);
        assert_eq!(parts, split(300, 1));
        assert_ne!(parts, split(300, 2));
    }
}
