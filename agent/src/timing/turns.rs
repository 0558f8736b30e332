//! The turns that the segments of a block take, and the numbers of their samples.

use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::Event;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::block::{Blocks, Turns};
use super::inferences::TimedInference;
use super::loaded::LoadedSegment;
use super::long::Long;
use crate::device::Invocation;
use crate::ended::Ended;

/// So long are samples held back at most: so much of the work of an agent that is killed is done again.
const LONGEST_HELD: Nanos = Nanos::from_millis(1_000);

/// Samples that are taken and not yet written.
struct Held {
    samples: Vec<Sample>,
    /// When the last ones were written.
    since: Nanos,
}

struct Sample {
    /// Its number in the order.
    index: u64,
    segment: Segment,
    started: Nanos,
    duration: Nanos,
}

impl Sample {
    fn new(index: u64, segment: Segment, timed: &TimedInference) -> Sample {
        Sample {
            index,
            segment,
            started: timed.started,
            duration: timed.duration,
        }
    }
}

impl Blocks<'_> {
    /// Has the turns of a block taken. Samples are written when that has gone on for a second, and when it ends: writing wakes
    /// those who follow the run, and on the cores that the next inference needs.
    pub(super) fn take_turns(
        &mut self,
        block: u32,
        group: &mut [LoadedSegment],
        turns: Turns,
    ) -> Result<(), Ended> {
        let mut held = Held {
            samples: Vec::new(),
            since: self.inferences.now(),
        };
        let ended = match turns {
            Turns::Mixed => self.mixed_turns(block, group, &mut held),
            Turns::Chain => self.chain_turns(block, group, &mut held),
        };
        let written = self.write(block, &mut held);
        ended.and(written)
    }

    /// In each round every segment has one turn, but for the long one, in an order drawn anew, so that drift falls on all
    /// alike. The first round is run twice, and timed the second time: what was warmed up alone is slow when others first had
    /// turns between.
    fn mixed_turns(
        &mut self,
        block: u32,
        group: &mut [LoadedSegment],
        held: &mut Held,
    ) -> Result<(), Ended> {
        let mut turns: Vec<(usize, usize)> = group
            .iter()
            .enumerate()
            .filter_map(|(member, loaded)| Some((loaded.place?, member)))
            .collect();
        turns.shuffle(&mut self.random(block, 0));
        for &(place, member) in &turns {
            if !self.inferences.is_wanted() {
                return Err(Ended::Abandoned);
            }
            self.inferences.gap()?;
            let seed = self.inferences.seed();
            let invocation = Invocation::warm_up_in_turn(seed, block, place);
            self.inferences.run(&mut group[member], invocation)?;
        }
        for repetition in 0..self.repetitions() {
            turns.sort_unstable();
            turns.shuffle(&mut self.random(block, repetition));
            for &(place, member) in &turns {
                let Some(turn) = Long::turn(self.long, place, repetition) else {
                    continue;
                };
                let index = self.index(place, turn);
                if self.progress.done.contains(&index) {
                    continue;
                }
                self.watched_gap(group, Turns::Mixed, 1)?;
                let loaded = &mut group[member];
                let invocation = Invocation::sample(self.inferences.seed(), index);
                let timed = self.inferences.run(loaded, invocation)?;
                let sample = Sample::new(index, loaded.segment, &timed);
                self.hold(block, held, [sample])?;
            }
        }
        Ok(())
    }

    /// All segments in order, each fed by the one before.
    fn chain_turns(
        &mut self,
        block: u32,
        group: &mut [LoadedSegment],
        held: &mut Held,
    ) -> Result<(), Ended> {
        for repetition in 0..self.repetitions() {
            let indices: Vec<u64> = (0..group.len())
                .map(|place| self.index(place, repetition))
                .collect();
            if indices
                .iter()
                .all(|index| self.progress.done.contains(index))
            {
                continue;
            }
            self.watched_gap(group, Turns::Chain, group.len())?;
            let invocation = Invocation::sample(self.inferences.seed(), repetition);
            let timed = self.inferences.pass(group, invocation)?;
            let mut new = Vec::with_capacity(group.len());
            for ((index, loaded), timed) in indices.into_iter().zip(&*group).zip(&timed) {
                if !self.progress.done.contains(&index) {
                    new.push(Sample::new(index, loaded.segment, timed));
                }
            }
            self.hold(block, held, new)?;
        }
        Ok(())
    }

    /// Keeps samples back; all that are kept are written once that has gone on for long enough.
    fn hold(
        &mut self,
        block: u32,
        held: &mut Held,
        new: impl IntoIterator<Item = Sample>,
    ) -> Result<(), Ended> {
        held.samples.extend(new);
        match self.inferences.now() >= held.since + LONGEST_HELD {
            true => self.write(block, held),
            false => Ok(()),
        }
    }

    fn write(&mut self, block: u32, held: &mut Held) -> Result<(), Ended> {
        for sample in held.samples.drain(..) {
            self.record_sample(block, &sample)?;
        }
        held.since = self.inferences.now();
        Ok(())
    }

    fn record_sample(&mut self, block: u32, sample: &Sample) -> Result<(), Ended> {
        self.inferences.record(Event::Sample {
            block,
            index: sample.index,
            segment: sample.segment,
            started_ns: sample.started,
            duration_ns: sample.duration,
        })?;
        self.progress.done.insert(sample.index);
        Ok(())
    }

    fn repetitions(&self) -> u64 {
        self.inferences.settings.samples_per_segment
    }

    fn index(&self, place: usize, turn: u64) -> u64 {
        place as u64 * self.repetitions() + turn
    }

    /// All samples of the segment at this place in the order.
    pub(super) fn indices(&self, place: usize) -> impl Iterator<Item = u64> + use<> {
        let (long, first) = (self.long, self.index(place, 0));
        let turns = (0..self.repetitions()).filter_map(move |round| Long::turn(long, place, round));
        turns.map(move |turn| first + turn)
    }

    /// The same for the same round of the same block, so that an agent that was killed goes on with the
    /// same turns.
    fn random(&self, block: u32, repetition: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.inferences.seed());
        random.set_stream(u64::from(block) << 32 | repetition);
        random
    }
}
