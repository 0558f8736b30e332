//! Placements found layer by layer: T(L) and E(L) look no further than from a layer to the next, and memory no further than
//! what the runs before need. So of two ways to have run some layers with the last of them on one processor, one that costs no
//! less and leaves no more memory leads to nothing better.

use std::collections::BTreeMap;

use crate::memory::MemoryLimit;
use crate::placement::{MOST_PROCESSORS, PackedPlacement};
use crate::times::TimeTable;
use crate::unsupported::indices;

/// Where energy counts as well, so many paths of one state are gone on from; of more, these are spread evenly over time.
const MOST_PATHS: usize = 20_000;

/// A way to have run some layers, with the last of them on one processor.
#[derive(Clone, Copy)]
pub(super) struct Path {
    /// In ns.
    pub(super) time: i64,
    /// In nJ; 0 where nobody asks what it draws.
    energy: i64,
    pub(super) placement: PackedPlacement,
    /// Where the run of the last layer begins, counted from 0.
    begin: usize,
    /// What the runs before that one keep of each processor's memory.
    used: [u64; MOST_PROCESSORS],
}

impl Path {
    /// Whether going on from this one is never worse than from the other, which is of the same state.
    fn beats(&self, other: &Path) -> bool {
        self.time <= other.time
            && self.energy <= other.energy
            && self.used.iter().zip(&other.used).all(|(one, of)| one <= of)
    }
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

/// What is to be little.
pub(super) struct PathCosts<'a, More> {
    pub(super) times: &'a TimeTable,
    /// nJ in the place of ns; nothing where only time counts.
    pub(super) energies: Option<&'a TimeTable>,
    /// How much time each layer costs more on each processor, both counted from 0.
    pub(super) more: More,
}

/// Placements that no other beats.
pub(super) struct Unbeaten {
    /// With what they cost. Of equal ones the first, where each step prefers the lower processor before it.
    pub(super) paths: Vec<Path>,
    /// Whether they are all that there are, but for equal ones: there were never too many to go on from.
    pub(super) is_complete: bool,
}

/// The placements that no other beats, by dynamic programming over layers, the processor of the last one, which segments that
/// it cannot run as one unit it has begun to run, and, where its memory is limited, where the run began.
pub(super) fn unbeaten<More: Fn(usize, usize) -> i64>(
    costs: &PathCosts<'_, More>,
    all_cpu: PackedPlacement,
) -> Unbeaten {
    let times = costs.times;
    let processors = 0..times.processors();
    let most = costs.energies.map_or(usize::MAX, |_| MOST_PATHS);
    let mut is_complete = true;
    let start = |to: usize| {
        // Before the first layer everything is in main memory.
        let (time, energy) = costs.of_step(None, to, 0);
        let path = Path {
            time,
            energy,
            placement: all_cpu.placed(0, to),
            begin: 0,
            used: [0; MOST_PROCESSORS],
        };
        (to, path)
    };
    let started = processors.clone().map(start);
    let mut paths = best_of_each_state(times, 0, started, most, &mut is_complete);
    for index in 1..times.layers() {
        let steps = processors.clone().flat_map(|to| {
            let all = paths
                .iter()
                .flat_map(|(from, paths)| paths.iter().map(move |path| (from.processor, path)));
            all.map(move |(from, path)| {
                let (time, energy) = costs.of_step(Some(from), to, index);
                let mut next = Path {
                    time: path.time + time,
                    energy: path.energy + energy,
                    placement: path.placement.placed(index, to),
                    ..*path
                };
                if from != to {
                    next.begin = index;
                    if let Some(limit) = times.limit(from) {
                        let need = limit.need(path.begin, index - 1);
                        next.used[from] += limit.stays(need);
                    }
                }
                (to, next)
            })
        });
        paths = best_of_each_state(times, index, steps, most, &mut is_complete);
    }
    let last = times.layers() - 1;
    let ended = paths.iter().flat_map(|(state, paths)| {
        let leave = |table: &TimeTable| table.cost(state.processor, last).leave;
        let (time, energy) = (leave(times), costs.energies.map_or(0, leave));
        paths.iter().map(move |path| Path {
            time: path.time + time,
            energy: path.energy + energy,
            // Nothing is to follow.
            used: [0; MOST_PROCESSORS],
            ..*path
        })
    });
    let mut ended: Vec<Path> = ended.collect();
    is_complete &= keep_unbeaten(&mut ended, most);
    Unbeaten {
        paths: ended,
        is_complete,
    }
}

impl<More: Fn(usize, usize) -> i64> PathCosts<'_, More> {
    /// What the layer at `index` adds on the processor `to`, with moving there from where the layer before is.
    fn of_step(&self, from: Option<usize>, to: usize, index: usize) -> (i64, i64) {
        let step = |table: &TimeTable| {
            let cost = table.cost(to, index);
            let moving = match from == Some(to) {
                true => 0,
                false => cost.enter + from.map_or(0, |from| table.cost(from, index - 1).leave),
            };
            cost.compute + moving
        };
        let time = step(self.times) + (self.more)(to, index);
        (time, self.energies.map_or(0, step))
    }
}

/// Of each state the paths to the layer at `index` that no other beats; none that a processor cannot run or its memory does
/// not hold.
fn best_of_each_state(
    times: &TimeTable,
    index: usize,
    paths: impl Iterator<Item = (usize, Path)>,
    most: usize,
    is_complete: &mut bool,
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
            best.entry(state).or_default().push(path);
        }
    }
    for paths in best.values_mut() {
        *is_complete &= keep_unbeaten(paths, most);
    }
    best
}

/// Removes the paths that another one beats; of more than `most`, all but some of each time. Whether none of these was removed.
fn keep_unbeaten(paths: &mut Vec<Path>, most: usize) -> bool {
    // In this order a path can only be beaten by one before it. The sort is stable, so that the first of equals stays.
    paths.sort_by_key(|path| (path.time, path.energy));
    // Where memory makes no difference the last of those before draws least, and so beats whatever any of them does.
    let is_one_memory = paths.windows(2).all(|pair| pair[0].used == pair[1].used);
    let mut kept: Vec<Path> = Vec::new();
    for path in paths.drain(..) {
        let compared = match is_one_memory {
            true => kept.len().saturating_sub(1),
            false => 0,
        };
        if !kept[compared..].iter().any(|other| other.beats(&path)) {
            kept.push(path);
        }
    }
    let every = kept.len().div_ceil(most).max(1);
    let last = kept.len().saturating_sub(1);
    let some = kept.iter().enumerate();
    let some = some.filter(|(place, _)| place % every == 0 || *place == last);
    paths.extend(some.map(|(_, path)| *path));
    every == 1
}
