//! The segments that placements run while they answer: loaded before the first answer as far as memory holds them; beyond
//! that, the one that was not used for longest makes room.

use std::collections::{BTreeMap, BTreeSet};

use crate::ModelWithTwin;
use crate::ended::Ended;
use crate::queue::{Queue, Task};
use crate::runtime::{RuntimeError, Runtimes, Session, Tensor, loaded_event};
use crate::walk::WalkPart;

/// The loaded segments of an evaluation.
pub(crate) struct EvaluationSessions<'a> {
    task: &'a Task,
    queue: &'a Queue,
    runtimes: &'a mut Runtimes,
    model: &'a ModelWithTwin,
    /// The processors by their places.
    processors: &'a [String],
    loaded: BTreeMap<WalkPart, (u64, Box<dyn Session>)>,
    /// Which were journaled: what makes room is loaded again and again.
    told: BTreeSet<WalkPart>,
    /// Counts the uses.
    uses: u64,
}

impl<'a> EvaluationSessions<'a> {
    /// Sessions of these parts, each of which its processor can run.
    pub(crate) fn load(
        parts: &BTreeSet<WalkPart>,
        (task, queue): (&'a Task, &'a Queue),
        runtimes: &'a mut Runtimes,
        model: &'a ModelWithTwin,
        processors: &'a [String],
    ) -> Result<EvaluationSessions<'a>, Ended> {
        for &(segment, processor) in parts {
            runtimes.supports(&processors[processor], model, segment)?;
        }
        let mut sessions = EvaluationSessions {
            task,
            queue,
            runtimes,
            model,
            processors,
            loaded: BTreeMap::new(),
            told: BTreeSet::new(),
            uses: 0,
        };
        for &part in parts {
            match sessions.try_load(part) {
                Ok(()) => {}
                // What is not there is loaded when it is needed.
                Err(LoadFailure::Full(_)) if !sessions.loaded.is_empty() => break,
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(sessions)
    }

    /// What a part answers.
    pub(crate) fn run(&mut self, part: WalkPart, inputs: &[Tensor]) -> Result<Vec<Tensor>, Ended> {
        while !self.loaded.contains_key(&part) {
            match self.try_load(part) {
                Err(LoadFailure::Full(_)) if self.make_room(part.1) => {}
                loaded => loaded?,
            }
        }
        self.uses += 1;
        let Some((used, session)) = self.loaded.get_mut(&part) else {
            unreachable!("it was just loaded");
        };
        *used = self.uses;
        Ok(session.outputs(inputs)?)
    }

    fn try_load(&mut self, part: WalkPart) -> Result<(), LoadFailure> {
        let (segment, place) = part;
        let processor = &self.processors[place];
        let session = self.runtimes.load(processor, self.model, segment)?;
        if self.told.insert(part) {
            let event = loaded_event(processor, segment, session.as_ref());
            let recorded = self.queue.record(self.task, event);
            recorded.map_err(|abandoned| LoadFailure::Ended(abandoned.into()))?;
        }
        self.loaded.insert(part, (self.uses, session));
        Ok(())
    }

    /// Unloads what was not used for longest on the processor at `place`. Whether there was anything.
    fn make_room(&mut self, place: usize) -> bool {
        let there = self.loaded.iter().filter(|((_, on), _)| *on == place);
        let oldest = there
            .min_by_key(|(_, (used, _))| *used)
            .map(|(part, _)| *part);
        oldest.is_some_and(|part| self.loaded.remove(&part).is_some())
    }
}

/// Why a part was not loaded.
enum LoadFailure {
    /// Memory is full.
    Full(RuntimeError),
    /// The order cannot go on.
    Ended(Ended),
}

impl From<RuntimeError> for LoadFailure {
    fn from(error: RuntimeError) -> LoadFailure {
        match error {
            RuntimeError::OutOfMemory { .. } => LoadFailure::Full(error),
            error => LoadFailure::Ended(error.into()),
        }
    }
}

impl From<LoadFailure> for Ended {
    fn from(failure: LoadFailure) -> Ended {
        match failure {
            LoadFailure::Full(error) => error.into(),
            LoadFailure::Ended(ended) => ended,
        }
    }
}
