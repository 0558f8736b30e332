//! The ways to look for a split: the joint planner and what the paper compares it with.

use std::fmt;
use std::str::FromStr;

/// How to look for a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SplitAlgorithm {
    /// The optimum of all splits (JointDNN, jointdnn §2.3 and §2.4).
    Joint,
    /// All layers on the phone, in the best groups.
    PhoneOnly,
    /// All layers on the server, in the best groups.
    ServerOnly,
    /// One cut: first layers on the phone, then the others on the server (Neurosurgeon, as jointdnn §5 describes it),
    /// each half in its best groups.
    Neurosurgeon,
    /// Lagrangian relaxation of one limit (LARAC, jointdnn §2.3): keeps the limit, and need not be the optimum.
    Larac,
}

/// A text that names no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to split; use joint, phone-only, server-only, neurosurgeon or larac")]
pub struct SplitAlgorithmError(String);

impl SplitAlgorithm {
    /// All of them, the joint planner first.
    pub const ALL: [SplitAlgorithm; 5] = [
        SplitAlgorithm::Joint,
        SplitAlgorithm::PhoneOnly,
        SplitAlgorithm::ServerOnly,
        SplitAlgorithm::Neurosurgeon,
        SplitAlgorithm::Larac,
    ];

    /// The name in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            SplitAlgorithm::Joint => "joint",
            SplitAlgorithm::PhoneOnly => "phone-only",
            SplitAlgorithm::ServerOnly => "server-only",
            SplitAlgorithm::Neurosurgeon => "neurosurgeon",
            SplitAlgorithm::Larac => "larac",
        }
    }
}

impl fmt::Display for SplitAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SplitAlgorithm {
    type Err = SplitAlgorithmError;
    fn from_str(text: &str) -> Result<Self, SplitAlgorithmError> {
        let mut all = SplitAlgorithm::ALL.into_iter();
        all.find(|algorithm| algorithm.name() == text)
            .ok_or_else(|| SplitAlgorithmError(text.to_owned()))
    }
}
