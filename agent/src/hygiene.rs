//! Does a block count? Pure: from the sentinels and the state of the device at its ends (docs/method.md §5).

use layerlab_profiles::Nanos;
use layerlab_protocol::{Conditions, Hygiene, Rejection};

/// Android's thermal status of a device that does not throttle.
const NONE: u8 = 0;

/// One end of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// How long the sentinel took.
    pub sentinel: Nanos,
    /// The state of the device.
    pub conditions: Conditions,
}

/// Why a block between `start` and `end` does not count, if it does not. `baseline` is the sentinel of
/// the run's first block; a first block is measured by its own start.
pub fn judge(
    hygiene: &Hygiene,
    baseline: Option<Nanos>,
    start: &End,
    end: &End,
) -> Option<Rejection> {
    let baseline = baseline.unwrap_or(start.sentinel);
    [start, end]
        .into_iter()
        .find_map(|end| unfit(hygiene, Some(baseline), end))
        .or_else(|| cap_changed(&start.conditions, &end.conditions))
}

/// Why a device in this state is not fit to be measured, if it is not.
pub fn unfit(hygiene: &Hygiene, baseline: Option<Nanos>, end: &End) -> Option<Rejection> {
    if let Some(thermal_status) = end
        .conditions
        .thermal_status
        .filter(|&status| status > NONE)
    {
        return Some(Rejection::Throttling { thermal_status });
    }
    let baseline = baseline?;
    let moved = end.sentinel.as_nanos().abs_diff(baseline.as_nanos());
    let tolerated =
        u128::from(baseline.as_nanos()) * u128::from(hygiene.sentinel_tolerance_percent);
    (u128::from(moved) * 100 > tolerated).then_some(Rejection::SentinelMoved {
        baseline_ns: baseline,
        sentinel_ns: end.sentinel,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn end(sentinel: u64) -> End {
        End {
            sentinel: Nanos::from_nanos(sentinel),
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
        judge(
            &Hygiene::default(),
            baseline.map(Nanos::from_nanos),
            &start,
            &end,
        )
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
    fn throttling_rejects_the_block_however_steady_it_is() {
        let throttling = Some(Rejection::Throttling { thermal_status: 2 });
        assert_eq!(judged(Some(1000), end(1000), hot(2)), throttling);
        assert_eq!(judged(Some(1000), hot(2), end(1000)), throttling);
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
