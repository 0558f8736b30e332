//! Regression trees laid out for speed: every tree complete and of one depth, so that walking one has no
//! branches to mispredict, and rows walk it in turns.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Rows;

/// Rows that walk a tree before the next tree is taken: few enough to stay in the nearest cache.
const BLOCK: usize = 64;

/// Rows below which a second core is not worth waking.
const PARALLEL_FROM: usize = 512;

/// A sum of regression trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forest {
    base: f64,
    depth: usize,
    /// For each tree 2^depth - 1 splits, the children of split i being 2i + 1 and 2i + 2.
    splits: Vec<Split>,
    /// For each tree 2^depth leaves.
    leaves: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Split {
    feature: u32,
    /// Values below go left.
    threshold: f64,
}

/// One regression tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// What rows that come here add to the prediction.
    Leaf(f64),
    /// Rows go different ways.
    Split {
        /// The feature, counted from 0.
        feature: usize,
        /// Rows with a smaller value of the feature go left.
        threshold: f64,
        /// Of smaller values.
        left: Box<Tree>,
        /// Of other values.
        right: Box<Tree>,
    },
}

impl Forest {
    /// The forest that predicts `base` plus what each of the trees says; none deeper than `depth`, which is 1
    /// to 8.
    ///
    /// # Panics
    /// When a tree is deeper.
    pub(super) fn new(base: f64, depth: usize, trees: &[Tree]) -> Forest {
        let mut forest = Forest {
            base,
            depth,
            splits: Vec::new(),
            leaves: Vec::new(),
        };
        for tree in trees {
            let begin = forest.splits.len();
            let leaves = forest.leaves.len();
            let unused = Split {
                feature: 0,
                threshold: f64::INFINITY,
            };
            forest.splits.resize(begin + (1 << depth) - 1, unused);
            forest.leaves.resize(leaves + (1 << depth), 0.0);
            fill(
                tree,
                0,
                &mut forest.splits[begin..],
                &mut forest.leaves[leaves..],
            );
        }
        forest
    }

    /// The prediction that no tree has changed yet.
    pub fn base(&self) -> f64 {
        self.base
    }

    /// How many trees there are.
    pub fn len(&self) -> usize {
        self.leaves.len() >> self.depth
    }

    /// Whether there are no trees.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// The trees, each complete.
    pub fn trees(&self) -> Vec<Tree> {
        let (splits, leaves) = (self.splits.chunks((1 << self.depth) - 1), 1 << self.depth);
        let pairs = splits.zip(self.leaves.chunks(leaves));
        pairs
            .map(|(splits, leaves)| read(0, splits, leaves))
            .collect()
    }

    /// The first `trees` trees alone.
    pub(super) fn first(&self, trees: usize) -> Forest {
        let trees = trees.min(self.len());
        Forest {
            base: self.base,
            depth: self.depth,
            splits: self.splits[..trees * ((1 << self.depth) - 1)].to_vec(),
            leaves: self.leaves[..trees << self.depth].to_vec(),
        }
    }

    pub(super) fn predict(&self, rows: &Rows) -> Vec<f64> {
        let mut predictions = vec![self.base; rows.len()];
        let blocks =
            |(sums, rows): (&mut [f64], &[f64])| self.add(rows, rows.len() / sums.len(), sums);
        let values = rows.values().par_chunks(BLOCK * rows.columns());
        if rows.len() >= PARALLEL_FROM {
            predictions
                .par_chunks_mut(BLOCK)
                .zip(values)
                .for_each(blocks);
        } else {
            let values = rows.values().chunks(BLOCK * rows.columns());
            predictions.chunks_mut(BLOCK).zip(values).for_each(blocks);
        }
        predictions
    }

    /// The predictions after each of the given numbers of trees, which ascend.
    pub(super) fn predict_stages(&self, rows: &Rows, stages: &[usize]) -> Vec<Vec<f64>> {
        stages
            .iter()
            .map(|&trees| self.first(trees).predict(rows))
            .collect()
    }

    /// Adds what the trees say about a block of rows of `columns` features.
    fn add(&self, rows: &[f64], columns: usize, sums: &mut [f64]) {
        // With the depth known to the compiler the walk is straight code.
        match self.depth {
            1 => self.walk::<1>(rows, columns, sums),
            2 => self.walk::<2>(rows, columns, sums),
            3 => self.walk::<3>(rows, columns, sums),
            4 => self.walk::<4>(rows, columns, sums),
            5 => self.walk::<5>(rows, columns, sums),
            6 => self.walk::<6>(rows, columns, sums),
            7 => self.walk::<7>(rows, columns, sums),
            _ => self.walk::<8>(rows, columns, sums),
        }
    }

    fn walk<const DEPTH: usize>(&self, rows: &[f64], columns: usize, sums: &mut [f64]) {
        let trees = self.splits.chunks_exact((1 << DEPTH) - 1);
        for (splits, leaves) in trees.zip(self.leaves.chunks_exact(1 << DEPTH)) {
            for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(columns)) {
                let mut place = 0;
                for _ in 0..DEPTH {
                    let split = splits[place];
                    let right = row[split.feature as usize] >= split.threshold;
                    place = 2 * place + 1 + usize::from(right);
                }
                *sum += leaves[place - splits.len()];
            }
        }
    }
}

/// Writes a tree below the split at `place`; a leaf above the lowest level is repeated in all below it.
fn fill(tree: &Tree, place: usize, splits: &mut [Split], leaves: &mut [f64]) {
    let count = leaves.len() - 1;
    match tree {
        Tree::Leaf(value) if place >= count => leaves[place - count] = *value,
        Tree::Leaf(_) => {
            fill(tree, 2 * place + 1, splits, leaves);
            fill(tree, 2 * place + 2, splits, leaves);
        }
        Tree::Split {
            feature,
            threshold,
            left,
            right,
        } => {
            assert!(place < count, "no tree is deeper than the forest");
            splits[place] = Split {
                feature: *feature as u32,
                threshold: *threshold,
            };
            fill(left, 2 * place + 1, splits, leaves);
            fill(right, 2 * place + 2, splits, leaves);
        }
    }
}

fn read(place: usize, splits: &[Split], leaves: &[f64]) -> Tree {
    match splits.get(place) {
        Some(split) => Tree::Split {
            feature: split.feature as usize,
            threshold: split.threshold,
            left: Box::new(read(2 * place + 1, splits, leaves)),
            right: Box::new(read(2 * place + 2, splits, leaves)),
        },
        None => Tree::Leaf(leaves[place - splits.len()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_tree_predicts_as_it_reads() {
        let lopsided = Tree::Split {
            feature: 1,
            threshold: 0.5,
            left: Box::new(Tree::Leaf(1.0)),
            right: Box::new(Tree::Split {
                feature: 0,
                threshold: 2.0,
                left: Box::new(Tree::Leaf(10.0)),
                right: Box::new(Tree::Leaf(100.0)),
            }),
        };
        let forest = Forest::new(0.25, 3, &[lopsided, Tree::Leaf(0.5)]);
        let mut rows = Rows::new(2);
        [[9.0, 0.0], [1.0, 0.5], [2.0, 0.5]]
            .iter()
            .for_each(|row| rows.push(row));
        assert_eq!(forest.predict(&rows), [1.75, 10.75, 100.75]);
        let again = Forest::new(forest.base(), 3, &forest.trees());
        assert_eq!(again, forest);
    }
}
