//! Max-Utility (fastva Algorithm 2, as mended): the frame is sent in the most useful way; of those that arrive meanwhile the
//! phone answers as many, by such models, as is most useful.
//!
//! As printed, line 9 lacks γ, line 15 bans an NPU that is idle, and a triple dominates others of different counts. The
//! utilities of the two parts are compared with nothing and so stay apart; the decision's value is that of the phone's part.
//!
//! As in the paper a frame that can be sent is sent, however small it must be. On slow links that costs: there one model for
//! a whole window (`deep_decision`) is more useful.

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::VideoError;
use super::choice::FrameChoice;
use super::decision::FastVaDecision;
use super::goal::{refuse_weight, utility};
use super::max_accuracy::{behind, buffered};
use super::npu::{NpuFrames, NpuFront};
use super::offload::most_useful;
use super::problem::{FastVaProblem, VideoBacklog};

/// Decides about a frame of `sizes` that arrives now, and about those behind it until the link is idle again; `weight` is α.
///
/// Where no way of sending is in time, the phone alone is planned for as many frames as arrive within the time limit, and only
/// the first is decided. Skipping is a decision, too: there is always one.
pub fn max_utility(
    problem: &FastVaProblem,
    backlog: VideoBacklog,
    sizes: &[Bytes],
    weight: f64,
) -> Result<FastVaDecision, VideoError> {
    problem.refuse_unfit(0, sizes)?;
    refuse_weight(weight)?;
    let Some((option, _)) = most_useful(problem, sizes, backlog.uplink, weight) else {
        return Ok(by_phone(problem, backlog, weight));
    };
    let count = buffered(problem, option.idle);
    let front = behind(problem, backlog.npu, count, true);
    let (answered, value) = most_useful_count(problem, &front, weight);
    Ok(FastVaDecision {
        first: option.choice(),
        next: front.choices(answered),
        value,
    })
}

/// How many frames of `front` to answer for the largest utility, the fewest of several, and that utility.
pub(super) fn most_useful_count(
    problem: &FastVaProblem,
    front: &NpuFront,
    weight: f64,
) -> (usize, f64) {
    let interval = problem.stream.interval();
    let useful = front.sums().map(|(count, sum)| {
        let value = utility(weight, interval, front.frames, count, sum);
        (count, value)
    });
    let best = useful.reduce(|best, one| if one.1 > best.1 { one } else { best });
    best.unwrap_or((0, 0.0))
}

/// The phone alone.
fn by_phone(problem: &FastVaProblem, backlog: VideoBacklog, weight: f64) -> FastVaDecision {
    let stream = problem.stream;
    let arrivals: Vec<Nanos> = (0..=stream.frames_within())
        .map(|k| stream.arrival(k))
        .collect();
    let frames = NpuFrames {
        arrivals: &arrivals,
        within: stream.within(),
        idle: backlog.npu,
        may_skip: true,
    };
    let front = NpuFront::of(problem.models.local(), &frames);
    let (answered, value) = most_useful_count(problem, &front, weight);
    FastVaDecision {
        first: front
            .choices(answered)
            .first()
            .copied()
            .unwrap_or(FrameChoice::Skipped),
        next: Vec::new(),
        value,
    }
}
