//! What an accuracy model is told about a placement (mlmp §4.2.1; docs/method.md §6), for each processor but
//! processor 0: which layers it runs, and sums over them.
//!
//! Sums are kept as integers, losses as multiples of 2^-40, so that a sum is the same in whatever order layers
//! were moved: one L has one A(L).

use layerlab_profiles::{Layer, Placement};
use serde::{Deserialize, Serialize};

use crate::placement::{MOST_PROCESSORS, PackedPlacement, PlacementLimitError};

/// Features of a processor beside x_1..x_n.
pub const SUMMED: usize = 7;

const LOSS_UNIT: f64 = (1_u64 << 40) as f64;

/// Layers and losses of which features cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeaturesError {
    /// There are more layers or processors than planners take, or too few.
    #[error(transparent)]
    Limit(#[from] PlacementLimitError),
    /// The layer table, the losses and the placement are of different models or processors.
    #[error("there are {given} {what} for {layers} layers")]
    Different {
        /// What there are too many or too few of.
        what: &'static str,
        /// How many there are of them.
        given: usize,
        /// The layers of the model.
        layers: usize,
    },
    /// The placement names a processor of which there are no losses.
    #[error(
        "the placement names processor {processor}, and there are losses of {processors}, counted from 0"
    )]
    NoSuchProcessor {
        /// The processor, counted from 0.
        processor: usize,
        /// How many processors there are, processor 0 included.
        processors: usize,
    },
}

/// What each layer adds to the sums of each processor but processor 0 when it runs there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LayerColumns {
    layers: usize,
    /// Of processor 1, layer 1 first, then of processor 2, and so on.
    columns: Vec<LayerSums>,
}

/// Sums over the layers that a placement has on one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerSums {
    layers: u64,
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
    /// Which layer runs on which processor.
    pub placement: PackedPlacement,
    /// The sums over the layers on processor 1, on processor 2, and so on.
    pub sums: [LayerSums; MOST_PROCESSORS - 1],
}

/// The names of the features of a model of `layers` layers, in their order: for each processor but processor
/// 0 `x_1` and so on, then for each its sums. With more than two processors each name ends with the processor,
/// such as `x_1_2`.
pub fn names(layers: usize, processors: usize) -> Vec<String> {
    let sums = [
        "npu_layers",
        "mean_single_loss",
        "npu_parameter_bytes",
        "npu_input_bytes",
        "npu_output_bytes",
        "npu_additions",
        "npu_multiplications",
    ];
    let ending = |processor| match processors {
        2 => String::new(),
        _ => format!("_{processor}"),
    };
    let of_layer = |processor, layer| format!("x_{layer}{}", ending(processor));
    let of_sum = |processor, sum| format!("{sum}{}", ending(processor));
    let bits = (1..processors).flat_map(|p| (1..=layers).map(move |layer| of_layer(p, layer)));
    let sums = (1..processors).flat_map(|p| sums.map(|sum| of_sum(p, sum)));
    bits.chain(sums).collect()
}

/// The features of one placement, unscaled, in the order of [`names`]: n + 7 numbers for each processor but
/// processor 0.
///
/// `single_losses` is the accuracy loss of each layer alone on processor 1, layer 1 first, then on processor 2,
/// and so on. The mean loss of no layers is 0.
pub fn features(
    layers: &[Layer],
    single_losses: &[f64],
    combination: &Placement,
) -> Result<Vec<f64>, FeaturesError> {
    let columns = LayerColumns::new(layers, single_losses)?;
    let mut row = Vec::with_capacity(columns.width());
    columns.write(&columns.candidate_of(combination)?, &mut row);
    Ok(row)
}

impl LayerColumns {
    /// The columns of a model's layers and their single losses: of each layer on processor 1, layer 1 first,
    /// then on processor 2, and so on.
    pub fn new(layers: &[Layer], single_losses: &[f64]) -> Result<LayerColumns, FeaturesError> {
        let count = layers.len();
        PackedPlacement::all_cpu(count)?;
        if single_losses.is_empty() || !single_losses.len().is_multiple_of(count) {
            return Err(FeaturesError::Different {
                what: "single-layer losses",
                given: single_losses.len(),
                layers: count,
            });
        }
        PlacementLimitError::refuse_processors(1 + single_losses.len() / count)?;
        let column = |(layer, &loss): (&Layer, &f64)| LayerSums {
            layers: 1,
            single_losses: (loss * LOSS_UNIT).round() as i64,
            parameter_bytes: layer.parameter_bytes.as_bytes(),
            input_bytes: layer.input_bytes.as_bytes(),
            output_bytes: layer.output_bytes.as_bytes(),
            additions: layer.additions,
            multiplications: layer.multiplications,
        };
        let all = layers.iter().cycle().zip(single_losses);
        Ok(LayerColumns {
            layers: count,
            columns: all.map(column).collect(),
        })
    }

    /// How many processors there are, processor 0 included.
    pub fn processors(&self) -> usize {
        1 + self.columns.len() / self.layers
    }

    /// How many features a placement has.
    pub fn width(&self) -> usize {
        (self.processors() - 1) * (self.layers + SUMMED)
    }

    /// `placement` with its sums.
    pub fn candidate(&self, placement: PackedPlacement) -> Candidate {
        let mut sums = [LayerSums::default(); MOST_PROCESSORS - 1];
        for index in 0..self.layers {
            let here = placement.processor(index);
            if here > 0 {
                sums[here - 1] = sums[here - 1].plus(self.column(index, here));
            }
        }
        Candidate { placement, sums }
    }

    /// The placement that a profile writes so, with its sums.
    pub fn candidate_of(&self, combination: &Placement) -> Result<Candidate, FeaturesError> {
        if combination.layers() != self.layers {
            return Err(FeaturesError::Different {
                what: "places in the combination",
                given: combination.layers(),
                layers: self.layers,
            });
        }
        let processors = self.processors();
        let mut named = combination.processors().iter().map(|&p| usize::from(p));
        if let Some(processor) = named.find(|&processor| processor >= processors) {
            return Err(FeaturesError::NoSuchProcessor {
                processor,
                processors,
            });
        }
        Ok(self.candidate(PackedPlacement::of(combination)?))
    }

    /// `from` with the layer at `index` on the processor `to`, both counted from 0.
    pub fn moved(&self, from: &Candidate, index: usize, to: usize) -> Candidate {
        let here = from.placement.processor(index);
        let mut sums = from.sums;
        if here > 0 {
            sums[here - 1] = sums[here - 1].minus(self.column(index, here));
        }
        if to > 0 {
            sums[to - 1] = sums[to - 1].plus(self.column(index, to));
        }
        Candidate {
            placement: from.placement.placed(index, to),
            sums,
        }
    }

    /// Appends the features, unscaled, in the order of [`names`].
    pub fn write(&self, candidate: &Candidate, row: &mut Vec<f64>) {
        for processor in 1..self.processors() {
            let is_there = |index| candidate.placement.processor(index) == processor;
            row.extend((0..self.layers).map(|index| f64::from(u8::from(is_there(index)))));
        }
        for sums in &candidate.sums[..self.processors() - 1] {
            row.extend([
                sums.layers as f64,
                sums.mean_single_loss(),
                sums.parameter_bytes as f64,
                sums.input_bytes as f64,
                sums.output_bytes as f64,
                sums.additions as f64,
                sums.multiplications as f64,
            ]);
        }
    }

    fn column(&self, index: usize, processor: usize) -> &LayerSums {
        &self.columns[(processor - 1) * self.layers + index]
    }
}

impl LayerSums {
    fn plus(self, layer: &LayerSums) -> LayerSums {
        self.combined(layer, u64::wrapping_add, i64::wrapping_add)
    }

    fn minus(self, layer: &LayerSums) -> LayerSums {
        self.combined(layer, u64::wrapping_sub, i64::wrapping_sub)
    }

    /// Wrapping, so that taking away what was added gives what was there, whatever was published.
    fn combined(
        self,
        other: &LayerSums,
        f: fn(u64, u64) -> u64,
        g: fn(i64, i64) -> i64,
    ) -> LayerSums {
        LayerSums {
            layers: f(self.layers, other.layers),
            single_losses: g(self.single_losses, other.single_losses),
            parameter_bytes: f(self.parameter_bytes, other.parameter_bytes),
            input_bytes: f(self.input_bytes, other.input_bytes),
            output_bytes: f(self.output_bytes, other.output_bytes),
            additions: f(self.additions, other.additions),
            multiplications: f(self.multiplications, other.multiplications),
        }
    }

    fn mean_single_loss(&self) -> f64 {
        match self.layers {
            0 => 0.0,
            count => self.single_losses as f64 / (count as f64 * LOSS_UNIT),
        }
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
            model_input_bytes: Bytes::ZERO,
            model_output_bytes: Bytes::ZERO,
            shortcuts: Vec::new(),
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
        assert_eq!(names(3, 2).len(), x.len());
        assert_eq!(names(3, 2)[2..5], ["x_3", "npu_layers", "mean_single_loss"]);
        assert!(features(&layers, &[0.1], &"101".parse().expect("three")).is_err());
        assert!(features(&layers, &[0.1; 3], &"10".parse().expect("two")).is_err());
    }

    #[test]
    fn with_three_processors_each_but_the_first_has_features_of_its_own() {
        let layers = [1, 2, 3].map(layer);
        let losses = [0.25, 0.5, -0.125, 0.5, 0.25, 0.0];
        let row = features(&layers, &losses, &"201".parse().expect("digits")).expect("3 layers");
        let names = names(3, 3);
        assert_eq!(row.len(), names.len());
        let of = |name: &str| row[names.iter().position(|n| n == name).expect(name)];
        assert_eq!([of("x_3_1"), of("x_1_2"), of("x_1_1")], [1.0, 1.0, 0.0]);
        assert_eq!(of("mean_single_loss_1"), -0.125);
        assert_eq!(of("mean_single_loss_2"), 0.5);
        assert_eq!(
            [of("npu_additions_1"), of("npu_additions_2")],
            [3_000.0, 1_000.0]
        );
        let strange = features(&layers, &losses[..3], &"201".parse().expect("digits"));
        let error = strange.expect_err("losses of two processors");
        assert_eq!(
            error.to_string(),
            "the placement names processor 2, and there are losses of 2, counted from 0"
        );
        assert!(features(&layers, &[0.1; 12], &"201".parse().expect("digits")).is_err());
    }

    #[test]
    fn sums_do_not_depend_on_the_way() {
        let layers: Vec<Layer> = (1..=40).map(layer).collect();
        let losses: Vec<f64> = (1..=80).map(|l| 1.0 / f64::from(l * l) - 0.01).collect();
        let columns = LayerColumns::new(&layers, &losses).expect("forty layers");
        let mut candidate = columns.candidate(PackedPlacement::all_npu(40).expect("few layers"));
        for step in 0..1_000 {
            candidate = columns.moved(&candidate, step * step % 40, step % 3);
            assert_eq!(candidate.sums, columns.candidate(candidate.placement).sums);
        }
    }
}
