//! The baseline Offload: nothing runs on the phone (fastva §VI-C).

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::VideoError;
use super::choice::FrameChoice;
use super::goal::{VideoGoal, refuse_weight};
use super::problem::FastVaProblem;
use super::remote::{RemoteOption, remote_options};

/// How a frame of `sizes` that arrives at an idle link is sent; [`FrameChoice::Skipped`] where it cannot be.
///
/// For accuracy the link must be idle again when the next frame arrives; for utility frames that arrive meanwhile are skipped,
/// which [`super::max_utility`] gives to the phone. Of equal ways the first, by resolution and model.
pub fn offload(
    problem: &FastVaProblem,
    sizes: &[Bytes],
    goal: VideoGoal,
) -> Result<FrameChoice, VideoError> {
    problem.refuse_unfit(0, sizes)?;
    let chosen = match goal {
        VideoGoal::Accuracy => {
            let options = remote_options(problem, sizes, Nanos::ZERO, problem.stream.within());
            let options = options.into_iter();
            let in_turn = options.filter(|option| option.idle <= problem.stream.interval());
            first_best(in_turn, |option| option.accuracy)
        }
        VideoGoal::Utility { weight } => {
            refuse_weight(weight)?;
            most_useful(problem, sizes, Nanos::ZERO, weight)
        }
    };
    Ok(chosen.map_or(FrameChoice::Skipped, |(option, _)| option.choice()))
}

/// The way to send a frame of `sizes` from `start` on that has the largest utility, min(f, B/S) + α a(j, r) (fastva
/// Algorithm 2, lines 3 to 7), and that utility.
///
/// The printed rate B/S is that of the link and exceeds the camera's f for small frames; frames are not sent more often than
/// they arrive.
pub(super) fn most_useful(
    problem: &FastVaProblem,
    sizes: &[Bytes],
    start: Nanos,
    weight: f64,
) -> Option<(RemoteOption, f64)> {
    let options = remote_options(problem, sizes, start, problem.stream.within()).into_iter();
    first_best(options, |option| {
        let spacing = option.occupied.max(problem.stream.interval());
        1e9 / spacing.as_nanos() as f64 + weight * option.accuracy
    })
}

/// The first option of the largest value, with that value.
fn first_best(
    options: impl Iterator<Item = RemoteOption>,
    value: impl Fn(&RemoteOption) -> f64,
) -> Option<(RemoteOption, f64)> {
    let valued = options.map(|option| {
        let value = value(&option);
        (option, value)
    });
    valued.reduce(|best, one| if one.1 > best.1 { one } else { best })
}
