//! What came of each frame, and of all of them.

use layerlab_profiles::Nanos;

use super::super::fastva::FrameChoice;

/// What came of one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameResult {
    /// What answered it in time: the server if it did, else the phone, else [`FrameChoice::Skipped`].
    pub by: FrameChoice,
    /// When that answer was there, after the frame's arrival; none without an answer in time.
    pub delay: Option<Nanos>,
    /// The probability that the answer is right; 0 without one.
    pub accuracy: f64,
    /// Whether it is right, drawn with that probability.
    pub right: bool,
}

/// What came of all frames.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayResults {
    /// One for each frame, at least one.
    pub(super) frames: Vec<FrameResult>,
}

impl ReplayResults {
    /// One for each frame.
    pub fn frames(&self) -> &[FrameResult] {
        &self.frames
    }

    /// The mean probability of a right answer, frames without an answer counted as wrong.
    pub fn accuracy(&self) -> f64 {
        self.mean(|frame| frame.accuracy)
    }

    /// The share of frames whose answer is right.
    pub fn right_share(&self) -> f64 {
        self.mean(|frame| f64::from(frame.right))
    }

    /// The share of frames that the server answered.
    pub fn offloaded_share(&self) -> f64 {
        self.mean(|frame| f64::from(matches!(frame.by, FrameChoice::Remote { .. })))
    }

    /// The share of frames that nothing answered in time.
    pub fn missed_share(&self) -> f64 {
        self.mean(|frame| f64::from(frame.by == FrameChoice::Skipped))
    }

    fn mean(&self, value: impl Fn(&FrameResult) -> f64) -> f64 {
        self.frames.iter().map(value).sum::<f64>() / self.frames.len() as f64
    }
}
