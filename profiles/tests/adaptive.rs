//! The adaptive planner on planted devices: it ends at its target or within its budget, and its plan
//! depends on nothing but what it was told.

mod plant;

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::derive::graph::{Fit, Observations, observe};
use layerlab_profiles::design::Design;
use layerlab_profiles::design::adaptive::{Overhead, Planner, Settings, held_back};
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::design::planned_block::{Next, PlannedBlock, Purpose, Reason};
use layerlab_profiles::{Nanos, Segment};
use plant::{Plant, phone, proportional};
use proptest::prelude::*;

fn settings(layers: u32, seed: u64) -> Settings {
    Settings {
        layers,
        seed,
        target: 0.02,
        budget: Nanos::from_millis(600_000),
        over_budget: OverBudget::Extend,
        repetitions: 10,
        segments_per_block: 16,
        overhead: Overhead::default(),
    }
}

/// A measurement in progress.
struct Run<'a> {
    plant: &'a Plant,
    planner: Planner,
    overhead: Overhead,
    samples: BTreeMap<Segment, Vec<Nanos>>,
    spent: Nanos,
    blocks: Vec<PlannedBlock>,
}

impl<'a> Run<'a> {
    fn new(plant: &'a Plant, settings: Settings) -> Self {
        Run {
            plant,
            overhead: settings.overhead,
            planner: Planner::new(settings),
            samples: BTreeMap::new(),
            spent: Nanos::ZERO,
            blocks: Vec::new(),
        }
    }

    /// Measures until the planner has had enough.
    fn finish(&mut self, mut noise: impl FnMut(f64) -> f64) -> Reason {
        for _ in 0..100_000 {
            let block = match self.planner.next(&observe(&self.samples), self.spent) {
                Ok(Next::Measure(block)) => block,
                Ok(Next::Done(reason)) => return reason,
                Err(error) => panic!("{error}"),
            };
            self.measure(&block, &mut noise);
            self.blocks.push(block);
        }
        panic!("the planner does not end");
    }

    fn measure(&mut self, block: &PlannedBlock, noise: &mut impl FnMut(f64) -> f64) {
        let repetitions = block.repetitions as usize;
        let measured = self
            .plant
            .measure(block.segments.iter().copied(), repetitions, &mut *noise);
        self.spent = self.spent + self.overhead.per_block;
        for (segment, times) in measured {
            self.spent = self.spent + self.overhead.per_segment;
            for &time in &times {
                self.spent = self.spent + time + self.overhead.per_sample;
            }
            self.samples.entry(segment).or_default().extend(times);
        }
    }
}

#[test]
fn the_whole_model_comes_first_then_the_start_set_then_what_narrows_most() {
    let plant = phone(12, 1);
    let mut run = Run::new(&plant, settings(12, 1));
    let reason = run.finish(proportional(0.03, 1));
    assert!(
        matches!(reason, Reason::TargetReached { widest } if widest <= 0.02),
        "{reason}"
    );
    assert_eq!(run.blocks[0].segments, [Segment::whole(12)]);
    let start: BTreeSet<Segment> = run.planner.start_set().collect();
    let mut measured = BTreeSet::new();
    for block in &run.blocks {
        match block.purpose {
            Purpose::Gauge | Purpose::Start { .. } | Purpose::Test => {
                measured.extend(block.segments.iter().copied())
            }
            Purpose::Narrow { widest } => {
                assert!(widest > 0.02);
                assert_eq!(
                    measured, start,
                    "narrowing began before the start set was complete"
                );
            }
        }
    }
    assert!(start.is_superset(&Design::Local.iter(12).collect()));
}

#[test]
fn held_back_segments_are_measured_once_and_never_fitted() {
    let plant = phone(12, 2);
    let mut run = Run::new(&plant, settings(12, 2));
    run.finish(proportional(0.03, 2));
    let held_back = held_back(12, 2);
    assert_eq!(held_back.len(), 4);
    for segment in &held_back {
        assert_eq!(run.samples[segment].len(), 10, "{segment}");
    }
}

#[test]
fn the_interval_that_the_planner_stops_at_is_the_one_that_is_published() {
    let plant = phone(9, 3);
    let mut run = Run::new(&plant, settings(9, 3));
    run.finish(proportional(0.03, 3));
    let fit = Fit::new(9, &observe(&run.samples), &held_back(9, 3)).expect("connected");
    let share = plant.segment(Segment::whole(9)) as f64 / 9.0;
    for time in fit.layer_times() {
        let (low, high) = time.compute.ci95.expect("an interval");
        let half_width = (high - low).as_nanos() as f64 / 2.0;
        let scale = (time.compute.value.as_nanos() as f64).max(share);
        assert!(half_width <= 0.0201 * scale, "{time:?}");
    }
}

#[test]
fn a_quiet_device_is_done_after_the_start_set() {
    let plant = phone(12, 4);
    let mut run = Run::new(&plant, settings(12, 4));
    let reason = run.finish(proportional(1e-4, 4));
    assert!(matches!(reason, Reason::TargetReached { .. }), "{reason}");
    assert!(
        run.blocks
            .iter()
            .all(|b| !matches!(b.purpose, Purpose::Narrow { .. }))
    );
}

#[test]
fn loading_costs_what_it_has_cost_so_far() {
    let gap = Overhead {
        per_sample: Nanos::from_millis(1),
        ..Overhead::default()
    };
    let mut loads = BTreeMap::new();
    assert_eq!(gap.with_loads(4, &loads), gap);
    loads.insert(Segment::whole(4), Nanos::from_millis(40));
    let alone = gap.with_loads(4, &loads);
    assert_eq!(alone.per_segment, Nanos::from_millis(40));
    loads.insert(Segment::single(1), Nanos::from_millis(10));
    loads.insert(Segment::single(2), Nanos::from_millis(20));
    let known = gap.with_loads(4, &loads);
    assert_eq!(known.per_segment, Nanos::from_millis(15));
    assert_eq!(known.per_block, Nanos::from_millis(40));
    assert_eq!(known.per_sample, gap.per_sample);
}

#[test]
fn costly_loading_makes_blocks_repeat_more() {
    let plant = phone(12, 5);
    let mut costly = settings(12, 5);
    costly.overhead.per_segment = Nanos::from_millis(300);
    let mut run = Run::new(&plant, costly);
    run.finish(proportional(0.05, 5));
    let narrowing = run
        .blocks
        .iter()
        .filter(|b| matches!(b.purpose, Purpose::Narrow { .. }));
    assert!(narrowing.clone().count() > 0);
    assert!(narrowing.clone().all(|block| block.repetitions > 10));
}

fn on_budget(budget_ms: u64, over_budget: OverBudget) -> Settings {
    Settings {
        budget: Nanos::from_millis(budget_ms),
        over_budget,
        ..settings(9, 1)
    }
}

/// Every layer, every two neighbours and the whole: 9 + 8 + 1.
#[test]
fn layer_times_follow_on_any_budget() {
    for budget_ms in [0, 1, 300] {
        let plant = phone(9, 1);
        let mut run = Run::new(&plant, on_budget(budget_ms, OverBudget::Extend));
        let reason = run.finish(proportional(0.03, 1));
        assert!(
            matches!(reason, Reason::BudgetSpent { widest: Some(_) }),
            "{reason}"
        );
        let measured: Vec<Segment> = run.samples.keys().copied().collect();
        assert_eq!(measured, Design::Local.segments(9), "{budget_ms} ms");
    }
}

#[test]
fn a_budget_that_is_to_be_kept_is_refused_with_the_time_that_is_needed() {
    let plant = phone(9, 1);
    let all: i64 = Design::Local.iter(9).map(|one| plant.segment(one)).sum();
    let all = Nanos::from_nanos(10 * all as u64);
    let mut run = Run::new(&plant, on_budget(600, OverBudget::Refuse));
    let reason = run.finish(proportional(0.01, 1));
    let Reason::BudgetTooSmall { needed } = reason else {
        panic!("{reason}");
    };
    assert_eq!(
        run.blocks.len(),
        1,
        "the whole model says how long the others take"
    );
    // Warm-up and sentinels are foreseen, which this device does not have; the costs of cuts are not.
    assert!(needed.as_nanos() > all.as_nanos() / 2, "{needed} of {all}");
    assert!(needed.as_nanos() < 3 * all.as_nanos(), "{needed} of {all}");
    let enough = 2 * needed.as_nanos() / 1_000_000;
    let mut run = Run::new(&plant, on_budget(enough, OverBudget::Refuse));
    let reason = run.finish(proportional(0.01, 1));
    assert!(!matches!(reason, Reason::BudgetTooSmall { .. }), "{reason}");
}

#[test]
fn models_of_one_and_two_layers_are_measured_too() {
    for layers in 1..=4 {
        let plant = phone(layers, 1);
        let mut run = Run::new(&plant, settings(layers as u32, 1));
        let reason = run.finish(proportional(0.02, 1));
        assert!(
            matches!(reason, Reason::TargetReached { .. }),
            "{layers}: {reason}"
        );
    }
}

fn observed(samples: &BTreeMap<Segment, Vec<Nanos>>) -> Observations {
    observe(samples)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Apart from the segments that layer times follow from. Noise is left out: what is expected is what happens. No
    /// segment of such a plant takes longer than the whole.
    #[test]
    fn the_budget_is_exceeded_for_what_layer_times_follow_from_alone(
        layers in 3_usize..20,
        seed in any::<u64>(),
        budget_ms in 0_u64..20_000,
        per_segment_ms in 0_u64..200,
        per_block_ms in 0_u64..200,
        segments_per_block in 1_usize..20,
    ) {
        let plant = phone(layers, seed);
        let mut settings = settings(layers as u32, seed);
        settings.budget = Nanos::from_millis(budget_ms);
        settings.overhead.per_segment = Nanos::from_millis(per_segment_ms);
        settings.overhead.per_block = Nanos::from_millis(per_block_ms);
        settings.overhead.per_sample = Nanos::from_millis(1);
        settings.segments_per_block = segments_per_block;
        settings.target = 1e-12;
        let whole = plant.segment(Segment::whole(layers as u32));
        prop_assume!(Design::Grouped.iter(layers as u32).all(|s| plant.segment(s) <= whole));
        let mut run = Run::new(&plant, settings.clone());
        // Noise so small that times are exact to some ns, and yet there is something to narrow.
        let reason = run.finish(proportional(1e-7, seed));
        let stopped = matches!(reason, Reason::BudgetSpent { .. });
        prop_assert!(stopped, "{}", reason);
        let local: BTreeSet<Segment> = Design::Local.iter(layers as u32).collect();
        let essential: Nanos = run.blocks.iter().filter(|block| block.segments.iter().all(|one| local.contains(one)))
            .filter(|block| !matches!(block.purpose, Purpose::Narrow { .. }))
            .map(|block| {
                let samples = block.segments.iter().map(|&one| 10 * (plant.segment(one) as u64 + 1_000_000 + 1_000));
                let loads = block.segments.len() as u64 * settings.overhead.per_segment.as_nanos();
                settings.overhead.per_block + Nanos::from_nanos(samples.sum::<u64>() + loads)
            })
            .sum();
        // A rounding of the expectation up to the next nanosecond for each block, and the noise.
        let tolerance = 1 + settings.budget.as_nanos() / 1_000_000;
        prop_assert!(
            run.spent.as_nanos() <= settings.budget.max(essential).as_nanos() + tolerance,
            "{} of {}", run.spent, settings.budget
        );
    }

    #[test]
    fn the_plan_depends_on_nothing_but_what_it_was_told(
        layers in 1_usize..25,
        seed in any::<u64>(),
    ) {
        let plant = phone(layers, seed);
        let blocks = || {
            let mut run = Run::new(&plant, settings(layers as u32, seed));
            run.finish(proportional(0.01, seed));
            run.blocks
        };
        prop_assert_eq!(blocks(), blocks());
    }
}

#[test]
fn observations_of_another_model_are_refused() {
    let plant = phone(5, 1);
    let samples = plant.measure(Design::Grouped.iter(5), 3, proportional(0.01, 1));
    let planner = Planner::new(settings(4, 1));
    assert!(planner.next(&observed(&samples), Nanos::ZERO).is_err());
}
