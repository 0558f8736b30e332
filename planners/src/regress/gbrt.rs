//! Gradient-boosted regression trees (mlmp §4.2.1), grown by forust and kept in this crate's own layout.
//!
//! forust grows trees by the second-order gain. For squared error with no penalty that is the reduction of
//! variance, by which scikit-learn grows its trees; `max_leaves` must be set for its allocations to stay small.

use forust_ml::objective::ObjectiveType;
use forust_ml::tree::Tree as Grown;
use forust_ml::{GradientBooster, Matrix};
use serde::{Deserialize, Serialize};

use super::forest::{Forest, Tree};
use super::{Rows, TrainError, refuse_unless_positive};

/// Deeper trees than this learn 250 rows by heart.
const DEEPEST: usize = 8;

/// How to train boosted trees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GbrtSettings {
    /// How many trees, at least 1.
    pub trees: usize,
    /// Splits from root to leaf at most: 1 to 8.
    pub depth: usize,
    /// By what each tree's answer is multiplied: above 0, at most 1.
    pub learning_rate: f64,
}

pub(super) fn train(
    settings: &GbrtSettings,
    rows: &Rows,
    targets: &[f64],
) -> Result<Forest, TrainError> {
    refuse_odd(settings)?;
    let by_column: Vec<f64> = (0..rows.columns())
        .flat_map(|column| rows.iter().map(move |row| row[column]))
        .collect();
    let matrix = Matrix::new(&by_column, rows.len(), rows.columns());
    let mut booster = GradientBooster::default()
        .set_objective_type(ObjectiveType::SquaredLoss)
        .set_iterations(settings.trees)
        .set_learning_rate(settings.learning_rate as f32)
        .set_max_depth(settings.depth)
        .set_max_leaves(1 << settings.depth)
        .set_l2(0.0)
        // Every training row may have a cut of its own, as in scikit-learn's exact search.
        .set_nbins(u16::try_from(rows.len() + 2).unwrap_or(u16::MAX).max(256))
        .set_min_leaf_weight(1.0)
        .set_allow_missing_splits(false)
        // Folds and grid points run beside each other already.
        .set_parallel(false);
    booster
        .fit_unweighted(&matrix, targets, None)
        .map_err(|error| TrainError::Trees(error.to_string()))?;
    let all: Vec<&[f64]> = rows.iter().collect();
    let trees: Vec<Tree> = booster
        .trees
        .iter()
        .map(|tree| copied(tree, 0, &all))
        .collect();
    Ok(Forest::new(booster.base_score, settings.depth, &trees))
}

fn refuse_odd(settings: &GbrtSettings) -> Result<(), TrainError> {
    refuse_unless_positive("the number of trees", settings.trees as f64)?;
    refuse_unless_positive("the learning rate", settings.learning_rate)?;
    if settings.learning_rate > 1.0 {
        return Err(TrainError::Setting {
            setting: "the learning rate",
            value: settings.learning_rate,
            range: "at most 1",
        });
    }
    if !(1..=DEEPEST).contains(&settings.depth) {
        return Err(TrainError::Setting {
            setting: "the depth of the trees",
            value: settings.depth as f64,
            range: "1 to 8",
        });
    }
    Ok(())
}

/// Above the middle between two training values, as a part of their distance, lies a split. Features are
/// scaled counts and sums, of which many lie exactly in the middle: they go left, as in scikit-learn, and not
/// where rounding takes them.
const ABOVE_MIDDLE: f64 = 1e-6;

/// The tree below the node at `place`, to which these training rows come.
///
/// forust splits at the least value that goes right. Here, as in scikit-learn, a split is halfway between that
/// and the greatest that goes left: new rows between the two go with the nearer one.
fn copied(tree: &Grown, place: usize, rows: &[&[f64]]) -> Tree {
    let node = &tree.nodes[place];
    if node.is_leaf {
        return Tree::Leaf(f64::from(node.weight_value));
    }
    let feature = node.split_feature;
    let (left, right): (Vec<&[f64]>, Vec<&[f64]>) =
        rows.iter().partition(|row| row[feature] < node.split_value);
    let values = |rows: &[&[f64]]| rows.iter().map(|row| row[feature]).collect::<Vec<f64>>();
    let below = values(&left).into_iter().fold(f64::NEG_INFINITY, f64::max);
    let above = values(&right).into_iter().fold(f64::INFINITY, f64::min);
    let middle = below + (above - below) * (0.5 + ABOVE_MIDDLE);
    Tree::Split {
        feature,
        // There is no middle without rows on both sides, and none between neighbouring numbers.
        threshold: if middle.is_finite() && middle > below {
            middle
        } else {
            node.split_value
        },
        left: Box::new(copied(tree, node.left_child, &left)),
        right: Box::new(copied(tree, node.right_child, &right)),
    }
}
