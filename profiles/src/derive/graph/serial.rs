//! How many independent visits are the visits of a run worth? A machine that changes its speed more seldom than visits follow
//! each other gives them the same speed in a row, and their mean is known no better than from as many visits as there were
//! speeds (Bayley and Hammersley, *The "Effective" Number of Independent Observations in an Autocorrelated Time Series*, 1946).

use super::observation::ErrorVariance;
use super::visit_samples::FEWEST_VISITS;

/// Speeds in no order have a correlation of about 0 with a standard deviation of 1 / √visits (Anderson 1942). So many of
/// these it exceeds in one run of twenty at most, in which intervals are wider than they need be.
const SIGNIFICANT: f64 = 1.645;

/// The error of the mean of `speeds`, those of visits in the order of time, which is `error` if visits are independent of
/// each other; wider where they are not.
pub(super) fn of_dependent(speeds: &[f64], error: ErrorVariance) -> ErrorVariance {
    let count = speeds.len() as f64;
    let correlation = serial_correlation(speeds);
    // Also where there is none: speeds that do not differ.
    if correlation.is_nan() || correlation * count.sqrt() <= SIGNIFICANT {
        return error;
    }
    let square = correlation * correlation;
    // With fewer there would be no intervals.
    let worth = |visits: f64| visits.max(FEWEST_VISITS as f64);
    let of_mean = worth(count * (1.0 - correlation) / (1.0 + correlation));
    let of_variance = worth(count * (1.0 - square) / (1.0 + square));
    ErrorVariance {
        // Around their own mean speeds that depend on each other scatter less than around the true one.
        variance: error.variance * count / (of_mean - 1.0),
        freedom: error.freedom.min(of_variance - 1.0),
    }
}

/// The correlation of each speed with the next.
fn serial_correlation(speeds: &[f64]) -> f64 {
    let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
    let squares: f64 = speeds.iter().map(|speed| (speed - mean).powi(2)).sum();
    let products = speeds
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean));
    products.sum::<f64>() / squares
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::StandardNormal;

    use super::*;

    const RUNS: u64 = 2_000;

    /// The error of the mean of visits that are independent.
    fn independent(speeds: &[f64]) -> ErrorVariance {
        let count = speeds.len() as f64;
        let mean = speeds.iter().sum::<f64>() / count;
        let squares: f64 = speeds.iter().map(|speed| (speed - mean).powi(2)).sum();
        ErrorVariance {
            variance: squares / (count - 1.0) / count,
            freedom: count - 1.0,
        }
    }

    /// Speeds of 40 visits of a machine that has two, of which the mean is 0, and at each visit changes with this probability.
    fn switching(change: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
        let mut speed = if random.random() { 0.07 } else { -0.07 };
        let visits = (0..40).map(|_| {
            if random.random::<f64>() < change {
                speed = -speed;
            }
            let own: f64 = random.sample(StandardNormal);
            speed + 0.005 * own
        });
        visits.collect()
    }

    /// Of 1, how many of the runs' intervals hold the mean, and how many were widened.
    fn held(speeds: impl Fn(&mut ChaCha8Rng) -> Vec<f64>) -> (f64, f64) {
        let (mut held, mut widened) = (0, 0);
        for seed in 0..RUNS {
            let speeds = speeds(&mut ChaCha8Rng::seed_from_u64(seed));
            let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
            let before = independent(&speeds);
            let error = of_dependent(&speeds, before);
            held += u64::from(mean.abs() <= error.half_width());
            widened += u64::from(error != before);
        }
        (held as f64 / RUNS as f64, widened as f64 / RUNS as f64)
    }

    #[test]
    fn a_machine_that_changes_seldom_has_intervals_that_hold_its_mean() {
        for change in [0.15, 0.25] {
            let (share, _) = held(|random| switching(change, random));
            assert!(share > 0.87, "changes with {change}: {share}");
        }
    }

    #[test]
    fn visits_that_are_independent_are_left_alone() {
        for visits in [3, 5, 12, 40] {
            let (share, widened) = held(|random| {
                let speeds = (0..visits).map(|_| random.sample::<f64, _>(StandardNormal));
                speeds.collect()
            });
            assert!((0.935..0.965).contains(&share), "{visits} visits: {share}");
            assert!(widened < 0.05, "{visits} visits: {widened}");
        }
    }

    #[test]
    fn speeds_that_do_not_differ_are_known() {
        let none = ErrorVariance::default();
        assert_eq!(of_dependent(&[0.0; 30], none), none);
        assert_eq!(of_dependent(&[], none), none);
    }
}
