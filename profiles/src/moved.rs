//! Has something that was timed before become faster or slower, or is it noise? Welch's test on logarithms.
//!
//! How far times differ from one occasion to the next, their own spread says. About their mean, a device that becomes slower
//! and slower would widen that as fast as it leaves it behind; so, once there are enough blocks, it is taken about a straight
//! line through them.

use crate::derive::graph::two_sided_p_student;
use crate::units::Nanos;

/// How seldom noise alone is to be taken for a change.
pub const SIGNIFICANCE: f64 = 0.001;

/// From so many earlier times on, their own spread says how far times differ from one occasion to the next.
const OCCASIONS: usize = 4;

/// Earlier times come in twos, of both ends of a block, which have in common what differs between blocks.
const ENDS: usize = 2;

/// From so many blocks on, their spread is taken about a line: two more than a line needs.
const BLOCKS: usize = 4;

/// The variance of the median of three normal samples in units of a sample's: of that many each earlier time is the
/// median, at least.
const MEDIAN_OF_THREE: f64 = 0.4487;

/// By less than this share of a time, about, it does not matter whether it became faster from one occasion to the next, which
/// took twice as long: of what warms up gradually much less is left then.
const LEAST_FASTER: f64 = 0.02;

/// Whether `runs`, times of one thing on one occasion, differ by more than noise explains from the times that it took on
/// `earlier` occasions: at the start and the end of one block, of the next and so on, each the median of a few runs. What
/// has been timed once at most, or never before, has not moved.
pub fn has_moved(runs: &[Nanos], earlier: &[Nanos]) -> bool {
    let (Some(now), Some(before)) = (Spread::of(runs), Spread::of(earlier)) else {
        return false;
    };
    if runs.len() < 2 {
        return false;
    }
    let blocks: Vec<f64> = earlier
        .chunks(ENDS)
        .filter_map(Spread::of)
        .map(|ends| ends.mean)
        .collect();
    // Times of a block are medians of a few of the runs' kind, and differ as far as those say at least.
    let least = MEDIAN_OF_THREE * now.variance;
    let of_runs = now.variance / now.count;
    let (of_occasions, freedom) = if blocks.len() >= BLOCKS {
        let count = blocks.len() as f64;
        let between = variance_about_line(&blocks).max(least / ENDS as f64);
        // This one is another such occasion.
        (between * (1.0 + 1.0 / count), count - 2.0)
    } else if earlier.len() >= OCCASIONS {
        let between = before.variance.max(least);
        (between * (1.0 + 1.0 / before.count), before.count - 1.0)
    } else {
        // Of few occasions it is not known how far they differ.
        (least / before.count, now.count - 1.0)
    };
    let variance = of_runs + of_occasions;
    let squares = of_runs.powi(2) / (now.count - 1.0) + of_occasions.powi(2) / freedom;
    let difference = (now.mean - before.mean).abs();
    if variance == 0.0 {
        return difference > 0.0;
    }
    two_sided_p_student(difference / variance.sqrt(), variance * variance / squares) < SIGNIFICANCE
}

/// From so many loadings on, their own spread says how far one differs from the next.
const LOADINGS: usize = 5;

/// Whether what became slower than it was `earlier`, and stayed so although it was given ever more rest and `loadings` anew
/// (what it took after each), differs that far from one loading to the next anyway: what it took earlier is then one more such
/// loading, and a fast one. Their spread is taken about a line: what cools down gradually becomes faster along one.
pub fn differs_by_loading(loadings: &[Nanos], earlier: &[Nanos]) -> bool {
    let (Some(now), Some(before)) = (Spread::of(loadings), Spread::of(earlier)) else {
        return false;
    };
    if loadings.len() < LOADINGS {
        return false;
    }
    let values: Vec<f64> = logarithms(loadings).collect();
    let variance = variance_about_line(&values) * (1.0 + 1.0 / now.count);
    let difference = (now.mean - before.mean).abs();
    variance > 0.0
        && two_sided_p_student(difference / variance.sqrt(), now.count - 2.0) >= SIGNIFICANCE
}

/// What has been learnt of something that was loaded a moment ago, and may still become faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warming {
    /// It has become no more than 2 % faster, for sure.
    Over,
    /// It has become faster, for sure.
    GoesOn,
    /// Neither is sure.
    Unknown,
}

/// Whether something is still warming up that took so long `now`, and so long `before`: where the 90 % interval of the
/// difference lies (Welch), below 2 %, above zero, or neither.
pub fn warming(now: &[Nanos], before: &[Nanos]) -> Warming {
    let (Some(now), Some(before)) = (Spread::of(now), Spread::of(before)) else {
        return Warming::Unknown;
    };
    if now.count < 2.0 || before.count < 2.0 {
        return Warming::Unknown;
    }
    let faster = before.mean - now.mean;
    let of = |spread: &Spread| spread.variance / spread.count;
    let (of_now, of_before) = (of(&now), of(&before));
    let variance = of_now + of_before;
    let squares = of_now.powi(2) / (now.count - 1.0) + of_before.powi(2) / (before.count - 1.0);
    // Each side of a 90 % interval misses one in twenty.
    let is_sure = |distance: f64| {
        distance > 0.0
            && (variance == 0.0
                || two_sided_p_student(distance / variance.sqrt(), variance.powi(2) / squares)
                    < 0.1)
    };
    if is_sure(LEAST_FASTER - faster) {
        Warming::Over
    } else if is_sure(faster) {
        Warming::GoesOn
    } else {
        Warming::Unknown
    }
}

/// The variance of some values about the straight line, by least squares, that goes through them one after the other.
fn variance_about_line(values: &[f64]) -> f64 {
    let (count, middle) = (values.len() as f64, (values.len() as f64 - 1.0) / 2.0);
    let mean = values.iter().sum::<f64>() / count;
    let about: Vec<(f64, f64)> = values
        .iter()
        .enumerate()
        .map(|(place, value)| (place as f64 - middle, value - mean))
        .collect();
    let rise: f64 = about.iter().map(|(place, value)| place * value).sum();
    let slope = rise / about.iter().map(|(place, _)| place * place).sum::<f64>();
    let squares = about
        .iter()
        .map(|(place, value)| (value - slope * place).powi(2));
    squares.sum::<f64>() / (count - 2.0)
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

    /// Both ends of a block have the same offset, and another block has another.
    #[test]
    fn what_differs_from_block_to_block_has_not_moved() {
        let earlier = nanos(&[1000, 1001, 1052, 1051, 985, 984]);
        assert!(!has_moved(&nanos(&[1120, 1121, 1119]), &earlier));
    }

    #[test]
    fn loadings_that_differ_as_far_as_all_of_them_are_slower_are_no_heat() {
        let earlier = nanos(&[880, 882]);
        let apart = nanos(&[1010, 985, 1090, 1002, 1130, 990, 1050]);
        assert!(differs_by_loading(&apart, &earlier));
        assert!(
            !differs_by_loading(&apart[..4], &earlier),
            "of four it is not known"
        );
        assert!(!differs_by_loading(&apart, &[]));
    }

    #[test]
    fn what_stays_slow_or_cools_down_gradually_is_hot() {
        let earlier = nanos(&[880, 882]);
        for loadings in [
            [1100, 1104, 1098, 1101, 1097, 1103, 1100],
            [1500, 1400, 1310, 1225, 1150, 1080, 1010],
            [1100; 7],
        ] {
            assert!(
                !differs_by_loading(&nanos(&loadings), &earlier),
                "{loadings:?}"
            );
        }
    }

    #[test]
    fn what_warms_up_becomes_faster_for_sure_or_is_asked_again() {
        let (cold, warm) = (nanos(&[1300, 1280, 1310, 1290]), nanos(&[1100, 1120, 1090]));
        assert_eq!(warming(&warm, &cold), Warming::GoesOn);
        assert_eq!(warming(&cold, &warm), Warming::Over);
        assert_eq!(
            warming(&[980; 3].map(Nanos::from_nanos), &nanos(&[980; 3])),
            Warming::Over
        );
        assert_eq!(
            warming(&nanos(&[970; 3]), &nanos(&[1000; 3])),
            Warming::GoesOn
        );
        assert_eq!(
            warming(&nanos(&[985; 3]), &nanos(&[1000; 3])),
            Warming::Over
        );
        // Of few noisy runs it cannot be told that nothing changes any more.
        let (wild, wilder) = (nanos(&[1000, 1500, 900]), nanos(&[1100, 1600, 950]));
        assert_eq!(warming(&wild, &wilder), Warming::Unknown);
        let noisy = nanos(&[1000, 1020, 980]);
        assert_eq!(warming(&noisy, &noisy), Warming::Unknown);
        let many: Vec<Nanos> = noisy.iter().copied().cycle().take(60).collect();
        assert_eq!(warming(&many, &many), Warming::Over);
        assert_eq!(
            warming(&nanos(&[500]), &nanos(&[1000, 1000])),
            Warming::Unknown
        );
    }

    #[test]
    fn nothing_has_moved_that_was_not_timed_several_times() {
        assert!(!has_moved(&nanos(&[2000]), &nanos(&[1000])));
        assert!(!has_moved(&nanos(&[2000, 2001]), &[]));
        assert!(has_moved(&nanos(&[2000, 2000]), &nanos(&[1000])));
    }
}
