//! Our answers against those of the papers' algorithms, on simulated networks of up to 30 layers.

use crate::planted;

use layerlab_planners::Algorithm;
use layerlab_planners::reason::{Reason, Verdict};
use planted::{Planted, advantage, goals};
use rayon::prelude::*;

const OTHERS: [Algorithm; 4] = [
    Algorithm::AllCpu,
    Algorithm::AllNpu,
    Algorithm::Heuristic,
    Algorithm::MlmpPaper,
];

/// Whether MLMP is better than the heuristic, for each goal; panics where it is worse than any other.
fn better(seed: u64) -> [bool; 2] {
    let planted = Planted::new(1 + seed as usize % 30, seed);
    let problem = planted.known();
    goals(&problem, seed).map(|goal| {
        let mlmp = planted.plan(&problem, None, goal, Algorithm::Mlmp);
        let moved = mlmp.plan().into_iter().flat_map(|plan| plan.reasons());
        for reason in moved {
            if let Reason::Layer(layer) = reason {
                assert_ne!(
                    layer.verdict,
                    Verdict::Better,
                    "seed {seed}, {goal}: {reason}"
                );
            }
        }
        let gains = OTHERS.map(|algorithm| {
            let other = planted.plan(&problem, None, goal, algorithm);
            let gain = advantage(goal, &mlmp, &other);
            assert!(
                gain >= -1e-12,
                "seed {seed}, {goal}: {algorithm} is better by {}",
                -gain
            );
            gain
        });
        gains[2] > 1e-12
    })
}

fn assert_mlmp_is_never_worse(seeds: std::ops::Range<u64>) {
    let half = (seeds.end - seeds.start) as usize / 2;
    let wins: Vec<[bool; 2]> = seeds.into_par_iter().map(better).collect();
    let count = |place: usize| wins.iter().filter(|wins| wins[place]).count();
    // Mostly it is better; with few layers there is often nothing to gain.
    let counts = [count(0), count(1)];
    assert!(counts.iter().all(|&count| count > half), "{counts:?}");
}

#[test]
fn mlmp_is_never_worse_than_a_heuristic_and_no_single_move_improves_it() {
    assert_mlmp_is_never_worse(10..30);
}

#[test]
#[ignore = "takes a quarter of a minute: make slow-test"]
fn mlmp_is_never_worse_than_a_heuristic_in_sixty_instances() {
    assert_mlmp_is_never_worse(0..60);
}
