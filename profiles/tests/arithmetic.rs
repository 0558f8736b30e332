//! Differencing gives back what was planted, and T(L) is right even where its single transfers are not.

use std::collections::BTreeMap;

use layerlab_profiles::derive::{Includes, LayerTime, differencing};
use layerlab_profiles::design::Design;
use layerlab_profiles::summary::{Estimate, Summary};
use layerlab_profiles::time_model::{TimeModel, TimeModelError};
use layerlab_profiles::{Nanos, Placement, Segment, SignedNanos};
use proptest::prelude::*;

/// A processor of which everything is known, in ns.
#[derive(Clone, Debug)]
struct Plant {
    /// t_d of each layer.
    entering: Vec<i64>,
    /// t_p of each layer.
    computing: Vec<i64>,
    /// t_r of each layer.
    leaving: Vec<i64>,
    /// What layer l and the one before it save by running together; the first is unused.
    fusion: Vec<i64>,
    /// t_q of each layer.
    on_cpu: Vec<i64>,
}

impl Plant {
    fn layers(&self) -> u32 {
        self.computing.len() as u32
    }

    /// S(i,j).
    fn segment(&self, segment: Segment) -> i64 {
        let (first, last) = (segment.first() as usize - 1, segment.last() as usize - 1);
        let compute: i64 = self.computing[first..=last].iter().sum();
        let saved: i64 = self.fusion[first + 1..=last].iter().sum();
        self.entering[first] + compute - saved + self.leaving[last]
    }

    fn measure(&self, design: Design) -> BTreeMap<Segment, Summary> {
        let time = |segment| Nanos::from_nanos(self.segment(segment) as u64);
        let segments = design.segments(self.layers()).into_iter();
        segments
            .map(|segment| (segment, Summary::of(&[time(segment)]).expect("one sample")))
            .collect()
    }

    fn derived(&self, design: Design) -> Vec<LayerTime> {
        differencing(self.layers(), &self.measure(design)).expect("a complete design")
    }

    fn cpu_table(&self) -> Vec<LayerTime> {
        let times = self.on_cpu.iter();
        times
            .map(|&nanos| LayerTime {
                compute: Estimate::normal(SignedNanos::from_nanos(nanos), None),
                compute_includes: Includes::default(),
                to_processor: None,
                from_processor: None,
            })
            .collect()
    }

    /// What running the combination takes: each run of NPU layers as a unit, each other layer by itself.
    fn simulated(&self, combination: &Placement) -> i64 {
        let on_npu: i64 = combination.npu_runs().map(|run| self.segment(run)).sum();
        let on_cpu = combination.processors().iter().zip(&self.on_cpu);
        let on_cpu: i64 = on_cpu
            .filter(|(on, _)| **on == 0)
            .map(|(_, time)| time)
            .sum();
        on_npu + on_cpu
    }
}

const LONGEST_NS: i64 = 50_000_000;

/// Any plant; fusion never saves more than the layer before it computes.
fn asymmetric() -> impl Strategy<Value = Plant> {
    let times = |n| prop::collection::vec(0..LONGEST_NS, n);
    (1..=60_usize).prop_flat_map(move |n| {
        (times(n), times(n), times(n), times(n), times(n)).prop_map(
            |(entering, computing, leaving, fusion, on_cpu)| {
                let fusion = std::iter::once(0)
                    .chain((1..fusion.len()).map(|l| fusion[l] % (computing[l - 1] + 1)))
                    .collect();
                Plant {
                    entering,
                    computing,
                    leaving,
                    fusion,
                    on_cpu,
                }
            },
        )
    })
}

/// A plant without fusion in which moving costs the same both ways: t_d(l) = t_r(l-1).
fn symmetric() -> impl Strategy<Value = Plant> {
    asymmetric().prop_map(|mut plant| {
        for layer in 1..plant.computing.len() {
            plant.leaving[layer - 1] = plant.entering[layer];
        }
        plant.fusion.fill(0);
        plant
    })
}

fn with_combinations(
    plant: impl Strategy<Value = Plant>,
) -> impl Strategy<Value = (Plant, Vec<Placement>)> {
    plant.prop_flat_map(|plant| {
        let n = plant.computing.len();
        let combination = prop::collection::vec(any::<bool>(), n).prop_map(Placement::new);
        (Just(plant), prop::collection::vec(combination, 20))
    })
}

fn close(derived: Option<Estimate>, planted: i64) -> bool {
    derived.is_some_and(|derived| (derived.value.as_nanos() - planted).abs() <= 2)
}

fn assert_predicts(plant: &Plant, combination: &Placement) -> Result<(), TestCaseError> {
    let cpu = plant.cpu_table();
    for design in [Design::PrefixSuffix, Design::Grouped] {
        let npu = plant.derived(design);
        let model = TimeModel::new(&cpu, &npu).expect("one model");
        let predicted = model.predict(combination).expect("of that model");
        let error = predicted.total().as_nanos() - plant.simulated(combination);
        let runs = combination.npu_runs().count() as i64;
        prop_assert!(error.abs() <= 2 * runs, "{error} ns off in {runs} runs");
    }
    Ok(())
}

proptest! {
    #[test]
    fn differencing_gives_back_a_symmetric_plant(plant in symmetric()) {
        let n = plant.computing.len();
        for design in [Design::PrefixSuffix, Design::Grouped] {
            for (index, time) in plant.derived(design).into_iter().enumerate() {
                let (first, last) = (index == 0, index == n - 1);
                let mut compute = plant.computing[index];
                if first {
                    compute += plant.entering[index];
                }
                if last {
                    compute += plant.leaving[index];
                }
                prop_assert!(close(Some(time.compute), compute), "compute of {index}");
                let merged = (time.compute_includes.to_processor, time.compute_includes.from_processor);
                prop_assert_eq!(merged, (first, last));
                prop_assert_eq!(time.to_processor.is_none(), first);
                prop_assert!(first || close(time.to_processor, plant.entering[index]));
                prop_assert_eq!(time.from_processor.is_none(), last);
                prop_assert!(last || close(time.from_processor, plant.leaving[index]));
            }
        }
    }

    #[test]
    fn a_combination_takes_as_long_as_predicted_on_a_symmetric_plant(
        (plant, combinations) in with_combinations(symmetric())
    ) {
        for combination in &combinations {
            assert_predicts(&plant, combination)?;
        }
    }

    #[test]
    fn a_combination_takes_as_long_as_predicted_despite_asymmetry_and_fusion(
        (plant, combinations) in with_combinations(asymmetric())
    ) {
        for combination in &combinations {
            assert_predicts(&plant, combination)?;
        }
    }

    /// What differencing calls t_d(l) is half the cost of the cut before l, whatever that consists of.
    #[test]
    fn a_derived_transfer_is_half_of_its_cut(plant in asymmetric()) {
        let derived = plant.derived(Design::PrefixSuffix);
        for (layer, time) in derived.iter().enumerate().skip(1) {
            let cut = plant.leaving[layer - 1] + plant.entering[layer] + plant.fusion[layer];
            prop_assert!(close(time.to_processor, cut.div_euclid(2)), "layer {layer}");
        }
    }
}

#[test]
fn a_single_transfer_is_wrong_where_moving_in_and_out_differ() {
    let plant = Plant {
        entering: vec![5_000, 3_000, 1_000],
        computing: vec![10_000, 20_000, 30_000],
        leaving: vec![9_000, 7_000, 500],
        fusion: vec![0, 2_000, 4_000],
        on_cpu: vec![100_000, 100_000, 100_000],
    };
    let derived = plant.derived(Design::PrefixSuffix);
    for (layer, planted) in plant.entering.iter().enumerate().skip(1) {
        let transfer = derived[layer].to_processor.expect("not the first layer");
        assert!(
            (transfer.value.as_nanos() - planted).abs() > 2,
            "layer {}",
            layer + 1
        );
    }
    for text in ["000", "100", "010", "001", "110", "101", "011", "111"] {
        let combination = text.parse().expect("three layers");
        assert_predicts(&plant, &combination).expect("T(L) is right all the same");
    }
}

/// docs/method.md §2 by hand: prefixes 14, 33 and 66; suffixes 59 and 38 (in units of 100 ns).
#[test]
fn the_papers_formulas_on_numbers_small_enough_to_follow() {
    let measured = [
        ((1, 1), 1_400),
        ((1, 2), 3_300),
        ((1, 3), 6_600),
        ((2, 3), 5_900),
        ((3, 3), 3_800),
    ];
    let segments = measured
        .into_iter()
        .map(|((first, last), nanos)| {
            let segment = Segment::new(first, last).expect("layers of three");
            let samples = [Nanos::from_nanos(nanos)];
            (segment, Summary::of(&samples).expect("one sample"))
        })
        .collect();
    let times = differencing(3, &segments).expect("all five segments");
    let value = |estimate: Option<Estimate>| estimate.map(|e| e.value.as_nanos());
    // t_d(2) = (1400 + 5900 - 6600) / 2, t_d(3) = (3300 + 3800 - 6600) / 2
    let transfers: Vec<_> = times.iter().map(|t| value(t.to_processor)).collect();
    assert_eq!(transfers, [None, Some(350), Some(250)]);
    let transfers: Vec<_> = times.iter().map(|t| value(t.from_processor)).collect();
    assert_eq!(transfers, [Some(350), Some(250), None]);
    // 6600 - (5900 - 350), (5900 - 350) - (3800 - 250), 3800 - 250
    let compute: Vec<_> = times.iter().map(|t| t.compute.value.as_nanos()).collect();
    assert_eq!(compute, [1_050, 2_000, 3_550]);
}

#[test]
fn a_missing_segment_is_named() {
    let mut segments = BTreeMap::new();
    let one = Summary::of(&[Nanos::from_nanos(1)]).expect("one sample");
    for segment in Design::PrefixSuffix.segments(4) {
        segments.insert(segment, one);
    }
    segments.remove(&Segment::new(3, 4).expect("ascending"));
    let error = differencing(4, &segments).expect_err("3..=4 is missing");
    assert!(error.to_string().contains("layers 3..=4"), "{error}");
}

#[test]
fn tables_and_combinations_of_different_models_are_refused() {
    let plant = |n: usize| Plant {
        entering: vec![1; n],
        computing: vec![1; n],
        leaving: vec![1; n],
        fusion: vec![0; n],
        on_cpu: vec![1; n],
    };
    let (cpu, npu) = (plant(3).cpu_table(), plant(2).derived(Design::Grouped));
    let error = TimeModel::new(&cpu, &npu).expect_err("3 and 2 layers");
    assert_eq!(error, TimeModelError::LayerCounts { cpu: 3, npu: 2 });

    let cpu = plant(2).cpu_table();
    let model = TimeModel::new(&cpu, &npu).expect("2 layers each");
    let combination = "010".parse().expect("zeros and ones");
    let error = model.predict(&combination).expect_err("3 layers");
    let expected = TimeModelError::CombinationLength {
        given: 3,
        expected: 2,
    };
    assert_eq!(error, expected);
}
