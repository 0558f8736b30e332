//! What training an accuracy model and planning with it cost, on the recorded network of 26 layers.
//! `reference.py` beside this file answers the same questions with scikit-learn.
// Criterion's macro makes items that have no documentation.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use layerlab_planners::accuracy::AccuracyModel;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::regress::{GbrtSettings, Grid, Kind, Settings};
use layerlab_planners::solve::find_front;
use layerlab_planners::{Algorithm, Goal, Problem, plan_keeping};
use layerlab_profiles::Nanos;
use recorded::network;

#[path = "../tests/recorded/network.rs"]
mod recorded;

/// What the papers kept for Min-Time, and more than they kept for Max-Accuracy.
const KEEP: Option<usize> = Some(100);

fn training(criterion: &mut Criterion) {
    let network = network();
    let mut group = criterion.benchmark_group("train");
    group.sample_size(10);
    for kind in Kind::ALL {
        let grid = Grid {
            kinds: vec![kind],
            ..Grid::default()
        };
        group.bench_function(format!("grid search of {kind}"), |bencher| {
            bencher
                .iter(|| AccuracyModel::train(&network.layers, &network.table, black_box(&grid)));
        });
    }
    group.finish();
}

/// The problem of the recorded network, its losses learnt by a forest of depth 3.
fn problem(trees: usize) -> Problem {
    let network = network();
    let settings = Settings::Gbrt(GbrtSettings {
        trees,
        depth: 3,
        learning_rate: 0.1,
    });
    let model = AccuracyModel::with(&network.layers, &network.table, settings).expect("trains");
    Problem::new(
        &network.layers,
        network.times,
        &network.table,
        Box::new(model),
    )
    .expect("one model")
}

fn planning(criterion: &mut Criterion) {
    for trees in [100, 300] {
        let problem = problem(trees);
        let ends = [PackedPlacement::all_cpu(26), PackedPlacement::all_npu(26)];
        let ends = ends.map(|end| problem.time(&end.expect("few layers")).as_nanos());
        let within = Nanos::from_nanos((ends[0] + ends[1]).unsigned_abs() / 2);
        for (name, goal) in [
            ("Max-Accuracy", Goal::MaxAccuracy { within }),
            (
                "Min-Time",
                Goal::MinTime {
                    at_least: problem.baseline() / 2.0,
                },
            ),
        ] {
            criterion.bench_function(
                &format!("{name}, 26 layers, K = 100, {trees} trees"),
                |bencher| {
                    bencher.iter(|| {
                        let paper = Algorithm::MlmpPaper;
                        plan_keeping(black_box(&problem), goal, paper, KEEP).expect("sensible")
                    });
                },
            );
        }
        criterion.bench_function(&format!("front, 26 layers, {trees} trees"), |bencher| {
            bencher.iter(|| find_front(black_box(&problem)));
        });
    }
}

criterion_group!(benches, planning, training);
criterion_main!(benches);
