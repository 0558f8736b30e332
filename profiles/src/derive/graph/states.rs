//! Was the processor in two states, one so much faster than the other that averaging them says nothing of either?

use std::collections::BTreeMap;

use super::quantile::t_at_one_in_a_thousand;
use super::visit_samples::Visit;

/// States that differ by less than this share are not told apart.
const LEAST_DIFFERENCE: f64 = 0.05;

/// The visits of a processor that had two states.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoStates {
    /// The visits of the state that had more of them; of two with as many, of the faster one.
    pub usual: Vec<Visit>,
    /// The visits of the other state.
    pub other: Vec<Visit>,
    /// How much longer everything took in the other state, as a share; negative where it was faster.
    pub longer: f64,
}

/// The states, given the speed of each visit: the logarithm of how much slower than the average it was. There are two
/// where the widest gap between speeds is at least 5 % and so much wider than the speeds scatter on its two sides that
/// among as many speeds of one state this were to be seen once in a thousand.
pub fn two_states(speeds: &BTreeMap<Visit, f64>) -> Option<TwoStates> {
    let mut sorted: Vec<(Visit, f64)> = speeds
        .iter()
        .map(|(&visit, &speed)| (visit, speed))
        .collect();
    sorted.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let gap = |place: &usize| sorted[*place].1 - sorted[*place - 1].1;
    let split = (1..sorted.len()).max_by(|one, other| gap(one).total_cmp(&gap(other)))?;
    let (fast, slow) = sorted.split_at(split);
    let (fast_mean, fast_squares) = spread(fast);
    let (slow_mean, slow_squares) = spread(slow);
    let freedom = sorted.len() as f64 - 2.0;
    if freedom < 1.0 || gap(&split) < (1.0 + LEAST_DIFFERENCE).ln() {
        return None;
    }
    let deviation = ((fast_squares + slow_squares) / freedom).sqrt();
    if gap(&split) <= t_at_one_in_a_thousand(freedom) * deviation {
        return None;
    }
    let visits = |state: &[(Visit, f64)]| state.iter().map(|(visit, _)| *visit).collect();
    let ratio = (slow_mean - fast_mean).exp();
    Some(match fast.len() >= slow.len() {
        true => TwoStates {
            usual: visits(fast),
            other: visits(slow),
            longer: ratio - 1.0,
        },
        false => TwoStates {
            usual: visits(slow),
            other: visits(fast),
            longer: 1.0 / ratio - 1.0,
        },
    })
}

/// The mean, and the sum of the squares of the deviations from it.
fn spread(speeds: &[(Visit, f64)]) -> (f64, f64) {
    let mean = speeds.iter().map(|(_, speed)| speed).sum::<f64>() / speeds.len() as f64;
    let squares = speeds.iter().map(|(_, speed)| (speed - mean).powi(2)).sum();
    (mean, squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speeds(speeds: &[f64]) -> BTreeMap<Visit, f64> {
        let visit = |order| Visit { order, block: 0 };
        (1..)
            .map(visit)
            .zip(speeds.iter().map(|speed| speed.ln()))
            .collect()
    }

    #[test]
    fn two_states_far_apart_are_told_apart() {
        let found = two_states(&speeds(&[7.0, 7.1, 11.0, 6.95, 11.1])).expect("two");
        let orders = |visits: &[Visit]| visits.iter().map(|visit| visit.order).collect::<Vec<_>>();
        assert_eq!(orders(&found.usual), [4, 1, 2]);
        assert_eq!(orders(&found.other), [3, 5]);
        assert!((found.longer - 0.575).abs() < 0.01, "{found:?}");
        let slow = two_states(&speeds(&[7.0, 11.0, 11.05, 10.95, 11.1])).expect("two");
        assert_eq!(orders(&slow.other), [1]);
        assert!(slow.longer < 0.0);
    }

    #[test]
    fn speeds_that_scatter_are_one_state() {
        assert_eq!(two_states(&speeds(&[7.0, 8.0, 7.4, 9.0, 7.7, 8.2])), None);
        assert_eq!(
            two_states(&speeds(&[7.0, 7.01, 7.2, 7.21, 7.0])),
            None,
            "less than 5 %"
        );
        assert_eq!(
            two_states(&speeds(&[7.0, 11.0])),
            None,
            "nothing is known of the scatter"
        );
        assert_eq!(two_states(&speeds(&[])), None);
    }
}
