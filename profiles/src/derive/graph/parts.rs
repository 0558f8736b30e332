//! Which visits can be compared: those that segments connect.

use std::collections::{BTreeMap, BTreeSet};

use super::cell::Cell;

/// The parts into which the visits fall that no segment connects, numbered from 0.
pub(super) struct Parts {
    pub(super) count: usize,
    /// In which part each visit is.
    pub(super) of_visit: Vec<usize>,
    /// In which part each segment is.
    pub(super) of_segment: Vec<usize>,
    /// How many segments each part has.
    pub(super) segments: Vec<f64>,
}

impl Parts {
    pub(super) fn of(cells: &[Cell], segments: usize, visits: usize) -> Parts {
        let mut joined: Vec<usize> = (0..visits).collect();
        fn root(joined: &mut [usize], mut visit: usize) -> usize {
            while joined[visit] != visit {
                joined[visit] = joined[joined[visit]];
                visit = joined[visit];
            }
            visit
        }
        let mut first_of: Vec<Option<usize>> = vec![None; segments];
        for cell in cells {
            let first = *first_of[cell.segment].get_or_insert(cell.visit);
            let (one, other) = (root(&mut joined, first), root(&mut joined, cell.visit));
            joined[one] = other;
        }
        let roots: Vec<usize> = (0..visits).map(|visit| root(&mut joined, visit)).collect();
        let numbers: BTreeMap<usize, usize> = (roots.iter().copied().collect::<BTreeSet<_>>())
            .into_iter()
            .zip(0..)
            .collect();
        let of_visit: Vec<usize> = roots.iter().map(|root| numbers[root]).collect();
        let of_segment: Vec<usize> = first_of
            .into_iter()
            .map(|first| first.map_or(0, |visit| of_visit[visit]))
            .collect();
        let mut of_parts = vec![0.0; numbers.len()];
        for &part in &of_segment {
            of_parts[part] += 1.0;
        }
        Parts {
            count: numbers.len(),
            of_visit,
            of_segment,
            segments: of_parts,
        }
    }

    /// The mean that a value of each visit has over the visits of its part, for each visit.
    pub(super) fn means(&self, values: &[f64]) -> Vec<f64> {
        let (mut sums, mut counts) = (vec![0.0; self.count], vec![0.0; self.count]);
        for (value, &part) in values.iter().zip(&self.of_visit) {
            sums[part] += value;
            counts[part] += 1.0;
        }
        let of_visit = self.of_visit.iter();
        of_visit.map(|&part| sums[part] / counts[part]).collect()
    }
}
