//! What becomes of all frames of a video.

use super::choice::FrameChoice;
use super::goal::utility;
use super::problem::FastVaProblem;

/// What becomes of each frame of a video, at least one, and how good that is.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoSchedule {
    choices: Vec<FrameChoice>,
    answered: usize,
    accuracy_sum: f64,
}

impl VideoSchedule {
    pub(super) fn of(problem: &FastVaProblem, choices: Vec<FrameChoice>) -> VideoSchedule {
        let answered = choices
            .iter()
            .filter(|&&choice| choice != FrameChoice::Skipped);
        let accuracies = choices
            .iter()
            .map(|&choice| problem.models.accuracy(choice));
        VideoSchedule {
            answered: answered.count(),
            accuracy_sum: accuracies.sum(),
            choices,
        }
    }

    /// One for each frame.
    pub fn choices(&self) -> &[FrameChoice] {
        &self.choices
    }

    /// How many frames are answered.
    pub fn answered(&self) -> usize {
        self.answered
    }

    /// The mean accuracy of all frames, those that are skipped counted as wrong (fastva Eq. 1).
    pub fn accuracy(&self) -> f64 {
        self.accuracy_sum / self.choices.len() as f64
    }

    /// The utility where an accuracy of 1 is worth `weight` (α) frames per second (fastva Eq. 9).
    pub fn utility(&self, problem: &FastVaProblem, weight: f64) -> f64 {
        let interval = problem.stream.interval();
        let frames = self.choices.len();
        utility(weight, interval, frames, self.answered, self.accuracy_sum)
    }
}
