//! What a plan is to achieve: the Max-Accuracy and the Min-Time problem (mlmp §3).

use std::fmt;

use layerlab_profiles::Nanos;

/// What a plan is to achieve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The most accurate placement that takes no longer than this: T(L) <= θ_t.
    MaxAccuracy {
        /// θ_t, the time that one inference may take.
        within: Nanos,
    },
    /// The fastest placement that is at least this accurate: A(L) >= θ_a.
    MinTime {
        /// θ_a, a fraction.
        at_least: f64,
    },
}

/// A goal that makes no sense for a model.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum GoalError {
    /// Nothing takes no time.
    #[error("the time limit is 0; give the time that one inference may take")]
    NoTime,
    /// The accuracy is no fraction.
    #[error(
        "the accuracy requirement is {at_least}; it must be a fraction between 0 and 1, such as 0.6"
    )]
    NoFraction {
        /// What was required.
        at_least: f64,
    },
    /// More is required than the model can do on any processor.
    #[error(
        "the accuracy requirement {at_least} is above the model's own accuracy {baseline}, which it has with \
         all layers on the CPU"
    )]
    AboveModel {
        /// What was required.
        at_least: f64,
        /// A(all-CPU).
        baseline: f64,
    },
}

impl Goal {
    /// Refuses a goal that makes no sense for a model of the accuracy `baseline`.
    pub fn refuse_unless_sensible(&self, baseline: f64) -> Result<(), GoalError> {
        match *self {
            Goal::MaxAccuracy { within } if within == Nanos::ZERO => Err(GoalError::NoTime),
            Goal::MinTime { at_least } if !(0.0..=1.0).contains(&at_least) => {
                Err(GoalError::NoFraction { at_least })
            }
            Goal::MinTime { at_least } if at_least > baseline => {
                Err(GoalError::AboveModel { at_least, baseline })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::MaxAccuracy { within } => write!(f, "the highest accuracy within {within}"),
            Goal::MinTime { at_least } => {
                write!(f, "the shortest time at accuracy {at_least} or more")
            }
        }
    }
}
