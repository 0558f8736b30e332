//! The name of one inference.

use std::fmt;

/// Names one inference of one run.
///
/// Only the modules of devices can read it, and no runtime is ever given one: what is measured cannot depend on it,
/// but for a simulated device, which draws noise from it.
#[derive(Clone, Copy)]
pub struct Invocation {
    seed: u64,
    purpose: Purpose,
    index: u64,
    step: u64,
}

/// What an inference is for.
#[derive(Clone, Copy)]
enum Purpose {
    Sample,
    WarmUp { place: u64 },
    WarmUpInTurn { block: u64 },
    Sentinel { block: u64 },
    Poll { number: u64 },
    Soak,
    Energy,
}

impl Invocation {
    /// The inference that gives sample number `index` of the order with this seed.
    pub fn sample(seed: u64, index: u64) -> Self {
        Invocation {
            seed,
            purpose: Purpose::Sample,
            index,
            step: 0,
        }
    }

    /// The inference that is run number `run` of warming up the segment at `place` of the order with
    /// this seed.
    pub fn warm_up(seed: u64, place: usize, run: u32) -> Self {
        let purpose = Purpose::WarmUp {
            place: place as u64,
        };
        Invocation {
            seed,
            purpose,
            index: u64::from(run),
            step: 0,
        }
    }

    /// The inference of the segment at `place` in the round that warms up the turns of `block` of the order with this seed.
    pub fn warm_up_in_turn(seed: u64, block: u32, place: usize) -> Self {
        let purpose = Purpose::WarmUpInTurn {
            block: u64::from(block),
        };
        Invocation {
            seed,
            purpose,
            index: place as u64,
            step: 0,
        }
    }

    /// The inference that is run number `run` of the sentinels of `block` of the order with this seed.
    pub fn sentinel(seed: u64, block: u32, run: u32) -> Self {
        let purpose = Purpose::Sentinel {
            block: u64::from(block),
        };
        Invocation {
            seed,
            purpose,
            index: u64::from(run),
            step: 0,
        }
    }

    /// The inference that is run number `run` of the sentinels of cool-down poll `number` of the order with this seed.
    pub fn poll(seed: u64, number: u32, run: u32) -> Self {
        let purpose = Purpose::Poll {
            number: u64::from(number),
        };
        Invocation {
            seed,
            purpose,
            index: u64::from(run),
            step: 0,
        }
    }

    /// The inference that is run number `run` of keeping the processor busy in the order with this seed.
    pub fn soak(seed: u64, run: u64) -> Self {
        Invocation {
            seed,
            purpose: Purpose::Soak,
            index: run,
            step: 0,
        }
    }

    /// The inference that is run number `run` of those whose energy is measured in the order with this seed.
    pub fn energy(seed: u64, run: u64) -> Self {
        Invocation {
            seed,
            purpose: Purpose::Energy,
            index: run,
            step: 0,
        }
    }

    /// The inference that is step number `step` of a chain of segments, all of which go by this name.
    pub fn step(self, step: usize) -> Self {
        Invocation {
            step: step as u64,
            ..self
        }
    }

    /// The seed of the order, which differs between the orders of a run and between runs of different seeds.
    pub(super) fn seed(self) -> u64 {
        self.seed
    }

    /// The name in 40 bytes: different for different inferences, the same on every machine.
    pub(super) fn bytes(self) -> [u8; 40] {
        let (purpose, of) = match self.purpose {
            Purpose::Sample => (0, 0),
            Purpose::WarmUp { place } => (1, place),
            Purpose::Sentinel { block } => (2, block),
            Purpose::Poll { number } => (3, number),
            Purpose::Soak => (4, 0),
            Purpose::Energy => (5, 0),
            Purpose::WarmUpInTurn { block } => (6, block),
        };
        let mut bytes = [0; 40];
        let words = [self.seed, purpose, of, self.index, self.step];
        for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

impl fmt::Debug for Invocation {
    /// Tells nothing: a name that can be printed can be read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invocation(..)")
    }
}
