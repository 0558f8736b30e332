//! What training an accuracy model and planning with it cost, on a simulated network of 26 layers.
//! `reference.py` beside this file does the same with scikit-learn.
// Criterion's macro makes items that have no documentation.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use layerlab_planners::accuracy::AccuracyModel;
use layerlab_planners::regress::{GbrtSettings, Grid, Kind, Settings};
use layerlab_planners::sweep::{accuracy_limits, time_limits};
use layerlab_planners::{Algorithm, plan};
use planted::Planted;

#[path = "../tests/planted/mod.rs"]
mod planted;

/// What the papers kept for Min-Time, and more than they kept for Max-Accuracy.
const MLMP: Algorithm = Algorithm::Mlmp { keep: Some(100) };

fn training(criterion: &mut Criterion) {
    let planted = Planted::with_rows(26, 1, 300);
    let mut group = criterion.benchmark_group("train on 250 rows of 26 layers");
    group.sample_size(10);
    for kind in Kind::ALL {
        let grid = Grid {
            kinds: vec![kind],
            ..Grid::default()
        };
        group.bench_function(format!("grid search of {kind}"), |bencher| {
            bencher
                .iter(|| AccuracyModel::train(&planted.layers, &planted.table, black_box(&grid)));
        });
    }
    group.finish();
}

fn planning(criterion: &mut Criterion) {
    let planted = Planted::with_rows(26, 1, 300);
    for trees in [100, 300] {
        let settings = Settings::Gbrt(GbrtSettings {
            trees,
            depth: 3,
            learning_rate: 0.1,
        });
        let model = AccuracyModel::with(&planted.layers, &planted.table, settings);
        let problem = planted.learnt(&model.expect("trains"));
        let (times, accuracies) = (time_limits(&problem, 3), accuracy_limits(&problem, 3));
        for (name, goal) in [("Max-Accuracy", times[1]), ("Min-Time", accuracies[1])] {
            criterion.bench_function(
                &format!("{name}, 26 layers, K = 100, {trees} trees"),
                |bencher| {
                    bencher.iter(|| plan(black_box(&problem), goal, MLMP));
                },
            );
        }
    }
}

criterion_group!(benches, planning, training);
criterion_main!(benches);
