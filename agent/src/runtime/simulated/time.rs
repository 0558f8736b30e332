//! What a simulated processor costs, planted: the times of each layer, and of any segment, before noise
//! and heat. Both the simulated sessions and the published truth read them here.
//!
//! Each planted part is a whole number of nanoseconds, rounded once, so that sums are exact:
//! `S(i,j) = t_d(i) + sum of t_p(i..=j) - sum of fusion gains inside i..=j + t_r(j)`, and what weights
//! cost that the processor's on-chip memory does not hold.

use layerlab_model::{Network, OperatorClass};
use layerlab_profiles::{Bytes, Nanos, Placement, Segment};

use crate::device::simulated::{OnChip, SimulatedProcessor, Throughput, Transfer};

/// The work of one layer, as far as time depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerWork {
    /// Additions and multiplications of convolutions.
    pub convolution_flop: u64,
    /// Additions and multiplications of fully connected operators.
    pub fully_connected_flop: u64,
    /// Additions and multiplications of poolings.
    pub pooling_flop: u64,
    /// Additions and multiplications of everything else.
    pub other_flop: u64,
    /// Weights, as the model stores them.
    pub parameters: Bytes,
    /// All tensors that cross the cut before the layer.
    pub input: Bytes,
    /// All tensors that cross the cut after the layer.
    pub output: Bytes,
    /// The network's inputs that the layer reads beside those.
    pub model_input: Bytes,
    /// The network's outputs that the layer gives beside those.
    pub model_output: Bytes,
}

impl LayerWork {
    /// The work of each layer of `network`, layer 1 first.
    pub fn of(network: &Network) -> Vec<LayerWork> {
        network
            .layers()
            .iter()
            .map(|layer| {
                let mut work = LayerWork {
                    parameters: layer.parameter_bytes,
                    input: layer.input_bytes,
                    output: layer.output_bytes,
                    model_input: layer.model_input_bytes,
                    model_output: layer.model_output_bytes,
                    ..LayerWork::default()
                };
                for operator in network.operators(layer.number) {
                    *work.flop_mut(operator.class) += operator.additions + operator.multiplications;
                }
                work
            })
            .collect()
    }

    fn flop_mut(&mut self, class: OperatorClass) -> &mut u64 {
        match class {
            OperatorClass::Convolution => &mut self.convolution_flop,
            OperatorClass::FullyConnected => &mut self.fully_connected_flop,
            OperatorClass::Pooling => &mut self.pooling_flop,
            // Includes classes that a later version of the model crate may tell apart.
            _ => &mut self.other_flop,
        }
    }

    /// What an accelerator needs for moving the network's own inputs and outputs of this layer, wherever a segment begins and ends:
    /// part of the layer's own time.
    fn moving_beside_cuts(&self, transfer: &Transfer) -> f64 {
        over(self.model_input, transfer.input_bytes_per_s)
            + over(self.model_output, transfer.output_bytes_per_s)
    }

    fn seconds(&self, throughput: &Throughput) -> f64 {
        self.convolution_flop as f64 / throughput.convolution
            + self.fully_connected_flop as f64 / throughput.fully_connected
            + self.pooling_flop as f64 / throughput.pooling
            + self.other_flop as f64 / throughput.other
    }
}

/// The planted times of a network's layers on one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct PlantedTimes {
    compute: Vec<Nanos>,
    transfers: Option<Transfers>,
    /// What each layer's weights take on the processor.
    weights: Vec<Bytes>,
    on_chip: Option<OnChip>,
}

/// The times that only an accelerator has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Transfers {
    entering: Vec<Nanos>,
    leaving: Vec<Nanos>,
    /// One for each boundary between neighbours.
    fusion: Vec<Nanos>,
}

impl PlantedTimes {
    /// The times of these layers on `processor`.
    pub fn new(processor: &SimulatedProcessor, layers: &[LayerWork]) -> Self {
        let compute: Vec<Nanos> = layers
            .iter()
            .map(|work| {
                let stored = processor.arithmetic.stored(work.parameters);
                let reading = processor
                    .parameter_bytes_per_s
                    .map_or(0.0, |rate| over(stored, rate));
                let beside = processor
                    .transfer
                    .map_or(0.0, |transfer| work.moving_beside_cuts(&transfer));
                nanos((work.seconds(&processor.throughput) + reading + beside) * 1e9)
            })
            .collect();
        let transfers = processor.transfer.map(|transfer| {
            let half_fixed = transfer.fixed.as_nanos() as f64 / 2.0;
            let moving = |bytes, rate| nanos(half_fixed + over(bytes, rate) * 1e9);
            let gain = |pair: &[Nanos]| {
                nanos(transfer.fusion_gain * pair[0].min(pair[1]).as_nanos() as f64)
            };
            Transfers {
                entering: layers
                    .iter()
                    .map(|work| moving(work.input, transfer.input_bytes_per_s))
                    .collect(),
                leaving: layers
                    .iter()
                    .map(|work| moving(work.output, transfer.output_bytes_per_s))
                    .collect(),
                fusion: compute.windows(2).map(gain).collect(),
            }
        });
        PlantedTimes {
            compute,
            transfers,
            weights: layers
                .iter()
                .map(|work| processor.arithmetic.stored(work.parameters))
                .collect(),
            on_chip: processor.on_chip,
        }
    }

    /// Computing each layer by itself, layer 1 first: `t_p` on an accelerator, `t_q` on a CPU.
    pub fn compute(&self) -> &[Nanos] {
        &self.compute
    }

    /// Entering the processor before each layer, `t_d`; nothing for a CPU.
    pub fn entering(&self) -> Option<&[Nanos]> {
        self.transfers
            .as_ref()
            .map(|transfers| transfers.entering.as_slice())
    }

    /// Leaving the processor after each layer, `t_r`; nothing for a CPU.
    pub fn leaving(&self) -> Option<&[Nanos]> {
        self.transfers
            .as_ref()
            .map(|transfers| transfers.leaving.as_slice())
    }

    /// What is gained at each boundary between neighbours that run as one unit, the boundary of layers
    /// 1 and 2 first; nothing for a CPU.
    pub fn fusion(&self) -> Option<&[Nanos]> {
        self.transfers
            .as_ref()
            .map(|transfers| transfers.fusion.as_slice())
    }

    /// S(i,j): from the input in main memory to the output in main memory.
    ///
    /// # Panics
    /// When the network has fewer layers than the segment.
    pub fn segment(&self, segment: Segment) -> Nanos {
        let (first, last) = (segment.first() as usize - 1, segment.last() as usize - 1);
        let compute: Nanos = self.compute[first..=last].iter().copied().sum();
        let Some(transfers) = &self.transfers else {
            return compute;
        };
        let gain: Nanos = transfers.fusion[first..last].iter().copied().sum();
        let spill = self.spill(first, last);
        let total = transfers.entering[first] + compute + transfers.leaving[last] + spill;
        // No underflow: each gain is less than the compute time of its left layer.
        Nanos::from_nanos(total.as_nanos() - gain.as_nanos())
    }

    /// What fetching weights again costs that on-chip memory does not hold.
    fn spill(&self, first: usize, last: usize) -> Nanos {
        self.on_chip.map_or(Nanos::ZERO, |on_chip| {
            let weights: u64 = self.weights[first..=last]
                .iter()
                .map(|w| w.as_bytes())
                .sum();
            let beyond = weights.saturating_sub(on_chip.memory.as_bytes());
            nanos(over(Bytes::from_bytes(beyond), on_chip.spill_bytes_per_s) * 1e9)
        })
    }

    /// T(L): each maximal run of layers on one of `processors` runs as one unit there, and what passes from
    /// one to the next passes through main memory.
    ///
    /// # Panics
    /// When the tables and the placement are not of one network, or the placement names a processor without
    /// a table.
    pub fn of_placement(processors: &[&PlantedTimes], placement: &Placement) -> Nanos {
        for table in processors {
            assert_eq!(
                placement.layers(),
                table.compute.len(),
                "the placement is of another network"
            );
        }
        placement
            .runs()
            .map(|(run, processor)| processors[usize::from(processor)].segment(run))
            .sum()
    }
}

fn over(bytes: Bytes, bytes_per_s: f64) -> f64 {
    bytes.as_bytes() as f64 / bytes_per_s
}

fn nanos(nanos: f64) -> Nanos {
    Nanos::from_nanos(nanos.round() as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::device::simulated::{Arithmetic, Noise};

    fn processor(transfer: Option<Transfer>) -> SimulatedProcessor {
        SimulatedProcessor {
            name: "p".into(),
            arithmetic: Arithmetic::F32,
            unsupported_operators: Vec::new(),
            throughput: Throughput {
                convolution: 1.7e9,
                fully_connected: 0.9e9,
                pooling: 0.31e9,
                other: 0.43e9,
            },
            parameter_bytes_per_s: Some(1.3e9),
            transfer,
            memory: None,
            tells_memory: true,
            on_chip: None,
            load_fixed: Nanos::ZERO,
            load_bytes_per_s: None,
            noise: Noise::default(),
            power_watts: 0.0,
        }
    }

    fn transfer(input_bytes_per_s: f64, output_bytes_per_s: f64, fusion_gain: f64) -> Transfer {
        let fixed = Nanos::from_nanos(12_345);
        Transfer {
            fixed,
            input_bytes_per_s,
            output_bytes_per_s,
            fusion_gain,
        }
    }

    prop_compose! {
        fn layer()(
            flop in prop::array::uniform4(0u64..1_000_000),
            parameters in 0u64..1_000_000,
        ) -> LayerWork {
            let [convolution_flop, fully_connected_flop, pooling_flop, other_flop] = flop;
            let parameters = Bytes::from_bytes(parameters);
            LayerWork {
                convolution_flop, fully_connected_flop, pooling_flop, other_flop, parameters,
                ..LayerWork::default()
            }
        }
    }

    prop_compose! {
        /// Layers of which each takes in what the one before gave out.
        fn layers()(
            layers in prop::collection::vec(layer(), 1..10),
            cuts in prop::collection::vec(0u64..1_000_000, 11),
        ) -> Vec<LayerWork> {
            let cut = |index: usize| Bytes::from_bytes(cuts[index]);
            layers
                .into_iter()
                .enumerate()
                .map(|(index, layer)| LayerWork { input: cut(index), output: cut(index + 1), ..layer })
                .collect()
        }
    }

    fn segment(first: usize, last: usize) -> Segment {
        Segment::new(first as u32, last as u32).expect("a segment")
    }

    proptest! {
        #[test]
        fn a_segment_is_its_parts(layers in layers(), gain in 0.0f64..0.99) {
            let times = PlantedTimes::new(&processor(Some(transfer(3e8, 7e8, gain))), &layers);
            let (entering, leaving) = (times.entering().expect("in"), times.leaving().expect("out"));
            let fusion = times.fusion().expect("fusion");
            for first in 1..=layers.len() {
                for last in first..=layers.len() {
                    let sum = |times: &[Nanos]| times.iter().map(|time| time.as_nanos()).sum::<u64>();
                    let expected = entering[first - 1].as_nanos()
                        + sum(&times.compute()[first - 1..last])
                        - sum(&fusion[first - 1..last - 1])
                        + leaving[last - 1].as_nanos();
                    prop_assert_eq!(times.segment(segment(first, last)).as_nanos(), expected);
                }
            }
        }

        // docs/method.md §3: S(i,j) = a_i + b_j, so that the corners of any rectangle cancel.
        #[test]
        fn segment_times_are_a_left_part_plus_a_right_part(layers in layers(), gain in 0.0f64..0.99) {
            let times = PlantedTimes::new(&processor(Some(transfer(3e8, 7e8, gain))), &layers);
            let s = |first, last| times.segment(segment(first, last)).as_nanos();
            let n = layers.len();
            for i in 1..=n {
                for j in i..=n {
                    prop_assert_eq!(s(1, j) + s(i, n), s(i, j) + s(1, n));
                }
            }
        }

        #[test]
        fn moving_the_same_bytes_at_the_same_rate_takes_the_same_time(layers in layers()) {
            let times = PlantedTimes::new(&processor(Some(transfer(5e8, 5e8, 0.0))), &layers);
            let (entering, leaving) = (times.entering().expect("in"), times.leaving().expect("out"));
            prop_assert_eq!(&entering[1..], &leaving[..layers.len() - 1]);
        }

        #[test]
        fn a_cpu_adds_up_its_layers(layers in layers()) {
            let times = PlantedTimes::new(&processor(None), &layers);
            let sum: Nanos = times.compute().iter().copied().sum();
            prop_assert_eq!(times.segment(segment(1, layers.len())), sum);
            prop_assert_eq!((times.entering(), times.leaving(), times.fusion()), (None, None, None));
        }

        #[test]
        fn a_placement_is_what_its_layers_cost_where_they_are(
            layers in layers(),
            digits in prop::collection::vec(0u8..4, 10),
        ) {
            let on = |transfer| PlantedTimes::new(&processor(transfer), &layers);
            let cpu = on(None);
            let gpu = on(Some(transfer(9e8, 8e8, 0.2)));
            let npu = on(Some(transfer(3e8, 7e8, 0.4)));
            let processors = [&cpu, &gpu, &npu, &cpu];
            let placement = Placement::new(digits[..layers.len()].to_vec());
            // Layer by layer, as the papers write it, and the gains between neighbours on an accelerator.
            let on = |layer: usize| placement.processors().get(layer).copied();
            let mut expected = 0i64;
            for layer in 0..layers.len() {
                let nanos = |time: Nanos| time.as_nanos() as i64;
                let here = processors[usize::from(placement.processors()[layer])];
                expected += nanos(here.compute()[layer]);
                let (Some(entering), Some(leaving)) = (here.entering(), here.leaving()) else {
                    continue;
                };
                if layer == 0 || on(layer - 1) != on(layer) {
                    expected += nanos(entering[layer]);
                }
                match on(layer + 1) == on(layer) {
                    true => expected -= nanos(here.fusion().expect("fusion")[layer]),
                    false => expected += nanos(leaving[layer]),
                }
            }
            let found = PlantedTimes::of_placement(&processors, &placement);
            prop_assert_eq!(found.as_nanos() as i64, expected);
        }
    }

    #[test]
    fn each_part_is_what_its_rate_says() {
        let work = LayerWork {
            convolution_flop: 1_700_000,
            pooling_flop: 310_000,
            parameters: Bytes::from_bytes(1_300_000),
            input: Bytes::from_bytes(300_000),
            output: Bytes::from_bytes(700_000),
            ..LayerWork::default()
        };
        let times = PlantedTimes::new(&processor(Some(transfer(3e8, 7e8, 0.0))), &[work]);
        // A millisecond each of convolving, pooling, reading weights, moving in and moving out; half
        // of the fixed cost of 12,345 ns is 6,172.5, rounded away from zero on each side.
        assert_eq!(times.compute(), [Nanos::from_millis(3)]);
        assert_eq!(
            times.entering(),
            Some([Nanos::from_nanos(1_006_173)].as_slice())
        );
        assert_eq!(
            times.leaving(),
            Some([Nanos::from_nanos(1_006_173)].as_slice())
        );
    }
}
