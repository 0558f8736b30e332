//! Symmetric matrices whose rows are stored from their first entry on.
//!
//! Factoring fills nothing to the left of a row's first entry (the envelope method: George and Liu, Computer Solution
//! of Large Sparse Positive Definite Systems, 1981, chapter 4). With the nodes in the order of the layers short
//! segments are a narrow band and a long one fills a row, so that the work grows with the number of layers; a table of
//! all segments fills everything and costs what a dense matrix costs.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Range, Sub, SubAssign};

/// What the entries of a matrix can be: real numbers, and complex ones for derivatives.
pub(super) trait Scalar:
    Copy
    + From<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
}

impl<T> Scalar for T where
    T: Copy
        + From<f64>
        + Add<Output = T>
        + Sub<Output = T>
        + Mul<Output = T>
        + Div<Output = T>
        + Neg<Output = T>
        + AddAssign
        + SubAssign
{
}

/// From which column on each row of a symmetric matrix has entries.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    first: Vec<usize>,
    /// Where the row's first entry is stored, and at the end how many entries there are.
    start: Vec<usize>,
}

impl Envelope {
    /// The narrowest that holds the diagonal, `band` entries beside it and these pairs of row and column, in either
    /// order.
    pub(super) fn new(
        size: usize,
        band: usize,
        pairs: impl IntoIterator<Item = (usize, usize)>,
    ) -> Envelope {
        let mut first: Vec<usize> = (0..size).map(|row| row.saturating_sub(band)).collect();
        for (one, other) in pairs {
            let (row, column) = (one.max(other), one.min(other));
            first[row] = first[row].min(column);
        }
        let mut start = Vec::with_capacity(size + 1);
        start.push(0);
        for (row, first) in first.iter().enumerate() {
            start.push(start[row] + row - first + 1);
        }
        Envelope { first, start }
    }

    pub(super) fn size(&self) -> usize {
        self.first.len()
    }

    /// Where an entry is stored, if it is.
    fn place(&self, one: usize, other: usize) -> Option<usize> {
        let (row, column) = (one.max(other), one.min(other));
        (column >= self.first[row]).then(|| self.start[row] + column - self.first[row])
    }

    fn row(&self, row: usize) -> Range<usize> {
        self.start[row]..self.start[row + 1]
    }

    /// The rows below each row that have an entry in its column, ascending.
    fn rows_below(&self) -> Vec<Vec<usize>> {
        let mut below = vec![Vec::new(); self.size()];
        for (row, &first) in self.first.iter().enumerate() {
            below[first..row]
                .iter_mut()
                .for_each(|below| below.push(row));
        }
        below
    }
}

/// A symmetric matrix of which the entries of an envelope are stored; all others are zero, or not known.
#[derive(Clone, Debug)]
pub(super) struct Symmetric<T> {
    envelope: Envelope,
    entries: Vec<T>,
}

impl<T: Scalar> Symmetric<T> {
    pub(super) fn zero(envelope: Envelope) -> Self {
        let entries = vec![T::from(0.0); envelope.start[envelope.size()]];
        Symmetric { envelope, entries }
    }

    pub(super) fn size(&self) -> usize {
        self.envelope.size()
    }

    /// An entry of the envelope.
    pub(super) fn get(&self, one: usize, other: usize) -> Option<T> {
        let place = self.envelope.place(one, other)?;
        Some(self.entries[place])
    }

    /// Adds to an entry of the envelope, and to the one that mirrors it.
    ///
    /// # Panics
    /// When the entry is not of the envelope.
    pub(super) fn add(&mut self, one: usize, other: usize, value: T) {
        let place = self.envelope.place(one, other);
        self.entries[place.expect("an entry of the envelope")] += value;
    }

    /// L D L', L having ones on its diagonal.
    pub(super) fn factor(mut self) -> Factor<T> {
        let Envelope { first, start } = &self.envelope;
        let size = self.envelope.size();
        let mut pivots: Vec<T> = Vec::with_capacity(size);
        for row in 0..size {
            let (above, rest) = self.entries.split_at_mut(start[row]);
            let begin = first[row];
            let row_entries = &mut rest[..=row - begin];
            for column in begin..row {
                let from = begin.max(first[column]);
                let others = &above[start[column] + from - first[column]..start[column + 1] - 1];
                let own = &row_entries[from - begin..column - begin];
                row_entries[column - begin] -= dot(own, others);
            }
            let (pivot, left) = row_entries.split_last_mut().expect("a diagonal");
            for (entry, above) in left.iter_mut().zip(&pivots[begin..row]) {
                let divided = *entry / *above;
                *pivot -= *entry * divided;
                *entry = divided;
            }
            pivots.push(*pivot);
        }
        Factor {
            lower: self,
            pivots,
        }
    }
}

/// A matrix factored into L D L'.
#[derive(Clone, Debug)]
pub(super) struct Factor<T> {
    /// L, and D in place of its diagonal of ones.
    lower: Symmetric<T>,
    pivots: Vec<T>,
}

impl<T: Scalar> Factor<T> {
    /// D.
    pub(super) fn pivots(&self) -> &[T] {
        &self.pivots
    }

    /// The right side becomes the solution.
    pub(super) fn solve(&self, right: &mut [T]) {
        self.solve_within(0..self.lower.size(), right);
    }

    /// These rows of the right side become those of the solution of the system without the rows after them. The right side is
    /// zero in all rows before them.
    pub(super) fn solve_within(&self, rows: Range<usize>, right: &mut [T]) {
        let Symmetric { envelope, entries } = &self.lower;
        let begin = rows.start;
        // The row's entries in columns of these rows, and those columns of the right side.
        let columns = |row: usize| {
            let first = envelope.first[row].max(begin);
            let place = envelope.start[row] + first - envelope.first[row];
            (
                place..envelope.start[row + 1] - 1,
                first - begin..row - begin,
            )
        };
        for row in rows.clone() {
            let (left, known) = columns(row);
            let known = dot(&entries[left], &right[known]);
            right[row - begin] -= known;
        }
        for (value, pivot) in right.iter_mut().zip(&self.pivots[rows.clone()]) {
            *value = *value / *pivot;
        }
        for row in rows.rev() {
            let (left, above) = columns(row);
            let value = right[row - begin];
            for (above, entry) in right[above].iter_mut().zip(&entries[left]) {
                *above -= *entry * value;
            }
        }
    }

    /// The entries of the inverse in the envelope (Takahashi, Fagan and Chin, Formation of a sparse bus impedance
    /// matrix, 1973): Z = D⁻¹ L⁻¹ + (I - L') Z, from the last row upwards.
    pub(super) fn selected_inverse(&self) -> Symmetric<T> {
        let envelope = &self.lower.envelope;
        let mut inverse = Symmetric::zero(envelope.clone());
        let (mut weights, mut sums): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
        for (column, below) in envelope.rows_below().iter().enumerate().rev() {
            let place =
                |row: usize, column: usize| envelope.start[row] + column - envelope.first[row];
            weights.clear();
            weights.extend(
                below
                    .iter()
                    .map(|&row| self.lower.entries[place(row, column)]),
            );
            sums.clear();
            sums.resize(below.len(), T::from(0.0));
            for (one, &row) in below.iter().enumerate() {
                let weight = weights[one];
                let entries = &inverse.entries[envelope.row(row)];
                let mut sum = weight * entries[row - envelope.first[row]];
                for (other, &above) in below[..one].iter().enumerate() {
                    let entry = entries[above - envelope.first[row]];
                    sums[other] += weight * entry;
                    sum += weights[other] * entry;
                }
                sums[one] += sum;
            }
            let mut diagonal = T::from(1.0) / self.pivots[column];
            for ((&row, &weight), &sum) in below.iter().zip(&weights).zip(&sums) {
                inverse.entries[place(row, column)] = -sum;
                diagonal += weight * sum;
            }
            inverse.entries[place(column, column)] = diagonal;
        }
        inverse
    }
}

fn dot<T: Scalar>(one: &[T], other: &[T]) -> T {
    let products = one.iter().zip(other).map(|(&one, &other)| one * other);
    products.fold(T::from(0.0), |sum, product| sum + product)
}

#[cfg(test)]
mod tests {
    use nalgebra::{DMatrix, DVector};
    use proptest::prelude::*;

    use super::*;

    /// A positive definite matrix with an envelope, sparse and dense.
    fn matrices() -> impl Strategy<Value = (Symmetric<f64>, DMatrix<f64>)> {
        (1_usize..30, 0_usize..4).prop_flat_map(|(size, band)| {
            let pairs = prop::collection::vec((0..size, 0..size), 0..6);
            let entries = prop::collection::vec(-1.0..1.0_f64, size * size);
            (pairs, entries).prop_map(move |(pairs, entries)| {
                let mut sparse = Symmetric::zero(Envelope::new(size, band, pairs));
                let mut dense = DMatrix::zeros(size, size);
                for row in 0..size {
                    for column in 0..=row {
                        let value = if row == column {
                            size as f64
                        } else {
                            entries[row * size + column]
                        };
                        if sparse.get(row, column).is_some() {
                            sparse.add(row, column, value);
                            dense[(row, column)] = value;
                            dense[(column, row)] = value;
                        }
                    }
                }
                (sparse, dense)
            })
        })
    }

    proptest! {
        #[test]
        fn solutions_and_inverses_are_those_of_dense_matrices((sparse, dense) in matrices()) {
            let size = sparse.size();
            let inverse = dense.clone().try_inverse().expect("dominated by its diagonal");
            let right = DVector::from_fn(size, |row, _| (row as f64).sin());
            let expected = &inverse * &right;
            let factor = sparse.factor();
            let mut found = right.as_slice().to_vec();
            factor.solve(&mut found);
            for (found, expected) in found.iter().zip(expected.iter()) {
                prop_assert!((found - expected).abs() < 1e-12);
            }
            let selected = factor.selected_inverse();
            for row in 0..size {
                for column in 0..size {
                    if let Some(found) = selected.get(row, column) {
                        prop_assert!((found - inverse[(row, column)]).abs() < 1e-12);
                    }
                }
            }
        }
    }

    #[test]
    fn a_long_pair_fills_one_row() {
        let envelope = Envelope::new(1_000, 3, [(2, 700)]);
        let stored = envelope.start[1_000];
        assert_eq!(stored, 4 * 1_000 - 6 + (698 - 3));
        assert!(envelope.place(400, 700).is_some() && envelope.place(400, 701).is_none());
    }
}
