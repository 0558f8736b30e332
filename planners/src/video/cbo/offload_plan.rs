//! Which frames are sent, when, and what that brings.

use layerlab_profiles::Nanos;

/// A frame that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OffloadedFrame {
    /// Its place among the frames given, from 0.
    pub frame: usize,
    /// The resolution, counted from 0.
    pub resolution: usize,
    /// When sending starts, on the frames' clock.
    pub start: Nanos,
    /// When its last byte has left.
    pub sent: Nanos,
}

/// What to send; everything else has the NPU's answer. A plan that sends nothing is a plan, too.
#[derive(Clone, Debug, PartialEq)]
pub struct OffloadPlan {
    sent: Vec<OffloadedFrame>,
    threshold: Option<f64>,
    improvement: f64,
}

impl OffloadPlan {
    pub(super) fn new(
        sent: Vec<OffloadedFrame>,
        threshold: Option<f64>,
        improvement: f64,
    ) -> OffloadPlan {
        OffloadPlan {
            sent,
            threshold,
            improvement,
        }
    }

    /// The frames to send, in the order of sending.
    pub fn sent(&self) -> &[OffloadedFrame] {
        &self.sent
    }

    /// θ: the largest confidence of a frame that is sent; none if none is. Not every frame below it is sent.
    pub fn threshold(&self) -> Option<f64> {
        self.threshold
    }

    /// By how much the sum of the frames' accuracies rises: Σ A_r^o - p of those sent, never negative.
    pub fn improvement(&self) -> f64 {
        self.improvement
    }
}
