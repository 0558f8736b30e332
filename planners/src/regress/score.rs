//! How well a regressor predicts: MAE, MAPE and R² (mlmp §6.2, Table 2).

use serde::{Deserialize, Serialize};

/// The least loss by which a percentage error is divided: one percentage point of accuracy. Without a floor
/// MAPE says nothing, since some combinations lose nothing.
pub const MAPE_FLOOR: f64 = 0.01;

/// The deviations of predictions from measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// How many rows were predicted.
    pub rows: usize,
    /// The mean of |y - prediction|.
    pub mae: f64,
    /// The mean of |y - prediction| / max(|y|, [`MAPE_FLOOR`]).
    pub mape: f64,
    /// 1 - sum (y - prediction)² / sum (y - mean)²; nothing where all y are equal.
    pub r2: Option<f64>,
    /// The mean of (y - prediction)².
    pub mse: f64,
}

impl Score {
    /// The score of these predictions; `None` if there are none, or not one for each target.
    pub fn of(targets: &[f64], predictions: &[f64]) -> Option<Score> {
        if targets.is_empty() || targets.len() != predictions.len() {
            return None;
        }
        let rows = targets.len() as f64;
        let mean = targets.iter().sum::<f64>() / rows;
        let (mut mae, mut mape, mut squares, mut spread) = (0.0, 0.0, 0.0, 0.0);
        for (&target, &prediction) in targets.iter().zip(predictions) {
            let error = f64::abs(target - prediction);
            mae += error;
            mape += error / target.abs().max(MAPE_FLOOR);
            squares += error * error;
            spread += (target - mean).powi(2);
        }
        Some(Score {
            rows: targets.len(),
            mae: mae / rows,
            mape: mape / rows,
            r2: (spread > 0.0).then(|| 1.0 - squares / spread),
            mse: squares / rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_their_definitions() {
        let score = Score::of(&[0.0, 0.1, 0.2], &[0.01, 0.1, 0.17]).expect("three rows");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(score.mae, 0.04 / 3.0));
        assert!(near(score.mape, (1.0 + 0.0 + 0.15) / 3.0));
        assert!(near(score.r2.expect("targets differ"), 1.0 - 0.001 / 0.02));
    }

    #[test]
    fn equal_targets_have_no_r2_and_no_targets_no_score() {
        assert_eq!(
            Score::of(&[0.5, 0.5], &[0.5, 0.6]).map(|score| score.r2),
            Some(None)
        );
        assert_eq!(Score::of(&[], &[]), None);
    }
}
