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

    /// A child that dies of it is replaced once.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Inference, RuntimeError> {
        self.refuse_misfits(inputs)?;
        let failure = match self.run_once(inputs) {
            Err(RunFailure::ChildLost(why)) => {
                tracing::warn!(%why, "the process of a runtime is started again");
                self.run_once(inputs)
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
}

impl ChildSession {
    fn run_once(&mut self, inputs: &[Tensor]) -> Result<Inference, RunFailure> {
        if self.is_lost()? {
            self.reload()?;
            // Nobody times the first run of a new session.
            self.ask(inputs)?;
        }
        self.ask(inputs)
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
        Ok(())
    }

    fn ask(&self, inputs: &[Tensor]) -> Result<Inference, RunFailure> {
        let run = ChildRequest::Run {
            session: self.loaded.session,
            inputs: inputs.iter().map(TensorHeader::of).collect(),
        };
        let payload: Vec<&[u8]> = inputs.iter().map(Tensor::bytes).collect();
        let (answer, bytes) = self.child.lock().ask(&run, &payload, DEADLINE)?;
        match answer {
            ChildAnswer::Ran { duration, outputs } => Ok(Inference {
                outputs: tensors(&outputs, &bytes).map_err(RunFailure::Failed)?,
                duration,
            }),
            ChildAnswer::Failed { cause } => Err(RunFailure::Failed(cause)),
            other => Err(RunFailure::Failed(format!(
                "its process answered {other:?}"
            ))),
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

fn fits(input: &Tensor, spec: &TensorSpec) -> bool {
    let shape = spec.shape.iter().map(|&length| length as usize);
    input.element() == spec.element && input.shape().iter().copied().eq(shape)
}
