//! Which placements are evaluated (docs/method.md §6, mlmp §4.2.1).

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::placement::{MOST_PROCESSORS, Placement};
use crate::supported::SupportedLayers;

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

/// `samples` distinct random placements of `layers` layers on `processors` processors, each of which can run every layer:
/// see [`sample_on`].
///
/// # Panics
/// When there are no layers, or not 2 to [`MOST_PROCESSORS`] processors.
pub fn sample(layers: u32, processors: u8, samples: usize, seed: u64) -> Vec<Placement> {
    sample_on(&all_layers(layers, processors), samples, seed)
}

/// `samples` distinct random placements on processors that can run these layers, the [references](references_on) left out,
/// whose losses are features; all there are when there are no more. Draw m uniformly from 1..=n, put each layer off
/// processor 0 with probability m/n, on each of the others with equal probability, repeat until there are enough; a layer
/// that the drawn processor cannot run stays on processor 0. In the order in which they were drawn; the same seed gives the
/// same.
///
/// # Panics
/// When there are no layers, not 2 to [`MOST_PROCESSORS`] processors, or some layer that processor 0 cannot run.
pub fn sample_on(supported: &[SupportedLayers], samples: usize, seed: u64) -> Vec<Placement> {
    let references = references_on(supported).into_iter().collect();
    sample_without(supported, &references, samples, seed)
}

/// The same with these placements left out in place of the references.
pub(super) fn sample_without(
    supported: &[SupportedLayers],
    left_out: &BTreeSet<Placement>,
    samples: usize,
    seed: u64,
) -> Vec<Placement> {
    let (layers, processors) = refuse_unless_placeable(supported);
    let choices: Vec<Vec<u8>> = (1..=layers)
        .map(|layer| {
            let can_run = |p: &u8| supported[usize::from(*p)].has(layer);
            (0..processors).filter(can_run).collect()
        })
        .collect();
    let count = choices.iter().try_fold(1_u128, |count, choices| {
        count.checked_mul(choices.len() as u128)
    });
    let all = count.map_or(u128::MAX, |count| count - left_out.len() as u128);
    if all <= samples as u128 {
        // Counted with layer 1 as the lowest digit.
        let placement = |mut number: u128| {
            let digit = |choices: &Vec<u8>| {
                let base = choices.len() as u128;
                let digit = choices[(number % base) as usize];
                number /= base;
                digit
            };
            Placement::new(choices.iter().map(digit).collect())
        };
        let others = (0..all + left_out.len() as u128).map(placement);
        return others.filter(|one| !left_out.contains(one)).collect();
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
        let mut on_layer = |choices: &Vec<u8>| {
            let drawn = processor();
            if choices.contains(&drawn) { drawn } else { 0 }
        };
        let placement = Placement::new(choices.iter().map(&mut on_layer).collect());
        if !left_out.contains(&placement) && seen.insert(placement.clone()) {
            drawn.push(placement);
        }
    }
    drawn
}

/// Processors that can run every layer.
fn all_layers(layers: u32, processors: u8) -> Vec<SupportedLayers> {
    vec![SupportedLayers::all(layers); usize::from(processors)]
}

/// How many layers and processors there are.
fn refuse_unless_placeable(supported: &[SupportedLayers]) -> (u32, u8) {
    let processors = u8::try_from(supported.len()).unwrap_or(u8::MAX);
    assert_several(processors);
    let layers = supported[0].layers();
    assert!(layers > 0, "a network has layers");
    assert!(supported[0].is_all(), "processor 0 runs every layer");
    (layers, processors)
}

fn assert_several(processors: u8) {
    assert!(
        (2..=MOST_PROCESSORS).contains(&usize::from(processors)),
        "a placement is on 2 to {MOST_PROCESSORS} processors"
    );
}

/// Whether a placement is one of the [references](references_on) on these processors.
pub fn is_reference(placement: &Placement, supported: &[SupportedLayers]) -> bool {
    let off_cpu = || placement.processors().iter().filter(|on| **on != 0);
    let Some(&processor) = off_cpu().next() else {
        return true;
    };
    let can_run = supported.get(usize::from(processor));
    let layers = || (1..).zip(placement.processors());
    let is_most = layers().all(|(layer, &on)| {
        on == processor || on == 0 && can_run.is_some_and(|can_run| !can_run.has(layer))
    });
    is_most || off_cpu().count() == 1
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
    references_on(&all_layers(layers, processors))
}

/// On processors that can run these layers: for each as much on it as it can run and the rest on processor 0, processor 0
/// first, and each single layer on each of the others that can run it.
///
/// # Panics
/// When there are no layers, not 2 to [`MOST_PROCESSORS`] processors, or some layer that processor 0 cannot run.
pub fn references_on(supported: &[SupportedLayers]) -> Vec<Placement> {
    let (layers, processors) = refuse_unless_placeable(supported);
    let count = layers as usize;
    let runs = |processor: u8, layer: u32| supported[usize::from(processor)].has(layer);
    let most_on = |processor| {
        let on = (1..=layers).map(|layer| if runs(processor, layer) { processor } else { 0 });
        Placement::new(on.collect())
    };
    // A processor that can run no layer has no reference.
    let is_used = |placement: &Placement| !placement.is_all_on(0);
    let mut all = vec![Placement::all_on(0, count)];
    all.extend((1..processors).map(most_on).filter(is_used));
    let singles = (1..processors).flat_map(|processor| {
        let layers = (1..=layers).filter(move |&layer| runs(processor, layer));
        layers.map(move |layer| Placement::alone_on(processor, layer as usize - 1, count))
    });
    for single in singles {
        // Where a processor can run one layer only, that is all that it can run.
        if !all.contains(&single) {
            all.push(single);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    #[test]
    fn samples_are_distinct_and_the_same_for_the_same_seed() {
        let drawn = sample(30, 2, 300, 1);
        assert_eq!(drawn.len(), 300);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 300);
        assert_eq!(drawn, sample(30, 2, 300, 1));
        assert_ne!(drawn, sample(30, 2, 300, 2));
        // Few layers, so that a draw often is one: an eighth of all placements are.
        let drawn = sample(6, 2, 40, 1);
        assert_eq!(drawn.len(), 40);
        let references = references(6, 2);
        assert!(drawn.iter().all(|one| !references.contains(one)));
    }

    #[test]
    fn of_few_layers_every_placement_but_the_references_is_taken_once() {
        let drawn = sample(8, 2, 300, 1);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 246);
        assert_eq!(sample(1, 2, 300, 1).len(), 0);
        assert_eq!(sample(3, 2, 300, 1).len(), 3);
        let drawn = sample(5, 3, 300, 1);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 230);
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
        // With p = m / n for m drawn from 1..=n: how many layers are off processor 0, where none, single ones, and all on
        // one of the two others are left out.
        let (mut layers, mut kept) = (0.0, 0.0);
        for m in 1..=30 {
            let p = f64::from(m) / 30.0;
            let (none, single) = ((1.0 - p).powi(30), 30.0 * p * (1.0 - p).powi(29));
            let all_on_one = 2.0 * (p / 2.0).powi(30);
            layers += 30.0 * p - single - 30.0 * all_on_one;
            kept += 1.0 - none - single - all_on_one;
        }
        let each = layers / kept / 30.0 / 2.0;
        assert!((gpu - each).abs() < 0.01, "{layers_on:?}, {each}");
        assert!((npu - each).abs() < 0.01, "{layers_on:?}, {each}");
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

    /// A CPU, and accelerators that lack these layers.
    fn lacking(layers: u32, lacked: &[&[u32]]) -> Vec<SupportedLayers> {
        let without = |lacked: &&[u32]| {
            let singles = lacked.iter().map(|&layer| Segment::single(layer));
            SupportedLayers::without(layers, singles)
        };
        let accelerators = lacked.iter().map(without);
        std::iter::once(SupportedLayers::all(layers))
            .chain(accelerators)
            .collect()
    }

    #[test]
    fn no_placement_has_a_layer_on_a_processor_that_cannot_run_it() {
        let supported = lacking(20, &[&[3, 7], &[]]);
        let drawn = sample_on(&supported, 300, 1);
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 300);
        for one in drawn.iter().chain(&references_on(&supported)) {
            assert!(
                one.processors()[2] != 1 && one.processors()[6] != 1,
                "{one}"
            );
        }
        assert!(drawn.iter().any(|one| one.processors()[2] == 2));
        // Layer 2 can be on two, the others on three: 2 * 3 * 3 placements, of which 8 are references.
        let few = sample_on(&lacking(3, &[&[2], &[]]), 300, 1);
        assert_eq!(few.iter().collect::<BTreeSet<_>>().len(), 10);
        assert!(few.iter().all(|one| one.processors()[1] != 1));
        // As many as are asked for, though there are more on processors that lack nothing.
        assert_eq!(sample_on(&lacking(9, &[&[1, 2, 3]]), 56, 1).len(), 56);
    }

    #[test]
    fn references_are_what_each_processor_can_run() {
        let written = |lacked: &[&[u32]]| -> Vec<String> {
            let references = references_on(&lacking(3, lacked));
            references.iter().map(Placement::to_string).collect()
        };
        assert_eq!(written(&[&[2]]), ["000", "101", "100", "001"]);
        assert_eq!(written(&[&[1, 3]]), ["000", "010"]);
        assert_eq!(
            written(&[&[1, 2, 3], &[2]]),
            ["000", "202", "200", "002"],
            "a processor that can run nothing has no reference"
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
