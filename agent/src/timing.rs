//! The timing loop: loads the segments of an order, warms them up and times them in blocks of turns.

mod progress;

use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Event, FailureKind, Rejection, WarmUp, Work};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::ended::{Ended, failed};
use crate::engine::{Engine, EngineError, Inference, Invocation, Session, Tensor, timing_input};
use crate::hygiene::{self, End};
use crate::queue::{Abandoned, Queue, Task};
use progress::Progress;

/// Runs of the whole model whose median is a sentinel: one of them may be a spike.
const SENTINEL_RUNS: u32 = 3;

/// The longest the loop sleeps before it looks whether its order is still wanted.
const NAP: Nanos = Nanos::from_millis(1_000);

/// Times the segments of an order.
pub(crate) fn time(
    task: &Task,
    queue: &Queue,
    engine: &mut dyn Engine,
    network: Arc<Network>,
    segments: Vec<Segment>,
) -> Result<(), Ended> {
    let progress = Progress::from_history(&task.history);
    let mut timing = Timing {
        task,
        queue,
        engine,
        network,
        segments,
        progress,
        baseline: task.baseline,
    };
    match task.order.work {
        Work::TimeSegments { .. } => timing.time_segments(),
        _ => timing.time_passes(),
    }
}

/// One order in progress.
struct Timing<'a> {
    task: &'a Task,
    queue: &'a Queue,
    engine: &'a mut dyn Engine,
    network: Arc<Network>,
    /// The order's segments; a sample's index counts by their places.
    segments: Vec<Segment>,
    progress: Progress,
    /// The sentinel of the run's first accepted block on this processor.
    baseline: Option<Nanos>,
}

/// A segment that is loaded, with the input that it is timed with.
struct Loaded {
    /// Its place in the order; `None` for a sentinel that is nothing else.
    place: Option<usize>,
    segment: Segment,
    session: Box<dyn Session>,
    inputs: Vec<Tensor>,
}

/// Which turns a block consists of.
#[derive(Clone, Copy)]
enum Turns {
    /// Every segment by itself, in an order drawn anew for each round. The first one loaded, the whole
    /// model, is the sentinel.
    Mixed,
    /// All segments in order, each fed by the one before. The whole chain is the sentinel.
    Chain,
}

impl Timing<'_> {
    /// Times the segments in blocks of those that fit in memory together, the whole model with them.
    fn time_segments(&mut self) -> Result<(), Ended> {
        loop {
            let candidates = self.next_candidates();
            if candidates.is_empty() {
                return Ok(());
            }
            let whole = Segment::whole(self.network.layer_count());
            let sentinel = candidates
                .iter()
                .copied()
                .find(|&place| self.segments[place] == whole);
            let mut group = vec![self.load(sentinel, whole)?];
            for place in candidates
                .into_iter()
                .filter(|&place| Some(place) != sentinel)
            {
                match self.load(Some(place), self.segments[place]) {
                    Ok(loaded) => group.push(loaded),
                    // What does not fit now fits into a later block, unless it is alone already.
                    Err(Load::Full(_)) if group.iter().any(|loaded| loaded.place.is_some()) => {
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            self.block(&mut group, Turns::Mixed)?;
        }
    }

    /// Times passes over the whole model, layer by layer or part by part, each fed by the one before.
    fn time_passes(&mut self) -> Result<(), Ended> {
        if self.next_candidates().is_empty() {
            return Ok(());
        }
        let mut group = Vec::new();
        for place in 0..self.segments.len() {
            match self.load(Some(place), self.segments[place]) {
                Ok(loaded) => group.push(loaded),
                Err(Load::Full(_)) if !group.is_empty() => {
                    let message = format!(
                        "the memory of {} holds {} of the {} parts of a pass, which needs all of them; \
                         use a smaller model or a device with more memory",
                        self.task.order.processor_of(self.segments[place]),
                        group.len(),
                        self.segments.len()
                    );
                    return Err(failed(FailureKind::OutOfMemory, message));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.block(&mut group, Turns::Chain)
    }

    /// The places of the block that was in progress, or of all segments that lack samples.
    fn next_candidates(&self) -> Vec<usize> {
        let lacks = |&place: &usize| {
            (0..self.repetitions()).any(|r| !self.progress.done.contains(&self.index(place, r)))
        };
        let places = 0..self.segments.len();
        match &self.progress.open {
            Some(open) => places
                .filter(|&place| open.segments.contains(&self.segments[place]))
                .collect(),
            None => places.filter(lacks).collect(),
        }
    }

    /// Measures a block of loaded segments until it is accepted.
    fn block(&mut self, group: &mut [Loaded], turns: Turns) -> Result<(), Ended> {
        match turns {
            Turns::Mixed => {
                for loaded in &mut *group {
                    self.warm_up(std::slice::from_mut(loaded))?;
                }
            }
            Turns::Chain => self.warm_up(group)?,
        }
        loop {
            let (number, start) = match self.progress.open.take() {
                Some(open) => (open.number, open.start),
                None => self.start_block(group, turns)?,
            };
            match turns {
                Turns::Mixed => self.mixed_turns(number, group)?,
                Turns::Chain => self.chain_turns(number, group)?,
            }
            let end = self.end_of_block(group, turns, number, 1)?;
            let hygiene = &self.task.order.hygiene;
            let rejection = hygiene::judge(hygiene, self.baseline, &start, &end);
            self.record(Event::BlockEnded {
                block: number,
                sentinel_ns: end.sentinel,
                conditions: end.conditions,
                rejection: rejection.clone(),
            })?;
            let Some(rejection) = rejection else {
                self.baseline.get_or_insert(start.sentinel);
                self.progress.rejected = 0;
                return Ok(());
            };
            self.progress.rejected += 1;
            if self.progress.rejected > self.task.order.hygiene.redos {
                return Err(throttled(&rejection, "however often it was measured again"));
            }
            for loaded in &*group {
                let Some(place) = loaded.place else { continue };
                for repetition in 0..self.repetitions() {
                    let index = self.index(place, repetition);
                    self.progress.done.remove(&index);
                }
            }
            self.cool_down(group, turns, rejection)?;
        }
    }

    fn start_block(&mut self, group: &mut [Loaded], turns: Turns) -> Result<(u32, End), Ended> {
        let number = self.progress.next_block;
        self.progress.next_block += 1;
        let mut start = self.end_of_block(group, turns, number, 0)?;
        if let Some(unfit) = hygiene::unfit(&self.task.order.hygiene, self.baseline, &start) {
            start = self.cool_down(group, turns, unfit)?;
        }
        let segments = group
            .iter()
            .filter(|loaded| loaded.place.is_some())
            .map(|loaded| loaded.segment);
        self.record(Event::BlockStarted {
            block: number,
            segments: segments.collect(),
            sentinel_ns: start.sentinel,
            conditions: start.conditions.clone(),
        })?;
        Ok((number, start))
    }

    /// The sentinel and the state of the device, at the start (0) or the end (1) of a block.
    fn end_of_block(
        &mut self,
        group: &mut [Loaded],
        turns: Turns,
        block: u32,
        end: u32,
    ) -> Result<End, Ended> {
        let sentinel = match turns {
            Turns::Mixed => &mut group[..1],
            Turns::Chain => group,
        };
        let mut times = Vec::new();
        for run in 0..SENTINEL_RUNS {
            self.idle(self.task.order.gap_ns)?;
            let invocation = Invocation::sentinel(self.seed(), block, end * SENTINEL_RUNS + run);
            times.push(
                self.pass(sentinel, invocation)?
                    .iter()
                    .map(|i| i.duration)
                    .sum(),
            );
        }
        times.sort_unstable();
        let conditions = self.engine.conditions();
        Ok(End {
            sentinel: times[times.len() / 2],
            conditions,
        })
    }

    /// Rests until the device is fit to be measured, or it is clear that it will not be.
    fn cool_down(
        &mut self,
        group: &mut [Loaded],
        turns: Turns,
        why: Rejection,
    ) -> Result<End, Ended> {
        let hygiene = self.task.order.hygiene;
        let mut rested = Nanos::ZERO;
        loop {
            if rested >= hygiene.cool_down_deadline_ns {
                return Err(throttled(&why, "however long it rested"));
            }
            self.idle(hygiene.cool_down_poll_ns)?;
            rested = rested + hygiene.cool_down_poll_ns;
            let state = self.end_of_block(group, turns, self.progress.next_block, 0)?;
            if hygiene::unfit(&hygiene, self.baseline, &state).is_none() {
                let conditions = state.conditions.clone();
                self.record(Event::CooledDown {
                    rested_ns: rested,
                    conditions,
                })?;
                return Ok(state);
            }
        }
    }

    /// In each round every segment has one turn, in an order drawn anew, so that drift falls on all
    /// alike.
    fn mixed_turns(&mut self, block: u32, group: &mut [Loaded]) -> Result<(), Ended> {
        let mut turns: Vec<(usize, usize)> = group
            .iter()
            .enumerate()
            .filter_map(|(member, loaded)| Some((loaded.place?, member)))
            .collect();
        for repetition in 0..self.repetitions() {
            turns.sort_unstable();
            turns.shuffle(&mut self.random(block, repetition));
            for &(place, member) in &turns {
                let index = self.index(place, repetition);
                if self.progress.done.contains(&index) {
                    continue;
                }
                self.idle(self.task.order.gap_ns)?;
                let loaded = &mut group[member];
                let invocation = Invocation::sample(self.seed(), index);
                let inference = loaded.session.run(&loaded.inputs, invocation)?;
                self.record_sample(block, index, loaded.segment, &inference)?;
            }
        }
        Ok(())
    }

    fn chain_turns(&mut self, block: u32, group: &mut [Loaded]) -> Result<(), Ended> {
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
            self.idle(self.task.order.gap_ns)?;
            let inferences = self.pass(group, Invocation::sample(self.seed(), repetition))?;
            for (place, inference) in inferences.iter().enumerate() {
                if !self.progress.done.contains(&indices[place]) {
                    self.record_sample(block, indices[place], self.segments[place], inference)?;
                }
            }
        }
        Ok(())
    }

    fn load(&mut self, place: Option<usize>, segment: Segment) -> Result<Loaded, Load> {
        let session = self.engine.load(
            self.task.order.processor_of(segment),
            &self.network,
            segment,
        )?;
        self.queue.record(
            self.task,
            Event::Loaded {
                segment,
                load_ns: session.load_time(),
                memory_bytes: session.memory(),
            },
        )?;
        let inputs = timing_input(self.network.frontier(segment.first() - 1), self.seed());
        Ok(Loaded {
            place,
            segment,
            session,
            inputs,
        })
    }

    /// Runs `group` as a chain until a fast and a slow exponential average of its time agree.
    fn warm_up(&mut self, group: &mut [Loaded]) -> Result<(), Ended> {
        let WarmUp {
            min_runs,
            max_runs,
            agreement_percent,
        } = self.task.order.warm_up;
        let agreement = f64::from(agreement_percent) / 100.0;
        let mut averages: Option<(f64, f64)> = None;
        let mut runs = 0;
        while runs < max_runs {
            self.idle(self.task.order.gap_ns)?;
            let place = group[0].place.unwrap_or(self.segments.len());
            let invocation = Invocation::warm_up(self.seed(), place, runs);
            let total: Nanos = self
                .pass(group, invocation)?
                .iter()
                .map(|inference| inference.duration)
                .sum();
            let time = total.as_nanos() as f64;
            let (fast, slow) = averages.unwrap_or((time, time));
            let (fast, slow) = (fast + (time - fast) / 2.0, slow + (time - slow) / 5.0);
            averages = Some((fast, slow));
            runs += 1;
            if runs >= min_runs && (fast - slow).abs() <= agreement * slow {
                break;
            }
        }
        for loaded in group {
            self.record(Event::Warm {
                segment: loaded.segment,
                runs,
            })?;
        }
        Ok(())
    }

    /// Runs `group` in order, the first from its timing input, each other from the outputs before it.
    fn pass(
        &mut self,
        group: &mut [Loaded],
        invocation: Invocation,
    ) -> Result<Vec<Inference>, Ended> {
        let mut inferences: Vec<Inference> = Vec::with_capacity(group.len());
        for (step, loaded) in group.iter_mut().enumerate() {
            let invocation = invocation.step(step);
            let inference = match inferences.last() {
                None => loaded.session.run(&loaded.inputs, invocation)?,
                Some(before) => loaded.session.run(&before.outputs, invocation)?,
            };
            inferences.push(inference);
        }
        Ok(inferences)
    }

    /// Idles, and notices when the order is not wanted any more.
    fn idle(&mut self, time: Nanos) -> Result<(), Ended> {
        let mut left = time;
        while left > NAP {
            self.engine.idle(NAP);
            left = left - NAP;
            if !self.queue.wants(self.task) {
                return Err(Ended::Abandoned);
            }
        }
        self.engine.idle(left);
        Ok(())
    }

    fn record_sample(
        &mut self,
        block: u32,
        index: u64,
        segment: Segment,
        inference: &Inference,
    ) -> Result<(), Ended> {
        let (started_ns, duration_ns) = (inference.started, inference.duration);
        self.record(Event::Sample {
            block,
            index,
            segment,
            started_ns,
            duration_ns,
        })?;
        self.progress.done.insert(index);
        Ok(())
    }

    fn record(&self, event: Event) -> Result<(), Ended> {
        Ok(self.queue.record(self.task, event)?)
    }

    fn repetitions(&self) -> u64 {
        self.task.order.samples_per_segment
    }

    fn index(&self, place: usize, repetition: u64) -> u64 {
        place as u64 * self.repetitions() + repetition
    }

    /// Different for each order of a run, the same whenever the order is worked on.
    fn seed(&self) -> u64 {
        self.task.order.seed ^ (u64::from(self.task.order.number) << 32)
    }

    /// The same for the same round of the same block, so that an agent that was killed goes on with the
    /// same turns.
    fn random(&self, block: u32, repetition: u64) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed());
        random.set_stream(u64::from(block) << 32 | repetition);
        random
    }
}

/// Why a segment was not loaded.
enum Load {
    /// Memory is full.
    Full(EngineError),
    Ended(Ended),
}

impl From<EngineError> for Load {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::OutOfMemory { .. } => Load::Full(error),
            error => Load::Ended(error.into()),
        }
    }
}

impl From<Abandoned> for Load {
    fn from(abandoned: Abandoned) -> Self {
        Load::Ended(abandoned.into())
    }
}

impl From<Load> for Ended {
    fn from(load: Load) -> Self {
        match load {
            Load::Full(error) => error.into(),
            Load::Ended(ended) => ended,
        }
    }
}

fn throttled(rejection: &Rejection, however: &str) -> Ended {
    let message = format!(
        "throttled: {rejection}, {however}; nothing is published: cool the device, close what else runs \
         on it, and run again"
    );
    failed(FailureKind::Throttled, message)
}
