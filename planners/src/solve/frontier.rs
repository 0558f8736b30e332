//! Which triples a step keeps: those that no other dominates, the best K (mlmp §4.3.1).
//!
//! As printed (t <= t', a >= a') two equal triples remove each other. Here one of them stays.

use super::is_better;
use crate::goal::Goal;
use crate::problem::Triple;

/// Removes triples that another is at least as fast and as accurate as, then keeps the first `keep` in the
/// goal's order: by accuracy and then time for Max-Accuracy, by time and then accuracy for Min-Time.
pub(super) fn keep_best(goal: Goal, triples: &mut Vec<Triple>, keep: usize) {
    // In the goal's order a triple can only be dominated by one before it, and among those before it the one
    // that is best in the other quantity dominates if any does.
    triples.sort_unstable_by(|a, b| {
        if is_better(goal, a, b) {
            std::cmp::Ordering::Less
        } else if is_better(goal, b, a) {
            std::cmp::Ordering::Greater
        } else {
            std::cmp::Ordering::Equal
        }
    });
    let mut least_time = i64::MAX;
    let mut most_accuracy = f64::NEG_INFINITY;
    let mut kept = 0;
    triples.retain(|triple| {
        let stands = kept < keep
            && match goal {
                Goal::MaxAccuracy { .. } => triple.time < least_time,
                Goal::MinTime { .. } => triple.accuracy.value > most_accuracy,
            };
        if stands {
            least_time = triple.time;
            most_accuracy = triple.accuracy.value;
            kept += 1;
        }
        stands
    });
}
