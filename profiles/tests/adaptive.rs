//! The adaptive planner on planted devices: it ends at its target or within its budget, and its plan
//! depends on nothing but what it was told.

use crate::plant;

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::derive::graph::{Fit, VisitSamples, observe_visits};
use layerlab_profiles::design::Design;
use layerlab_profiles::design::adaptive::{Overhead, Planner, Settings, held_back, widest};
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::design::planned_block::{Next, PlannedBlock, Purpose, Reason};
use layerlab_profiles::{Bytes, Nanos, Segment, Shortcut, Shortcuts, SupportedLayers};
use plant::{Plant, phone, proportional};
use proptest::prelude::*;

/// In how many visits the first segments are measured, and with how many samples each where ten are asked for.
const START: (usize, usize) = (3, 4);

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
    samples: VisitSamples,
    shortcuts: Shortcuts,
    spent: Nanos,
    blocks: Vec<PlannedBlock>,
}

impl<'a> Run<'a> {
    fn new(plant: &'a Plant, settings: Settings) -> Self {
        Run {
            plant,
            overhead: settings.overhead.clone(),
            planner: Planner::new(settings),
            samples: VisitSamples::default(),
            shortcuts: Shortcuts::default(),
            spent: Nanos::ZERO,
            blocks: Vec::new(),
        }
    }

    /// Measures until the planner has had enough.
    fn finish(&mut self, mut noise: impl FnMut(f64) -> f64) -> Reason {
        for _ in 0..100_000 {
            let observed = observe_visits(&self.samples).with_shortcuts(self.shortcuts.clone());
            let block = match self.planner.next(&observed, self.spent) {
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
        let order = self.blocks.len() as u32;
        let took = self
            .plant
            .visit(&mut self.samples, order, block.counts(), noise);
        let Overhead {
            per_block,
            per_segment,
            per_sample,
            ..
        } = self.overhead;
        self.spent = self.spent + took + per_block;
        for (_, samples) in block.counts() {
            self.spent = self.spent + per_segment;
            for _ in 0..samples {
                self.spent = self.spent + per_sample;
            }
        }
    }

    /// How often each of the blocks that narrow intervals repeats its segments.
    fn narrowing(&self) -> Vec<u64> {
        let blocks = self.blocks.iter();
        let narrowing = blocks.filter(|block| matches!(block.purpose, Purpose::Narrow { .. }));
        narrowing.map(|block| block.repetitions).collect()
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
fn held_back_segments_are_measured_in_the_first_visits_and_never_to_narrow() {
    let plant = phone(12, 2);
    let mut run = Run::new(&plant, settings(12, 2));
    run.finish(proportional(0.03, 2));
    let held_back = held_back(12, 2);
    assert_eq!(held_back.len(), 4);
    assert!(!run.narrowing().is_empty());
    let (visits, samples) = START;
    for segment in &held_back {
        let measured = run.samples.segments[segment].values();
        let counts: Vec<usize> = measured.map(Vec::len).collect();
        assert_eq!(counts, vec![samples; visits], "{segment}");
    }
}

/// Layers are known best by short segments, and how long all of them take together by the whole model.
#[test]
fn the_whole_model_has_an_eighth_of_the_turns_beside_short_segments() {
    let plant = phone(12, 5);
    let whole = Segment::whole(12);
    let mut settings = settings(12, 5);
    settings.target = 0.002;
    let mut run = Run::new(&plant, settings);
    run.finish(proportional(0.03, 5));
    let narrowing = run.blocks.iter();
    let narrowing = narrowing.filter(|block| matches!(block.purpose, Purpose::Narrow { .. }));
    let narrowing: Vec<&PlannedBlock> = narrowing.collect();
    assert!(narrowing.len() > 40, "{} blocks", narrowing.len());
    for block in narrowing {
        let expected = match block.segments.contains(&whole) {
            true => block.repetitions,
            false => block.repetitions.div_ceil(8),
        };
        let counts: BTreeMap<Segment, u64> = block.counts().collect();
        assert_eq!(counts.get(&whole), Some(&expected), "{block:?}");
    }
}

#[test]
fn what_memory_does_not_hold_has_no_turn_beside_short_segments() {
    let plant = phone(12, 5);
    let supported = SupportedLayers::in_memory(12, [], [Segment::whole(12)]);
    let settings = Settings {
        target: 0.002,
        ..settings(12, 5)
    };
    let stretch = supported.stretch(Segment::whole(12));
    let mut run = Run {
        planner: Planner::in_stretch(settings.clone(), stretch),
        ..Run::new(&plant, settings)
    };
    run.finish(proportional(0.03, 5));
    assert!(!run.narrowing().is_empty());
    assert!(run.blocks.iter().all(|block| block.long.is_none()));
}

#[test]
fn the_interval_that_the_planner_stops_at_is_the_one_that_is_published() {
    let plant = phone(9, 3);
    let mut run = Run::new(&plant, settings(9, 3));
    run.finish(proportional(0.03, 3));
    let observations = observe_visits(&run.samples);
    let fit = Fit::new(9, &observations, &held_back(9, 3)).expect("connected");
    let whole = fit.segment(Segment::whole(9)).value;
    let published = widest(&fit.layer_times(), whole);
    assert!(published <= 0.0201, "{published}");
}

/// What bytes cost that pass is one number more that is to become known.
#[test]
fn with_shortcuts_the_target_is_reached_in_at_most_half_as_much_device_time_again() {
    let spent = |shortcuts: &Shortcuts, seed| {
        let plant = phone(24, seed);
        let mut run = Run::new(&plant, settings(24, seed));
        run.shortcuts = shortcuts.clone();
        let reason = run.finish(proportional(0.03, seed));
        assert!(matches!(reason, Reason::TargetReached { .. }), "{reason}");
        run.spent.as_nanos() as f64
    };
    let shortcut = |from| {
        let (to_layer, bytes) = (from + 3, Bytes::from_bytes(1_000_000));
        (from, Shortcut { to_layer, bytes })
    };
    let residual: Shortcuts = (1..22).step_by(3).map(shortcut).collect();
    let sum = |shortcuts: &Shortcuts| (0..5).map(|seed| spent(shortcuts, seed)).sum::<f64>();
    let more = sum(&residual) / sum(&Shortcuts::default());
    assert!((0.9..1.5).contains(&more), "{more:.2} times as much");
}

#[test]
fn a_quiet_device_is_done_after_the_start_set() {
    let plant = phone(12, 4);
    let mut run = Run::new(&plant, settings(12, 4));
    let reason = run.finish(proportional(1e-4, 4));
    assert!(matches!(reason, Reason::TargetReached { .. }), "{reason}");
    assert!(run.narrowing().is_empty());
}

#[test]
fn loading_costs_what_it_has_cost_so_far() {
    let gap = Overhead {
        per_sample: Nanos::from_millis(1),
        ..Overhead::default()
    };
    let mut loads = BTreeMap::new();
    assert_eq!(gap.with_loads(Segment::whole(4), &loads), gap);
    loads.insert(Segment::whole(4), Nanos::from_millis(40));
    let alone = gap.with_loads(Segment::whole(4), &loads);
    assert_eq!(alone.per_segment, Nanos::from_millis(40));
    loads.insert(Segment::single(1), Nanos::from_millis(10));
    loads.insert(Segment::single(2), Nanos::from_millis(20));
    let known = gap.with_loads(Segment::whole(4), &loads);
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
    let narrowing = run.narrowing();
    assert!(!narrowing.is_empty());
    assert!(narrowing.iter().all(|&count| count > 10), "{narrowing:?}");
}

/// Noise of inferences on top of what each loading of a segment adds to all of them: samples of one segment come in a row.
fn loadings(load: f64, inference: f64, seed: u64) -> impl FnMut(f64) -> f64 {
    let (mut loads, mut inferences) = (proportional(load, seed), proportional(inference, seed + 1));
    let (mut last, mut loaded) = (0.0, 0.0);
    move |time| {
        if time != last {
            (last, loaded) = (time, loads(time));
        }
        inferences(loaded)
    }
}

#[test]
fn where_loadings_differ_more_than_inferences_blocks_repeat_no_more_than_asked() {
    let plant = phone(12, 5);
    let mut settings = settings(12, 5);
    settings.budget = Nanos::from_millis(200_000);
    settings.overhead.per_segment = Nanos::from_millis(100);
    let narrowing = |load| {
        let mut run = Run::new(&plant, settings.clone());
        run.finish(loadings(load, 0.02, 5));
        run.narrowing()
    };
    let (alike, different) = (narrowing(0.0), narrowing(0.1));
    assert!(alike.iter().any(|&count| count > 10), "{alike:?}");
    assert!(!different.is_empty());
    assert!(different.iter().all(|&count| count == 10), "{different:?}");
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
        let measured: Vec<Segment> = run.samples.segments.keys().copied().collect();
        assert_eq!(measured, Design::Local.segments(9), "{budget_ms} ms");
    }
}

#[test]
fn a_budget_that_is_to_be_kept_is_refused_with_the_time_that_is_needed() {
    let plant = phone(9, 1);
    let all: i64 = Design::Local.iter(9).map(|one| plant.segment(one)).sum();
    let (visits, samples) = START;
    let all = Nanos::from_nanos((visits * samples) as u64 * all as u64);
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

/// Nothing is then known of how loadings of the only segment differ, and no number has an interval.
#[test]
fn without_sentinels_a_model_of_one_layer_is_measured_until_the_budget_is_spent() {
    let plant = phone(1, 1);
    let settings = Settings {
        budget: Nanos::from_millis(2_000),
        ..settings(1, 1)
    };
    let mut run = Run::new(&plant, settings.clone());
    let mut noise = proportional(0.02, 1);
    let reason = loop {
        run.samples.sentinels.clear();
        match run.planner.next(&observe_visits(&run.samples), run.spent) {
            Ok(Next::Measure(block)) => {
                run.measure(&block, &mut noise);
                run.blocks.push(block);
            }
            Ok(Next::Done(reason)) => break reason,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(matches!(reason, Reason::BudgetSpent { .. }), "{reason}");
    let left = settings.budget - run.spent;
    let each = plant.segment(Segment::whole(1)) as u64;
    assert!(left < Nanos::from_nanos(20 * each), "{left} left");
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
                let samples = block.segments.iter().map(|&one| block.repetitions * (plant.segment(one) as u64 + 1_000_000 + 1_000));
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
    let mut samples = VisitSamples::default();
    for order in 0..3 {
        let all = Design::Grouped.iter(5).map(|segment| (segment, 3));
        plant.visit(&mut samples, order, all, proportional(0.01, 1));
    }
    let planner = Planner::new(settings(4, 1));
    let planned = planner.next(&observe_visits(&samples), Nanos::ZERO);
    assert!(planned.is_err(), "{planned:?}");
}
