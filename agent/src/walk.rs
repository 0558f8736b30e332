//! What a network answers under many placements, with the work shared that they have in common (docs/method.md §6).
//!
//! Placements are walked layer by layer, all at once: those whose activations are the same, bit for bit, are
//! one *state*. Placements with a common beginning are one state until they part, as in a prefix tree; and
//! states that meet again are one again, which happens wherever a layer gives the same on two processors
//! (pooling of values that were rounded already, activations that were cut off).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use layerlab_model::Network;
use layerlab_profiles::{Bytes, Placement, Segment};

use crate::runtime::{RuntimeError, Session, Tensor};

/// One layer on each processor, processor 0 first; `None` where no placement needs it.
pub(crate) type LayerSessions = Vec<Option<Box<dyn Session>>>;

/// What each layer of a network costs to walk.
pub(crate) struct Costs {
    /// Floating-point operations of each layer.
    flop: Vec<u64>,
    /// The most that is alive before or after a layer.
    widest: Bytes,
}

impl Costs {
    pub(crate) fn of(network: &Network) -> Costs {
        let layers = network.layers();
        let alive = layers
            .iter()
            .flat_map(|layer| [layer.input_bytes, layer.output_bytes]);
        Costs {
            flop: layers
                .iter()
                .map(|layer| layer.additions + layer.multiplications)
                .collect(),
            widest: alive.max().unwrap_or(Bytes::ZERO),
        }
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
    tensors: Vec<Tensor>,
    placements: Vec<usize>,
}

/// Runs a network on `input` under each of `placements`; activations take no more than `budget`, unless
/// already one placement needs more.
pub(crate) fn walk(
    sessions: &mut [LayerSessions],
    costs: &Costs,
    placements: &[Placement],
    input: Vec<Tensor>,
    budget: Bytes,
) -> Result<Answers, RuntimeError> {
    // Neighbours in this order have the longest beginnings in common.
    let mut order: Vec<usize> = (0..placements.len()).collect();
    order.sort_by(|&a, &b| placements[a].cmp(&placements[b]));
    let mut answers = Answers {
        outputs: vec![Vec::new(); placements.len()],
        flop: 0,
    };
    for together in order.chunks(costs.together(budget)) {
        let mut states = vec![WalkState {
            tensors: input.clone(),
            placements: together.to_vec(),
        }];
        for (layer, sessions) in sessions.iter_mut().enumerate() {
            let mut next = States::default();
            for state in states {
                for (processor, session) in sessions.iter_mut().enumerate() {
                    let here: Vec<usize> = state
                        .placements
                        .iter()
                        .copied()
                        .filter(|&placement| {
                            usize::from(placements[placement].processors()[layer]) == processor
                        })
                        .collect();
                    let Some(session) = session.as_mut().filter(|_| !here.is_empty()) else {
                        continue;
                    };
                    let tensors = session.outputs(&state.tensors)?;
                    answers.flop += costs.flop[layer];
                    next.add(tensors, here);
                }
            }
            states = next.states;
        }
        for WalkState {
            tensors,
            placements,
        } in states
        {
            let output: Vec<f32> = tensors.iter().flat_map(Tensor::to_floats).collect();
            for placement in placements {
                answers.outputs[placement].clone_from(&output);
            }
        }
    }
    Ok(answers)
}

/// States of which no two have the same activations.
#[derive(Default)]
struct States {
    states: Vec<WalkState>,
    by_hash: HashMap<u64, Vec<usize>>,
}

impl States {
    fn add(&mut self, tensors: Vec<Tensor>, mut placements: Vec<usize>) {
        let mut hasher = DefaultHasher::new();
        tensors.hash(&mut hasher);
        let alike = self.by_hash.entry(hasher.finish()).or_default();
        let same = alike
            .iter()
            .find(|&&place| self.states[place].tensors == tensors);
        match same {
            Some(&place) => self.states[place].placements.append(&mut placements),
            None => {
                alike.push(self.states.len());
                self.states.push(WalkState {
                    tensors,
                    placements,
                });
            }
        }
    }
}

/// The layers of a network, each a segment of its own.
pub(crate) fn layers(network: &Network) -> impl Iterator<Item = Segment> {
    (1..=network.layer_count()).map(Segment::single)
}
