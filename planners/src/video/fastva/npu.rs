//! What the NPU does with frames in the order of their arrival: H(k, t) of fastva Eq. 7 and 8, and U(k) of Algorithm 2.
//!
//! H(k, t) is the largest sum of accuracies of k frames by the time t. Here it is the list of the pairs (t, sum) at which it
//! rises, which needs no grid of times. A frame starts when it has arrived and the NPU is idle, and must end by its own due
//! time, so that t never passes it; Eq. 8 as printed asks for neither. Pairs are kept apart by how many frames are answered:
//! one dominates another only of equal count.

use layerlab_profiles::Nanos;

use super::choice::FrameChoice;
use super::models::LocalModel;

/// Nothing was answered before.
const FIRST: usize = usize::MAX;

/// An answer, and the one before it.
struct Answer {
    before: usize,
    frame: usize,
    model: usize,
}

/// A pair (t, sum) and how it came about.
#[derive(Clone, Copy)]
struct Label {
    idle: Nanos,
    sum: f64,
    before: usize,
    model: Option<usize>,
}

/// Frames for the NPU, all on one clock.
pub(super) struct NpuFrames<'a> {
    /// When each arrives, ascending.
    pub(super) arrivals: &'a [Nanos],
    /// T.
    pub(super) within: Nanos,
    /// When the NPU is idle.
    pub(super) idle: Nanos,
    /// Whether frames may be left unanswered.
    pub(super) may_skip: bool,
}

/// The best that the NPU can do with some frames.
pub(super) struct NpuFront {
    /// The efficient labels of each count of answered frames, ascending in time and sum.
    by_count: Vec<Vec<Label>>,
    answers: Vec<Answer>,
    /// How many frames, from the first on, are planned for: all, or those before the first that cannot be answered.
    pub(super) frames: usize,
}

impl NpuFront {
    /// Plans for `frames` by `models`. Where none may be skipped, it ends before the first frame that cannot be answered.
    pub(super) fn of(models: &[LocalModel], frames: &NpuFrames) -> NpuFront {
        let mut front = NpuFront {
            by_count: vec![vec![Label {
                idle: frames.idle,
                sum: 0.0,
                before: FIRST,
                model: None,
            }]],
            answers: Vec::new(),
            frames: 0,
        };
        for (frame, &arrival) in frames.arrivals.iter().enumerate() {
            let due = arrival + frames.within;
            let mut next: Vec<Vec<Label>> = vec![Vec::new(); front.by_count.len() + 1];
            for (count, labels) in front.by_count.iter().enumerate() {
                for label in labels {
                    let start = label.idle.max(arrival);
                    if frames.may_skip {
                        next[count].push(Label {
                            idle: start,
                            ..*label
                        });
                    }
                    next[count + 1].extend(answered(models, label, start, due));
                }
            }
            if next.iter().all(Vec::is_empty) {
                break;
            }
            for labels in &mut next {
                keep_efficient(labels);
                for label in labels {
                    if let Some(model) = label.model.take() {
                        front.answers.push(Answer {
                            before: label.before,
                            frame,
                            model,
                        });
                        label.before = front.answers.len() - 1;
                    }
                }
            }
            front.by_count = next;
            front.frames += 1;
        }
        front
    }

    /// The largest sum of accuracies of `count` answered frames, if so many can be.
    pub(super) fn sum(&self, count: usize) -> Option<f64> {
        Some(self.by_count.get(count)?.last()?.sum)
    }

    /// The counts of answered frames that are possible, each with the largest sum of accuracies.
    pub(super) fn sums(&self) -> impl Iterator<Item = (usize, f64)> {
        let counts = 0..self.by_count.len();
        counts.filter_map(|count| Some((count, self.sum(count)?)))
    }

    /// What becomes of each frame where `count` are answered with the largest sum of accuracies.
    pub(super) fn choices(&self, count: usize) -> Vec<FrameChoice> {
        let mut choices = vec![FrameChoice::Skipped; self.frames];
        let best = self.by_count.get(count).and_then(|labels| labels.last());
        let mut at = best.map_or(FIRST, |label| label.before);
        while let Some(answer) = self.answers.get(at) {
            choices[answer.frame] = FrameChoice::Local {
                model: answer.model,
            };
            at = answer.before;
        }
        choices
    }
}

/// The labels that answering a frame from `start` on makes of `label`, by each model that is done when it is `due`.
fn answered(
    models: &[LocalModel],
    label: &Label,
    start: Nanos,
    due: Nanos,
) -> impl Iterator<Item = Label> {
    let ends = models.iter().enumerate().filter_map(move |(model, local)| {
        let idle = start.as_nanos().checked_add(local.time.as_nanos())?;
        (idle <= due.as_nanos()).then_some((model, local, Nanos::from_nanos(idle)))
    });
    ends.map(|(model, local, idle)| Label {
        idle,
        sum: label.sum + local.accuracy,
        before: label.before,
        model: Some(model),
    })
}

/// Keeps the labels that no other one dominates by being idle no later with no smaller sum; of equal ones the first.
fn keep_efficient(labels: &mut Vec<Label>) {
    labels.sort_by(|one, other| {
        let better = other.sum.total_cmp(&one.sum);
        one.idle.cmp(&other.idle).then(better)
    });
    let mut best = f64::NEG_INFINITY;
    labels.retain(|label| {
        let is_better = label.sum > best;
        best = best.max(label.sum);
        is_better
    });
}
