//! Simulated chain networks of which everything is known: times of a phone's shape and losses that do not
//! add up. No profile of any device; the planners see the tables made of them, never the formula behind.
// Each test binary uses some of this.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::sync::Arc;

use layerlab_planners::accuracy::AccuracyModel;
use layerlab_planners::check::{Evidence, Loss, check};
use layerlab_planners::error_bands::{ErrorBands, HeldBackRow};
use layerlab_planners::features::{Candidate, LayerColumns};
use layerlab_planners::problem::LossModel;
use layerlab_planners::regress::Settings;
use layerlab_planners::times::ProcessorTable;
use layerlab_planners::{
    AccuracyRow, AccuracyTable, Algorithm, Goal, Outcome, Problem, Set, TimeTable, plan,
};
use layerlab_profiles::derive::{Includes, LayerTime};
use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Bytes, Layer, Placement, SignedNanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) const BASELINE: f64 = 0.8;

/// A network on a device, and what was measured of it.
pub(crate) struct Planted {
    pub(crate) layers: Vec<Layer>,
    pub(crate) cpu: Vec<LayerTime>,
    pub(crate) npu: Vec<LayerTime>,
    pub(crate) table: AccuracyTable,
    truth: Arc<Truth>,
}

/// Loss(L): what layers lose alone, what pairs lose beyond that, and a ceiling that is approached.
#[derive(Debug)]
struct Truth {
    alone: Vec<f64>,
    pairs: Vec<(usize, usize, f64)>,
}

impl Truth {
    fn loss(&self, on_npu: impl Fn(usize) -> bool) -> f64 {
        let alone = self.alone.iter().enumerate();
        let mut raw: f64 = alone
            .filter(|&(l, _)| on_npu(l))
            .map(|(_, loss)| loss)
            .sum();
        for &(a, b, loss) in &self.pairs {
            if on_npu(a) && on_npu(b) {
                raw += loss;
            }
        }
        0.9 * BASELINE * (1.0 - (-raw.max(-0.02)).exp())
    }
}

/// The truth in a model's place, where a search is to be judged without a model's errors.
struct Oracle(Arc<Truth>);

impl LossModel for Oracle {
    fn losses(&self, candidates: &[Candidate]) -> Vec<f64> {
        let loss = |candidate: &Candidate| {
            self.0
                .loss(|layer| candidate.placement.processor(layer) != 0)
        };
        candidates.iter().map(loss).collect()
    }
}

impl Planted {
    /// A network of `layers` layers: CPU times over two decades, the NPU ten to thirty times as fast,
    /// transfers of the order of the NPU's compute times.
    pub(crate) fn new(layers: usize, seed: u64) -> Planted {
        Planted::with_rows(layers, seed, 0)
    }

    /// The same network with `rows` measured random combinations, five of six to train on.
    pub(crate) fn with_rows(layers: usize, seed: u64, rows: usize) -> Planted {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let truth = Arc::new(Truth::new(layers, &mut random));
        let cpu: Vec<i64> = (0..layers).map(|_| spread(&mut random, 1e6, 1e8)).collect();
        let npu: Vec<i64> = cpu
            .iter()
            .map(|t| t / random.random_range(10..30))
            .collect();
        let cuts: Vec<i64> = (0..=layers)
            .map(|_| spread(&mut random, 3e5, 1e7))
            .collect();
        let table = measured(layers, &truth, rows, &mut random);
        Planted {
            layers: (0..layers).map(|index| layer(index, &mut random)).collect(),
            cpu: cpu
                .iter()
                .map(|&nanos| time(nanos, None, None, Includes::default()))
                .collect(),
            npu: (0..layers)
                .map(|index| {
                    let (first, last) = (index == 0, index + 1 == layers);
                    let included = [(first, cuts[0]), (last, cuts[layers])];
                    let included = included.iter().filter(|(is, _)| *is).map(|(_, cut)| cut);
                    time(
                        npu[index] + included.sum::<i64>(),
                        (!first).then_some(cuts[index]),
                        (!last).then_some(cuts[index + 1]),
                        Includes {
                            to_processor: first,
                            from_processor: last,
                        },
                    )
                })
                .collect(),
            table,
            truth,
        }
    }

    pub(crate) fn times(&self) -> TimeTable {
        TimeTable::new(self.cpu.clone(), self.npu.clone(), None).expect("all transfers are there")
    }

    /// The problem with the truth in the accuracy model's place.
    pub(crate) fn known(&self) -> Problem {
        let oracle = Box::new(Oracle(self.truth.clone()));
        Problem::new(&self.layers, self.times(), &self.table, oracle).expect("of one model")
    }

    /// The problem with a trained accuracy model.
    pub(crate) fn learnt(&self, model: &AccuracyModel) -> Problem {
        let model = Box::new(model.clone());
        Problem::new(&self.layers, self.times(), &self.table, model).expect("of one model")
    }

    /// A trained accuracy model that says how far its predictions are off: as far as for the rows that were measured.
    pub(crate) fn train(&self, settings: Settings) -> AccuracyModel {
        let model = AccuracyModel::with(&self.layers, &self.table, settings).expect("trains");
        let columns = LayerColumns::new(&self.layers, self.table.single_losses());
        let columns = columns.expect("of one model");
        let rows = self.table.rows().iter();
        let candidates = rows.map(|row| columns.candidate_of(&row.combination));
        let candidates: Vec<Candidate> = candidates.collect::<Result<_, _>>().expect("few layers");
        let predicted = model.losses(&candidates).into_iter();
        let held_back = predicted.zip(self.table.rows()).map(|(predicted, row)| {
            let (low, high) = row.loss_ci95.expect("all rows have one");
            HeldBackRow {
                predicted: predicted.clamp(0.0, BASELINE),
                measured: row.loss,
                sampling: (high - low) / 2.0,
            }
        });
        let errors = ErrorBands::of(&held_back.collect::<Vec<_>>());
        model.with_errors(errors)
    }

    pub(crate) fn loss(&self, combination: &Placement) -> f64 {
        self.truth
            .loss(|layer| combination.processors()[layer] != 0)
    }

    /// Plans, and checks the answer.
    pub(crate) fn plan(
        &self,
        problem: &Problem,
        model: Option<&AccuracyModel>,
        goal: Goal,
        algorithm: Algorithm,
    ) -> Outcome {
        let outcome = plan(problem, goal, algorithm).expect("a sensible question");
        self.assert_checked(model, &outcome);
        outcome
    }

    /// Has an answer recalculated from the raw tables.
    pub(crate) fn assert_checked(&self, model: Option<&AccuracyModel>, outcome: &Outcome) {
        let formula = |combination: &Placement| self.loss(combination);
        let evidence = Evidence {
            layers: &self.layers,
            processors: &pair(&self.cpu, &self.npu),
            accuracy: &self.table,
            loss: model.map_or(Loss::Formula(&formula), Loss::Model),
        };
        let faults = check(outcome, &evidence);
        assert!(faults.is_empty(), "{outcome:?}: {faults:?}");
    }
}

/// The two processors of the papers.
pub(crate) fn pair(cpu: &[LayerTime], npu: &[LayerTime]) -> [ProcessorTable; 2] {
    [(ProcessorKind::Cpu, cpu), (ProcessorKind::Accelerator, npu)].map(|(kind, times)| {
        ProcessorTable {
            name: String::new(),
            kind,
            times: times.iter().copied().map(Some).collect(),
            unsupported: Vec::new(),
            fit: None,
            shared_error: 0.0,
            memory: None,
        }
    })
}

impl Truth {
    fn new(layers: usize, random: &mut ChaCha8Rng) -> Truth {
        let alone = (0..layers).map(|_| 0.15 * random.random::<f64>().powi(4));
        let alone: Vec<f64> = alone.collect();
        let mut pairs = Vec::new();
        for a in 0..layers {
            for b in a + 1..layers.min(a + 4) {
                // Mostly worse together, sometimes errors cancel.
                pairs.push((a, b, 0.06 * random.random_range(-0.3..1.0_f64).powi(3)));
            }
        }
        Truth { alone, pairs }
    }
}

fn measured(layers: usize, truth: &Truth, rows: usize, random: &mut ChaCha8Rng) -> AccuracyTable {
    let row = |bits: Vec<bool>, set| {
        let loss = truth.loss(|layer| bits[layer]);
        // As 500 images would have it, which more often show a loss too small.
        let half_width = 1.96 * (loss.abs() / 500.0).sqrt();
        AccuracyRow {
            loss,
            combination: Placement::new(bits),
            set,
            loss_ci95: Some((loss - 0.8 * half_width, loss + half_width)),
        }
    };
    let single = |layer| {
        row(
            (0..layers).map(|other| other == layer).collect(),
            Set::Reference,
        )
    };
    let mut all: Vec<AccuracyRow> = (0..layers).map(single).collect();
    all.push(row(vec![true; layers], Set::Reference));
    if layers == 1 {
        all.pop();
    }
    for (place, bits) in combinations(layers, rows, random).into_iter().enumerate() {
        all.push(row(
            bits,
            if place % 6 == 5 {
                Set::Test
            } else {
                Set::Train
            },
        ));
    }
    AccuracyTable::new(layers, BASELINE, all).expect("all single layers are there")
}

/// Random combinations, as docs/method.md §6 draws them.
pub(crate) fn drawn(layers: usize, rows: usize, seed: u64) -> Vec<Vec<bool>> {
    combinations(layers, rows, &mut ChaCha8Rng::seed_from_u64(seed))
}

/// As docs/method.md §6 draws them, but for the references; all there are if there are no more than asked for.
fn combinations(layers: usize, rows: usize, random: &mut ChaCha8Rng) -> Vec<Vec<bool>> {
    let all = if layers < 20 {
        (1 << layers) - 1
    } else {
        usize::MAX
    };
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    while found.len() < rows.min(all) {
        let share = f64::from(random.random_range(1..=layers as u32)) / layers as f64;
        let bits: Vec<bool> = (0..layers)
            .map(|_| random.random::<f64>() < share)
            .collect();
        if bits.contains(&true) && known.insert(bits.clone()) {
            found.push(bits);
        }
    }
    found
}

fn layer(index: usize, random: &mut ChaCha8Rng) -> Layer {
    let mut bytes = || Bytes::from_bytes(random.random_range(10_000..2_000_000));
    Layer {
        number: index as u32 + 1,
        name: format!("conv{}", index + 1),
        operators: vec!["Conv".to_owned(), "Relu".to_owned()],
        parameter_bytes: bytes(),
        input_bytes: bytes(),
        output_bytes: bytes(),
        model_input_bytes: Bytes::ZERO,
        model_output_bytes: Bytes::ZERO,
        shortcuts: Vec::new(),
        additions: 1_000_000 * (index as u64 % 7 + 1),
        multiplications: 1_100_000 * (index as u64 % 5 + 1),
    }
}

fn time(
    compute: i64,
    to_processor: Option<i64>,
    from_processor: Option<i64>,
    compute_includes: Includes,
) -> LayerTime {
    let estimate = |nanos: i64| {
        let error = nanos as f64 * 0.01;
        Estimate::normal(SignedNanos::from_nanos(nanos), Some(error))
    };
    LayerTime {
        compute: estimate(compute),
        compute_includes,
        to_processor: to_processor.map(estimate),
        from_processor: from_processor.map(estimate),
    }
}

/// Log-uniform between two times in ns.
fn spread(random: &mut ChaCha8Rng, low: f64, high: f64) -> i64 {
    let exponent: f64 = random.random();
    (low * (high / low).powf(exponent)) as i64
}

/// A time limit between the extremes of the all-CPU and the fastest placements, or an accuracy requirement.
pub(crate) fn goals(problem: &Problem, seed: u64) -> [Goal; 2] {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let mut pick = |goals: Vec<Goal>| goals[random.random_range(0..goals.len())];
    [
        pick(layerlab_planners::sweep::time_limits(problem, 12)[..11].to_vec()),
        pick(layerlab_planners::sweep::accuracy_limits(problem, 12)),
    ]
}

/// By how much `one` is a better answer than `other`: in accuracy or in relative time.
pub(crate) fn advantage(goal: Goal, one: &Outcome, other: &Outcome) -> f64 {
    match (one.plan(), other.plan()) {
        (Some(one), Some(other)) => match goal {
            Goal::MaxAccuracy { .. } => one.accuracy().value - other.accuracy().value,
            Goal::MinTime { .. } => {
                let nanos = |plan: &layerlab_planners::Plan| plan.time().total().as_nanos() as f64;
                nanos(other) / nanos(one) - 1.0
            }
        },
        (None, None) => 0.0,
        (Some(_), None) => 1.0,
        (None, Some(_)) => -1.0,
    }
}
