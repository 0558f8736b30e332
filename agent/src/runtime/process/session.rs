//! A segment that a child process has loaded.

use std::sync::Arc;

use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::Placed;

use super::connection::NoAnswer;
use super::loading::{DEADLINE, LoadFailure, LoadedInChild, SharedChild};
use super::messages::{ChildAnswer, ChildRequest, TensorHeader, tensors};
use crate::runtime::memory::estimated_memory;
use crate::runtime::{Inference, RuntimeError, SegmentOnProcessor, Session, Tensor, Unsupported};

/// A segment, ready to run in a child process.
struct ChildSession {
    subject: SegmentOnProcessor,
    network: Arc<Network>,
    memory: Bytes,
    child: SharedChild,
    loaded: LoadedInChild,
    /// What it was timed on last, which the child that it is loaded in has kept.
    kept: Option<Arc<[Tensor]>>,
}

impl SharedChild {
    /// Makes a segment of `network` ready to run in the child.
    ///
    /// # Errors
    /// [`RuntimeError::Unsupported`] if the processor cannot run it, [`RuntimeError::Load`] for anything else.
    pub(in crate::runtime) fn load_segment(
        &self,
        subject: SegmentOnProcessor,
        network: &Arc<Network>,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        let segment = subject.segment;
        let cut = network
            .segment(segment)
            .map_err(|error| subject.cannot_load(error))?;
        match self.load(&cut.into_bytes()) {
            Ok(loaded) => Ok(Box::new(ChildSession {
                memory: estimated_memory(network, segment),
                subject,
                network: Arc::clone(network),
                child: self.clone(),
                loaded,
                kept: None,
            })),
            Err(LoadFailure::Refused(reason)) => Err(RuntimeError::Unsupported {
                processor: subject.processor,
                segment,
                reason: Unsupported::because(reason),
            }),
            Err(LoadFailure::Failed(cause)) => Err(subject.cannot_load(cause)),
        }
    }
}

/// Why a run gave nothing.
enum RunFailure {
    /// The child is gone, and the session with it.
    ChildLost(NoAnswer),
    /// Anything else.
    Failed(String),
}

impl Session for ChildSession {
    fn memory(&self) -> Bytes {
        self.memory
    }

    fn load_time(&self) -> Nanos {
        self.loaded.load_time
    }

    fn compiled(&self) -> Option<bool> {
        self.loaded.compiled
    }

    fn placed(&self) -> Option<Placed> {
        self.loaded.placed.clone()
    }

    fn run(&mut self, inputs: &[Tensor]) -> Result<Inference, RuntimeError> {
        self.on_a_child(inputs, |session| session.ask_to_run(inputs))
    }

    fn time(&mut self, inputs: &Arc<[Tensor]>) -> Result<Nanos, RuntimeError> {
        self.on_a_child(inputs, |session| session.ask_to_time(inputs))
    }
}

impl ChildSession {
    /// What the child answers that has the session. One that dies of it is replaced once.
    fn on_a_child<T>(
        &mut self,
        inputs: &[Tensor],
        ask: impl Fn(&mut ChildSession) -> Result<T, RunFailure>,
    ) -> Result<T, RuntimeError> {
        self.refuse_misfits(inputs)?;
        let failure = match self.once(&ask) {
            Err(RunFailure::ChildLost(why)) => {
                tracing::warn!(%why, "the process of a runtime is started again");
                self.once(&ask)
            }
            answer => answer,
        };
        failure.map_err(|failure| match failure {
            RunFailure::ChildLost(why) => self.subject.cannot_run(format!(
                "the process of {} {why}, twice",
                self.child.lock().runtime()
            )),
            RunFailure::Failed(cause) => self.subject.cannot_run(cause),
        })
    }

    fn once<T>(
        &mut self,
        ask: impl Fn(&mut ChildSession) -> Result<T, RunFailure>,
    ) -> Result<T, RunFailure> {
        if self.is_lost()? {
            self.reload()?;
            // Nobody times the first run of a new session.
            ask(self)?;
        }
        ask(self)
    }

    /// Whether the child that loaded the segment is gone.
    fn is_lost(&self) -> Result<bool, RunFailure> {
        let generation = self.child.lock().generation();
        Ok(generation.map_err(RunFailure::from)? != self.loaded.generation)
    }

    fn reload(&mut self) -> Result<(), RunFailure> {
        let failed =
            |cause: String| RunFailure::Failed(format!("it was lost with its process: {cause}"));
        let cut = self.network.segment(self.subject.segment);
        let cut = cut.map_err(|error| failed(error.to_string()))?;
        self.loaded = self
            .child
            .load(&cut.into_bytes())
            .map_err(|failure| match failure {
                LoadFailure::Refused(cause) | LoadFailure::Failed(cause) => failed(cause),
            })?;
        self.kept = None;
        Ok(())
    }

    fn ask_to_run(&self, inputs: &[Tensor]) -> Result<Inference, RunFailure> {
        let run = ChildRequest::Run {
            session: self.loaded.session,
            inputs: headers(inputs),
        };
        match self.ask(&run, inputs)? {
            (ChildAnswer::Ran { duration, outputs }, bytes) => Ok(Inference {
                outputs: tensors(&outputs, &bytes).map_err(RunFailure::Failed)?,
                duration,
            }),
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn ask_to_time(&mut self, inputs: &Arc<[Tensor]>) -> Result<Nanos, RunFailure> {
        let are_kept = |kept| Arc::ptr_eq(kept, inputs);
        let given = match self.kept.as_ref().is_some_and(are_kept) {
            true => None,
            false => Some(&**inputs),
        };
        let time = ChildRequest::Time {
            session: self.loaded.session,
            inputs: given.map(headers),
        };
        match self.ask(&time, given.unwrap_or_default())? {
            (ChildAnswer::Timed { duration }, _) => {
                self.kept = Some(Arc::clone(inputs));
                Ok(duration)
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    fn ask(
        &self,
        request: &ChildRequest,
        given: &[Tensor],
    ) -> Result<(ChildAnswer, Vec<u8>), RunFailure> {
        let payload: Vec<&[u8]> = given.iter().map(Tensor::bytes).collect();
        match self.child.lock().ask(request, &payload, DEADLINE)? {
            (ChildAnswer::Failed { cause }, _) => Err(RunFailure::Failed(cause)),
            answer => Ok(answer),
        }
    }

    /// Refuses inputs that are not those of the segment.
    fn refuse_misfits(&self, inputs: &[Tensor]) -> Result<(), RuntimeError> {
        let wanted = self.network.takes(self.subject.segment);
        if inputs.len() != wanted.len() {
            return Err(self.subject.cannot_run(format!(
                "number of inputs: {} given, {} wanted",
                inputs.len(),
                wanted.len()
            )));
        }
        match inputs
            .iter()
            .zip(&wanted)
            .find(|(input, spec)| !fits(input, spec))
        {
            None => Ok(()),
            Some((input, spec)) => Err(self.subject.cannot_run(format!(
                "its input {} is {} of shape {:?}, not {} of shape {:?}",
                spec.name,
                spec.element,
                spec.shape,
                input.element(),
                input.shape()
            ))),
        }
    }
}

impl Drop for ChildSession {
    fn drop(&mut self) {
        self.child.forget(&self.loaded);
    }
}

impl From<NoAnswer> for RunFailure {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::NotStarted(cause) => RunFailure::Failed(cause),
            NoAnswer::Died(_) | NoAnswer::Silent(_) => RunFailure::ChildLost(why),
        }
    }
}

fn headers(tensors: &[Tensor]) -> Vec<TensorHeader> {
    tensors.iter().map(TensorHeader::of).collect()
}

fn unexpected(answer: &ChildAnswer) -> RunFailure {
    RunFailure::Failed(format!("its process answered {answer:?}"))
}

fn fits(input: &Tensor, spec: &TensorSpec) -> bool {
    let shape = spec.shape.iter().map(|&length| length as usize);
    input.element() == spec.element && input.shape().iter().copied().eq(shape)
}
