//! Which side each layer may run on: what tells the joint planner from the baselines.

use crate::edge::algorithm::SplitAlgorithm;
use crate::edge::side::Side;

/// Where groups may run.
#[derive(Clone, Copy, Debug)]
pub(super) enum SideRule {
    /// Anywhere.
    Any,
    /// Layers up to this one on the phone, those after it on the server.
    OneCut(usize),
}

impl SideRule {
    /// Whether layers `first..=last` may run on `side` as one group.
    pub(super) fn allows(self, (first, last): (usize, usize), side: Side) -> bool {
        match (self, side) {
            (SideRule::Any, _) => true,
            (SideRule::OneCut(cut), Side::Phone) => last <= cut,
            (SideRule::OneCut(cut), Side::Server) => first > cut,
        }
    }
}

/// The rules of an algorithm; each of its plans follows one of them.
pub(super) fn rules(algorithm: SplitAlgorithm, layers: usize) -> Vec<SideRule> {
    match algorithm {
        SplitAlgorithm::Joint | SplitAlgorithm::Larac => vec![SideRule::Any],
        SplitAlgorithm::PhoneOnly => vec![SideRule::OneCut(layers)],
        SplitAlgorithm::ServerOnly => vec![SideRule::OneCut(0)],
        SplitAlgorithm::Neurosurgeon => (0..=layers).map(SideRule::OneCut).collect(),
    }
}
