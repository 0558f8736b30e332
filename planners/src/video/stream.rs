//! The camera's stream: when frames arrive and when they are due.

use layerlab_profiles::Nanos;

use super::error::VideoError;

/// The most frames that may arrive within one frame's time limit: what plans look ahead grows with its square.
pub const MOST_FRAMES_WITHIN: u64 = 128;

/// Frames at equal distances, each with the same time for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoStream {
    interval: Nanos,
    within: Nanos,
}

impl VideoStream {
    /// A frame each `interval` (γ = 1/f), each to be answered `within` that time of its arrival (T).
    pub fn new(interval: Nanos, within: Nanos) -> Result<VideoStream, VideoError> {
        if interval == Nanos::ZERO {
            return Err(VideoError::NoInterval);
        }
        if within == Nanos::ZERO {
            return Err(VideoError::NoTimeLimit);
        }
        let frames = within.as_nanos() / interval.as_nanos();
        match frames <= MOST_FRAMES_WITHIN {
            true => Ok(VideoStream { interval, within }),
            false => Err(VideoError::TooManyFramesWithin {
                within,
                frames,
                most: MOST_FRAMES_WITHIN,
            }),
        }
    }

    /// γ, the time between two frames.
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// T, the time from a frame's arrival to when its answer is due.
    pub fn within(&self) -> Nanos {
        self.within
    }

    /// When the frame `index`, counted from 0, arrives if frame 0 arrives at 0; saturates after 584 years.
    pub fn arrival(&self, index: usize) -> Nanos {
        Nanos::from_nanos(self.interval.as_nanos().saturating_mul(index as u64))
    }

    /// How many frames arrive after a frame and before, or just when, it is due.
    pub fn frames_within(&self) -> usize {
        // At most MOST_FRAMES_WITHIN.
        (self.within.as_nanos() / self.interval.as_nanos()) as usize
    }
}
