//! What splitting a chain between a phone and a server costs: as long as VGG16 (37 layers) and as training
//! ResNet (2 x 70; jointdnn Table 2).
// Criterion's macro makes items that have no documentation.
#![allow(missing_docs)]
// The tests use the rest of `planted`.
#![allow(dead_code)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use layerlab_planners::edge::{
    Energy, Quantity, SplitAlgorithm, SplitCost, SplitGoal, SplitLimits, SplitProblem, split,
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

fn cost(problem: &SplitProblem, goal: SplitGoal, minimise: Quantity) -> SplitCost {
    let goal = SplitGoal { minimise, ..goal };
    let outcome = split(problem, goal, SplitAlgorithm::Joint).expect("sensible");
    outcome.plan().expect("limits that can be kept").cost()
}

/// The least energy within three limits that can be kept: those of the fastest split whose energy is at most halfway
/// between those of the fastest and of the most frugal one, and a twentieth more latency; nothing where they do not
/// change the answer.
fn limited(problem: &SplitProblem) -> Option<SplitGoal> {
    let ends = [Quantity::Latency, Quantity::Energy].map(|one| cost(problem, FREE, one));
    let energies = ends.map(|end| end.energy.as_nanojoules());
    let mut goal = FREE;
    goal.limits.energy = Some(Energy::from_nanojoules(energies[0].midpoint(energies[1])));
    let within = cost(problem, goal, Quantity::Latency);
    goal.limits.server_time = Some(within.server_time);
    let latency = within.latency.as_nanos();
    goal.limits.latency = Some(Nanos::from_nanos(latency + latency / 20));
    let goal = SplitGoal {
        minimise: Quantity::Energy,
        ..goal
    };
    let is_bound = cost(problem, goal, Quantity::Energy) != ends[1];
    is_bound.then_some(goal)
}

fn splitting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split");
    group.sample_size(10);
    for layers in [37, 140] {
        let (problem, goal) = (0..)
            .map(|seed| Planted::chain(layers, seed).problem())
            .find_map(|problem| Some((limited(&problem)?, problem)))
            .map(|(goal, problem)| (problem, goal))
            .expect("limits that change the answer");
        for (name, goal) in [("no limits", FREE), ("three limits", goal)] {
            group.bench_function(format!("{layers} layers, {name}"), |bencher| {
                bencher.iter(|| split(black_box(&problem), goal, SplitAlgorithm::Joint));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, splitting);
criterion_main!(benches);
