//! The baseline Local: nothing is sent (fastva §VI-C).

use layerlab_profiles::Nanos;

use super::super::error::VideoError;
use super::decision::Scheduled;
use super::goal::{VideoGoal, refuse_weight};
use super::max_utility::most_useful_count;
use super::npu::{NpuFrames, NpuFront};
use super::problem::FastVaProblem;
use super::schedule::VideoSchedule;

/// The best that the NPU, idle from 0 on, can do with the first `frames` frames of the stream: the optimum of all schedules
/// that send nothing.
///
/// For utility the work grows with the square of the frames.
pub fn local(
    problem: &FastVaProblem,
    frames: usize,
    goal: VideoGoal,
) -> Result<Scheduled<VideoSchedule>, VideoError> {
    let arrivals: Vec<Nanos> = (0..frames).map(|k| problem.stream.arrival(k)).collect();
    if arrivals.is_empty() {
        return Err(VideoError::NoFrames);
    }
    let front = |may_skip| {
        let frames = NpuFrames {
            arrivals: &arrivals,
            within: problem.stream.within(),
            idle: Nanos::ZERO,
            may_skip,
        };
        NpuFront::of(problem.models.local(), &frames)
    };
    let choices = match goal {
        VideoGoal::Accuracy => {
            let front = front(false);
            if front.frames < frames {
                return Ok(Scheduled::Infeasible {
                    frame: front.frames,
                });
            }
            front.choices(frames)
        }
        VideoGoal::Utility { weight } => {
            refuse_weight(weight)?;
            let front = front(true);
            front.choices(most_useful_count(problem, &front, weight).0)
        }
    };
    Ok(Scheduled::Planned(VideoSchedule::of(problem, choices)))
}
