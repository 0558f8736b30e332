//! Which placements are evaluated (docs/method.md §6, mlmp §4.2.1).

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::placement::{MOST_PROCESSORS, Placement};

/// What a measured placement is for, to whoever learns losses from them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// To learn from: five sixths of the random placements.
    Train,
    /// To judge what was learnt: the others.
    Test,
    /// Neither: all on one processor, each single layer on each but processor 0.
    Reference,
}

/// `samples` distinct random placements of `layers` layers on `processors` processors, all on processor 0 left
/// out; all there are when there are no more. Draw m uniformly from 1..=n, put each layer off processor 0 with
/// probability m/n, on each of the others with equal probability, repeat until there are enough. In the order
/// in which they were drawn; the same seed gives the same.
///
/// # Panics
/// When there are no layers, or not 2 to [`MOST_PROCESSORS`] processors.
pub fn sample(layers: u32, processors: u8, samples: usize, seed: u64) -> Vec<Placement> {
    assert!(layers > 0, "a network has layers");
    assert_several(processors);
    let base = u128::from(processors);
    let all = base
        .checked_pow(layers)
        .map_or(u128::MAX, |count| count - 1);
    if all <= samples as u128 {
        let digit = |number: u128, layer| (number / base.pow(layer) % base) as u8;
        let placement =
            |number| Placement::new((0..layers).map(|layer| digit(number, layer)).collect());
        return (1..=all).map(placement).collect();
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut seen = BTreeSet::new();
    let mut drawn = Vec::new();
    while drawn.len() < samples {
        let share = f64::from(random.random_range(1..=layers)) / f64::from(layers);
        let mut processor = || match (random.random_bool(share), processors) {
            (false, _) => 0,
            // With one other processor nothing is to be drawn: published seeds give what they gave.
            (true, 2) => 1,
            (true, _) => random.random_range(1..processors),
        };
        let placement = Placement::new((0..layers).map(|_| processor()).collect());
        if !placement.is_all_on(0) && seen.insert(placement.clone()) {
            drawn.push(placement);
        }
    }
    drawn
}

fn assert_several(processors: u8) {
    assert!(
        (2..=MOST_PROCESSORS).contains(&usize::from(processors)),
        "a placement is on 2 to {MOST_PROCESSORS} processors"
    );
}

/// Which of so many random placements are to learn from and which to judge by: one in six is left for
/// judging (250 and 50 of 300), chosen at random.
pub fn split(samples: usize, seed: u64) -> Vec<Part> {
    let tests = samples / 6;
    let mut parts = vec![Part::Train; samples];
    parts[..tests].fill(Part::Test);
    parts.shuffle(&mut ChaCha8Rng::seed_from_u64(seed ^ 0x7e57));
    parts
}

/// All on each processor, processor 0 first, and each single layer on each of the others.
///
/// # Panics
/// When there are not 2 to [`MOST_PROCESSORS`] processors.
pub fn references(layers: u32, processors: u8) -> Vec<Placement> {
    assert_several(processors);
    let count = layers as usize;
    let mut all: Vec<Placement> = (0..processors)
        .map(|processor| Placement::all_on(processor, count))
        .collect();
    // Of one layer, the single is the whole.
    if layers > 1 {
        let single = |processor, index| Placement::alone_on(processor, index, count);
        let others = 1..processors;
        all.extend(others.flat_map(|p| (0..count).map(move |index| single(p, index))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_distinct_and_the_same_for_the_same_seed() {
        let drawn = sample(30, 2, 300, 1);
        assert_eq!(drawn.len(), 300);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 300);
        assert_eq!(drawn, sample(30, 2, 300, 1));
        assert_ne!(drawn, sample(30, 2, 300, 2));
        assert!(drawn.iter().all(|one| !one.is_all_on(0)));
    }

    #[test]
    fn of_few_layers_every_placement_is_taken_once() {
        let drawn = sample(8, 2, 300, 1);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 255);
        assert_eq!(sample(1, 2, 300, 1).len(), 1);
        let drawn = sample(5, 3, 300, 1);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 242);
    }

    /// k is uniform, so that few and many layers on the NPU are as probable as half of them.
    #[test]
    fn sizes_are_spread_evenly() {
        let mut by_third = [0; 3];
        for one in sample(30, 2, 3_000, 5) {
            let on = one.processors().iter().filter(|&&on| on != 0).count();
            by_third[(on - 1).min(29) / 10] += 1;
        }
        assert!(
            by_third.iter().all(|&count| (850..1_150).contains(&count)),
            "{by_third:?}"
        );
    }

    #[test]
    fn of_three_processors_each_but_the_first_has_as_many_layers() {
        let mut layers_on = [0_usize; 3];
        let drawn = sample(30, 3, 3_000, 5);
        for one in &drawn {
            one.processors()
                .iter()
                .for_each(|&on| layers_on[usize::from(on)] += 1);
        }
        let [_, gpu, npu] = layers_on.map(|count| count as f64 / (3_000.0 * 30.0));
        // On average (n + 1) / 2n of the layers are off processor 0.
        assert!((gpu - 31.0 / 120.0).abs() < 0.01, "{layers_on:?}");
        assert!((npu - 31.0 / 120.0).abs() < 0.01, "{layers_on:?}");
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 3_000);
    }

    #[test]
    fn references_are_each_processor_and_each_single_layer_on_the_others() {
        let written = |layers, processors| -> Vec<String> {
            let references = references(layers, processors);
            references.iter().map(Placement::to_string).collect()
        };
        assert_eq!(written(3, 2), ["000", "111", "100", "010", "001"]);
        assert_eq!(written(2, 3), ["00", "11", "22", "10", "01", "20", "02"]);
        assert_eq!(written(1, 3), ["0", "1", "2"]);
    }

    #[test]
    fn one_in_six_is_left_for_judging() {
        let parts = split(300, 1);
        assert_eq!(parts.iter().filter(|&&part| part == Part::Test).count(), 50);
        assert_eq!(parts, split(300, 1));
        assert_ne!(parts, split(300, 2));
    }
}
