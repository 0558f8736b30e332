//! What a network answers under many placements, with the work shared that they have in common (docs/method.md §6).
//!
//! Placements are walked part by part, all at once: those whose activations are the same, bit for bit, are
//! one *state*. Placements with a common beginning are one state until they part, as in a prefix tree; and
//! states that meet again are one again, which happens wherever a part gives the same on two processors
//! (pooling of values that were rounded already, activations that were cut off).

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::{Bytes, Placement, Segment};

use crate::runtime::{MainMemory, Tensor};

/// Layers that run as one unit, and the place of their processor.
pub(crate) type WalkPart = (Segment, usize);

/// The parts of a placement: the runs of neighbours on one processor, or each layer by itself.
pub(crate) fn parts(placement: &Placement, as_runs: bool) -> Vec<WalkPart> {
    let runs = placement.runs();
    let runs = runs.map(|(run, processor)| (run, usize::from(processor)));
    if as_runs {
        return runs.collect();
    }
    let layers = |(run, processor): WalkPart| {
        (run.first()..=run.last()).map(move |layer| (Segment::single(layer), processor))
    };
    runs.flat_map(layers).collect()
}

/// What each layer of a network costs to walk.
pub(crate) struct Costs<'n> {
    network: &'n Network,
    /// Floating-point operations of each layer.
    flop: Vec<u64>,
    /// The most that is alive at a cut.
    widest: Bytes,
}

impl<'n> Costs<'n> {
    pub(crate) fn of(network: &'n Network) -> Costs<'n> {
        let layers = network.layers();
        let alive = (0..=network.layer_count()).map(|cut| {
            let tensors = network.alive(cut).iter();
            tensors.map(TensorSpec::bytes).sum()
        });
        Costs {
            network,
            flop: layers
                .iter()
                .map(|layer| layer.additions + layer.multiplications)
                .collect(),
            widest: alive.max().unwrap_or(Bytes::ZERO),
        }
    }

    fn of_part(&self, segment: Segment) -> u64 {
        let layers = segment.first() as usize - 1..segment.last() as usize;
        self.flop[layers].iter().sum()
    }

    /// How many placements can be walked together when activations may take `budget`. A state and the one
    /// that follows from it are alive at once.
    fn together(&self, budget: Bytes) -> usize {
        let states = budget.as_bytes() / (2 * self.widest.as_bytes()).max(1);
        usize::try_from(states).unwrap_or(usize::MAX).max(1)
    }
}

/// The answers to one input, and what they cost.
pub(crate) struct Answers {
    /// The network's outputs under each placement, in the order in which the placements were given.
    pub(crate) outputs: Vec<Vec<f32>>,
    /// Floating-point operations that were executed.
    pub(crate) flop: u64,
}

/// Placements whose activations are the same so far.
struct WalkState {
    memory: MainMemory,
    placements: Vec<usize>,
}

/// Runs a network on `input` under each of `placements`, given as their parts, each part by `run`; activations take no more
/// than `budget`, unless already one placement needs more.
pub(crate) fn walk<E>(
    mut run: impl FnMut(WalkPart, &[Tensor]) -> Result<Vec<Tensor>, E>,
    costs: &Costs<'_>,
    placements: &[Vec<WalkPart>],
    input: &[Tensor],
    budget: Bytes,
) -> Result<Answers, E> {
    // Neighbours in this order have the longest beginnings in common.
    let mut order: Vec<usize> = (0..placements.len()).collect();
    order.sort_by(|&a, &b| placements[a].cmp(&placements[b]));
    let mut answers = Answers {
        outputs: vec![Vec::new(); placements.len()],
        flop: 0,
    };
    let (network, layers) = (costs.network, costs.flop.len());
    for together in order.chunks(costs.together(budget)) {
        // The states at each cut; parts of several layers leave out those in between.
        let mut at: Vec<States> = (0..=layers).map(|_| States::default()).collect();
        at[0].add(
            MainMemory::of(network.inputs(), input.to_vec()),
            together.to_vec(),
        );
        for cut in 0..layers {
            for state in std::mem::take(&mut at[cut]).states {
                let mut parts: BTreeMap<WalkPart, Vec<usize>> = BTreeMap::new();
                for placement in state.placements {
                    let mut all = placements[placement].iter();
                    if let Some(&part) = all.find(|(part, _)| part.first() as usize == cut + 1) {
                        parts.entry(part).or_default().push(placement);
                    }
                }
                for (part, here) in parts {
                    let segment = part.0;
                    let given = run(part, &state.memory.taken(&network.takes(segment)))?;
                    answers.flop += costs.of_part(segment);
                    let memory = state.memory.after(network, segment, given);
                    at[segment.last() as usize].add(memory, here);
                }
            }
        }
        for WalkState { memory, placements } in std::mem::take(&mut at[layers]).states {
            let outputs = memory.tensors().iter();
            let output: Vec<f32> = outputs.flat_map(Tensor::to_floats).collect();
            for placement in placements {
                answers.outputs[placement].clone_from(&output);
            }
        }
    }
    Ok(answers)
}

/// The layers of a network, each a segment of its own.
pub(crate) fn layers(network: &Network) -> impl Iterator<Item = Segment> {
    (1..=network.layer_count()).map(Segment::single)
}

/// States of which no two have the same activations.
#[derive(Default)]
struct States {
    states: Vec<WalkState>,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl States {
    fn add(&mut self, memory: MainMemory, mut placements: Vec<usize>) {
        let mut hasher = DefaultHasher::new();
        memory.hash(&mut hasher);
        let alike = self.by_hash.entry(hasher.finish()).or_default();
        let same = alike
            .iter()
            .find(|&&place| self.states[place].memory == memory);
        match same {
            Some(&place) => self.states[place].placements.append(&mut placements),
            None => {
                alike.push(self.states.len());
                self.states.push(WalkState { memory, placements });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(placement: &str, as_runs: bool) -> Vec<(String, usize)> {
        let placement: Placement = placement.parse().expect("digits");
        let parts = parts(&placement, as_runs).into_iter();
        parts.map(|(part, on)| (part.to_string(), on)).collect()
    }

    #[test]
    fn neighbours_on_one_processor_are_one_part_only_as_runs() {
        let part = |first: u32, last: u32, on| {
            let segment = Segment::new(first, last).expect("a segment");
            (segment.to_string(), on)
        };
        assert_eq!(
            told("00112", true),
            [part(1, 2, 0), part(3, 4, 1), part(5, 5, 2)]
        );
        assert_eq!(told("0011", false).len(), 4);
        assert_eq!(told("0011", false)[2], part(3, 3, 1));
    }
}
