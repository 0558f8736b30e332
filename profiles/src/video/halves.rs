//! Which images calibration learns from, and which it is judged by.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// One of two sets of images that share none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Half {
    /// Calibration learns from it.
    Calibration,
    /// Calibration is judged by it, and policies are replayed on it.
    Test,
}

/// `answers` of the images of a set of `all`, by their places, drawn and divided by `seed`: the first half calibrates, and has
/// one more where their number is odd.
pub fn halves(all: u64, answers: u64, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let mut images: Vec<u64> = (0..all).collect();
    images.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    images.truncate(usize::try_from(answers).unwrap_or(usize::MAX));
    let test = images.split_off(images.len().div_ceil(2));
    (images, test)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_halves_share_nothing_and_are_the_same_for_the_same_seed() {
        let (calibration, test) = halves(1_000, 301, 7);
        assert_eq!((calibration.len(), test.len()), (151, 150));
        let all: BTreeSet<u64> = calibration.iter().chain(&test).copied().collect();
        assert_eq!(all.len(), 301);
        assert!(all.iter().all(|&image| image < 1_000));
        assert_eq!(halves(1_000, 301, 7), (calibration.clone(), test));
        assert_ne!(halves(1_000, 301, 8).0, calibration);
        assert_eq!(halves(3, 9, 1).0.len(), 2);
    }
}
