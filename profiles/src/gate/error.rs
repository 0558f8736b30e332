//! Why profiles do not pass through a gate.

use super::FEWEST_GOOD;
use super::subject::ProfileSubject;
use crate::compare::CompareError;

/// Profiles that a gate cannot be asked about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// A good profile and the new one cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// Too few good profiles to tell how far runs differ.
    #[error(
        "{given} good profiles do not tell how far runs differ; give one, or {FEWEST_GOOD} and more, best of different days"
    )]
    FewGood {
        /// How many were given.
        given: usize,
    },
    /// Good profiles are of different things, so that how far they differ says nothing of runs.
    #[error("the good profiles are of different things: {one}, and {other}; give those of one")]
    DifferentSubjects {
        /// What one of them is of.
        one: Box<ProfileSubject>,
        /// What the last of them is of.
        other: Box<ProfileSubject>,
    },
}
