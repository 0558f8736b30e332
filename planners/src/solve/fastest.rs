//! The fastest of all placements, whatever its accuracy: exact, because T(L) looks no further than from a
//! layer to the next. It proves that a time limit cannot be met.

use super::{Found, meets, only, too_slow};
use crate::goal::Goal;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::times::TimeTable;

/// The shortest time to have run some layers, with the last of them on one processor.
#[derive(Clone, Copy)]
struct Path {
    time: i64,
    placement: Placement,
}

/// The fastest placement, if it keeps the limit.
pub(super) fn search(problem: &Problem, goal: Goal) -> Found {
    let fastest = fastest(problem.times(), problem.all_cpu().placement);
    let triple = problem.triples(&[problem.columns().candidate(fastest)])[0];
    let kept = meets(goal, &triple).then_some(triple);
    Found::best_or(kept, 1, || match goal {
        Goal::MaxAccuracy { .. } => too_slow(problem, &fastest),
        Goal::MinTime { .. } => only(&triple),
    })
}

/// The placement of the least T(L), by dynamic programming over layers and the processor of the last one. Among
/// equals, each step prefers the lower processor before it.
pub(super) fn fastest(times: &TimeTable, all_cpu: Placement) -> Placement {
    let processors = 0..times.processors();
    // Before the first layer everything is in main memory.
    let start = |to: usize| {
        let cost = times.cost(to, 0);
        Path {
            time: cost.enter + cost.compute,
            placement: all_cpu.placed(0, to),
        }
    };
    let mut paths: Vec<Path> = processors.clone().map(start).collect();
    for index in 1..times.layers() {
        let step = |to: usize| {
            let cost = times.cost(to, index);
            let from = |from: usize| {
                let moving = match from == to {
                    true => 0,
                    false => times.cost(from, index - 1).leave + cost.enter,
                };
                Path {
                    time: paths[from].time + moving + cost.compute,
                    placement: paths[from].placement.placed(index, to),
                }
            };
            first_of_the_fastest(processors.clone().map(from))
        };
        paths = processors.clone().filter_map(step).collect();
    }
    let last = times.layers() - 1;
    let left = (0..).zip(&paths).map(|(processor, path)| Path {
        time: path.time + times.cost(processor, last).leave,
        placement: path.placement,
    });
    first_of_the_fastest(left).map_or(all_cpu, |path| path.placement)
}

fn first_of_the_fastest(paths: impl Iterator<Item = Path>) -> Option<Path> {
    // Of several least elements the first is taken.
    paths.min_by_key(|path| path.time)
}
