//! What is decided at once, or that nothing can be.

use super::choice::FrameChoice;

/// A decision, or that there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheduled<T> {
    /// What to do.
    Planned(T),
    /// Not every frame can be answered in time.
    Infeasible {
        /// The first frame, counted from 0, by which it is certain.
        frame: usize,
    },
}

impl<T> Scheduled<T> {
    /// What to do, if there is anything.
    pub fn planned(self) -> Option<T> {
        match self {
            Scheduled::Planned(planned) => Some(planned),
            Scheduled::Infeasible { .. } => None,
        }
    }
}

/// What to do with a frame that arrives while the link is idle, and with those behind it until the link is idle again.
#[derive(Clone, Debug, PartialEq)]
pub struct FastVaDecision {
    /// What becomes of the frame.
    pub first: FrameChoice,
    /// What becomes of the next frames, which arrive while it is sent; of the rest nothing is decided.
    pub next: Vec<FrameChoice>,
    /// The mean accuracy, or the utility, of the frames looked at.
    pub value: f64,
}
