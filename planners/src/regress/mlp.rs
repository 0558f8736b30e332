//! A fully connected neural network of two hidden layers with ReLU and an L2 penalty on the weights
//! (mlmp §4.2.1), trained on all rows at once.

use nalgebra::{DMatrix, DMatrixView, DVector, DVectorView};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::lbfgs::{Stop, minimise};
use super::{Rows, TrainError, refuse_unless_positive};

/// How to train a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MlpSettings {
    /// Neurons of the first and the second hidden layer.
    pub hidden: (usize, usize),
    /// The factor of the squared weights in the loss, above 0.
    pub penalty: f64,
    /// Steps of L-BFGS at most.
    pub iterations: usize,
    /// Of the weights to start from.
    pub seed: u64,
}

/// A trained network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mlp {
    shape: Shape,
    /// For each of the three layers its weights, inputs x outputs by column, then its biases.
    parameters: Vec<f64>,
}

/// Features, neurons of the hidden layers, and the one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Shape([usize; 4]);

impl Shape {
    fn parameters(self) -> usize {
        (0..3).map(|layer| self.layer_parameters(layer)).sum()
    }

    fn layer_parameters(self, layer: usize) -> usize {
        (self.0[layer] + 1) * self.0[layer + 1]
    }

    /// Where the parameters of a layer begin.
    fn begin(self, layer: usize) -> usize {
        (0..layer).map(|before| self.layer_parameters(before)).sum()
    }

    fn weights(self, parameters: &[f64], layer: usize) -> DMatrixView<'_, f64> {
        let (inputs, outputs) = (self.0[layer], self.0[layer + 1]);
        let begin = self.begin(layer);
        DMatrixView::from_slice(
            &parameters[begin..begin + inputs * outputs],
            inputs,
            outputs,
        )
    }

    fn biases(self, parameters: &[f64], layer: usize) -> DVectorView<'_, f64> {
        let (inputs, outputs) = (self.0[layer], self.0[layer + 1]);
        let begin = self.begin(layer) + inputs * outputs;
        DVectorView::from_slice(&parameters[begin..begin + outputs], outputs)
    }

    /// Uniform weights and biases within sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010).
    fn start(self, seed: u64) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut parameters = Vec::with_capacity(self.parameters());
        for layer in 0..3 {
            let bound = (6.0 / (self.0[layer] + self.0[layer + 1]) as f64).sqrt();
            for _ in 0..self.layer_parameters(layer) {
                parameters.push(random.random_range(-bound..bound));
            }
        }
        parameters
    }

    /// The outputs of the layer for all rows of `inputs`, before ReLU.
    fn forward(self, parameters: &[f64], layer: usize, inputs: &DMatrix<f64>) -> DMatrix<f64> {
        let mut outputs = inputs * self.weights(parameters, layer);
        let biases = self.biases(parameters, layer);
        for (mut column, &bias) in outputs.column_iter_mut().zip(biases.iter()) {
            column.add_scalar_mut(bias);
        }
        outputs
    }
}

/// The loss |y - f(x)|² / 2 + penalty |w|² / 2, per row, and its gradient.
struct TrainingLoss {
    shape: Shape,
    x: DMatrix<f64>,
    y: DVector<f64>,
    penalty: f64,
}

impl TrainingLoss {
    fn evaluate(&self, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        let rows = self.y.len() as f64;
        let shape = self.shape;
        let first = shape.forward(parameters, 0, &self.x).map(relu);
        let second = shape.forward(parameters, 1, &first).map(relu);
        let mut error = shape.forward(parameters, 2, &second);
        error.column_mut(0).axpy(-1.0, &self.y, 1.0);
        let mut loss = error.norm_squared() / (2.0 * rows);
        for layer in 0..3 {
            let squares = shape.weights(parameters, layer).norm_squared();
            loss += self.penalty * squares / (2.0 * rows);
        }
        error /= rows;
        let penalty = self.penalty / rows;
        let mut back = error;
        for (layer, inputs) in [(2, &second), (1, &first), (0, &self.x)] {
            let weights = shape.weights(parameters, layer);
            let begin = shape.begin(layer);
            let of_weights = inputs.tr_mul(&back) + weights * penalty;
            let count = of_weights.len();
            gradient[begin..begin + count].copy_from_slice(of_weights.as_slice());
            let biases = &mut gradient[begin + count..][..back.ncols()];
            for (bias, column) in biases.iter_mut().zip(back.column_iter()) {
                *bias = column.sum();
            }
            if layer > 0 {
                // No derivative passes where ReLU gave 0.
                back = (back * weights.transpose()).zip_map(inputs, |slope, output| {
                    if output > 0.0 { slope } else { 0.0 }
                });
            }
        }
        loss
    }
}

impl Mlp {
    pub(super) fn train(
        settings: &MlpSettings,
        rows: &Rows,
        targets: &[f64],
    ) -> Result<Mlp, TrainError> {
        refuse_unless_positive("the penalty", settings.penalty)?;
        let (first, second) = settings.hidden;
        if first == 0 || second == 0 {
            return Err(TrainError::Setting {
                setting: "the number of neurons of a hidden layer",
                value: 0.0,
                range: "at least 1",
            });
        }
        let shape = Shape([rows.columns(), first, second, 1]);
        let loss = TrainingLoss {
            shape,
            x: matrix(rows),
            y: DVector::from_column_slice(targets),
            penalty: settings.penalty,
        };
        let stop = Stop {
            iterations: settings.iterations,
            gradient: 1e-6,
        };
        let start = shape.start(settings.seed);
        let parameters = minimise(start, stop, |x, gradient| loss.evaluate(x, gradient));
        Ok(Mlp { shape, parameters })
    }

    /// The weights and biases of the layers: for each layer, for each of its neurons, one weight for each
    /// input and then the bias. ReLU follows the first two layers.
    pub fn neurons(&self) -> [Vec<(Vec<f64>, f64)>; 3] {
        [0, 1, 2].map(|layer| {
            let weights = self.shape.weights(&self.parameters, layer);
            let biases = self.shape.biases(&self.parameters, layer);
            let columns = weights.column_iter().zip(biases.iter());
            columns
                .map(|(column, &bias)| (column.iter().copied().collect(), bias))
                .collect()
        })
    }

    pub(super) fn predict(&self, rows: &Rows) -> Vec<f64> {
        let first = self
            .shape
            .forward(&self.parameters, 0, &matrix(rows))
            .map(relu);
        let second = self.shape.forward(&self.parameters, 1, &first).map(relu);
        let output = self.shape.forward(&self.parameters, 2, &second);
        output.iter().copied().collect()
    }
}

fn matrix(rows: &Rows) -> DMatrix<f64> {
    DMatrix::from_row_slice(rows.len(), rows.columns(), rows.values())
}

fn relu(value: f64) -> f64 {
    value.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let shape = Shape([3, 4, 2, 1]);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let loss = TrainingLoss {
            shape,
            x: DMatrix::from_fn(7, 3, |_, _| random.random_range(-1.0..1.0)),
            y: DVector::from_fn(7, |_, _| random.random_range(-1.0..1.0)),
            penalty: 0.3,
        };
        let parameters = shape.start(5);
        let mut gradient = vec![0.0; shape.parameters()];
        loss.evaluate(&parameters, &mut gradient);
        let mut unused = gradient.clone();
        for place in 0..parameters.len() {
            let mut at = |shift: f64| {
                let mut moved = parameters.clone();
                moved[place] += shift;
                loss.evaluate(&moved, &mut unused)
            };
            let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!((slope - gradient[place]).abs() < 1e-7, "{place}");
        }
    }
}
