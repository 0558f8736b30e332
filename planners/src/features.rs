//! What an accuracy model is told about a combination (mlmp §4.2.1; docs/method.md §6).
//!
//! All features but the x_i are sums over the NPU layers. They are kept as integers, losses as multiples of
//! 2^-40, so that a sum is the same in whatever order layers were moved: one L has one A(L).

use layerlab_profiles::{Combination, Layer};

use crate::placement::{LayerCountError, Placement};

/// Features beside x_1..x_n.
pub const SUMMED: usize = 7;

const LOSS_UNIT: f64 = (1_u64 << 40) as f64;

/// Layers and losses of which features cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeaturesError {
    /// There are no layers, or more than planners take.
    #[error(transparent)]
    LayerCount(#[from] LayerCountError),
    /// The layer table, the losses and the combination are of different models.
    #[error("there are {given} {what} for {layers} layers")]
    Different {
        /// What there are too many or too few of.
        what: &'static str,
        /// How many there are of them.
        given: usize,
        /// The layers of the model.
        layers: usize,
    },
}

/// What each layer adds to the sums when it runs on the NPU.
#[derive(Clone, Debug)]
pub struct LayerColumns {
    layers: Vec<Sums>,
}

/// Sums over the NPU layers of one placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    npu_layers: u64,
    /// In units of 2^-40.
    single_losses: i64,
    parameter_bytes: u64,
    input_bytes: u64,
    output_bytes: u64,
    additions: u64,
    multiplications: u64,
}

/// A placement on its way through a search, with its sums.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Which layers run on the NPU.
    pub placement: Placement,
    /// The sums over these layers.
    pub sums: Sums,
}

/// The names of the features of a model of `layers` layers, in their order: `x_1` and so on, then the sums.
pub fn names(layers: usize) -> Vec<String> {
    let sums = [
        "npu_layers",
        "mean_single_loss",
        "npu_parameter_bytes",
        "npu_input_bytes",
        "npu_output_bytes",
        "npu_additions",
        "npu_multiplications",
    ];
    let bits = (1..=layers).map(|layer| format!("x_{layer}"));
    bits.chain(sums.map(str::to_owned)).collect()
}

/// The features of one combination, unscaled, in the order of [`names`]: n + 7 numbers.
///
/// `single_losses` is the accuracy loss of each layer alone on the NPU, layer 1 first. The mean loss of no
/// layers is 0.
pub fn features(
    layers: &[Layer],
    single_losses: &[f64],
    combination: &Combination,
) -> Result<Vec<f64>, FeaturesError> {
    let columns = LayerColumns::new(layers, single_losses)?;
    if combination.layers() != layers.len() {
        return Err(FeaturesError::Different {
            what: "places in the combination",
            given: combination.layers(),
            layers: layers.len(),
        });
    }
    let mut row = Vec::with_capacity(layers.len() + SUMMED);
    columns
        .candidate(Placement::of(combination)?)
        .write(&mut row);
    Ok(row)
}

impl LayerColumns {
    /// The columns of a model's layers and their single losses, layer 1 first.
    pub fn new(layers: &[Layer], single_losses: &[f64]) -> Result<LayerColumns, FeaturesError> {
        Placement::all_cpu(layers.len())?;
        if single_losses.len() != layers.len() {
            return Err(FeaturesError::Different {
                what: "single-layer losses",
                given: single_losses.len(),
                layers: layers.len(),
            });
        }
        let column = |(layer, &loss): (&Layer, &f64)| Sums {
            npu_layers: 1,
            single_losses: (loss * LOSS_UNIT).round() as i64,
            parameter_bytes: layer.parameter_bytes.as_bytes(),
            input_bytes: layer.input_bytes.as_bytes(),
            output_bytes: layer.output_bytes.as_bytes(),
            additions: layer.additions,
            multiplications: layer.multiplications,
        };
        Ok(LayerColumns {
            layers: layers.iter().zip(single_losses).map(column).collect(),
        })
    }

    /// `placement` with its sums.
    pub fn candidate(&self, placement: Placement) -> Candidate {
        let mut sums = Sums::default();
        for (index, layer) in self.layers.iter().enumerate() {
            if placement.on_npu(index) {
                sums = sums.plus(layer);
            }
        }
        Candidate { placement, sums }
    }

    /// `from` with the layer at `index`, counted from 0, on the other processor.
    pub fn moved(&self, from: &Candidate, index: usize) -> Candidate {
        let layer = &self.layers[index];
        let sums = if from.placement.on_npu(index) {
            from.sums.minus(layer)
        } else {
            from.sums.plus(layer)
        };
        Candidate {
            placement: from.placement.flipped(index),
            sums,
        }
    }
}

impl Sums {
    fn plus(self, layer: &Sums) -> Sums {
        self.combined(layer, u64::wrapping_add, i64::wrapping_add)
    }

    fn minus(self, layer: &Sums) -> Sums {
        self.combined(layer, u64::wrapping_sub, i64::wrapping_sub)
    }

    /// Wrapping, so that taking away what was added gives what was there, whatever was published.
    fn combined(self, other: &Sums, f: fn(u64, u64) -> u64, g: fn(i64, i64) -> i64) -> Sums {
        Sums {
            npu_layers: f(self.npu_layers, other.npu_layers),
            single_losses: g(self.single_losses, other.single_losses),
            parameter_bytes: f(self.parameter_bytes, other.parameter_bytes),
            input_bytes: f(self.input_bytes, other.input_bytes),
            output_bytes: f(self.output_bytes, other.output_bytes),
            additions: f(self.additions, other.additions),
            multiplications: f(self.multiplications, other.multiplications),
        }
    }

    fn mean_single_loss(&self) -> f64 {
        match self.npu_layers {
            0 => 0.0,
            count => self.single_losses as f64 / (count as f64 * LOSS_UNIT),
        }
    }
}

impl Candidate {
    /// Appends the features, unscaled, in the order of [`names`].
    pub fn write(&self, row: &mut Vec<f64>) {
        let layers = self.placement.layers();
        row.extend((0..layers).map(|index| f64::from(u8::from(self.placement.on_npu(index)))));
        let sums = &self.sums;
        row.extend([
            sums.npu_layers as f64,
            sums.mean_single_loss(),
            sums.parameter_bytes as f64,
            sums.input_bytes as f64,
            sums.output_bytes as f64,
            sums.additions as f64,
            sums.multiplications as f64,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layerlab_profiles::Bytes;

    fn layer(number: u32) -> Layer {
        let unit = u64::from(number);
        Layer {
            number,
            name: String::new(),
            operators: Vec::new(),
            parameter_bytes: Bytes::from_bytes(unit),
            input_bytes: Bytes::from_bytes(10 * unit),
            output_bytes: Bytes::from_bytes(100 * unit),
            additions: 1_000 * unit,
            multiplications: 10_000 * unit,
        }
    }

    #[test]
    fn features_are_those_of_the_papers() {
        let layers = [1, 2, 3].map(layer);
        let of = |text: &str| {
            let combination = text.parse().expect("zeros and ones");
            features(&layers, &[0.25, 0.5, -0.125], &combination).expect("three layers")
        };
        assert_eq!(of("000"), [0.0; 10]);
        let x = [
            1.0, 0.0, 1.0, 2.0, 0.0625, 4.0, 40.0, 400.0, 4_000.0, 40_000.0,
        ];
        assert_eq!(of("101"), x);
        assert_eq!(names(3).len(), x.len());
        assert!(features(&layers, &[0.1], &"101".parse().expect("three")).is_err());
        assert!(features(&layers, &[0.1; 3], &"10".parse().expect("two")).is_err());
    }

    #[test]
    fn sums_do_not_depend_on_the_way() {
        let layers: Vec<Layer> = (1..=40).map(layer).collect();
        let losses: Vec<f64> = (1..=40).map(|l| 1.0 / f64::from(l * l) - 0.01).collect();
        let columns = LayerColumns::new(&layers, &losses).expect("forty layers");
        let mut candidate = columns.candidate(Placement::all_npu(40).expect("few layers"));
        for step in 0..1_000 {
            candidate = columns.moved(&candidate, step * step % 40);
            assert_eq!(candidate.sums, columns.candidate(candidate.placement).sums);
        }
    }
}
