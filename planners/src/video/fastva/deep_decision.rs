//! The baseline DeepDecision: one model and one resolution for all frames of a window (fastva §VI-C, after Ran et al.,
//! "DeepDecision: A Mobile Deep Learning Framework for Edge Video Analytics", INFOCOM 2018).

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::VideoError;
use super::choice::FrameChoice;
use super::decision::{FastVaDecision, Scheduled};
use super::goal::{VideoGoal, refuse_weight, utility};
use super::problem::{FastVaProblem, VideoBacklog};
use super::remote::remote_options;

/// Decides about the `window` frames that begin with one that arrives now; all are taken to have its `sizes`, since those of
/// the others are not known yet.
///
/// For accuracy all of them must be in time: infeasible where no single way of answering keeps that. For utility those that
/// would be late are skipped. Of equal ways the first: the phone's models, then the server's by resolution and model.
pub fn deep_decision(
    problem: &FastVaProblem,
    backlog: VideoBacklog,
    sizes: &[Bytes],
    window: usize,
    goal: VideoGoal,
) -> Result<Scheduled<FastVaDecision>, VideoError> {
    problem.refuse_unfit(0, sizes)?;
    if let VideoGoal::Utility { weight } = goal {
        refuse_weight(weight)?;
    }
    if window == 0 {
        return Err(VideoError::NoWindow);
    }
    let mut best: Option<FastVaDecision> = None;
    let mut longest = 0;
    for choice in choices(problem) {
        let choices = in_window(problem, backlog, sizes, window, choice);
        let answered = choices
            .iter()
            .filter(|&&one| one != FrameChoice::Skipped)
            .count();
        let accuracy = problem.models.accuracy(choice);
        let value = match goal {
            VideoGoal::Accuracy if answered < window => {
                let late = choices.iter().position(|&one| one == FrameChoice::Skipped);
                longest = longest.max(late.unwrap_or(window));
                continue;
            }
            VideoGoal::Accuracy => accuracy,
            VideoGoal::Utility { weight } => {
                let interval = problem.stream.interval();
                utility(
                    weight,
                    interval,
                    window,
                    answered,
                    accuracy * answered as f64,
                )
            }
        };
        if best.as_ref().is_none_or(|best| value > best.value) {
            best = Some(FastVaDecision {
                first: choices[0],
                next: choices[1..].to_vec(),
                value,
            });
        }
    }
    Ok(best.map_or(Scheduled::Infeasible { frame: longest }, Scheduled::Planned))
}

/// Each way of answering a frame.
fn choices(problem: &FastVaProblem) -> Vec<FrameChoice> {
    let models = &problem.models;
    let local = (0..models.local().len()).map(|model| FrameChoice::Local { model });
    let remote = (0..models.resolutions()).flat_map(|resolution| {
        (0..models.remote().len()).map(move |model| FrameChoice::Remote { model, resolution })
    });
    local.chain(remote).collect()
}

/// What becomes of the window's frames where all are answered by `choice` that can be so in time.
fn in_window(
    problem: &FastVaProblem,
    backlog: VideoBacklog,
    sizes: &[Bytes],
    window: usize,
    choice: FrameChoice,
) -> Vec<FrameChoice> {
    let (mut npu, mut uplink) = (backlog.npu, backlog.uplink);
    let mut answer = |index: usize| -> Option<()> {
        let arrival = problem.stream.arrival(index);
        let due = arrival + problem.stream.within();
        match choice {
            FrameChoice::Local { model } => {
                let time = problem.models.local()[model].time.as_nanos();
                let end = npu.max(arrival).as_nanos().checked_add(time)?;
                npu = (end <= due.as_nanos()).then_some(Nanos::from_nanos(end))?;
            }
            FrameChoice::Remote { .. } => {
                let options = remote_options(problem, sizes, uplink.max(arrival), due);
                uplink = options
                    .iter()
                    .find(|option| option.choice() == choice)?
                    .idle;
            }
            FrameChoice::Skipped => return None,
        }
        Some(())
    };
    let frames = (0..window).map(|index| match answer(index) {
        Some(()) => choice,
        None => FrameChoice::Skipped,
    });
    frames.collect()
}
