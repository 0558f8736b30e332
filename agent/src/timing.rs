//! The timing loop: loads the segments of an order and has them timed in blocks of those that fit in memory.

mod block;
mod inferences;
mod loaded;
mod progress;

use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::Segment;
use layerlab_protocol::{Event, FailureKind, Work};

use crate::device::Device;
use crate::ended::{Ended, failed};
use crate::queue::{Queue, Task};
use crate::runtime::{Runtimes, timing_input};
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
    network: Arc<Network>,
    segments: Vec<Segment>,
) -> Result<(), Ended> {
    let inferences = Inferences {
        task,
        queue,
        device,
    };
    let blocks = Blocks {
        inferences,
        progress: Progress::from_history(&task.history),
        baseline: task.baseline,
        segments: segments.len(),
    };
    let mut timing = Timing {
        blocks,
        runtimes,
        network,
        segments,
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
    network: Arc<Network>,
    /// The order's segments; a sample's index counts by their places.
    segments: Vec<Segment>,
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
                    Err(NotLoaded::Full(_))
                        if group.iter().any(|loaded| loaded.place.is_some()) =>
                    {
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            self.blocks.measure(&mut group, Turns::Mixed)?;
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

    /// The places of the block that was in progress, or of all segments that lack samples.
    fn next_candidates(&self) -> Vec<usize> {
        let places = 0..self.segments.len();
        match &self.blocks.progress.open {
            Some(open) => places
                .filter(|&place| open.segments.contains(&self.segments[place]))
                .collect(),
            None => places.filter(|&place| self.blocks.lacks(place)).collect(),
        }
    }

    fn load(&mut self, place: Option<usize>, segment: Segment) -> Result<LoadedSegment, NotLoaded> {
        let Inferences { task, queue, .. } = &self.blocks.inferences;
        let processor = task.order.processor_of(segment);
        let session = self.runtimes.load(processor, &self.network, segment)?;
        queue.record(
            task,
            Event::Loaded {
                segment,
                load_ns: session.load_time(),
                memory_bytes: session.memory(),
            },
        )?;
        let frontier = self.network.frontier(segment.first() - 1);
        Ok(LoadedSegment {
            place,
            segment,
            session,
            inputs: timing_input(frontier, self.blocks.inferences.seed()),
        })
    }
}
