//! Orders to survey: which layers each processor cannot run, and which segments its memory does not hold.

use layerlab_profiles::Segment;
use layerlab_profiles::supported::SupportedLayers;
use layerlab_protocol::{Event, ProcessorKind};

use crate::ModelWithTwin;
use crate::ended::Ended;
use crate::queue::{Queue, Task};
use crate::runtime::{RuntimeError, Runtimes};
use crate::walk;

/// Journals each layer that one of `processors` cannot run, and of each accelerator the shortest segments that its empty
/// memory does not hold, unless the journal has them already.
pub(crate) fn survey(
    task: &Task,
    queue: &Queue,
    runtimes: &mut Runtimes,
    model: &ModelWithTwin,
    processors: &[String],
) -> Result<(), Ended> {
    let survey = Survey { task, queue, model };
    for processor in processors {
        let mut lacked = Vec::new();
        for layer in walk::layers(model.model()) {
            let answer = runtimes.supports(processor, model, layer);
            if !survey.is_there(answer)? {
                lacked.push(layer);
            }
        }
        let described = runtimes.processor(processor);
        if described.is_some_and(|one| one.kind == ProcessorKind::Accelerator) {
            let supported = SupportedLayers::without(model.model().layer_count(), lacked);
            for &stretch in supported.stretches() {
                survey.shortest_too_large(runtimes, processor, stretch)?;
            }
        }
    }
    Ok(())
}

struct Survey<'a> {
    task: &'a Task,
    queue: &'a Queue,
    model: &'a ModelWithTwin,
}

impl Survey<'_> {
    /// Finds the shortest segments of a stretch that memory does not hold. What is part of one that it holds is taken to
    /// be held too, which saves looking at every segment.
    fn shortest_too_large(
        &self,
        runtimes: &mut Runtimes,
        processor: &str,
        stretch: Segment,
    ) -> Result<(), Ended> {
        // What cannot run for another reason turns out when it is to be measured.
        let mut fits = |segment| match runtimes.fits(processor, self.model, segment) {
            Err(RuntimeError::Unsupported { .. }) => Ok(()),
            answer => answer,
        };
        if fits(stretch).is_ok() {
            return Ok(());
        }
        // All that begins with `first` and ends before `last` fits.
        let mut last = stretch.first();
        let mut smaller: Option<RuntimeError> = None;
        for first in stretch.first()..=stretch.last() {
            last = last.max(first);
            let mut refused = smaller.take();
            while refused.is_none() && last <= stretch.last() {
                match Segment::new(first, last).map(&mut fits) {
                    Ok(Err(error @ RuntimeError::OutOfMemory { .. })) => refused = Some(error),
                    Ok(Err(error)) => return Err(error.into()),
                    Ok(Ok(())) | Err(_) => last += 1,
                }
            }
            let Some(refused) = refused else {
                return Ok(());
            };
            // It is the shortest if it fits without its first layer.
            let without_first = Segment::new(first + 1, last).ok();
            match without_first.map_or(Ok(()), &mut fits) {
                Ok(()) => {
                    self.is_there(Err(refused))?;
                    last = last.max(first + 1);
                }
                Err(error @ RuntimeError::OutOfMemory { .. }) => smaller = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether a processor runs a segment; if not, that is journaled.
    fn is_there(&self, answer: Result<(), RuntimeError>) -> Result<bool, Ended> {
        let event = match answer {
            Ok(()) => return Ok(true),
            Err(RuntimeError::Unsupported {
                processor,
                segment,
                reason,
            }) => Event::Unsupported {
                processor,
                segment,
                reason: reason.to_string(),
                needed_bytes: None,
            },
            Err(RuntimeError::OutOfMemory {
                processor,
                segment,
                needed,
                capacity,
                ..
            }) => Event::Unsupported {
                processor,
                segment,
                reason: match capacity {
                    Some(capacity) => {
                        format!("{needed} of memory are needed, and there are {capacity}")
                    }
                    None => format!("{needed} of memory are needed, which there are not"),
                },
                needed_bytes: Some(needed),
            },
            Err(error) => return Err(error.into()),
        };
        if !self.task.history.contains(&event) {
            self.queue.record(self.task, event)?;
        }
        Ok(false)
    }
}
