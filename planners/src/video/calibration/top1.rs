//! One calibration model for all answers: was the class of the largest score right?

use serde::{Deserialize, Serialize};

use super::answers::{Answers, top};
use super::error::CalibrationError;
use super::score_map::{CalibrationMethod, ScoreMap};

/// One model of how often an answer is right, given its largest score. It never changes the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Top1 {
    map: ScoreMap,
}

impl Top1 {
    /// Trains on the largest score of each of `answers`, with whether the image shows its class.
    pub fn train(method: CalibrationMethod, answers: &Answers) -> Result<Top1, CalibrationError> {
        let rows = answers.iter().map(|(vector, shown)| {
            let (class, score) = top(vector);
            (score, shown.contains(&class))
        });
        let (scores, right): (Vec<f64>, Vec<bool>) = rows.unzip();
        let map = ScoreMap::train(method, &scores, &right)?;
        Ok(Top1 { map })
    }

    /// The model.
    pub fn map(&self) -> &ScoreMap {
        &self.map
    }

    /// The class of the largest score, and its calibrated confidence.
    pub fn answer(&self, scores: &[f64]) -> Result<(usize, f64), CalibrationError> {
        if scores.is_empty() {
            return Err(CalibrationError::NoAnswers);
        }
        if scores.iter().any(|score| !score.is_finite()) {
            return Err(CalibrationError::NotFinite { answer: 0 });
        }
        let (class, score) = top(scores);
        Ok((class, self.map.probability(score)))
    }
}
