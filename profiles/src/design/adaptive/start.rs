//! What the adaptive design measures before it knows anything: the local design, and a few long segments.

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::design::Design;
use crate::segment::Segment;

/// Long segments that are kept out of the fit to test it: enough that one odd one is not everything.
const HELD_BACK: usize = 4;

/// Long segments that take part in the fit, so that more than one cycle checks the short ones.
const FITTED: usize = 2;

/// Apart from `adaptive` the stream of a seed serves the order of segments and their inputs.
const STREAM: u64 = 0x6c6f_6e67;

/// The segments of the start set that least squares may use, ascending.
pub(super) fn fitted(layers: u32, seed: u64) -> BTreeSet<Segment> {
    let (_, fitted) = long(layers, seed);
    Design::Local.iter(layers).chain(fitted).collect()
}

/// The segments that are measured only to test whether times add up.
pub(super) fn held_back(layers: u32, seed: u64) -> BTreeSet<Segment> {
    long(layers, seed).0.into_iter().collect()
}

/// Random segments of a third of the model and more, but not all of it: to hold back, and to fit.
fn long(layers: u32, seed: u64) -> (Vec<Segment>, Vec<Segment>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(STREAM);
    // Three layers at least: singles and pairs are what predicts them.
    let shortest = (layers / 3).max(3);
    let mut drawn: BTreeSet<Segment> = BTreeSet::new();
    if layers > shortest {
        // A model with few layers has fewer such segments than are wanted; drawing ends all the same.
        for _ in 0..100 {
            let length = random.random_range(shortest..layers);
            let first = random.random_range(1..=layers - length + 1);
            drawn.extend(Segment::new(first, first + length - 1));
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

    #[test]
    fn long_segments_are_long_and_depend_on_the_seed_alone() {
        for layers in 1..=60 {
            let held_back = held_back(layers, 7);
            assert!(
                held_back
                    .iter()
                    .all(|s| s.layers() >= 3 && s.layers() < layers)
            );
            assert!(held_back.is_disjoint(&fitted(layers, 7)));
            assert_eq!(held_back, super::held_back(layers, 7));
            let wanted = if layers > 5 { HELD_BACK } else { 0 };
            assert!(held_back.len() >= wanted, "{layers}");
        }
        assert_ne!(held_back(30, 1), held_back(30, 2));
    }
}
