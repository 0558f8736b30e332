//! What the journals of a run are called, in the store and on devices.

use layerlab_protocol::RunId;

use super::record::{Run, RunNumber};

/// The parts of a run, each with a journal of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// How long everything takes.
    Times,
    /// What answers are worth.
    Accuracy,
}

impl Part {
    /// Every part, in the order in which a run works on them.
    pub const ALL: [Part; 2] = [Part::Times, Part::Accuracy];
}

/// The name of the journal of a part of an attempt, the same for every daemon that goes on with it.
pub fn name(lab: &str, run: RunNumber, attempt: u32, part: Part) -> RunId {
    let part = match part {
        Part::Times => "times",
        Part::Accuracy => "accuracy",
    };
    RunId::new(format!("lab-{lab}-{run}-{attempt}-{part}")).expect("letters, digits and dashes")
}

/// The names of all journals that a run may have.
pub fn names(lab: &str, run: &Run) -> Vec<RunId> {
    let attempts = 1..=run.attempt;
    attempts
        .flat_map(|attempt| Part::ALL.map(|part| name(lab, run.number, attempt, part)))
        .collect()
}
