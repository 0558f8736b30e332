//! Min-max scaling of features to [0, 1], learnt from the training rows alone (mlmp §4.2.1).

use super::Rows;
use serde::{Deserialize, Serialize};

/// For each feature the least and the greatest value that the training rows have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    ranges: Vec<(f64, f64)>,
}

impl Scaling {
    /// The ranges of `rows`, which are the training rows.
    pub fn of(rows: &Rows) -> Scaling {
        let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); rows.columns()];
        for row in rows.iter() {
            for (range, &value) in ranges.iter_mut().zip(row) {
                *range = (range.0.min(value), range.1.max(value));
            }
        }
        Scaling { ranges }
    }

    /// The least and the greatest value of each feature among the training rows.
    pub fn ranges(&self) -> &[(f64, f64)] {
        &self.ranges
    }

    /// Scales a row in place: (x - min) / (max - min). Values outside the training range leave [0, 1]. A
    /// feature that is constant among the training rows becomes 0.
    pub fn apply(&self, row: &mut [f64]) {
        for (value, &(least, greatest)) in row.iter_mut().zip(&self.ranges) {
            *value = if greatest > least {
                (*value - least) / (greatest - least)
            } else {
                0.0
            };
        }
    }

    /// `rows`, scaled.
    pub fn scaled(&self, mut rows: Rows) -> Rows {
        rows.iter_mut().for_each(|row| self.apply(row));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_features_become_zero_and_others_span_zero_to_one() {
        let mut rows = Rows::new(2);
        [[1.0, 7.0], [3.0, 7.0], [2.0, 7.0]]
            .iter()
            .for_each(|row| rows.push(row));
        let scaling = Scaling::of(&rows);
        let scaled = scaling.scaled(rows);
        let scaled: Vec<&[f64]> = scaled.iter().collect();
        assert_eq!(scaled, [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]);
        let mut outside = [4.0, 8.0];
        scaling.apply(&mut outside);
        assert_eq!(outside, [1.5, 0.0]);
    }
}
