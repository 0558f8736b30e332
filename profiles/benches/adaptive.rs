//! What the planner and the estimator cost: the next block must be planned while the phone works on the
//! one before.
// Criterion's macro makes items that have no documentation.
#![allow(missing_docs)]

use std::collections::BTreeSet;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use layerlab_profiles::Nanos;
use layerlab_profiles::derive::graph::{Fit, VisitSamples, observe_visits};
use layerlab_profiles::design::adaptive::{Overhead, Planner, Settings};
use layerlab_profiles::design::agenda::segments_per_block;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::design::planned_block::Next;
use plant::{phone, proportional};

#[path = "../tests/plant/mod.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod plant;

fn planner(layers: u32) -> Planner {
    Planner::new(Settings {
        layers,
        seed: 1,
        target: 0.02,
        budget: Nanos::from_millis(600_000),
        over_budget: OverBudget::Extend,
        repetitions: 10,
        segments_per_block: segments_per_block(layers),
        overhead: Overhead::default(),
    })
}

/// The start set, measured in three visits; then as many blocks as asked for.
fn samples(layers: u32, blocks: u32) -> VisitSamples {
    let (plant, planner) = (phone(layers as usize, 1), planner(layers));
    let mut noise = proportional(0.05, 1);
    let mut samples = VisitSamples::default();
    for order in 0..3 {
        let start = planner.start_set().map(|segment| (segment, 4));
        plant.visit(&mut samples, order, start, &mut noise);
    }
    for order in 3..3 + blocks {
        let planned = planner.next(&observe_visits(&samples), Nanos::ZERO);
        let Ok(Next::Measure(block)) = planned else {
            break;
        };
        plant.visit(&mut samples, order, block.counts(), &mut noise);
    }
    samples
}

fn planning(criterion: &mut Criterion) {
    for layers in [30, 100, 1000] {
        let observations = observe_visits(&samples(layers, 20));
        let planner = planner(layers);
        criterion.bench_function(
            &format!("plan a block of 16 of {layers} layers"),
            |bencher| {
                bencher.iter(|| planner.next(black_box(&observations), Nanos::ZERO));
            },
        );
    }
}

fn estimating(criterion: &mut Criterion) {
    let samples = samples(50, 50);
    let count: usize = samples.pooled().values().map(Vec::len).sum();
    criterion.bench_function(
        &format!("observe {count} samples of 50 layers"),
        |bencher| {
            bencher.iter(|| observe_visits(black_box(&samples)));
        },
    );
    let observations = observe_visits(&samples);
    criterion.bench_function("fit 50 layers", |bencher| {
        bencher.iter(|| Fit::new(50, black_box(&observations), &BTreeSet::new()));
    });
}

criterion_group!(benches, planning, estimating);
criterion_main!(benches);
