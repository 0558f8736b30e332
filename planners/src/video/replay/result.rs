//! What came of each frame, and of all of them.

use layerlab_profiles::{Bytes, Nanos};

use super::super::fastva::{FrameChoice, utility};
use super::world::ReplayWorld;

/// What came of one frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameResult {
    /// What answered it in time: the server if it did, else the phone, else [`FrameChoice::Skipped`].
    pub by: FrameChoice,
    /// When that answer was there, after the frame's arrival; none without an answer in time.
    pub delay: Option<Nanos>,
    /// The probability that the answer is right; 0 without one.
    pub accuracy: f64,
    /// Whether it is right: as measured, else drawn with that probability.
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

    /// The utility of what came of the frames, one each `interval`, where an accuracy of 1 is worth `weight` frames per second
    /// (fastva Eq. 9).
    pub fn utility(&self, interval: Nanos, weight: f64) -> f64 {
        let answered = self.frames.iter().filter(|frame| frame.delay.is_some());
        let sum = self.frames.iter().map(|frame| frame.accuracy).sum();
        utility(weight, interval, self.frames.len(), answered.count(), sum)
    }

    /// The bytes of the frames that the server answered in time.
    pub fn bytes_sent(&self, world: &ReplayWorld) -> Bytes {
        let sent = self.frames.iter().zip(&world.frames);
        let sent = sent.filter_map(|(result, frame)| match result.by {
            FrameChoice::Remote { resolution, .. } => frame.sizes.get(resolution).copied(),
            _ => None,
        });
        sent.fold(Bytes::ZERO, |sum, bytes| sum + bytes)
    }

    fn mean(&self, value: impl Fn(&FrameResult) -> f64) -> f64 {
        self.frames.iter().map(value).sum::<f64>() / self.frames.len() as f64
    }
}
