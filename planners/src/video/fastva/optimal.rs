//! The optimum, for which all frames are known beforehand (fastva §VI-C): what the others are judged by.
//!
//! The paper tries all combinations. Here a label says when the NPU and the link are idle and how large the sum of accuracies
//! is; labels of one count of answered frames that are no better in any of the three are dropped, which loses no optimum.

use std::collections::BTreeMap;

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::VideoError;
use super::choice::FrameChoice;
use super::decision::Scheduled;
use super::goal::refuse_weight;
use super::problem::FastVaProblem;
use super::remote::remote_options;
use super::schedule::VideoSchedule;

/// Nothing was answered before.
const FIRST: usize = usize::MAX;

/// An answer, and the one before it.
struct Answer {
    before: usize,
    frame: usize,
    choice: FrameChoice,
}

#[derive(Clone, Copy)]
struct Label {
    npu: Nanos,
    uplink: Nanos,
    sum: f64,
    before: usize,
    choice: FrameChoice,
}

/// The best schedule for each count of answered frames.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimalSchedules {
    /// Of 0, 1, 2, … answered frames, where there is one.
    by_count: Vec<Option<VideoSchedule>>,
    /// The first frame by which it is certain that not all are answered.
    stuck: Option<usize>,
}

impl OptimalSchedules {
    /// The most accurate schedule that answers every frame (fastva Eq. 1 to 6).
    pub fn all_answered(&self) -> Scheduled<VideoSchedule> {
        match (self.by_count.last(), self.stuck) {
            (Some(Some(all)), None) => Scheduled::Planned(all.clone()),
            (_, stuck) => Scheduled::Infeasible {
                frame: stuck.unwrap_or(0),
            },
        }
    }

    /// The most accurate schedule where a frame that nothing answers counts as wrong: no run of any policy is better.
    pub fn most_accurate(&self) -> &VideoSchedule {
        self.best_by(VideoSchedule::accuracy)
    }

    /// The schedule of the largest utility, `weight` being α (fastva Eq. 9 to 14).
    pub fn most_useful(
        &self,
        problem: &FastVaProblem,
        weight: f64,
    ) -> Result<&VideoSchedule, VideoError> {
        refuse_weight(weight)?;
        Ok(self.best_by(|schedule| schedule.utility(problem, weight)))
    }

    fn best_by(&self, value: impl Fn(&VideoSchedule) -> f64) -> &VideoSchedule {
        let schedules = self.by_count.iter().flatten();
        let best = schedules.max_by(|one, other| value(one).total_cmp(&value(other)));
        best.expect("the schedule that answers nothing is always there")
    }
}

/// The best schedules of a video whose frames have these `sizes`, one for each resolution, for each count of answered frames.
///
/// Exponential in the frames in the worst case; seconds for some dozens.
pub fn optimal(
    problem: &FastVaProblem,
    sizes: &[Vec<Bytes>],
) -> Result<OptimalSchedules, VideoError> {
    if sizes.is_empty() {
        return Err(VideoError::NoFrames);
    }
    for (frame, sizes) in sizes.iter().enumerate() {
        problem.refuse_unfit(frame, sizes)?;
    }
    let mut answers: Vec<Answer> = Vec::new();
    let mut by_count = vec![vec![Label {
        npu: Nanos::ZERO,
        uplink: Nanos::ZERO,
        sum: 0.0,
        before: FIRST,
        choice: FrameChoice::Skipped,
    }]];
    let mut stuck = None;
    for (frame, sizes) in sizes.iter().enumerate() {
        let arrival = problem.stream.arrival(frame);
        let mut next: Vec<Vec<Label>> = vec![Vec::new(); by_count.len() + 1];
        for (count, labels) in by_count.iter().enumerate() {
            for label in labels {
                // Nothing starts before this frame arrives any more.
                let label = Label {
                    npu: label.npu.max(arrival),
                    uplink: label.uplink.max(arrival),
                    ..*label
                };
                next[count].push(label);
                extend(problem, sizes, arrival, label, &mut next[count + 1]);
            }
        }
        if stuck.is_none() && next.last().is_some_and(Vec::is_empty) {
            stuck = Some(frame);
        }
        for labels in &mut next {
            keep_efficient(labels);
            for label in labels {
                if label.choice != FrameChoice::Skipped {
                    answers.push(Answer {
                        before: label.before,
                        frame,
                        choice: label.choice,
                    });
                    label.before = answers.len() - 1;
                    label.choice = FrameChoice::Skipped;
                }
            }
        }
        by_count = next;
    }
    let schedule = |labels: &Vec<Label>| {
        let best = labels
            .iter()
            .max_by(|one, other| one.sum.total_cmp(&other.sum))?;
        let mut choices = vec![FrameChoice::Skipped; sizes.len()];
        let mut at = best.before;
        while let Some(answer) = answers.get(at) {
            choices[answer.frame] = answer.choice;
            at = answer.before;
        }
        Some(VideoSchedule::of(problem, choices))
    };
    Ok(OptimalSchedules {
        by_count: by_count.iter().map(schedule).collect(),
        stuck,
    })
}

/// Adds the labels that answering a frame of `sizes` and `arrival` makes of `label`.
fn extend(
    problem: &FastVaProblem,
    sizes: &[Bytes],
    arrival: Nanos,
    label: Label,
    into: &mut Vec<Label>,
) {
    let due = arrival + problem.stream.within();
    for (model, local) in problem.models.local().iter().enumerate() {
        let end = label.npu.as_nanos().checked_add(local.time.as_nanos());
        if let Some(end) = end.filter(|&end| end <= due.as_nanos()) {
            into.push(Label {
                npu: Nanos::from_nanos(end),
                sum: label.sum + local.accuracy,
                choice: FrameChoice::Local { model },
                ..label
            });
        }
    }
    for option in remote_options(problem, sizes, label.uplink, due) {
        into.push(Label {
            uplink: option.idle,
            sum: label.sum + option.accuracy,
            choice: option.choice(),
            ..label
        });
    }
}

/// Keeps the labels that no other one equals or betters in all of NPU, link and sum.
fn keep_efficient(labels: &mut Vec<Label>) {
    labels.sort_by(|one, other| {
        let better = other.sum.total_cmp(&one.sum);
        (one.uplink, one.npu)
            .cmp(&(other.uplink, other.npu))
            .then(better)
    });
    // Of the labels so far, whose links are idle no later: sums that rise with when the NPU is idle.
    let mut stairs: BTreeMap<Nanos, f64> = BTreeMap::new();
    labels.retain(|label| {
        let below = stairs.range(..=label.npu).next_back();
        if below.is_some_and(|(_, &sum)| sum >= label.sum) {
            return false;
        }
        let dominated = stairs
            .range(label.npu..)
            .take_while(|(_, sum)| **sum <= label.sum);
        let dominated: Vec<Nanos> = dominated.map(|(&npu, _)| npu).collect();
        for npu in dominated {
            stairs.remove(&npu);
        }
        stairs.insert(label.npu, label.sum);
        true
    });
}
