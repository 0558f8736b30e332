//! Simulated chain networks on several processors, of which everything is known, and what is true of every
//! placement, by the written formulas.

use std::sync::Arc;

use layerlab_planners::check::{Evidence, Loss, check};
use layerlab_planners::features::Candidate;
use layerlab_planners::memory::AcceleratorMemory;
use layerlab_planners::problem::LossModel;
use layerlab_planners::times::ProcessorTable;
use layerlab_planners::{
    AccuracyRow, AccuracyTable, Algorithm, Goal, Outcome, Problem, Set, TimeTable,
    UnsupportedSegment, plan,
};
use layerlab_profiles::derive::{Includes, LayerTime};
use layerlab_profiles::document::ProcessorKind;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Bytes, Layer, Placement, Segment, SignedNanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) const BASELINE: f64 = 0.8;

const NAMES: [&str; 4] = ["CPU", "gpu", "npu", "little"];

/// A network on a device, and what was measured of it. The fourth processor is a CPU.
pub(crate) struct Several {
    pub(crate) layers: Vec<Layer>,
    pub(crate) table: AccuracyTable,
    kinds: Vec<ProcessorKind>,
    /// t_d, t_p and t_r of each layer on each processor.
    costs: Vec<Vec<[i64; 3]>>,
    /// What each processor cannot run.
    unsupported: Vec<Vec<UnsupportedSegment>>,
    /// What is known of the memory of each processor.
    memory: Vec<Option<AcceleratorMemory>>,
    losses: Arc<Losses>,
}

/// What each layer loses on each processor, and what neighbours on different accelerators lose beyond that.
struct Losses {
    alone: Vec<Vec<f64>>,
    apart: f64,
}

impl Losses {
    fn of(&self, digits: &[usize]) -> f64 {
        let alone = digits.iter().enumerate();
        let alone: f64 = alone.map(|(layer, &on)| self.alone[on][layer]).sum();
        let pairs = digits.windows(2);
        let apart = pairs.filter(|pair| pair[0] != pair[1] && pair[0] * pair[1] > 0);
        alone + self.apart * apart.count() as f64
    }
}

impl LossModel for Losses {
    fn losses(&self, candidates: &[Candidate]) -> Vec<f64> {
        let loss = |candidate: &Candidate| {
            let placement = &candidate.placement;
            let digits = (0..placement.layers()).map(|layer| placement.processor(layer));
            self.of(&digits.collect::<Vec<_>>())
        };
        candidates.iter().map(loss).collect()
    }
}

/// The same losses, to be owned by a problem.
struct Shared(Arc<Losses>);

impl LossModel for Shared {
    fn losses(&self, candidates: &[Candidate]) -> Vec<f64> {
        self.0.losses(candidates)
    }
}

impl Several {
    pub(crate) fn new(layers: usize, processors: usize, seed: u64) -> Several {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let kinds: Vec<ProcessorKind> = NAMES[..processors]
            .iter()
            .map(|name| match *name {
                "gpu" | "npu" => ProcessorKind::Accelerator,
                _ => ProcessorKind::Cpu,
            })
            .collect();
        let costs = (0..processors)
            .map(|_| {
                let mut cost = || random.random_range(1_000..9_000);
                (0..layers)
                    .map(|_| [cost() / 2, cost(), cost() / 2])
                    .collect()
            })
            .collect();
        let loss = |processor: usize, random: &mut ChaCha8Rng| match processor {
            0 => 0.0,
            _ => random.random_range(-0.01..0.1) / layers as f64,
        };
        let alone = (0..processors)
            .map(|processor| (0..layers).map(|_| loss(processor, &mut random)).collect())
            .collect();
        let losses = Losses {
            alone,
            apart: 0.02 / layers as f64,
        };
        let table = measured(layers, processors, &losses, &mut random);
        Several {
            layers: (0..layers).map(|index| layer(index, &mut random)).collect(),
            table,
            unsupported: vec![Vec::new(); kinds.len()],
            memory: vec![None; kinds.len()],
            kinds,
            costs,
            losses: Arc::new(losses),
        }
    }

    /// The same device, one of whose processors cannot run some layers as one unit.
    #[allow(dead_code, reason = "each test binary uses some of this")]
    pub(crate) fn without(mut self, processor: usize, segments: &[(u32, u32)]) -> Several {
        let lacked = segments.iter().map(|&segment| UnsupportedSegment {
            segment: Segment::try_from(segment).expect("a segment"),
            reason: "it has no Elu".to_owned(),
        });
        self.unsupported[processor].extend(lacked);
        self
    }

    /// The same device, of the memory of one of whose accelerators this is known.
    #[allow(dead_code, reason = "each test binary uses some of this")]
    pub(crate) fn in_memory(mut self, processor: usize, memory: AcceleratorMemory) -> Several {
        self.memory[processor] = Some(memory);
        self
    }

    /// Whether every processor can run what is placed on it.
    #[allow(dead_code, reason = "each test binary uses some of this")]
    pub(crate) fn can_run(&self, digits: &[usize]) -> bool {
        let lacked = self.unsupported.iter().enumerate();
        let mut lacked = lacked.flat_map(|(on, lacked)| lacked.iter().map(move |one| (on, one)));
        lacked.all(|(on, one)| {
            let layers = one.segment.first() as usize - 1..one.segment.last() as usize;
            digits[layers].iter().any(|&digit| digit != on)
        })
    }

    pub(crate) fn tables(&self) -> Vec<ProcessorTable> {
        let columns = self.kinds.iter().zip(&self.costs).zip(NAMES);
        columns
            .zip(self.unsupported.iter().zip(&self.memory))
            .map(|(((&kind, column), name), (unsupported, memory))| {
                let runs = |index| !unsupported.iter().any(|one| one.is_layer(index));
                let costs = column.iter().enumerate();
                ProcessorTable {
                    name: name.to_owned(),
                    kind,
                    times: costs
                        .map(|(index, &cost)| runs(index).then(|| layer_time(cost)))
                        .collect(),
                    unsupported: unsupported.clone(),
                    fit: None,
                    shared_error: 0.0,
                    memory: memory.clone(),
                }
            })
            .collect()
    }

    pub(crate) fn times(&self) -> TimeTable {
        TimeTable::of(self.tables()).expect("all transfers are there")
    }

    pub(crate) fn oracle(&self) -> Box<dyn LossModel> {
        Box::new(Shared(self.losses.clone()))
    }

    pub(crate) fn problem(&self, model: Box<dyn LossModel>) -> Problem {
        Problem::new(&self.layers, self.times(), &self.table, model).expect("of one model")
    }

    /// The problem with the truth in the accuracy model's place.
    pub(crate) fn known(&self) -> Problem {
        self.problem(self.oracle())
    }

    /// Every placement, counted in the base of the number of processors.
    pub(crate) fn every(&self) -> impl Iterator<Item = Vec<usize>> {
        let (layers, processors) = (self.layers.len(), self.kinds.len());
        (0..processors.pow(layers as u32)).map(move |number| {
            (0..layers)
                .map(|layer| number / processors.pow(layer as u32) % processors)
                .collect()
        })
    }

    /// T(L) as docs/method.md §2 writes it, in ns.
    pub(crate) fn time(&self, digits: &[usize]) -> i64 {
        let is_accelerator = |on: usize| self.kinds[on] == ProcessorKind::Accelerator;
        let mut time = 0;
        for (layer, &on) in digits.iter().enumerate() {
            let [enter, compute, leave] = self.costs[on][layer];
            time += compute;
            if is_accelerator(on) && (layer == 0 || digits[layer - 1] != on) {
                time += enter;
            }
            if is_accelerator(on) && digits.get(layer + 1) != Some(&on) {
                time += leave;
            }
        }
        time
    }

    pub(crate) fn accuracy(&self, digits: &[usize]) -> f64 {
        let placement = Placement::new(digits.iter().map(|&on| on as u8).collect());
        let mut rows = self.table.rows().iter();
        match rows.find(|row| row.combination == placement) {
            _ if placement.is_all_on(0) => BASELINE,
            // What was measured counts as it is, a prediction where it is possible.
            Some(row) => BASELINE - row.loss,
            None => (BASELINE - self.losses.of(digits)).clamp(0.0, BASELINE),
        }
    }

    /// Plans, and checks the answer.
    pub(crate) fn plan(&self, problem: &Problem, goal: Goal, algorithm: Algorithm) -> Outcome {
        let outcome = plan(problem, goal, algorithm).expect("a sensible question");
        let formula = |combination: &Placement| {
            let digits = combination.processors().iter().map(|&on| usize::from(on));
            self.losses.of(&digits.collect::<Vec<_>>())
        };
        self.assert_checked(Loss::Formula(&formula), &outcome);
        outcome
    }

    /// Has an answer recalculated from the raw tables.
    pub(crate) fn assert_checked(&self, loss: Loss, outcome: &Outcome) {
        let evidence = Evidence {
            layers: &self.layers,
            processors: &self.tables(),
            accuracy: &self.table,
            loss,
        };
        let faults = check(outcome, &evidence);
        assert!(faults.is_empty(), "{outcome:?}: {faults:?}");
    }
}

/// Each layer alone on each processor, and 60 random placements.
fn measured(
    layers: usize,
    processors: usize,
    losses: &Losses,
    random: &mut ChaCha8Rng,
) -> AccuracyTable {
    let row = |combination: Placement, set| {
        let digits = combination.processors().iter().map(|&on| usize::from(on));
        AccuracyRow {
            loss: losses.of(&digits.collect::<Vec<_>>()),
            combination,
            set,
            loss_ci95: None,
        }
    };
    let mut rows: Vec<AccuracyRow> = (1..processors as u8)
        .flat_map(|on| (0..layers).map(move |layer| Placement::alone_on(on, layer, layers)))
        .map(|alone| row(alone, Set::Reference))
        .collect();
    for place in 0..60 {
        let digits = (0..layers).map(|_| random.random_range(0..processors as u8));
        let combination = Placement::new(digits.collect());
        if rows.iter().all(|other| other.combination != combination) {
            let set = if place % 6 == 5 {
                Set::Test
            } else {
                Set::Train
            };
            rows.push(row(combination, set));
        }
    }
    AccuracyTable::on_processors(layers, processors, BASELINE, rows).expect("all single layers")
}

fn layer(index: usize, random: &mut ChaCha8Rng) -> Layer {
    let mut bytes = || Bytes::from_bytes(random.random_range(10_000..2_000_000));
    Layer {
        number: index as u32 + 1,
        name: format!("conv{}", index + 1),
        operators: vec!["Conv".to_owned()],
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

fn layer_time([enter, compute, leave]: [i64; 3]) -> LayerTime {
    let estimate = |nanos: i64| {
        let error = nanos as f64 * 0.01;
        Estimate::normal(SignedNanos::from_nanos(nanos), Some(error))
    };
    LayerTime {
        compute: estimate(compute),
        compute_includes: Includes::default(),
        to_processor: Some(estimate(enter)),
        from_processor: Some(estimate(leave)),
    }
}
