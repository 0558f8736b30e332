//! What a processor that is kept busy says minute by minute: when it began to throttle, and whether it is steady in the end
//! (docs/method.md §12). Pure: the agent asks before it measures anything hot, the profile publishes the answer, and `check`
//! asks again.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::derive::graph::t_95;
use crate::summary::Summary;
use crate::units::Nanos;

/// What is tolerated: less than this share is no throttling, and a change of less over the steady minutes is none.
pub const TOLERATED: f64 = 0.02;

/// The fewest minutes that can be steady: of fewer no two enclose their median with 95 % confidence.
pub const FEWEST_STEADY_MINUTES: usize = 6;

/// The shortest time for which a processor is kept busy: the steady minutes, and as many before them.
pub const SHORTEST: Nanos = Nanos::from_millis(2 * FEWEST_STEADY_MINUTES as u64 * 60_000);

/// The longest: a day.
pub const LONGEST: Nanos = Nanos::from_millis(24 * 3_600_000);

/// A minute.
pub const MINUTE: Nanos = Nanos::from_millis(60_000);

/// How many deviations of a slice the sum of what is too slow must reach. Noise alone reaches it less than once in 100,000
/// slices (Siegmund's approximation, with the half deviation that each slice is allowed), and a soak has some thousands.
const ALARM: f64 = 12.0;

/// Of one slice no more than so many deviations count, so that no spike alone raises the alarm.
const MOST_OF_ONE: f64 = 4.0;

/// Slices differ by no less than this, however regular a clock makes them.
const LEAST_DEVIATION: f64 = 0.001;

/// Of what state of a device a profile's times are.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Thermal {
    /// Of a cool device that does not throttle.
    #[default]
    Cold,
    /// Of a device that has been kept busy until its times changed no more.
    Steady,
}

impl Thermal {
    /// Whether it is the usual state, of which profiles say nothing.
    pub fn is_cold(&self) -> bool {
        *self == Thermal::Cold
    }
}

impl fmt::Display for Thermal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Thermal::Cold => "cold",
            Thermal::Steady => "steady",
        })
    }
}

/// A word that names no thermal state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither cold nor steady")]
pub struct NoThermal(String);

impl FromStr for Thermal {
    type Err = NoThermal;

    fn from_str(word: &str) -> Result<Thermal, NoThermal> {
        match word {
            "cold" => Ok(Thermal::Cold),
            "steady" => Ok(Thermal::Steady),
            _ => Err(NoThermal(word.to_owned())),
        }
    }
}

/// A second or so of back-to-back inferences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When it began, by the device's clock.
    pub started: Nanos,
    /// The median of its inferences.
    pub median: Nanos,
}

/// The slices that began in one minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minute {
    /// When it began, by the device's clock.
    pub started: Nanos,
    /// The medians of its slices, summarised.
    pub slices: Summary,
}

/// What the steady minutes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyMinutes {
    /// How many minutes there were before them.
    pub first: usize,
    /// The median of the medians of the last six, with the interval of its rank: what is tolerated of a change over more of
    /// them is not in it.
    pub time: Nanos,
    /// The lower and the upper end of the median's 95 % interval.
    pub ci95: (Nanos, Nanos),
}

/// The slices by minutes from the first one's start. Minutes in which no slice began are left out.
pub fn minutes(slices: &[Slice]) -> Vec<Minute> {
    let Some(first) = slices.first() else {
        return Vec::new();
    };
    let number = |slice: &Slice| {
        let since = slice
            .started
            .as_nanos()
            .saturating_sub(first.started.as_nanos());
        since / MINUTE.as_nanos()
    };
    slices
        .chunk_by(|one, other| number(one) == number(other))
        .filter_map(|of_minute| {
            let medians: Vec<Nanos> = of_minute.iter().map(|slice| slice.median).collect();
            let before = Nanos::from_nanos(number(&of_minute[0]) * MINUTE.as_nanos());
            Some(Minute {
                started: first.started + before,
                slices: Summary::of(&medians)?,
            })
        })
        .collect()
}

/// When, since the first slice's start, inferences began to take more than 2 % longer than the `cool` ones; `None` if they
/// never did, or if nothing is known of a cool device.
///
/// Page's cumulative sum (1954) over the logarithms of the slices' medians against the median of the cool inferences. Each
/// slice is allowed 2 %, two standard errors of that median, and half a deviation of slices; the deviation is the median
/// difference of neighbours, so that no trend widens it. The alarm is raised at twelve deviations, and the onset is the slice
/// after which the sum was zero last.
pub fn onset(cool: &[Nanos], slices: &[Slice]) -> Option<Nanos> {
    let reference = Summary::of(cool)?;
    let begin = slices.first()?.started;
    let logarithms: Vec<f64> = slices.iter().map(|slice| logarithm(slice.median)).collect();
    let deviation = deviation_of_neighbours(&logarithms).max(LEAST_DEVIATION);
    let centre = logarithm(reference.median);
    let scatter = 1.4826 * reference.median_absolute_deviation.as_nanos() as f64;
    let relative = scatter / reference.median.as_nanos().max(1) as f64;
    // The standard error of a median is a quarter wider than a mean's.
    let error = 1.2533 * relative / (cool.len() as f64).sqrt();
    let allowed = TOLERATED.ln_1p() + 2.0 * error + deviation / 2.0;
    let (mut sum, mut since) = (0.0_f64, 0);
    for (place, value) in logarithms.iter().enumerate() {
        let beyond = value - centre - allowed;
        sum += beyond.min(MOST_OF_ONE * deviation);
        if sum <= 0.0 {
            (sum, since) = (0.0, place + 1);
        }
        if sum > ALARM * deviation {
            let started = slices[since].started.as_nanos();
            return Some(Nanos::from_nanos(started - begin.as_nanos()));
        }
    }
    None
}

/// The longest stretch of last minutes over which the time is known to change by no more than 2 %; `None` if no six are.
///
/// A test of equivalence: the 95 % interval of the change over the stretch, by a straight line through the logarithms of the
/// minutes' medians, lies within 2 % on either side, and the stretch's first minute is within 2 % of their median. Too much
/// noise never passes for steadiness.
pub fn steady(minutes: &[Minute]) -> Option<SteadyMinutes> {
    let values: Vec<f64> = minutes
        .iter()
        .map(|minute| logarithm(minute.slices.median))
        .collect();
    let last_start = values.len().checked_sub(FEWEST_STEADY_MINUTES)?;
    let first = (0..=last_start).find(|&first| is_steady(&values[first..]))?;
    let medians: Vec<Nanos> = minutes[last_start..]
        .iter()
        .map(|minute| minute.slices.median)
        .collect();
    let summary = Summary::of(&medians)?;
    Some(SteadyMinutes {
        first,
        time: summary.median,
        ci95: summary.median_ci95?,
    })
}

fn is_steady(values: &[f64]) -> bool {
    let count = values.len() as f64;
    let (middle, mean) = ((count - 1.0) / 2.0, values.iter().sum::<f64>() / count);
    let about = || {
        let places = values.iter().enumerate();
        places.map(|(place, value)| (place as f64 - middle, value - mean))
    };
    let squares: f64 = about().map(|(place, _)| place * place).sum();
    let slope = about().map(|(place, value)| place * value).sum::<f64>() / squares;
    let left: f64 = about()
        .map(|(place, value)| (value - slope * place).powi(2))
        .sum();
    let freedom = count - 2.0;
    let error = (left / freedom / squares).sqrt();
    let (change, half_width) = (slope * (count - 1.0), t_95(freedom) * error * (count - 1.0));
    let tolerated = TOLERATED.ln_1p();
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    change.abs() + half_width <= tolerated && (values[0] - median).abs() <= tolerated
}

/// The standard deviation of values about what changes slowly: from the median difference of neighbours.
fn deviation_of_neighbours(values: &[f64]) -> f64 {
    let mut differences: Vec<f64> = values
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    let median = differences.get(differences.len() / 2);
    // 0.6745 deviations hold half of a normal distribution; the difference of two has the square root of two of them.
    median.map_or(0.0, |median| median / 0.6745 / 2.0_f64.sqrt())
}

fn logarithm(time: Nanos) -> f64 {
    (time.as_nanos().max(1) as f64).ln()
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const COOL: Nanos = Nanos::from_millis(20);

    /// A slice each second for so many minutes, as many times as long as `slowdown` says of the second, with noise.
    fn slices(minutes: u64, sigma: f64, seed: u64, slowdown: impl Fn(f64) -> f64) -> Vec<Slice> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Box and Muller: normal by two uniform numbers.
        let mut noise = || {
            let (one, other): (f64, f64) = (random.random(), random.random());
            let radius = (-2.0 * (1.0 - one).ln()).sqrt();
            (sigma * radius * (std::f64::consts::TAU * other).cos()).exp()
        };
        let slice = |second: u64| Slice {
            started: Nanos::from_nanos(7 + second * SECOND),
            median: Nanos::from_nanos(
                (COOL.as_nanos() as f64 * slowdown(second as f64) * noise()) as u64,
            ),
        };
        (0..minutes * 60).map(slice).collect()
    }

    fn cool(sigma: f64, seed: u64) -> Vec<Nanos> {
        let all = slices(1, sigma, seed, |_| 1.0).into_iter();
        all.take(15).map(|slice| slice.median).collect()
    }

    fn saturating(begin: f64, most: f64, time_constant: f64) -> impl Fn(f64) -> f64 {
        move |second| 1.0 + most * (1.0 - (-(second - begin).max(0.0) / time_constant).exp())
    }

    #[test]
    fn the_onset_is_where_more_than_two_per_cent_are_lost() {
        // 2 % of 50 % are lost after -240 s x ln(0.96) = 9.8 s.
        for (sigma, within) in [(0.0, 2.0), (0.005, 12.0), (0.02, 30.0)] {
            for seed in 0..50 {
                let soak = slices(30, sigma, seed, saturating(300.0, 0.5, 240.0));
                let found = onset(&cool(sigma, seed + 1000), &soak).expect("it throttles");
                let found = found.as_nanos() as f64 / SECOND as f64;
                assert!(
                    (found - 310.0).abs() < within,
                    "noise {sigma}, seed {seed}: {found}"
                );
            }
        }
    }

    #[test]
    fn noise_and_spikes_are_no_onset() {
        let alarms = (0..200).filter(|&seed| {
            let mut soak = slices(30, 0.03, seed, |_| 1.0);
            for place in (50..1800).step_by(100) {
                soak[place].median = Nanos::from_millis(200);
            }
            onset(&cool(0.03, seed + 1000), &soak).is_some()
        });
        assert_eq!(alarms.count(), 0);
    }

    #[test]
    fn a_device_is_steady_once_it_changes_by_two_per_cent_no_more() {
        let soak = slices(30, 0.01, 1, saturating(60.0, 0.5, 120.0));
        let found = steady(&minutes(&soak)).expect("it settles");
        // Of 50 %, two are left after 120 s x ln 25 = 386 s from the first minute's end: in the eighth.
        assert!((4..10).contains(&found.first), "{found:?}");
        let planted = Nanos::from_millis(30);
        let (low, high) = found.ci95;
        assert!(
            found.time.as_nanos().abs_diff(planted.as_nanos()) < 200_000,
            "{found:?}"
        );
        assert!(low <= found.time && found.time <= high, "{found:?}");
    }

    #[test]
    fn what_becomes_slower_all_the_time_or_is_too_noisy_to_tell_is_not_steady() {
        let drifting = slices(30, 0.005, 1, |second| 1.0 + second / 1800.0);
        assert_eq!(steady(&minutes(&drifting)), None);
        let late = slices(30, 0.005, 1, saturating(1_600.0, 0.5, 60.0));
        assert_eq!(steady(&minutes(&late)), None);
        let noisy = slices(12, 0.6, 1, |_| 1.0);
        assert_eq!(steady(&minutes(&noisy)), None);
    }

    #[test]
    fn a_device_that_never_slows_down_is_steady_from_its_first_minute() {
        let soak = slices(12, 0.01, 1, |_| 1.0);
        assert_eq!(onset(&cool(0.01, 2), &soak), None);
        let minutes = minutes(&soak);
        assert_eq!(minutes.len(), 12);
        assert_eq!(minutes[0].slices.count, 60);
        assert_eq!(minutes[1].started, Nanos::from_nanos(7 + 60 * SECOND));
        assert_eq!(steady(&minutes).map(|found| found.first), Some(0));
    }

    #[test]
    fn of_nothing_nothing_follows() {
        assert_eq!(onset(&[], &slices(1, 0.0, 1, |_| 1.0)), None);
        assert_eq!(onset(&[COOL], &[]), None);
        assert_eq!(minutes(&[]), Vec::new());
        assert_eq!(steady(&[]), None);
    }
}
