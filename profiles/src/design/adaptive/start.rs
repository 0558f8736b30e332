//! What the adaptive design measures before it knows anything: the local design, and a few long segments.

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::derive::graph::{FEWEST_VISITS, Observations};
use crate::design::Design;
use crate::segment::Segment;
use crate::supported::StretchLayers;

/// Long segments that are kept out of the fit to test it: enough that one odd one is not everything.
const HELD_BACK: usize = 4;

/// Long segments that take part in the fit, so that more than one cycle checks the short ones.
const FITTED: usize = 2;

/// Apart from `adaptive` the stream of a seed serves the order of segments and their inputs.
const STREAM: u64 = 0x6c6f_6e67;

/// In how many visits the start set is measured: the fewest from which it can be told how far visits differ.
pub(super) const VISITS: u64 = FEWEST_VISITS as u64;

/// The segments of the start set that lack visits: those that had the fewest first, and among these in an order drawn
/// anew for each round, so that not always the same segments share a visit.
pub(super) fn missing(
    start: &BTreeSet<Segment>,
    observations: &Observations,
    seed: u64,
) -> Vec<Segment> {
    let rounds = (0..wanted_visits(observations)).map(|round| {
        let of_round = start.iter().copied();
        let of_round = of_round.filter(|&segment| had_visits(observations, segment) == round);
        let mut of_round: Vec<Segment> = of_round.collect();
        if round > 0 {
            let mut random = ChaCha8Rng::seed_from_u64(seed ^ round as u64);
            random.set_stream(STREAM);
            of_round.shuffle(&mut random);
        }
        of_round
    });
    rounds.flatten().collect()
}

/// In how many more visits the segment of the start set is to be timed.
pub(super) fn visits_left(observations: &Observations, segment: Segment) -> usize {
    wanted_visits(observations).saturating_sub(had_visits(observations, segment))
}

/// Where visits are not told apart, one is all that can be asked for.
fn wanted_visits(observations: &Observations) -> usize {
    match observations.visits() {
        0 => 1,
        _ => FEWEST_VISITS,
    }
}

fn had_visits(observations: &Observations, segment: Segment) -> usize {
    observations.of(segment).map_or(0, |one| one.visits)
}

/// The segments of the start set that least squares may use, ascending.
pub(super) fn fitted(stretch: &StretchLayers, seed: u64) -> BTreeSet<Segment> {
    let (_, fitted) = long(stretch, seed);
    Design::Local.iter_in(stretch).chain(fitted).collect()
}

/// The segments that are measured only to test whether times add up.
pub(super) fn held_back(stretch: &StretchLayers, seed: u64) -> BTreeSet<Segment> {
    long(stretch, seed).0.into_iter().collect()
}

/// Random segments of a third of the longest that memory holds and more, but shorter than that: to hold back, and to fit.
fn long(stretch: &StretchLayers, seed: u64) -> (Vec<Segment>, Vec<Segment>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(STREAM);
    let (layers, longest) = (
        stretch.layers(),
        stretch.longest().map_or(0, Segment::layers),
    );
    // Three layers at least: singles and pairs are what predicts them.
    let shortest = (longest / 3).max(3);
    let mut drawn: BTreeSet<Segment> = BTreeSet::new();
    if longest > shortest {
        // A model with few layers has fewer such segments than are wanted; drawing ends all the same.
        for _ in 0..100 {
            let length = random.random_range(shortest..longest);
            let first = random.random_range(1..=layers - length + 1);
            let segment = Segment::new(first, first + length - 1).ok();
            drawn.extend(segment.filter(|&segment| stretch.holds(segment)));
            if drawn.len() == HELD_BACK + FITTED {
                break;
            }
        }
    }
    let mut drawn: Vec<Segment> = drawn.into_iter().collect();
    drawn.shuffle(&mut random);
    let fitted = drawn.split_off(drawn.len().min(HELD_BACK));
    (drawn, fitted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supported::SupportedLayers;

    #[test]
    fn long_segments_are_long_and_depend_on_the_seed_alone() {
        for layers in 1..=60 {
            let stretch = StretchLayers::held(layers);
            let held_back = held_back(&stretch, 7);
            assert!(
                held_back
                    .iter()
                    .all(|s| s.layers() >= 3 && s.layers() < layers)
            );
            assert!(held_back.is_disjoint(&fitted(&stretch, 7)));
            assert_eq!(held_back, super::held_back(&stretch, 7));
            let wanted = if layers > 5 { HELD_BACK } else { 0 };
            assert!(held_back.len() >= wanted, "{layers}");
        }
        let stretch = StretchLayers::held(30);
        assert_ne!(held_back(&stretch, 1), held_back(&stretch, 2));
    }

    #[test]
    fn long_segments_are_such_as_memory_holds() {
        let too_large = (1..=31).filter_map(|first| Segment::new(first, first + 9).ok());
        let supported = SupportedLayers::in_memory(40, [], too_large);
        let stretch = supported.stretch(Segment::whole(40));
        let held_back = held_back(&stretch, 7);
        assert_eq!(held_back.len(), HELD_BACK);
        let fitted = fitted(&stretch, 7);
        let all = || held_back.iter().chain(&fitted);
        assert!(all().all(|&one| stretch.holds(one)));
        let longest = all().filter(|one| one.layers() == 9);
        assert!(longest.eq([&Segment::whole(9)]));
    }
}
