//! The parts of cross-validation.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// `rows` places, shuffled by `seed` and dealt to `count` folds; fewer folds if there are fewer rows. Each
/// fold is what is held back once.
pub fn folds(rows: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut places: Vec<usize> = (0..rows).collect();
    places.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let count = count.clamp(1, rows.max(1));
    let mut folds = vec![Vec::new(); count];
    for (turn, place) in places.into_iter().enumerate() {
        folds[turn % count].push(place);
    }
    folds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_held_back_once() {
        let folds = folds(23, 5, 1);
        assert_eq!(folds.len(), 5);
        assert!(folds.iter().all(|fold| fold.len() == 4 || fold.len() == 5));
        let mut all: Vec<usize> = folds.concat();
        all.sort_unstable();
        assert_eq!(all, (0..23).collect::<Vec<_>>());
    }
}
