//! What splitting a chain between a phone and a server costs: as long as VGG16 (37 layers) and as ResNet-50's training (140).
// Criterion's macro makes items that have no documentation.
#![allow(missing_docs)]
// Another test uses the rest of it.
#![allow(dead_code)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use layerlab_planners::edge::{
    Energy, Quantity, SplitAlgorithm, SplitCost, SplitGoal, SplitLimits, SplitProblem, split,
    split_front,
};
use layerlab_profiles::Nanos;
use planted::Planted;

#[path = "../tests/edge/planted.rs"]
mod planted;

/// The least latency; nothing limited.
const FREE: SplitGoal = SplitGoal {
    minimise: Quantity::Latency,
    limits: SplitLimits {
        latency: None,
        energy: None,
        server_time: None,
    },
};

fn cost(problem: &SplitProblem, minimise: Quantity) -> SplitCost {
    let goal = SplitGoal { minimise, ..FREE };
    let outcome = split(problem, goal, SplitAlgorithm::Joint).expect("sensible");
    outcome.plan().expect("no limits").cost()
}

/// All three limits, each halfway between what the fastest split and the one of least energy cost.
fn limited(problem: &SplitProblem) -> SplitGoal {
    let costs = [Quantity::Latency, Quantity::Energy].map(|one| cost(problem, one));
    let between = |quantity| {
        let [fast, frugal] = [costs[0].of(quantity), costs[1].of(quantity)];
        fast.min(frugal) + fast.abs_diff(frugal) / 2
    };
    SplitGoal {
        limits: SplitLimits {
            latency: Some(Nanos::from_nanos(between(Quantity::Latency))),
            energy: Some(Energy::from_nanojoules(between(Quantity::Energy))),
            server_time: Some(Nanos::from_nanos(between(Quantity::ServerTime))),
        },
        ..FREE
    }
}

fn splitting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split");
    group.sample_size(10);
    for layers in [37, 140] {
        let problem = Planted::chain(layers, 4).problem();
        for (name, goal) in [("no limits", FREE), ("three limits", limited(&problem))] {
            group.bench_function(format!("{layers} layers, {name}"), |bencher| {
                bencher.iter(|| split(black_box(&problem), goal, SplitAlgorithm::Joint));
            });
        }
        group.bench_function(format!("{layers} layers, front"), |bencher| {
            bencher.iter(|| split_front(black_box(&problem), FREE.limits));
        });
    }
    group.finish();
}

criterion_group!(benches, splitting);
criterion_main!(benches);
