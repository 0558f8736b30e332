//! The fastest of all placements, whatever its accuracy: exact, because T(L) looks no further than from a
//! layer to the next. It proves that a time limit cannot be met.

use std::collections::BTreeMap;

use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, meets, only, too_slow};
use crate::goal::Goal;
use crate::placement::PackedPlacement;
use crate::problem::Problem;
use crate::times::TimeTable;
use crate::unsupported::indices;

/// The shortest time to have run some layers, with the last of them on one processor.
#[derive(Clone, Copy)]
struct Path {
    time: i64,
    placement: PackedPlacement,
}

pub(super) struct Fastest;

impl Solver for Fastest {
    fn name(&self) -> &'static str {
        "fastest"
    }

    fn search(
        &self,
        problem: &Problem,
        goal: Goal,
        _options: SearchOptions,
    ) -> Result<Found, PlanError> {
        let fastest = fastest(problem.times(), problem.all_cpu().placement);
        let triple = problem.triples(&[problem.columns().candidate(fastest)])[0];
        let kept = meets(problem, goal, &triple).then_some(triple);
        Ok(Found::best_or(kept, 1, || match goal {
            Goal::MaxAccuracy { .. } => too_slow(problem, &fastest),
            Goal::MinTime { .. } => only(&triple),
        }))
    }
}

/// The placement of the least T(L), by dynamic programming over layers, the processor of the last one, and which segments
/// that it cannot run as one unit it has begun to run. Among equals, each step prefers the lower processor before it.
pub(super) fn fastest(times: &TimeTable, all_cpu: PackedPlacement) -> PackedPlacement {
    fastest_with(times, all_cpu, |_, _| 0)
}

/// The same where each layer costs so much time more on each processor, both counted from 0.
pub(super) fn fastest_with(
    times: &TimeTable,
    all_cpu: PackedPlacement,
    more: impl Fn(usize, usize) -> i64,
) -> PackedPlacement {
    let (processors, more) = (0..times.processors(), &more);
    // Before the first layer everything is in main memory.
    let start = |to: usize| {
        let cost = times.cost(to, 0);
        Path {
            time: cost.enter + cost.compute + more(to, 0),
            placement: all_cpu.placed(0, to),
        }
    };
    let mut paths = fastest_of_each_state(times, 0, processors.clone().map(|to| (to, start(to))));
    for index in 1..times.layers() {
        let steps = processors.clone().flat_map(|to| {
            let cost = times.cost(to, index);
            paths.iter().map(move |(from, path)| {
                let moving = match from.processor == to {
                    true => 0,
                    false => times.cost(from.processor, index - 1).leave + cost.enter,
                };
                let path = Path {
                    time: path.time + moving + cost.compute + more(to, index),
                    placement: path.placement.placed(index, to),
                };
                (to, path)
            })
        });
        paths = fastest_of_each_state(times, index, steps);
    }
    let last = times.layers() - 1;
    let left = paths.iter().map(|(state, path)| Path {
        time: path.time + times.cost(state.processor, last).leave,
        placement: path.placement,
    });
    first_of_the_fastest(left).map_or(all_cpu, |path| path.placement)
}

/// What of a path decides how it may go on.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PathState {
    /// The processor of the last layer.
    processor: usize,
    /// The segments, by their places, which this processor cannot run as one unit and has run so far.
    begun: Vec<usize>,
}

/// The first of the fastest paths of each state, of paths to the layer at `index`; none that a processor cannot run.
fn fastest_of_each_state(
    times: &TimeTable,
    index: usize,
    paths: impl Iterator<Item = (usize, Path)>,
) -> BTreeMap<PathState, Path> {
    let mut best: BTreeMap<PathState, Path> = BTreeMap::new();
    for (processor, path) in paths {
        let unsupported = times.unsupported(processor).iter().enumerate();
        let (mut begun, mut is_possible) = (Vec::new(), true);
        for (place, one) in unsupported {
            let layers = indices(one.segment);
            let runs_all = layers
                .clone()
                .take_while(|&layer| layer <= index)
                .all(|layer| path.placement.processor(layer) == processor);
            if layers.contains(&index) && runs_all {
                begun.push(place);
                is_possible &= layers.end != index + 1;
            }
        }
        if is_possible {
            let state = PathState { processor, begun };
            let known = best.entry(state).or_insert(path);
            if path.time < known.time {
                *known = path;
            }
        }
    }
    best
}

fn first_of_the_fastest(paths: impl Iterator<Item = Path>) -> Option<Path> {
    // Of several least elements the first is taken.
    paths.min_by_key(|path| path.time)
}
