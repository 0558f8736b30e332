//! Loss(L) by a trained model's parameters, the slow and plain way: features summed in floating point from
//! the tables, scaled by ranges found again in the training rows, trees walked node by node.

use layerlab_profiles::{Layer, Placement};

use super::Evidence;
use crate::accuracy::AccuracyModel;
use crate::regress::{Mlp, Regressor, Tree};

pub(super) fn loss(combination: &Placement, evidence: &Evidence, model: &AccuracyModel) -> f64 {
    let raw = features(combination, evidence);
    let training: Vec<Vec<f64>> = evidence
        .accuracy
        .lessons()
        .into_iter()
        .map(|row| features(&row.combination, evidence))
        .collect();
    let scaled: Vec<f64> = raw
        .iter()
        .enumerate()
        .map(|(column, value)| {
            let least = training
                .iter()
                .map(|row| row[column])
                .fold(f64::INFINITY, f64::min);
            let most = training
                .iter()
                .map(|row| row[column])
                .fold(f64::NEG_INFINITY, f64::max);
            // A sum of losses in another order may differ from a constant one in its last digit.
            if most - least > 1e-12 * most.abs() {
                (value - least) / (most - least)
            } else {
                0.0
            }
        })
        .collect();
    match model.regressor() {
        Regressor::Ridge(ridge) => {
            let products = scaled.iter().zip(ridge.coefficients()).map(|(x, w)| x * w);
            products.sum::<f64>() + ridge.intercept()
        }
        Regressor::Mlp(mlp) => network(mlp, scaled),
        Regressor::Gbrt(forest) => {
            let trees = forest.trees();
            forest.base() + trees.iter().map(|tree| walk(tree, &scaled)).sum::<f64>()
        }
    }
}

/// The features of docs/method.md §6.
fn features(combination: &Placement, evidence: &Evidence) -> Vec<f64> {
    let layers = evidence.layers;
    let others = 1..evidence.processors.len();
    let is_on =
        |processor: usize, index: usize| usize::from(combination.processors()[index]) == processor;
    let mut row = Vec::new();
    for processor in others.clone() {
        let one = |index| if is_on(processor, index) { 1.0 } else { 0.0 };
        row.extend((0..layers.len()).map(one));
    }
    for processor in others {
        let there: Vec<usize> = (0..layers.len())
            .filter(|&index| is_on(processor, index))
            .collect();
        let sum = |of: &dyn Fn(&Layer) -> u64| -> f64 {
            there.iter().map(|&index| of(&layers[index]) as f64).sum()
        };
        let alone = &evidence.accuracy.single_losses()[(processor - 1) * layers.len()..];
        let losses: f64 = there.iter().map(|&index| alone[index]).sum();
        let count = there.len() as f64;
        row.push(count);
        row.push(if count > 0.0 { losses / count } else { 0.0 });
        row.push(sum(&|layer| layer.parameter_bytes.as_bytes()));
        row.push(sum(&|layer| layer.input_bytes.as_bytes()));
        row.push(sum(&|layer| layer.output_bytes.as_bytes()));
        row.push(sum(&|layer| layer.additions));
        row.push(sum(&|layer| layer.multiplications));
    }
    row
}

fn network(mlp: &Mlp, inputs: Vec<f64>) -> f64 {
    let [first, second, last] = mlp.neurons();
    let layer = |neurons: &[(Vec<f64>, f64)], inputs: &[f64]| -> Vec<f64> {
        let one = |(weights, bias): &(Vec<f64>, f64)| {
            weights.iter().zip(inputs).map(|(w, x)| w * x).sum::<f64>() + bias
        };
        neurons.iter().map(one).collect()
    };
    let relu = |values: Vec<f64>| -> Vec<f64> { values.into_iter().map(|v| v.max(0.0)).collect() };
    let inputs = relu(layer(&first, &inputs));
    let inputs = relu(layer(&second, &inputs));
    layer(&last, &inputs).iter().sum()
}

/// What a tree says.
fn walk(tree: &Tree, row: &[f64]) -> f64 {
    match tree {
        Tree::Leaf(value) => *value,
        Tree::Split {
            feature,
            threshold,
            left,
            right,
        } => {
            let below = row[*feature] < *threshold;
            walk(if below { left } else { right }, row)
        }
    }
}
