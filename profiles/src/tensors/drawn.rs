//! Which pictures of a set are answered.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// `pictures` of a set of `all`, or all if it has no more, by their places: drawn by `seed`, then in the set's order.
pub fn drawn_pictures(all: u64, pictures: u64, seed: u64) -> Vec<u64> {
    let mut images: Vec<u64> = (0..all).collect();
    images.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    images.truncate(usize::try_from(pictures).unwrap_or(usize::MAX));
    images.sort_unstable();
    images
}
