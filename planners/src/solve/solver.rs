//! What an algorithm says of itself.

use super::{Found, PlanError};
use crate::goal::Goal;
use crate::problem::Problem;

/// What a user may choose of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SearchOptions {
    /// How many triples each step keeps: the papers' K. Nothing means the algorithm's own choice.
    pub(super) keep: Option<usize>,
}

/// An algorithm.
pub(super) trait Solver: Sync {
    /// The name in tables and on the command line.
    fn name(&self) -> &'static str;

    /// Whether the papers' figures show it.
    fn is_in_figures(&self) -> bool {
        false
    }

    /// Whether it plans for a CPU and one accelerator alone.
    fn is_for_a_pair(&self) -> bool {
        false
    }

    /// Whether it keeps so many triples in each step.
    fn keeps_triples(&self) -> bool {
        false
    }

    /// Whether no placement that it does not find keeps a limit.
    fn misses_nothing(&self) -> bool {
        false
    }

    /// Whether it takes models of so many layers on so many processors.
    fn takes_layers(&self, _layers: usize, _processors: usize) -> bool {
        true
    }

    /// Finds what the answers to all goals have in common, which the problem keeps.
    fn prepare(&self, _problem: &Problem) {}

    /// Looks for the placement that meets `goal` best.
    fn search(
        &self,
        problem: &Problem,
        goal: Goal,
        options: SearchOptions,
    ) -> Result<Found, PlanError>;
}
