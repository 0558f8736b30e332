//! Has something that was timed before become faster or slower, or is it noise? Welch's test on logarithms.
//!
//! How far times differ from one occasion to the next is taken about a straight line through the earlier ones. About their
//! mean, a device that becomes slower and slower would widen what counts as noise as fast as it leaves it behind.

use crate::derive::graph::two_sided_p_student;
use crate::units::Nanos;

/// How seldom noise alone is to be taken for a change.
pub const SIGNIFICANCE: f64 = 0.001;

/// From so many earlier times on, their own spread says how far times differ from one occasion to the next: two more than
/// a line needs.
const OCCASIONS: usize = 4;

/// The variance of the median of three normal samples in units of a sample's: of that many each earlier time is the
/// median, at least.
const MEDIAN_OF_THREE: f64 = 0.4487;

/// Whether `runs`, times of one thing on one occasion, differ from the times that it took on `earlier` occasions, each
/// the median of a few runs and in the order of time, by more than noise explains. What has been timed once at most, or never before, has not.
pub fn has_moved(runs: &[Nanos], earlier: &[Nanos]) -> bool {
    let (Some(now), Some(before)) = (Spread::of(runs), Spread::of(earlier)) else {
        return false;
    };
    if runs.len() < 2 {
        return false;
    }
    let (of_runs, count) = (now.variance / now.count, before.count);
    // Of few occasions it is not known how far they differ: as far as the runs do, at least.
    let (between, freedom) = match earlier.len() >= OCCASIONS {
        true => (
            variance_about_line(earlier).max(MEDIAN_OF_THREE * now.variance),
            count - 2.0,
        ),
        false => (MEDIAN_OF_THREE * now.variance, now.count - 1.0),
    };
    let of_occasions = match earlier.len() >= OCCASIONS {
        // This one is another such occasion.
        true => between * (1.0 + 1.0 / count),
        false => between / count,
    };
    let variance = of_runs + of_occasions;
    let squares = of_runs.powi(2) / (now.count - 1.0) + of_occasions.powi(2) / freedom;
    let difference = (now.mean - before.mean).abs();
    if variance == 0.0 {
        return difference > 0.0;
    }
    two_sided_p_student(difference / variance.sqrt(), variance * variance / squares) < SIGNIFICANCE
}

/// The logarithms of some times.
struct Spread {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Spread {
    fn of(times: &[Nanos]) -> Option<Spread> {
        let logarithms: Vec<f64> = logarithms(times).collect();
        let count = logarithms.len() as f64;
        let mean = logarithms.iter().sum::<f64>() / count;
        let squares: f64 = logarithms.iter().map(|one| (one - mean).powi(2)).sum();
        (!times.is_empty()).then(|| Spread {
            count,
            mean,
            variance: squares / (count - 1.0).max(1.0),
        })
    }
}

/// The variance of the logarithms about the straight line, by least squares, that goes through them one after the other.
fn variance_about_line(times: &[Nanos]) -> f64 {
    let (count, middle) = (times.len() as f64, (times.len() as f64 - 1.0) / 2.0);
    let places = || (0..times.len()).map(|place| place as f64 - middle);
    let mean = logarithms(times).sum::<f64>() / count;
    let rise: f64 = places()
        .zip(logarithms(times))
        .map(|(at, one)| at * one)
        .sum();
    let slope = rise / places().map(|at| at * at).sum::<f64>();
    let squares: f64 = places()
        .zip(logarithms(times))
        .map(|(at, one)| (one - mean - slope * at).powi(2))
        .sum();
    squares / (count - 2.0)
}

fn logarithms(times: &[Nanos]) -> impl Iterator<Item = f64> {
    times
        .iter()
        .map(|time| (time.as_nanos().max(1) as f64).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(times: &[u64]) -> Vec<Nanos> {
        times.iter().copied().map(Nanos::from_nanos).collect()
    }

    #[test]
    fn what_is_slower_than_its_noise_has_moved() {
        let runs = nanos(&[1200, 1210, 1190, 1205, 1195]);
        assert!(has_moved(&runs, &nanos(&[1000])));
        assert!(has_moved(&runs, &nanos(&[1000, 1002, 998, 1001, 999])));
        assert!(!has_moved(
            &nanos(&[1200, 900, 1400, 1000, 1300]),
            &nanos(&[1000])
        ));
    }

    #[test]
    fn occasions_that_differ_much_are_no_move() {
        let runs = nanos(&[1200, 1201, 1199]);
        assert!(!has_moved(&runs, &nanos(&[1000, 1250, 900, 1150, 1050])));
    }

    #[test]
    fn what_drifted_all_along_has_moved_whatever_it_was_at_first() {
        for per_occasion in [1.003_f64, 1.03, 0.97] {
            let at = |occasion: i32| (1e6 * per_occasion.powi(occasion)) as u64;
            let earlier: Vec<u64> = (0..8).map(at).collect();
            assert!(has_moved(&nanos(&[at(8); 3]), &nanos(&earlier)));
        }
    }

    #[test]
    fn nothing_has_moved_that_was_not_timed_several_times() {
        assert!(!has_moved(&nanos(&[2000]), &nanos(&[1000])));
        assert!(!has_moved(&nanos(&[2000, 2001]), &[]));
        assert!(has_moved(&nanos(&[2000, 2000]), &nanos(&[1000])));
    }
}
