//! The fastest of all placements, whatever its accuracy: exact, because T(L) looks no further than from a
//! layer to the next, and memory no further than what the runs before need. It proves that a time limit cannot be met.

use std::collections::BTreeMap;

use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, meets, only, too_slow};
use crate::goal::Goal;
use crate::memory::MemoryLimit;
use crate::placement::{MOST_PROCESSORS, PackedPlacement};
use crate::problem::Problem;
use crate::times::TimeTable;
use crate::unsupported::indices;

/// A time to have run some layers, with the last of them on one processor.
#[derive(Clone, Copy)]
struct Path {
    time: i64,
    placement: PackedPlacement,
    /// Where the run of the last layer begins, counted from 0.
    begin: usize,
    /// What the runs before that one keep of each processor's memory.
    used: [u64; MOST_PROCESSORS],
}

impl Path {
    /// Whether going on from this one is never worse than from the other, which is of the same state.
    fn beats(&self, other: &Path) -> bool {
        self.time <= other.time && self.used.iter().zip(&other.used).all(|(one, of)| one <= of)
    }
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

/// The placement of the least T(L), by dynamic programming over layers, the processor of the last one, which segments
/// that it cannot run as one unit it has begun to run, and, where its memory is limited, where the run began: of each of these
/// the paths that no other is as fast as with no more memory in use. Among equals, each step prefers the lower processor
/// before it.
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
            begin: 0,
            used: [0; MOST_PROCESSORS],
        }
    };
    let mut paths = best_of_each_state(times, 0, processors.clone().map(|to| (to, start(to))));
    for index in 1..times.layers() {
        let steps = processors.clone().flat_map(|to| {
            let cost = times.cost(to, index);
            let all = paths
                .iter()
                .flat_map(|(from, paths)| paths.iter().map(move |path| (from.processor, path)));
            all.map(move |(from, path)| {
                let mut next = Path {
                    time: path.time + cost.compute + more(to, index),
                    placement: path.placement.placed(index, to),
                    ..*path
                };
                if from != to {
                    next.time += times.cost(from, index - 1).leave + cost.enter;
                    next.begin = index;
                    if let Some(limit) = times.limit(from) {
                        let need = limit.need(path.begin, index - 1);
                        next.used[from] += limit.stays(need);
                    }
                }
                (to, next)
            })
        });
        paths = best_of_each_state(times, index, steps);
    }
    let last = times.layers() - 1;
    let left = paths
        .iter()
        .flat_map(|(state, paths)| paths.iter().map(move |path| (state, path)));
    let left = left.map(|(state, path)| Path {
        time: path.time + times.cost(state.processor, last).leave,
        ..*path
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
    /// Where the run of the last layer begins, if that decides how much memory it needs.
    begin: Option<usize>,
}

/// Of each state the paths to the layer at `index` that no other beats, of equal ones the first; none that a processor cannot
/// run or its memory does not hold.
fn best_of_each_state(
    times: &TimeTable,
    index: usize,
    paths: impl Iterator<Item = (usize, Path)>,
) -> BTreeMap<PathState, Vec<Path>> {
    let mut best: BTreeMap<PathState, Vec<Path>> = BTreeMap::new();
    for (processor, path) in paths {
        let limit = times.limit(processor);
        let is_held = |limit: &MemoryLimit| {
            let need = limit.need(path.begin, index);
            path.used[processor].saturating_add(need) <= limit.capacity
        };
        if !limit.is_none_or(is_held) {
            continue;
        }
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
            let state = PathState {
                processor,
                begun,
                begin: limit.map(|_| path.begin),
            };
            let known = best.entry(state).or_default();
            if !known.iter().any(|other| other.beats(&path)) {
                known.retain(|other| !path.beats(other));
                known.push(path);
            }
        }
    }
    best
}

fn first_of_the_fastest(paths: impl Iterator<Item = Path>) -> Option<Path> {
    // Of several least elements the first is taken.
    paths.min_by_key(|path| path.time)
}
