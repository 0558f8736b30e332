//! Frames as decided beforehand: FastVA's Local and Optimal, and a phone that runs one model.

use super::super::error::VideoError;
use super::super::fastva::FrameChoice;
use super::policy::{ReplayCommand, ReplayEvent, ReplayPolicy, ReplayView};

/// Does with each frame, when it arrives, what was decided beforehand.
#[derive(Clone, Debug)]
pub struct SchedulePolicy {
    choices: Vec<FrameChoice>,
}

impl SchedulePolicy {
    /// What becomes of each frame; those beyond are skipped.
    pub fn new(choices: Vec<FrameChoice>) -> SchedulePolicy {
        SchedulePolicy { choices }
    }
}

impl ReplayPolicy for SchedulePolicy {
    fn decide(&mut self, view: &ReplayView) -> Result<Vec<ReplayCommand>, VideoError> {
        let ReplayEvent::Arrived(frame) = view.event else {
            return Ok(Vec::new());
        };
        let choice = self.choices.get(frame).copied();
        Ok(command(frame, choice.unwrap_or(FrameChoice::Skipped)))
    }
}

/// What has `choice` become of `frame`.
pub(super) fn command(frame: usize, choice: FrameChoice) -> Vec<ReplayCommand> {
    match choice {
        FrameChoice::Local { model } => vec![ReplayCommand::RunLocal { frame, model }],
        FrameChoice::Remote { model, resolution } => vec![ReplayCommand::Send {
            frame,
            model,
            resolution,
        }],
        FrameChoice::Skipped => Vec::new(),
    }
}
