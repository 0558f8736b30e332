//! The best frames to send in a given order: the dynamic program of cbo Algorithm 1, lines 1 to 11, which is also the one of
//! the solution graph (§IV-C).
//!
//! A label is a pair (t, A): the link is free from t, and the accuracies have risen by A. Labels remember what was sent last
//! and the label before it; the printed backtracking compares times and accuracies instead, and finds other paths.

use layerlab_profiles::Nanos;

use super::conditions::EdgeConditions;
use super::frame::AnsweredFrame;
use super::offload_plan::{OffloadPlan, OffloadedFrame};

/// No sending before this one.
const FIRST: usize = usize::MAX;

/// A sending, and the one before it.
struct Sending {
    before: usize,
    frame: usize,
    resolution: usize,
}

/// A pair (t, A) and how it came about.
#[derive(Clone, Copy)]
struct Label {
    free: Nanos,
    improvement: f64,
    /// The last sending of the label that this one was made of.
    before: usize,
    /// What is sent in addition, if anything.
    resolution: Option<usize>,
}

/// The plan of the largest improvement among those that send in the order of `order`, places in `frames`, from `now` on.
pub(super) fn best_in_order(
    conditions: &EdgeConditions,
    frames: &[AnsweredFrame],
    order: &[usize],
    now: Nanos,
) -> OffloadPlan {
    let earliest = earliest_of_rest(conditions, frames, order);
    let mut sendings: Vec<Sending> = Vec::new();
    let mut labels = vec![Label {
        free: now,
        improvement: 0.0,
        before: FIRST,
        resolution: None,
    }];
    for (&place, &earliest) in order.iter().zip(&earliest) {
        let frame = &frames[place];
        // Nothing is sent before this: labels free earlier are the same.
        for label in &mut labels {
            label.free = label.free.max(earliest);
        }
        let ready = frame.arrival + conditions.preprocessing();
        let mut more = labels.clone();
        for label in &labels {
            let start = label.free.max(ready);
            for (resolution, &accuracy) in frame.accuracies(conditions).iter().enumerate() {
                let size = frame.sizes[resolution];
                if let Some(sent) = conditions.sent_in_time(start, size, frame.arrival) {
                    more.push(Label {
                        free: sent,
                        improvement: label.improvement + accuracy - frame.confidence,
                        before: label.before,
                        resolution: Some(resolution),
                    });
                }
            }
        }
        labels = efficient(more);
        for label in &mut labels {
            if let Some(resolution) = label.resolution.take() {
                sendings.push(Sending {
                    before: label.before,
                    frame: place,
                    resolution,
                });
                label.before = sendings.len() - 1;
            }
        }
    }
    // Efficient labels rise in time and improvement; there is always the one that sends nothing, or a better one.
    let last = labels.last().map_or(FIRST, |label| label.before);
    plan(conditions, frames, now, &path(&sendings, last))
}

/// For each place in `order`, when the first of it and all behind it can be sent.
fn earliest_of_rest(
    conditions: &EdgeConditions,
    frames: &[AnsweredFrame],
    order: &[usize],
) -> Vec<Nanos> {
    let mut earliest: Vec<Nanos> = order
        .iter()
        .map(|&place| frames[place].arrival + conditions.preprocessing())
        .collect();
    for place in (1..earliest.len()).rev() {
        earliest[place - 1] = earliest[place - 1].min(earliest[place]);
    }
    earliest
}

/// The labels that no other one dominates by being free no later with no less improvement, ascending in both; of equal ones the
/// first.
fn efficient(mut labels: Vec<Label>) -> Vec<Label> {
    labels.sort_by(|one, other| {
        let better = other.improvement.total_cmp(&one.improvement);
        one.free.cmp(&other.free).then(better)
    });
    let mut best = f64::NEG_INFINITY;
    labels.retain(|label| {
        let is_better = label.improvement > best;
        if is_better {
            best = label.improvement;
        }
        is_better
    });
    labels
}

/// The (frame, resolution) pairs that end with the sending `last`, in order.
fn path(sendings: &[Sending], mut last: usize) -> Vec<(usize, usize)> {
    let mut path = Vec::new();
    while let Some(sending) = sendings.get(last) {
        path.push((sending.frame, sending.resolution));
        last = sending.before;
    }
    path.reverse();
    path
}

/// The plan that sends `path`, with its times.
fn plan(
    conditions: &EdgeConditions,
    frames: &[AnsweredFrame],
    now: Nanos,
    path: &[(usize, usize)],
) -> OffloadPlan {
    let (mut free, mut improvement) = (now, 0.0);
    let mut threshold: Option<f64> = None;
    let mut sent = Vec::with_capacity(path.len());
    for &(place, resolution) in path {
        let frame = &frames[place];
        let start = free.max(frame.arrival + conditions.preprocessing());
        let sending = conditions.uplink().sending(frame.sizes[resolution]);
        // Every sending on a path has an end: the program found it.
        free = start + sending.unwrap_or(Nanos::ZERO);
        improvement += frame.accuracies(conditions)[resolution] - frame.confidence;
        threshold = Some(threshold.map_or(frame.confidence, |most| most.max(frame.confidence)));
        sent.push(OffloadedFrame {
            frame: place,
            resolution,
            start,
            sent: free,
        });
    }
    OffloadPlan::new(sent, threshold, improvement)
}
