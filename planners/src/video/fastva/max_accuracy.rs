//! Max-Accuracy (fastva Algorithm 1, as mended): the resolution and model of the frame that is sent, and the models of those
//! that arrive meanwhile, for the largest mean accuracy.
//!
//! As printed, the algorithm tests a `t` that it never sets (S(I_0, r)/B is meant), adds no accuracy of local frames to A',
//! and offers nothing where no resolution can be sent. Here the phone alone is one more option: it is compared over as many
//! frames as arrive within the time limit, and only its first frame is decided.

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::VideoError;
use super::choice::FrameChoice;
use super::decision::{FastVaDecision, Scheduled};
use super::npu::{NpuFrames, NpuFront};
use super::problem::{BufferedFrames, FastVaProblem, VideoBacklog};
use super::remote::remote_options;

/// Decides about a frame of `sizes` that arrives now, and about those behind it until the link is idle again.
///
/// Where the server is serial, each model's time counts too, and not only the most accurate model of a resolution is tried.
pub fn max_accuracy(
    problem: &FastVaProblem,
    backlog: VideoBacklog,
    sizes: &[Bytes],
) -> Result<Scheduled<FastVaDecision>, VideoError> {
    problem.refuse_unfit(0, sizes)?;
    let mut best = by_phone(problem, backlog);
    for option in remote_options(problem, sizes, backlog.uplink, problem.stream.within()) {
        let count = buffered(problem, option.idle);
        let front = behind(problem, backlog.npu, count, false);
        // A resolution is no option where the phone cannot answer what arrives meanwhile.
        let Some(sum) = front.sum(count) else {
            continue;
        };
        let value = (option.accuracy + sum) / (count + 1) as f64;
        if best.as_ref().is_none_or(|best| value > best.value) {
            best = Some(FastVaDecision {
                first: option.choice(),
                next: front.choices(count),
                value,
            });
        }
    }
    Ok(best.map_or(Scheduled::Infeasible { frame: 0 }, Scheduled::Planned))
}

/// n_l: how many frames arrive while the link is busy until `idle`, counted from the arrival of the frame that is sent.
pub(super) fn buffered(problem: &FastVaProblem, idle: Nanos) -> usize {
    let interval = problem.stream.interval().as_nanos();
    let count = match problem.buffered {
        BufferedFrames::Floor => idle.as_nanos() / interval,
        BufferedFrames::CeilingLessOne => idle.as_nanos().div_ceil(interval).saturating_sub(1),
    };
    // What is sent is answered within T: no more frames than the stream's limit arrive meanwhile.
    count as usize
}

/// What the NPU can do with the `count` frames behind the one that is sent.
pub(super) fn behind(
    problem: &FastVaProblem,
    idle: Nanos,
    count: usize,
    may_skip: bool,
) -> NpuFront {
    let arrivals: Vec<Nanos> = (1..=count).map(|k| problem.stream.arrival(k)).collect();
    let frames = NpuFrames {
        arrivals: &arrivals,
        within: problem.stream.within(),
        idle,
        may_skip,
    };
    NpuFront::of(problem.models.local(), &frames)
}

/// The phone alone, for the longest run of frames it can answer, up to those that arrive within the time limit; none if it
/// cannot even answer the first.
fn by_phone(problem: &FastVaProblem, backlog: VideoBacklog) -> Option<FastVaDecision> {
    let stream = problem.stream;
    let arrivals: Vec<Nanos> = (0..=stream.frames_within())
        .map(|k| stream.arrival(k))
        .collect();
    let frames = NpuFrames {
        arrivals: &arrivals,
        within: stream.within(),
        idle: backlog.npu,
        may_skip: false,
    };
    let front = NpuFront::of(problem.models.local(), &frames);
    let choices: Vec<FrameChoice> = front.choices(front.frames);
    Some(FastVaDecision {
        first: *choices.first()?,
        next: Vec::new(),
        value: front.sum(front.frames)? / front.frames as f64,
    })
}
