//! Levels of speed that a machine changes between: it holds one for a while, and then another.
//!
//! Several levels that hold equally long are the steps of a governor, a short slow level between long fast ones is a
//! neighbour's bursts, and two levels that hold for minutes are two states.

use layerlab_profiles::Nanos;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_distr::Exp1;

/// The levels of a machine's speed. At least two.
#[derive(Clone, Debug, PartialEq)]
pub struct Switching {
    /// The levels, in the order of the file.
    pub levels: Vec<Level>,
}

/// One level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// How many times as long everything takes.
    pub slowdown: f64,
    /// How long the level holds in the mean; how long it does is distributed exponentially.
    pub mean_hold: Nanos,
}

/// Which level a machine is at, and until when.
#[derive(Debug)]
pub(super) struct SwitchingState {
    level: usize,
    until: Nanos,
    random: ChaCha8Rng,
}

impl SwitchingState {
    /// A machine that has been running for long: each level is as probable as the share of time it has.
    pub(super) fn begin(switching: &Switching, mut random: ChaCha8Rng, now: Nanos) -> Self {
        let holds = || {
            switching
                .levels
                .iter()
                .map(|level| level.mean_hold.as_nanos() as f64)
        };
        let mut left = random.random::<f64>() * holds().sum::<f64>();
        let level = holds().position(|hold| {
            left -= hold;
            left < 0.0
        });
        let mut state = SwitchingState {
            // Rounding may leave nothing for the last level.
            level: level.unwrap_or(switching.levels.len() - 1),
            until: now,
            random,
        };
        state.hold(switching);
        state
    }

    /// How many times as long everything takes at `now`, which never goes back.
    pub(super) fn slowdown_at(&mut self, switching: &Switching, now: Nanos) -> f64 {
        while self.until <= now {
            // Any other level is as probable as the next.
            let step = self.random.random_range(1..switching.levels.len());
            self.level = (self.level + step) % switching.levels.len();
            self.hold(switching);
        }
        switching.levels[self.level].slowdown
    }

    fn hold(&mut self, switching: &Switching) {
        let length: f64 = self.random.sample(Exp1);
        let mean = switching.levels[self.level].mean_hold.as_nanos() as f64;
        self.until = self.until + Nanos::from_nanos((length * mean).ceil() as u64);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn levels(levels: &[(f64, u64)]) -> Switching {
        let level = |&(slowdown, millis)| Level {
            slowdown,
            mean_hold: Nanos::from_millis(millis),
        };
        Switching {
            levels: levels.iter().map(level).collect(),
        }
    }

    /// The slowdown at each of 200,000 instants 10 ms apart.
    fn history(switching: &Switching) -> Vec<f64> {
        let random = ChaCha8Rng::seed_from_u64(1);
        let mut state = SwitchingState::begin(switching, random, Nanos::ZERO);
        (0..200_000)
            .map(|index| state.slowdown_at(switching, Nanos::from_millis(10 * index)))
            .collect()
    }

    fn share(history: &[f64], slowdown: f64) -> f64 {
        history.iter().filter(|&&at| at == slowdown).count() as f64 / history.len() as f64
    }

    #[test]
    fn each_level_has_its_share_of_the_time() {
        let history = history(&levels(&[(1.0, 900), (1.2, 300), (1.5, 300)]));
        for (slowdown, expected) in [(1.0, 0.6), (1.2, 0.2), (1.5, 0.2)] {
            let found = share(&history, slowdown);
            assert!((found - expected).abs() < 0.03, "{slowdown}: {found}");
        }
    }

    #[test]
    fn a_level_holds_for_its_mean_time() {
        let history = history(&levels(&[(1.0, 2_000), (1.5, 500)]));
        let bursts = history.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let length = share(&history, 1.5) * 2_000.0 / bursts as f64;
        assert!((length / 0.5 - 1.0).abs() < 0.1, "{length} s");
    }

    #[test]
    fn a_machine_may_begin_at_any_level() {
        let switching = levels(&[(1.0, 3_000), (1.5, 1_000)]);
        let slow = (0..2_000).filter(|&seed| {
            let random = ChaCha8Rng::seed_from_u64(seed);
            let mut state = SwitchingState::begin(&switching, random, Nanos::ZERO);
            state.slowdown_at(&switching, Nanos::ZERO) > 1.0
        });
        let slow = slow.count();
        assert!((430..570).contains(&slow), "{slow}");
    }
}
