//! Linear regression with an L2 penalty on the coefficients, not on the intercept (the "Linear Regression"
//! of mlmp §4.2.1).

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use super::{Rows, TrainError, refuse_unless_positive};

/// How to train a ridge regression.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RidgeSettings {
    /// The factor of the squared coefficients in the loss, above 0.
    pub penalty: f64,
}

/// A trained linear regression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ridge {
    coefficients: Vec<f64>,
    intercept: f64,
}

impl Ridge {
    /// Minimises |y - Xw - c|² + penalty |w|² in closed form: (X'X + penalty I) w = X'y on centred columns.
    pub(super) fn train(
        settings: &RidgeSettings,
        rows: &Rows,
        targets: &[f64],
    ) -> Result<Ridge, TrainError> {
        refuse_unless_positive("the penalty", settings.penalty)?;
        let mut x = DMatrix::from_row_slice(rows.len(), rows.columns(), rows.values());
        let mut y = DVector::from_column_slice(targets);
        let means: Vec<f64> = x.column_iter().map(|column| column.mean()).collect();
        let mean = y.mean();
        for (mut column, &mean) in x.column_iter_mut().zip(&means) {
            column.add_scalar_mut(-mean);
        }
        y.add_scalar_mut(-mean);
        let mut normal = x.tr_mul(&x);
        for diagonal in 0..rows.columns() {
            normal[(diagonal, diagonal)] += settings.penalty;
        }
        let factor = normal.cholesky().ok_or(TrainError::Singular)?;
        let w = factor.solve(&x.tr_mul(&y));
        let shift: f64 = w.iter().zip(&means).map(|(w, mean)| w * mean).sum();
        Ok(Ridge {
            coefficients: w.iter().copied().collect(),
            intercept: mean - shift,
        })
    }

    /// One factor for each feature.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// The prediction where all features are 0.
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    pub(super) fn predict(&self, rows: &Rows) -> Vec<f64> {
        let dot = |row: &[f64]| -> f64 {
            let products = row.iter().zip(&self.coefficients);
            products.map(|(value, factor)| value * factor).sum()
        };
        rows.iter().map(|row| self.intercept + dot(row)).collect()
    }
}
