//! Does a block count? Pure: from the sentinels and the state of the device at its ends (docs/method.md §5).

use layerlab_profiles::Nanos;
use layerlab_profiles::moved::has_moved;
use layerlab_protocol::{Conditions, Event, Hygiene, Rejection};

/// Android's thermal status of a device that does not throttle.
const NONE: u8 = 0;

/// One end of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// How long the sentinel took: the median of its runs.
    pub sentinel: Nanos,
    /// Its runs; none where they were judged before.
    pub runs: Vec<Nanos>,
    /// The state of the device.
    pub conditions: Conditions,
}

/// Why a block between `start` and `end` does not count, if it does not. `baseline` are the sentinels of the run's
/// accepted blocks. Neither end may be slower than those, nor the end faster than the start; where there are none, it may not
/// be slower, either.
pub fn judge(hygiene: &Hygiene, baseline: &[Nanos], start: &End, end: &End) -> Option<Rejection> {
    [start, end]
        .into_iter()
        .find_map(|end| unfit(hygiene, baseline, end))
        .or_else(|| {
            let moved = moved(hygiene, &[start.sentinel], end);
            moved.filter(|moved| baseline.is_empty() || !moved.is_slower())
        })
        .or_else(|| cap_changed(&start.conditions, &end.conditions))
}

/// Why a device in this state is not fit to be measured, if it is not. One that is faster than it was is: no rest makes it
/// slower, and how far blocks differ is for the intervals to say. Where it is to be as hot as it was, it is not.
pub fn unfit(hygiene: &Hygiene, baseline: &[Nanos], end: &End) -> Option<Rejection> {
    if let Some(thermal_status) = end
        .conditions
        .thermal_status
        .filter(|&status| status > NONE && !hygiene.throttling_counts && !hygiene.steady)
    {
        return Some(Rejection::Throttling { thermal_status });
    }
    moved(hygiene, baseline, end).filter(|moved| moved.is_slower() || hygiene.steady)
}

/// Whether the sentinel of this end differs from those of the baseline by more than is tolerated, and than noise explains.
fn moved(hygiene: &Hygiene, baseline: &[Nanos], end: &End) -> Option<Rejection> {
    let baseline_ns = beyond_tolerance(hygiene, baseline, end.sentinel)?;
    has_moved(&end.runs, baseline).then_some(Rejection::SentinelMoved {
        baseline_ns,
        sentinel_ns: end.sentinel,
    })
}

/// The median of the baseline, where a sentinel differs from it by more than is tolerated. Whether that is noise is
/// another question, which needs more runs.
pub fn beyond_tolerance(hygiene: &Hygiene, baseline: &[Nanos], sentinel: Nanos) -> Option<Nanos> {
    let mut sorted = baseline.to_vec();
    sorted.sort_unstable();
    let baseline = *sorted.get(sorted.len() / 2)?;
    let moved = sentinel.as_nanos().abs_diff(baseline.as_nanos());
    let tolerated =
        u128::from(baseline.as_nanos()) * u128::from(hygiene.sentinel_tolerance_percent);
    (u128::from(moved) * 100 > tolerated).then_some(baseline)
}

fn cap_changed(start: &Conditions, end: &Conditions) -> Option<Rejection> {
    let changed = start
        .frequency_caps_khz
        .iter()
        .find(|&(group, cap)| end.frequency_caps_khz.get(group) != Some(cap))?;
    Some(Rejection::ClockCapChanged {
        group: changed.0.clone(),
    })
}

/// How many blocks of these were measured again because of what else ran.
pub(crate) fn disturbed<'a>(events: impl Iterator<Item = &'a Event>) -> u32 {
    let is_disturbed = |event: &&Event| {
        matches!(
            event,
            Event::BlockEnded {
                rejection: Some(Rejection::Disturbed { .. }),
                ..
            }
        )
    };
    events.filter(is_disturbed).count() as u32
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, LogNormal};

    use super::*;

    fn end(sentinel: u64) -> End {
        End {
            sentinel: Nanos::from_nanos(sentinel),
            runs: vec![Nanos::from_nanos(sentinel); 3],
            conditions: Conditions::default(),
        }
    }

    fn hot(status: u8) -> End {
        let conditions = Conditions {
            thermal_status: Some(status),
            ..Conditions::default()
        };
        End {
            conditions,
            ..end(1000)
        }
    }

    fn capped(khz: u64) -> End {
        let frequency_caps_khz = [("policy4".to_owned(), khz)].into();
        End {
            conditions: Conditions {
                frequency_caps_khz,
                ..Conditions::default()
            },
            ..end(1000)
        }
    }

    fn judged(baseline: Option<u64>, start: End, end: End) -> Option<Rejection> {
        let baseline: Vec<Nanos> = baseline.map(Nanos::from_nanos).into_iter().collect();
        judge(&Hygiene::default(), &baseline, &start, &end)
    }

    fn moved(baseline: u64, sentinel: u64) -> Option<Rejection> {
        Some(Rejection::SentinelMoved {
            baseline_ns: Nanos::from_nanos(baseline),
            sentinel_ns: Nanos::from_nanos(sentinel),
        })
    }

    #[test]
    fn a_steady_block_counts() {
        assert_eq!(judged(None, end(1000), end(1100)), None);
        assert_eq!(judged(Some(1000), end(900), end(1100)), None);
        assert_eq!(judged(Some(1000), hot(0), hot(0)), None);
        assert_eq!(judged(Some(1000), capped(5), capped(5)), None);
    }

    #[test]
    fn a_sentinel_that_moved_at_either_end_rejects_the_block() {
        assert_eq!(judged(None, end(1000), end(1101)), moved(1000, 1101));
        assert_eq!(judged(Some(1000), end(1000), end(899)), moved(1000, 899));
        assert_eq!(judged(Some(1000), end(1200), end(1000)), moved(1000, 1200));
    }

    #[test]
    fn a_block_that_is_faster_than_those_before_counts_unless_it_became_so() {
        assert_eq!(judged(Some(1000), end(800), end(800)), None);
        assert_eq!(judged(Some(1000), end(980), end(800)), moved(980, 800));
        let baseline = [Nanos::from_nanos(1000)];
        assert_eq!(unfit(&Hygiene::default(), &baseline, &end(800)), None);
        let slower = unfit(&Hygiene::default(), &baseline, &end(1200));
        assert_eq!(slower, moved(1000, 1200));
    }

    #[test]
    fn a_sentinel_that_scatters_as_far_as_it_has_moved_rejects_nothing() {
        let runs = [1300, 900, 1250, 1000, 1150].map(Nanos::from_nanos);
        let noisy = End {
            runs: runs.into(),
            ..end(1150)
        };
        assert_eq!(judged(Some(1000), end(1000), noisy), None);
    }

    #[test]
    fn a_sentinel_is_compared_with_those_of_all_accepted_blocks() {
        let baseline = [1000, 1240, 1260, 1250, 1245].map(Nanos::from_nanos);
        let judged = judge(&Hygiene::default(), &baseline, &end(1250), &end(1250));
        assert_eq!(judged, None);
    }

    /// A device in whose blocks each sentinel is slower than the one before by this factor, but for the noise of its runs:
    /// how much slower than the first the last accepted one is, and how many of so many blocks are rejected. As in a run, one
    /// more rejected in a row than may be measured again is the end.
    fn drifting(per_sentinel: f64, sigma: f64, blocks: i32, seed: u64) -> (f64, usize) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let noise = LogNormal::new(0.0, sigma).expect("a width");
        let (hygiene, mut baseline) = (Hygiene::default(), Vec::new());
        let (mut slowest, mut rejected, mut in_a_row) = (1.0, 0, 0);
        for block in 0..blocks {
            let mut time_end = |number: i32, own: &[Nanos]| {
                let mut run = || 1e6 * per_sentinel.powi(number) * noise.sample(&mut random);
                let mut more = |runs: &mut Vec<Nanos>, count: usize| {
                    runs.extend((0..count).map(|_| Nanos::from_nanos(run() as u64)));
                    let mut sorted = runs.clone();
                    sorted.sort_unstable();
                    sorted[sorted.len() / 2]
                };
                let mut runs = Vec::new();
                let mut sentinel = more(&mut runs, 3);
                let differs = |from| beyond_tolerance(&hygiene, from, sentinel).is_some();
                if differs(&baseline) || differs(own) {
                    sentinel = more(&mut runs, 12);
                }
                let conditions = Conditions::default();
                End {
                    sentinel,
                    runs,
                    conditions,
                }
            };
            let start = time_end(2 * block, &[]);
            let end = time_end(2 * block + 1, &[start.sentinel]);
            if judge(&hygiene, &baseline, &start, &end).is_some() {
                (rejected, in_a_row) = (rejected + 1, in_a_row + 1);
                if in_a_row > hygiene.redos {
                    break;
                }
                continue;
            }
            in_a_row = 0;
            baseline.extend([start.sentinel, end.sentinel]);
            slowest = per_sentinel.powi(2 * block + 1);
        }
        (slowest, rejected)
    }

    #[test]
    fn a_device_that_becomes_slower_and_slower_is_rejected_before_it_is_half_as_slow_again() {
        for (per_sentinel, sigma) in [(1.03, 0.0), (1.03, 0.02), (1.01, 0.01), (1.02, 0.05)] {
            for seed in 0..200 {
                let (slowest, rejected) = drifting(per_sentinel, sigma, 60, seed);
                assert!(
                    slowest < 1.5 && rejected > 0,
                    "{per_sentinel} each time, noise {sigma}, seed {seed}: {slowest}"
                );
            }
        }
    }

    /// Each block is asked three times, so that 30 would be rejected if all of them were beyond what is tolerated.
    #[test]
    fn of_noisy_blocks_on_a_steady_device_next_to_none_are_rejected() {
        let rejected = (0..400).map(|seed| drifting(1.0, 0.08, 25, seed).1);
        let rejected: usize = rejected.sum();
        assert!(rejected <= 15, "{rejected} of 10,000");
    }

    #[test]
    fn throttling_rejects_the_block_however_steady_it_is() {
        let throttling = Some(Rejection::Throttling { thermal_status: 2 });
        assert_eq!(judged(Some(1000), end(1000), hot(2)), throttling);
        assert_eq!(judged(Some(1000), hot(2), end(1000)), throttling);
    }

    #[test]
    fn throttling_rejects_nothing_where_the_device_is_to_be_measured_as_it_is() {
        let hygiene = Hygiene {
            throttling_counts: true,
            ..Hygiene::default()
        };
        let baseline = [Nanos::from_nanos(1000)];
        assert_eq!(judge(&hygiene, &baseline, &hot(4), &hot(4)), None);
        let slow = End {
            conditions: hot(4).conditions,
            ..end(1200)
        };
        let judged = judge(&hygiene, &baseline, &hot(4), &slow);
        assert_eq!(judged, moved(1000, 1200), "unsteady is another matter");
    }

    #[test]
    fn a_changed_clock_cap_rejects_the_block() {
        let changed = Some(Rejection::ClockCapChanged {
            group: "policy4".to_owned(),
        });
        assert_eq!(judged(None, capped(5), capped(4)), changed);
        assert_eq!(
            judged(None, capped(5), end(1000)),
            changed,
            "a cap that is gone has changed"
        );
    }
}
