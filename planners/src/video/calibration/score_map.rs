//! One score to one probability, by either method.

use serde::{Deserialize, Serialize};

use super::error::CalibrationError;
use super::isotonic::Isotonic;
use super::platt::Platt;

/// How a score becomes a probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CalibrationMethod {
    /// A logistic curve of two parameters.
    Platt,
    /// A curve that never falls, with as many steps as the data need.
    Isotonic,
}

/// A trained map from one score to the probability of being right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreMap {
    /// A logistic curve.
    Platt(Platt),
    /// A curve that never falls.
    Isotonic(Isotonic),
}

impl ScoreMap {
    /// Trains on `scores`, with whether each was right.
    pub fn train(
        method: CalibrationMethod,
        scores: &[f64],
        right: &[bool],
    ) -> Result<ScoreMap, CalibrationError> {
        Ok(match method {
            CalibrationMethod::Platt => ScoreMap::Platt(Platt::train(scores, right)?),
            CalibrationMethod::Isotonic => ScoreMap::Isotonic(Isotonic::train(scores, right)?),
        })
    }

    /// The probability, between 0 and 1, that an answer with the finite `score` is right.
    pub fn probability(&self, score: f64) -> f64 {
        match self {
            ScoreMap::Platt(platt) => platt.probability(score),
            ScoreMap::Isotonic(isotonic) => isotonic.probability(score),
        }
    }
}
