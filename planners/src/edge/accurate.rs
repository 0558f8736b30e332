//! What a split planner answers that is to keep an accuracy: a plan with the placement on the phone's processors that has it, or
//! why there is none.

use std::fmt;

use layerlab_profiles::Placement;

use super::algorithm::SplitAlgorithm;
use super::plan::{SplitInfeasible, SplitPlan};
use crate::confidence::Confidence;
use crate::problem::PredictedAccuracy;

/// The answer of one algorithm to one goal and a required accuracy.
#[derive(Clone, Debug, PartialEq)]
pub enum AccurateOutcome {
    /// A split that keeps the accuracy and the goal's limits.
    Planned(Box<AccurateSplit>),
    /// No split keeps the goal's limits, whatever its accuracy.
    Infeasible(SplitInfeasible),
    /// No split that keeps the goal's limits keeps the accuracy.
    TooInaccurate(TooInaccurate),
}

impl AccurateOutcome {
    /// The split, if there is one.
    pub fn split(&self) -> Option<&AccurateSplit> {
        match self {
            AccurateOutcome::Planned(split) => Some(split),
            AccurateOutcome::Infeasible(_) | AccurateOutcome::TooInaccurate(_) => None,
        }
    }
}

/// A split that keeps an accuracy.
#[derive(Clone, Debug, PartialEq)]
pub struct AccurateSplit {
    pub(super) plan: SplitPlan,
    pub(super) placement: Placement,
    pub(super) accuracy: PredictedAccuracy,
    pub(super) at_least: f64,
    pub(super) confidence: Option<Confidence>,
    pub(super) is_best: bool,
}

impl AccurateSplit {
    /// Which groups run where, and what that costs.
    pub fn plan(&self) -> &SplitPlan {
        &self.plan
    }

    /// The digit of each layer: that of the phone's processor that runs it, and 0 on the server.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// A(L) of that placement, as it was measured, or as the accuracy model predicts it.
    pub fn accuracy(&self) -> PredictedAccuracy {
        self.accuracy
    }

    /// The accuracy that is required.
    pub fn at_least(&self) -> f64 {
        self.at_least
    }

    /// With which confidence it is kept; nothing where estimates decide.
    pub fn confidence(&self) -> Option<Confidence> {
        self.confidence
    }

    /// Whether every placement was tried, so that there is no better split; otherwise it is the best that a search found.
    pub fn is_best(&self) -> bool {
        self.is_best
    }
}

/// Why no split has the accuracy.
#[derive(Clone, Debug, PartialEq)]
pub struct TooInaccurate {
    pub(super) algorithm: SplitAlgorithm,
    pub(super) at_least: f64,
    pub(super) confidence: Option<Confidence>,
    pub(super) has_limits: bool,
    /// What the most accurate split has at least.
    pub(super) reachable: f64,
    pub(super) accuracy: PredictedAccuracy,
    pub(super) is_best: bool,
}

impl TooInaccurate {
    /// The accuracy that the most accurate split has at least, with the confidence that is asked for.
    pub fn reachable(&self) -> f64 {
        self.reachable
    }

    /// A(L) of that split's placement.
    pub fn accuracy(&self) -> PredictedAccuracy {
        self.accuracy
    }
}

impl fmt::Display for TooInaccurate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = match self.has_limits {
            true => " within the other limits",
            false => "",
        };
        write!(
            f,
            "{} has no plan: {} accuracy {}",
            self.algorithm,
            match self.is_best {
                true => "no placement keeps",
                false => "no placement was found that keeps",
            },
            self.at_least
        )?;
        if let Some(confidence) = self.confidence {
            write!(f, " with {} % confidence", confidence.percent())?;
        }
        let best = match self.is_best {
            true => "the best that is reachable",
            false => "the best that a search reached",
        };
        // What is required at most is never rounded up.
        let reachable = (self.reachable * 1e4).floor() / 1e4;
        write!(f, "{within}; {best} is {reachable:.4}")?;
        if self.confidence.is_some() {
            let how = match self.accuracy.is_measured {
                true => "measured",
                false => "predicted",
            };
            write!(f, ", of a placement with {:.4} {how}", self.accuracy.value)?;
        }
        let or = match self.has_limits {
            true => ", or relax the other limits",
            false => "",
        };
        write!(f, "; require no more than that{or}")
    }
}
