//! The timing loop: loads the segments of an order and has them timed in blocks of those that fit in memory.

mod block;
mod inferences;
mod loaded;
mod progress;
mod sentinel;

use std::collections::BTreeSet;

use layerlab_profiles::Segment;
use layerlab_protocol::{Event, FailureKind, TimingSettings, Work};

use crate::ModelWithTwin;
use crate::device::Device;
use crate::ended::{Ended, failed};
use crate::queue::{Queue, Task};
use crate::runtime::{RuntimeError, Runtimes, loaded_event, timing_input};
use block::{Blocks, Turns};
use inferences::Inferences;
use loaded::{LoadedSegment, NotLoaded};
use progress::Progress;

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
    };
    let blocks = Blocks {
        inferences,
        progress: Progress::from_history(&task.history),
        baseline: task.baseline.clone(),
        polls: 0,
        segments: segments.len(),
    };
    let mut timing = Timing {
        blocks,
        runtimes,
        model,
        segments,
        left_out: BTreeSet::new(),
        sentinel: None,
    };
    match task.order.work {
        Work::TimeSegments { .. } => timing.time_segments(),
        _ => timing.time_passes(),
    }
}

/// One order in progress.
struct Timing<'a> {
    blocks: Blocks<'a>,
    runtimes: &'a mut Runtimes,
    model: ModelWithTwin,
    /// The order's segments; a sample's index counts by their places.
    segments: Vec<Segment>,
    /// The places of segments that the processor cannot run.
    left_out: BTreeSet<usize>,
    /// The sentinel, if it was found not to be the whole model.
    sentinel: Option<Segment>,
}

impl Timing<'_> {
    /// Times the segments in blocks of those that fit in memory together, the sentinel with them. Those that the
    /// processor cannot run are left out.
    fn time_segments(&mut self) -> Result<(), Ended> {
        self.leave_out_unsupported()?;
        loop {
            let candidates = self.next_candidates();
            if candidates.is_empty() {
                return Ok(());
            }
            let sentinel = self.load_sentinel(&candidates)?;
            let place = sentinel.place;
            let mut group = vec![sentinel];
            for place in candidates
                .into_iter()
                .filter(|&candidate| Some(candidate) != place)
            {
                match self.load(Some(place), self.segments[place]) {
                    Ok(loaded) => group.push(loaded),
                    // A segment of a block in progress was loaded before: that it cannot be now is a failure.
                    Err(NotLoaded::Unsupported(error)) if !self.resumes_block() => {
                        self.leave_out(place, error)?;
                    }
                    // What does not fit now fits into a later block, unless it is alone already.
                    Err(NotLoaded::Full(_))
                        if group.iter().any(|loaded| loaded.place.is_some()) =>
                    {
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            if group.iter().any(|loaded| loaded.place.is_some()) {
                self.blocks.measure(&mut group, Turns::Mixed)?;
            }
        }
    }

    /// Leaves out every segment of which the runtime says before it is loaded that its processor cannot run it.
    fn leave_out_unsupported(&mut self) -> Result<(), Ended> {
        for place in 0..self.segments.len() {
            let segment = self.segments[place];
            let processor = self.blocks.inferences.order().processor_of(segment);
            match self.runtimes.supports(processor, &self.model, segment) {
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
        if self.next_candidates().is_empty() {
            return Ok(());
        }
        // Loading all parts but one, which the processor cannot run, would take long for nothing.
        for &segment in &self.segments {
            let processor = self.blocks.inferences.order().processor_of(segment);
            self.runtimes.supports(processor, &self.model, segment)?;
        }
        let mut group = Vec::new();
        for place in 0..self.segments.len() {
            match self.load(Some(place), self.segments[place]) {
                Ok(loaded) => group.push(loaded),
                Err(NotLoaded::Full(_)) if !group.is_empty() => {
                    let message = format!(
                        "the memory of {} holds {} of the {} parts of a pass, which needs all of them; \
                         use a smaller model or a device with more memory",
                        self.blocks
                            .inferences
                            .order()
                            .processor_of(self.segments[place]),
                        group.len(),
                        self.segments.len()
                    );
                    return Err(failed(FailureKind::OutOfMemory, message));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.blocks.measure(&mut group, Turns::Chain)
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
        let Inferences { task, queue, .. } = &self.blocks.inferences;
        let processor = task.order.processor_of(segment);
        let session = self.runtimes.load(processor, &self.model, segment)?;
        queue.record(task, loaded_event(processor, segment, session.as_ref()))?;
        let frontier = self.model.model().frontier(segment.first() - 1);
        Ok(LoadedSegment {
            place,
            segment,
            session,
            inputs: timing_input(frontier, self.blocks.inferences.seed()),
        })
    }
}
