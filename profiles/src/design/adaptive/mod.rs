//! The adaptive design: after the segments that layer times follow from, and long ones that test them, each next block is
//! what lowers the widest interval most per second of device time, until all are as narrow as wanted or the budget is
//! spent (docs/method.md §4).
//!
//! The planner is a pure function of what has been observed and of what loading cost: it keeps nothing else
//! between blocks, so that a daemon that was restarted goes on with the same plan.

mod aims;
mod block_cost;
mod candidates;
mod choice;
mod overhead;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rand_chacha::ChaCha8Rng;

use super::Design;
use super::agenda::{Agenda, BlockPlanner, DesignTask, segments_per_block};
use super::over_budget::OverBudget;
use super::planned_block::{Next, PlannedBlock, Purpose, Reason, samples_of_long};
use super::rules::DesignRules;
use crate::derive::graph::{Fit, GraphError, Observations};
use crate::method::Method;
use crate::segment::Segment;
use crate::supported::StretchLayers;
use crate::units::Nanos;

use aims::aims;
pub use aims::widest;
use block_cost::BlockCost;
use candidates::candidates;
use choice::{Choice, Offer};
pub use overhead::Overhead;

/// What a target of nothing is planned as, a millionth: below any clock's noise, and far enough from zero
/// to divide by.
const LEAST_TARGET: f64 = 1e-6;

/// Fewer samples of a segment say nothing about their own spread.
const LEAST_REPETITIONS: u64 = 3;

/// A block repeats its segments at most this many times as often as asked for to make loading them
/// worth while; more would leave too little to adapt.
const MOST_DOUBLINGS: u32 = 4;

/// A block has about this share of all samples before it. Smaller ones would cost more in sentinels and
/// planning than their better choice brings, larger ones would overshoot the target.
const GROWTH: f64 = 0.1;

/// How often a block repeats its segments, at least: few, so that what they tell can be acted on early.
const REPETITIONS: u64 = 6;

pub(super) struct Adaptive;

impl DesignRules for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn segments(&self, layers: u32) -> Box<dyn Iterator<Item = Segment>> {
        Design::Local.iter(layers)
    }

    fn methods(&self) -> &'static [Method] {
        &[Method::Graph, Method::Probed]
    }

    fn may_measure(&self, _stretch: &StretchLayers, _segment: Segment) -> bool {
        true
    }

    fn chooses_as_it_goes(&self) -> bool {
        true
    }

    fn samples_per_segment(&self, _asked: u64) -> u64 {
        REPETITIONS
    }

    fn visits(&self, _asked: u64) -> u64 {
        start::VISITS
    }

    fn held_back(&self, stretch: &StretchLayers, seed: u64) -> BTreeSet<Segment> {
        start::held_back(stretch, seed)
    }

    fn agenda(&self, task: &DesignTask, _random: &mut ChaCha8Rng) -> Agenda {
        let settings = Settings {
            layers: task.stretch.layers(),
            seed: task.seed,
            target: task.target,
            budget: task.budget,
            over_budget: task.over_budget,
            repetitions: REPETITIONS,
            segments_per_block: segments_per_block(task.stretch.layers()),
            overhead: Overhead {
                per_sample: task.gap,
                ..Overhead::default()
            },
        };
        let planner = Planner::in_stretch(settings, task.stretch.clone());
        Agenda::Planned(Box::new(planner))
    }
}

/// What the planner is to reach, and with what.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How many layers the model has.
    pub layers: u32,
    /// Of the choice of long segments; the seed of the measurement.
    pub seed: u64,
    /// The half width that every 95 % interval of the layer table should have, as a share of its number,
    /// or of the average layer's share of the whole model where that is larger. 0.02 is 2 %; 0 is never
    /// reached and spends the whole budget.
    pub target: f64,
    /// How much device time there is.
    pub budget: Nanos,
    /// What is done where that is not enough to derive layer times at all.
    pub over_budget: OverBudget,
    /// How often a block repeats each of its segments, at least.
    pub repetitions: u64,
    /// How many segments a block has, at most.
    pub segments_per_block: usize,
    /// What a block costs beside the inferences themselves, as far as it is known before the first one.
    pub overhead: Overhead,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TargetReached { widest } => {
                write!(
                    f,
                    "target reached: the widest interval is ±{:.2} %",
                    100.0 * widest
                )
            }
            Reason::BudgetSpent {
                widest: Some(widest),
            } => write!(
                f,
                "budget spent: the widest interval is ±{:.2} %",
                100.0 * widest
            ),
            Reason::BudgetSpent { widest: None } => {
                write!(f, "budget spent before every layer was measured")
            }
            Reason::BudgetTooSmall { needed } => {
                write!(f, "the budget is too small: about {needed} are needed")
            }
        }
    }
}

/// The segments that the adaptive design with this seed measures only to test whether times add up. They
/// never take part in the fit.
pub fn held_back(layers: u32, seed: u64) -> BTreeSet<Segment> {
    held_back_in(&StretchLayers::held(layers), seed)
}

/// The same where memory may not hold all segments.
pub fn held_back_in(stretch: &StretchLayers, seed: u64) -> BTreeSet<Segment> {
    start::held_back(stretch, seed)
}

/// Plans a measurement block by block.
#[derive(Clone, Debug)]
pub struct Planner {
    settings: Settings,
    /// The layers, and which segments of them memory holds.
    stretch: StretchLayers,
    held_back: BTreeSet<Segment>,
    start: BTreeSet<Segment>,
    /// What the processor turned out not to run.
    refused: BTreeSet<Segment>,
}

impl Planner {
    /// A planner for these settings, on a processor whose memory holds all layers as one segment.
    pub fn new(settings: Settings) -> Planner {
        let stretch = StretchLayers::held(settings.layers);
        Planner::in_stretch(settings, stretch)
    }

    /// A planner for these settings, of which the stretch has the layers.
    pub fn in_stretch(settings: Settings, stretch: StretchLayers) -> Planner {
        let seed = settings.seed;
        let held_back = start::held_back(&stretch, seed);
        let mut start = start::fitted(&stretch, seed);
        start.extend(&held_back);
        Planner {
            settings,
            stretch,
            held_back,
            start,
            refused: BTreeSet::new(),
        }
    }

    /// The segments that are measured in any case, ascending.
    pub fn start_set(&self) -> impl Iterator<Item = Segment> + '_ {
        self.start.iter().copied()
    }

    /// The next block, given all that was observed so far and the device time that it took.
    ///
    /// No block is expected to exceed what is left of the budget, but the very first, of which nothing can be known, those
    /// of segments that layer times follow from, unless the budget [is to be kept](OverBudget::Refuse), and those that
    /// finish tests that have begun. Fails only on observations of another model.
    pub fn next(&self, observations: &Observations, spent: Nanos) -> Result<Next, GraphError> {
        if self.settings.layers == 0 {
            return Err(GraphError::NoLayers);
        }
        let left_ns = self.settings.budget.as_nanos() as f64 - spent.as_nanos() as f64;
        let missing = start::missing(&self.start, observations, self.settings.seed);
        let (needed, tests): (Vec<Segment>, Vec<Segment>) = missing
            .into_iter()
            .partition(|segment| self.is_essential(*segment));
        // The whole model, unless memory does not hold it or it was refused.
        let Some(longest) = self.start.iter().copied().max_by_key(|one| one.layers()) else {
            return Ok(Next::Done(Reason::BudgetSpent { widest: None }));
        };
        let Some(gauge) = observations.segments.iter().find(|o| o.segment == longest) else {
            return Ok(Next::Measure(PlannedBlock {
                segments: vec![longest],
                repetitions: self.repetitions(),
                long: None,
                expected: Nanos::ZERO,
                purpose: Purpose::Gauge,
            }));
        };
        // Where visits are told apart, each has its share of the samples.
        let repetitions = match observations.visits() {
            0 => self.repetitions(),
            _ => self.repetitions().div_ceil(start::VISITS),
        };
        if !needed.is_empty() {
            return Ok(self.start_block(observations, &needed, repetitions, spent));
        }
        match self.test_block(observations, &tests, repetitions, gauge.time_ns, left_ns) {
            Some(block) => Ok(Next::Measure(block)),
            None => self.narrow(observations, left_ns),
        }
    }

    /// Whether layer times follow from the segment, together with the others of its kind.
    fn is_essential(&self, segment: Segment) -> bool {
        segment.layers() <= 2 || Some(segment) == self.stretch.longest()
    }

    /// As many of the segments that layer times follow from as a block holds, or why the budget does not allow that.
    fn start_block(
        &self,
        observations: &Observations,
        missing: &[Segment],
        repetitions: u64,
        spent: Nanos,
    ) -> Next {
        let outstanding: Vec<Segment> = missing
            .iter()
            .flat_map(|&segment| {
                std::iter::repeat_n(segment, start::visits_left(observations, segment))
            })
            .collect();
        let count = missing.len().min(self.settings.segments_per_block.max(1));
        let cost = self.block_cost(observations, repetitions);
        let needed = spent + nanos(cost.of(&outstanding));
        if self.settings.over_budget == OverBudget::Refuse && needed > self.settings.budget {
            return Next::Done(Reason::BudgetTooSmall { needed });
        }
        Next::Measure(PlannedBlock {
            segments: missing[..count].to_vec(),
            repetitions,
            long: None,
            expected: nanos(cost.of(&missing[..count])),
            purpose: Purpose::Start { needed },
        })
    }

    /// As many of the long segments as a block holds, and the budget in all their visits; each is expected to take no
    /// longer than the whole model. Those that have begun come first and are finished whatever is left.
    fn test_block(
        &self,
        observations: &Observations,
        missing: &[Segment],
        repetitions: u64,
        whole_ns: f64,
        left_ns: f64,
    ) -> Option<PlannedBlock> {
        let has_begun = |segment: &Segment| observations.of(*segment).is_some();
        let (begun, fresh): (Vec<Segment>, Vec<Segment>) =
            missing.iter().copied().partition(has_begun);
        let each = |segment: &Segment| self.cost_ns(*segment, whole_ns, repetitions);
        let block = self.settings.overhead.per_block.as_nanos() as f64;
        let (tests, affordable) = match fresh.first() {
            Some(&first) if begun.is_empty() => {
                let visits = start::visits_left(observations, first) as f64;
                let mut held_ns = left_ns / visits - block;
                let fits = |segment: &&Segment| {
                    held_ns -= each(segment).max(1.0);
                    held_ns >= 0.0
                };
                let affordable = fresh.iter().take_while(fits).count();
                (fresh, affordable)
            }
            _ => (begun, usize::MAX),
        };
        let count = affordable
            .min(self.settings.segments_per_block.max(1))
            .min(tests.len());
        let tests = &tests[..count];
        (count > 0).then(|| PlannedBlock {
            segments: tests.to_vec(),
            repetitions,
            long: None,
            expected: nanos(block + tests.iter().map(each).sum::<f64>()),
            purpose: Purpose::Test,
        })
    }

    fn narrow(&self, observations: &Observations, left_ns: f64) -> Result<Next, GraphError> {
        let fit = Fit::new(self.settings.layers, observations, &self.held_back)?;
        let aims = aims(&fit);
        let widest = aims.iter().map(aims::Aim::relative).fold(0.0, f64::max);
        if widest <= self.settings.target {
            return Ok(Next::Done(Reason::TargetReached { widest }));
        }
        let repetitions = self.worthwhile_repetitions(observations, &fit);
        let offers = candidates(self.settings.layers)
            .filter(|segment| self.stretch.holds(*segment) && !self.refused.contains(segment))
            .filter(|segment| !self.held_back.contains(segment))
            .map(|segment| self.offer(observations, &fit, segment, repetitions));
        let target = self.settings.target.max(LEAST_TARGET);
        let mut choice = Choice::new(&fit, &aims, target, offers.collect());
        let mut cost = self.settings.overhead.per_block.as_nanos() as f64;
        let mut long = self.long_beside_others();
        if let Some(long_cost) = long.map(|long| self.cost_beside_others(&fit, long, repetitions)) {
            match cost + long_cost <= left_ns {
                true => cost += long_cost,
                false => long = None,
            }
        }
        let mut segments = BTreeSet::new();
        while segments.len() < self.settings.segments_per_block.max(1) && !choice.is_enough() {
            let Some(best) = choice.take_best(left_ns - cost) else {
                break;
            };
            segments.insert(best.segment);
            cost += best.cost_ns;
        }
        if segments.is_empty() {
            let widest = Some(widest);
            return Ok(Next::Done(Reason::BudgetSpent { widest }));
        }
        Ok(Next::Measure(PlannedBlock {
            long: long.filter(|long| !segments.contains(long)),
            segments: segments.into_iter().collect(),
            repetitions,
            expected: nanos(cost),
            purpose: Purpose::Narrow { widest },
        }))
    }

    /// All layers as one segment: short segments say most about layers for their time, but whether many of them take as long as
    /// their sum is seen in the whole alone. Where memory does not hold it, there is none; of one layer or two it is a short one.
    fn long_beside_others(&self) -> Option<Segment> {
        let whole = Segment::whole(self.settings.layers);
        let is_long = self.stretch.is_held() && whole.layers() > 2;
        (is_long && !self.refused.contains(&whole)).then_some(whole)
    }

    fn cost_beside_others(&self, fit: &Fit, long: Segment, repetitions: u64) -> f64 {
        let samples = samples_of_long(repetitions);
        self.cost_ns(long, fit.time_ns(long).max(1.0), samples)
    }

    fn offer(
        &self,
        observations: &Observations,
        fit: &Fit,
        segment: Segment,
        repetitions: u64,
    ) -> Offer {
        // Noise can drive the fitted time of a short segment to nothing; no inference is free.
        let time_ns = fit.time_ns(segment).max(1.0);
        Offer {
            segment,
            variance: observations.visit_variance(time_ns, repetitions),
            cost_ns: self.cost_ns(segment, time_ns, repetitions),
        }
    }

    fn repetitions(&self) -> u64 {
        self.settings.repetitions.max(LEAST_REPETITIONS)
    }

    fn block_cost<'a>(&'a self, observations: &'a Observations, repetitions: u64) -> BlockCost<'a> {
        BlockCost {
            observations,
            overhead: &self.settings.overhead,
            longest: self.stretch.longest().map_or(1, Segment::layers),
            repetitions,
            segments_per_block: self.settings.segments_per_block.max(1),
        }
    }

    /// Doubled until timing an average layer takes as long as loading it, and more as samples add up, but no more than a
    /// visit is worth, and never fewer than asked for.
    fn worthwhile_repetitions(&self, observations: &Observations, fit: &Fit) -> u64 {
        let layers = self.settings.layers;
        let alone = (1..=layers).map(|layer| fit.time_ns(Segment::single(layer)));
        let average = (alone.sum::<f64>() / f64::from(layers)).max(1.0);
        let sample = average + self.settings.overhead.per_sample.as_nanos() as f64;
        let load = self.settings.overhead.per_segment.as_nanos() as f64;
        let mut repetitions = self.repetitions();
        for _ in 0..MOST_DOUBLINGS {
            if repetitions as f64 * sample >= load {
                break;
            }
            repetitions *= 2;
        }
        let so_far: f64 = observations.segments.iter().map(|o| o.count).sum();
        let segments = self.settings.segments_per_block.max(1) as f64;
        let repetitions = repetitions.max((GROWTH * so_far / segments) as u64);
        let most = self.samples_of_best_visit(observations, average, sample);
        (repetitions as f64)
            .min(most)
            .max(self.repetitions() as f64) as u64
    }

    /// With how many samples of an average layer a visit says most for its time: √(cost of a visit / cost of a sample ×
    /// variance of inferences / variance of loadings) (Kalibera and Jones, ISMM 2013). Infinite where loadings do not differ.
    fn samples_of_best_visit(
        &self,
        observations: &Observations,
        average_ns: f64,
        sample_ns: f64,
    ) -> f64 {
        let layers = self.settings.layers;
        let all: Vec<Segment> = (1..=layers).map(Segment::single).collect();
        let visit_ns = self.block_cost(observations, 0).of(&all) / f64::from(layers);
        let inferences =
            (observations.noise.standard_deviation_ns(average_ns) / average_ns).powi(2);
        (visit_ns / sample_ns * inferences / observations.visits.load_variance).sqrt()
    }

    fn cost_ns(&self, segment: Segment, time_ns: f64, repetitions: u64) -> f64 {
        let overhead = &self.settings.overhead;
        let sample_ns = time_ns + overhead.per_sample.as_nanos() as f64;
        overhead.load_ns(segment) + repetitions as f64 * sample_ns
    }
}

fn nanos(nanos: f64) -> Nanos {
    Nanos::from_nanos(nanos.ceil() as u64)
}

impl BlockPlanner for Planner {
    fn learn_loads(&mut self, loads: &BTreeMap<Segment, Nanos>) {
        let Some(longest) = self.stretch.longest() else {
            return;
        };
        let overhead = self.settings.overhead.with_loads(longest, loads);
        // Where the sentinel fills the memory it is loaded at each end of a block.
        let times = if self.stretch.is_held() { 1 } else { 2 };
        self.settings.overhead = Overhead {
            per_block: Nanos::from_nanos(overhead.per_block.as_nanos() * times),
            ..overhead
        };
    }

    fn refuse(&mut self, segment: Segment) {
        self.start.remove(&segment);
        self.held_back.remove(&segment);
        self.refused.insert(segment);
    }

    fn next(&self, observations: &Observations, spent: Nanos) -> Result<Next, GraphError> {
        Planner::next(self, observations, spent)
    }
}
