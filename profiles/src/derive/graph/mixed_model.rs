//! The mixed model of the two-way analysis: speeds of visits from cells with weights, by Henderson's equations, from which
//! the segments' own values are eliminated. Conjugate gradients solve what is left.

use super::cell::Cell;
use super::parts::Parts;

/// The cells with weights, from which the μ are eliminated.
pub(super) struct MixedModel<'a> {
    pub(super) cells: &'a [Cell],
    pub(super) parts: &'a Parts,
    /// The inverse of the variance that loads and inferences give each cell.
    pub(super) weights: Vec<f64>,
    /// The part that each cell's weight is of its segment's.
    pub(super) shares: Vec<f64>,
    /// The sum of weights of each segment, and its weighted mean.
    pub(super) sums: Vec<f64>,
    means: Vec<f64>,
    /// The sum of weights of each visit.
    pub(super) diagonal: Vec<f64>,
    /// What the cells of each visit deviate from their segments' means, weighted.
    pub(super) moments: Vec<f64>,
}

impl<'a> MixedModel<'a> {
    pub(super) fn of(
        cells: &'a [Cell],
        parts: &'a Parts,
        segments: usize,
        load_variance: f64,
    ) -> MixedModel<'a> {
        let visits = parts.of_visit.len();
        let mut model = MixedModel {
            cells,
            parts,
            weights: cells
                .iter()
                .map(|cell| 1.0 / (load_variance + cell.inference))
                .collect(),
            shares: Vec::new(),
            sums: vec![0.0; segments],
            means: vec![0.0; segments],
            diagonal: vec![0.0; visits],
            moments: vec![0.0; visits],
        };
        for (cell, weight) in cells.iter().zip(&model.weights) {
            model.sums[cell.segment] += weight;
            model.means[cell.segment] += weight * cell.value;
            model.diagonal[cell.visit] += weight;
        }
        for (mean, sum) in model.means.iter_mut().zip(&model.sums) {
            *mean /= sum;
        }
        for (cell, weight) in cells.iter().zip(&model.weights) {
            let deviation = cell.value - model.means[cell.segment];
            model.moments[cell.visit] += weight * deviation;
        }
        let weighed = cells.iter().zip(&model.weights);
        model.shares = weighed
            .map(|(cell, weight)| weight / model.sums[cell.segment])
            .collect();
        model
    }

    /// The speeds of the visits; without a variance as they are, else shrunk towards 0 as that says.
    pub(super) fn speeds(&self, variance: Option<f64>) -> Vec<f64> {
        match variance {
            Some(variance) if variance <= 0.0 => vec![0.0; self.moments.len()],
            Some(variance) => self.solve(1.0 / variance, &self.moments),
            None => self.solve(0.0, &self.moments),
        }
    }

    /// (A + ridge) x, where A are the mixed-model equations of the speeds without the μ.
    fn product(&self, ridge: f64, x: &[f64]) -> Vec<f64> {
        let mut of_segments = vec![0.0; self.sums.len()];
        for (cell, weight) in self.cells.iter().zip(&self.weights) {
            of_segments[cell.segment] += weight * x[cell.visit];
        }
        let diagonal = self.diagonal.iter().zip(x);
        let mut product: Vec<f64> = diagonal.map(|(d, x)| (d + ridge) * x).collect();
        for (cell, share) in self.cells.iter().zip(&self.shares) {
            product[cell.visit] -= share * of_segments[cell.segment];
        }
        product
    }

    /// Solves (A + ridge) x = `right`. A has a constant for each part of the visits in its kernel, where the ridge alone
    /// decides, or without one x is 0. Weights may be 10^12 times as large as the ridge: were the constants not solved for
    /// apart from the rest, rounding would hide it.
    pub(super) fn solve(&self, ridge: f64, right: &[f64]) -> Vec<f64> {
        let constant = self.parts.means(right);
        let rest = self.solve_rest(ridge, &without(right, &constant));
        let share = if ridge > 0.0 { 1.0 / ridge } else { 0.0 };
        let both = constant.iter().zip(&rest);
        both.map(|(constant, rest)| share * constant + rest)
            .collect()
    }

    /// The same where `right` has a mean of 0 in each part, by conjugate gradients with the diagonal as preconditioner.
    fn solve_rest(&self, ridge: f64, right: &[f64]) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let scaled = |residual: &[f64]| -> Vec<f64> {
            let diagonal = self.diagonal.iter().zip(residual);
            let scaled: Vec<f64> = diagonal.map(|(d, r)| r / (d + ridge)).collect();
            without(&scaled, &self.parts.means(&scaled))
        };
        let mut x = vec![0.0; right.len()];
        let mut residual = right.to_vec();
        let mut direction = scaled(&residual);
        let mut power = dot(&residual, &direction);
        let enough = 1e-24 * power;
        for _ in 0..4 * right.len() + 10 {
            if power <= enough {
                break;
            }
            let product = self.product(ridge, &direction);
            let curvature = dot(&direction, &product);
            if curvature <= 0.0 {
                break;
            }
            let step = power / curvature;
            for (place, direction) in direction.iter().enumerate() {
                x[place] += step * direction;
                residual[place] -= step * product[place];
            }
            let next = scaled(&residual);
            let grown = dot(&residual, &next);
            for (direction, next) in direction.iter_mut().zip(&next) {
                *direction = next + grown / power * *direction;
            }
            power = grown;
        }
        x
    }

    /// What is left of each cell, given the speeds.
    pub(super) fn residuals(&self, speeds: &[f64]) -> Vec<f64> {
        let values = self.values(speeds);
        let cells = self.cells.iter();
        cells
            .map(|cell| cell.value - values[cell.segment] - speeds[cell.visit])
            .collect()
    }

    pub(super) fn weighted_squares(&self, residuals: &[f64]) -> f64 {
        let cells = self.weights.iter().zip(residuals);
        cells
            .map(|(weight, residual)| weight * residual * residual)
            .sum()
    }

    /// μ of each segment, given the speeds.
    pub(super) fn values(&self, speeds: &[f64]) -> Vec<f64> {
        let mut values = self.means.clone();
        for (cell, share) in self.cells.iter().zip(&self.shares) {
            values[cell.segment] -= share * speeds[cell.visit];
        }
        values
    }
}

fn without(values: &[f64], part: &[f64]) -> Vec<f64> {
    let both = values.iter().zip(part);
    both.map(|(value, part)| value - part).collect()
}
