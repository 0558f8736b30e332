//! The timing loop: loads the segments of an order and has them timed in blocks of those that fit in memory.

mod block;
mod disturbance;
mod energy;
mod inferences;
mod loaded;
mod long;
mod progress;
mod recovery;
mod sentinel;
mod soak;
mod turns;
mod watch;

use std::collections::BTreeSet;

use layerlab_profiles::{Nanos, Segment};
use layerlab_protocol::{Event, FailureKind, ProcessorKind, TimingSettings, Work};

use crate::ModelWithTwin;
use crate::device::Device;
use crate::ended::{Ended, failed};
use crate::queue::{Queue, Task};
use crate::runtime::{RuntimeError, Runtimes, loaded_event, timing_input};
use block::{Blocks, Outcome, Turns};
use inferences::Inferences;
use loaded::{LoadedSegment, NotLoaded};
use long::Long;
use progress::Progress;
use watch::Watch;

/// Times the segments of an order.
pub(crate) fn time(
    task: &Task,
    queue: &Queue,
    device: &mut dyn Device,
    runtimes: &mut Runtimes,
    model: ModelWithTwin,
    segments: Vec<Segment>,
    settings: TimingSettings,
) -> Result<(), Ended> {
    let inferences = Inferences {
        task,
        settings,
        queue,
        device,
        runtimes,
        model,
    };
    let blocks = Blocks {
        inferences,
        progress: Progress::from_history(&task.history),
        baseline: task.baseline.clone(),
        polls: 0,
        rested: Nanos::ZERO,
        slow_loadings: Vec::new(),
        busy_runs: 0,
        segments: segments.len(),
        long: Long::of(&task.order.work),
        watch: Watch::default(),
        disturbed: task.disturbed,
    };
    let mut timing = Timing {
        blocks,
        segments,
        left_out: BTreeSet::new(),
        sentinel: None,
    };
    match task.order.work {
        Work::TimeSegments { .. } | Work::TimeBesideLong { .. } => timing.time_segments(),
        Work::Soak { .. } => timing.soak(),
        Work::MeasureEnergy { .. } => timing.energy(),
        _ => timing.time_passes(),
    }
}

/// One order in progress.
struct Timing<'a> {
    blocks: Blocks<'a>,
    /// The order's segments; a sample's index counts by their places.
    segments: Vec<Segment>,
    /// The places of segments that the processor cannot run.
    left_out: BTreeSet<usize>,
    /// The sentinel, if it was found not to be the whole model.
    sentinel: Option<Segment>,
}

impl Timing<'_> {
    /// Times the segments in blocks of those that fit in memory together, the sentinel with them, or else at both ends of
    /// the block in their place. Those that the processor cannot run are left out. Those of a block that is to be loaded
    /// anew still lack samples, and are among the next candidates.
    fn time_segments(&mut self) -> Result<(), Ended> {
        self.leave_out_unsupported()?;
        loop {
            let candidates = self.next_candidates();
            if candidates.is_empty() {
                return Ok(());
            }
            let resumes = self.resumes_block();
            self.blocks.inferences.runtimes.begin_visit();
            let sentinel = self.load_sentinel(&candidates)?;
            let place = sentinel.place;
            let others = candidates.into_iter();
            let others: Vec<usize> = others.filter(|&one| Some(one) != place).collect();
            let mut group = vec![sentinel];
            let full = self.load_as_fit(&mut group, &others, resumes)?;
            if group.iter().any(|loaded| loaded.place.is_some()) {
                self.blocks.measure(&mut group, Turns::Mixed)?;
            } else if full.is_some() {
                self.measure_apart(&others, group.remove(0))?;
            }
        }
    }

    /// Loads as many of the segments at these places, beside what is loaded, as memory holds. Why not all, if it is full
    /// before.
    fn load_as_fit(
        &mut self,
        group: &mut Vec<LoadedSegment>,
        places: &[usize],
        resumes: bool,
    ) -> Result<Option<RuntimeError>, Ended> {
        for &place in places {
            if self.left_out.contains(&place) {
                continue;
            }
            match self.load(Some(place), self.segments[place]) {
                Ok(loaded) => group.push(loaded),
                // A segment of a block in progress was loaded before: that it cannot be now is a failure.
                Err(NotLoaded::Unsupported(error)) if !resumes => self.leave_out(place, error)?,
                // What does not fit now fits into a later block.
                Err(NotLoaded::Full(error)) => return Ok(Some(error)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Measures a block of as many of these segments as memory holds, none of which it holds beside the sentinel: that is
    /// unloaded after the start of the block and loaded again for its end.
    fn measure_apart(
        &mut self,
        places: &[usize],
        mut sentinel: LoadedSegment,
    ) -> Result<(), Ended> {
        loop {
            let open = self.blocks.progress.open.take();
            let resumes = open.is_some();
            let taken = open.as_ref().map_or(0, |open| open.samples.len());
            let (number, start) = match open {
                Some(open) => (open.number, open.start),
                None => {
                    let alone = std::slice::from_mut(&mut sentinel);
                    self.blocks.warm_up(alone, Turns::Mixed)?;
                    match self.blocks.start(alone, Turns::Mixed)? {
                        Some(started) => started,
                        None => return Ok(()),
                    }
                }
            };
            drop(sentinel);
            let mut group = Vec::new();
            let full = self.load_as_fit(&mut group, places, resumes)?;
            let members: Vec<usize> = group.iter().filter_map(|loaded| loaded.place).collect();
            if members.is_empty() {
                // The number is the next block's.
                self.blocks.progress.next_block = number;
                return full.map_or(Ok(()), |error| Err(error.into()));
            }
            if !resumes {
                self.blocks.announce(number, &start, &group)?;
            }
            self.blocks.warm_up(&mut group, Turns::Mixed)?;
            self.blocks.begin_to_watch(taken);
            self.blocks.take_turns(number, &mut group, Turns::Mixed)?;
            drop(group);
            sentinel = self.load_sentinel(&[])?;
            let alone = std::slice::from_mut(&mut sentinel);
            self.blocks.warm_up(alone, Turns::Mixed)?;
            let end = self.blocks.finish(number, &start, alone, Turns::Mixed)?;
            let Some(rejection) = self.blocks.judge(number, &start, end)? else {
                return Ok(());
            };
            self.blocks.forget(members.into_iter());
            if !self.blocks.recover(alone, Turns::Mixed, rejection)? {
                return Ok(());
            }
        }
    }

    /// Leaves out every segment of which the runtime says before it is loaded that its processor cannot run it.
    fn leave_out_unsupported(&mut self) -> Result<(), Ended> {
        for place in 0..self.segments.len() {
            let segment = self.segments[place];
            let inferences = &self.blocks.inferences;
            let processor = inferences.order().processor_of(segment);
            match inferences
                .runtimes
                .supports(processor, &inferences.model, segment)
            {
                Ok(()) => {}
                Err(error @ RuntimeError::Unsupported { .. }) => self.leave_out(place, error)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Leaves a segment out of the order for the reason that `error` gives, and journals that once.
    fn leave_out(&mut self, place: usize, error: RuntimeError) -> Result<(), Ended> {
        let RuntimeError::Unsupported {
            processor,
            segment,
            reason,
        } = error
        else {
            return Err(error.into());
        };
        self.left_out.insert(place);
        self.record_once(Event::Unsupported {
            processor,
            segment,
            reason: reason.to_string(),
            needed_bytes: None,
        })
    }

    /// Journals an event, unless an agent that was killed did before.
    fn record_once(&self, event: Event) -> Result<(), Ended> {
        match self.blocks.inferences.task.history.contains(&event) {
            true => Ok(()),
            false => self.blocks.inferences.record(event),
        }
    }

    /// Times passes over the whole model, layer by layer or part by part, each fed by the one before.
    fn time_passes(&mut self) -> Result<(), Ended> {
        while !self.next_candidates().is_empty() {
            let mut group = self.load_pass()?;
            if self.blocks.measure(&mut group, Turns::Chain)? == Outcome::Counts {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Loads all parts of a pass, but those that are loaded for each run.
    fn load_pass(&mut self) -> Result<Vec<LoadedSegment>, Ended> {
        // Loading all parts but one, which the processor cannot run, would take long for nothing.
        let inferences = &self.blocks.inferences;
        for &segment in &self.segments {
            let processor = inferences.order().processor_of(segment);
            inferences
                .runtimes
                .supports(processor, &inferences.model, segment)?;
        }
        let Inferences {
            task,
            device,
            runtimes,
            ..
        } = &mut self.blocks.inferences;
        device.part_visits(&format!("{} {}", task.order.run, task.order.processor));
        runtimes.begin_visit();
        let mut group = Vec::new();
        for place in 0..self.segments.len() {
            let segment = self.segments[place];
            match self.load(Some(place), segment) {
                Ok(loaded) if self.is_reloaded(segment) => group.push(LoadedSegment {
                    session: None,
                    ..loaded
                }),
                Ok(loaded) => group.push(loaded),
                Err(NotLoaded::Full(_)) if !group.is_empty() && !self.is_reloaded(segment) => {
                    let message = format!(
                        "the memory of {} holds {} of the {} parts of a pass, which needs all of them; \
                         use a smaller model or a device with more memory",
                        self.blocks.inferences.order().processor_of(segment),
                        group.len(),
                        self.segments.len()
                    );
                    return Err(failed(FailureKind::OutOfMemory, message));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(group)
    }

    /// Whether a segment is loaded for each run of it.
    fn is_reloaded(&self, segment: Segment) -> bool {
        let Inferences { task, runtimes, .. } = &self.blocks.inferences;
        let processor = runtimes.processor(task.order.processor_of(segment));
        let is_accelerator = processor.is_some_and(|one| one.kind == ProcessorKind::Accelerator);
        is_accelerator && matches!(task.order.work, Work::TimePlacement { reload: true, .. })
    }

    /// How many layers the model has.
    fn layers(&self) -> u32 {
        self.blocks.inferences.model.model().layer_count()
    }

    /// Whether a block was in progress when the agent was killed, and goes on.
    fn resumes_block(&self) -> bool {
        self.blocks.progress.open.is_some()
    }

    /// The places of the block that was in progress, or of all segments that lack samples.
    fn next_candidates(&self) -> Vec<usize> {
        let places = 0..self.segments.len();
        match &self.blocks.progress.open {
            Some(open) => places
                .filter(|&place| open.segments.contains(&self.segments[place]))
                .collect(),
            None => places
                .filter(|&place| self.blocks.lacks(place) && !self.left_out.contains(&place))
                .collect(),
        }
    }

    fn load(&mut self, place: Option<usize>, segment: Segment) -> Result<LoadedSegment, NotLoaded> {
        let seed = self.blocks.inferences.seed();
        let Inferences {
            task,
            queue,
            runtimes,
            model,
            ..
        } = &mut self.blocks.inferences;
        let processor = task.order.processor_of(segment);
        let session = runtimes.load_timed(processor, model, segment)?;
        queue.record(task, loaded_event(processor, segment, session.as_ref()))?;
        let taken = model.model().takes(segment);
        Ok(LoadedSegment {
            place,
            segment,
            session: Some(session),
            inputs: timing_input(&taken, seed).into(),
        })
    }
}
