//! A segment that a child process has loaded.

use std::sync::Arc;

use layerlab_model::{ElementType, Network, TensorSpec};
use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::Placed;

use super::connection::NoAnswer;
use super::loading::{DEADLINE, LoadFailure, LoadedInChild, SharedChild};
use crate::runtime::onnxruntime::child::messages::{ChildAnswer, ChildRequest, TensorHeader};
use crate::runtime::{Inference, RuntimeError, SegmentOnProcessor, Session, Tensor};

/// A segment, ready to run in a child process.
pub(in crate::runtime::onnxruntime) struct OnnxSession {
    pub(in crate::runtime::onnxruntime) subject: SegmentOnProcessor,
    pub(in crate::runtime::onnxruntime) network: Arc<Network>,
    pub(in crate::runtime::onnxruntime) memory: Bytes,
    pub(in crate::runtime::onnxruntime) child: SharedChild,
    pub(in crate::runtime::onnxruntime) loaded: LoadedInChild,
}

/// Why a run gave nothing.
enum RunFailure {
    /// The child is gone, and the session with it.
    ChildLost(NoAnswer),
    /// Anything else.
    Failed(String),
}

impl Session for OnnxSession {
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
        Some(self.loaded.placed.clone())
    }

    /// A child that dies of it is replaced once.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Inference, RuntimeError> {
        self.refuse_misfits(inputs)?;
        let failure = match self.run_once(inputs) {
            Err(RunFailure::ChildLost(why)) => {
                tracing::warn!(%why, "the process of ONNX Runtime is started again");
                self.run_once(inputs)
            }
            answer => answer,
        };
        failure.map_err(|failure| match failure {
            RunFailure::ChildLost(why) => self
                .subject
                .cannot_run(format!("the process of ONNX Runtime {why}, twice")),
            RunFailure::Failed(cause) => self.subject.cannot_run(cause),
        })
    }
}

impl OnnxSession {
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
        let failed = |cause: String| {
            RunFailure::Failed(format!(
                "it was lost with the process of ONNX Runtime: {cause}"
            ))
        };
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
            inputs: inputs.iter().map(header).collect(),
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
        let frontier = self.network.frontier(self.subject.segment.first() - 1);
        if inputs.len() != frontier.len() {
            return Err(self.subject.cannot_run(format!(
                "it takes {} tensors, not {}",
                frontier.len(),
                inputs.len()
            )));
        }
        match inputs
            .iter()
            .zip(frontier)
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

impl Drop for OnnxSession {
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

fn header(tensor: &Tensor) -> TensorHeader {
    TensorHeader {
        element: tensor.element().onnx(),
        shape: tensor.shape().to_vec(),
    }
}

/// The tensors whose bytes follow one another.
fn tensors(headers: &[TensorHeader], bytes: &[u8]) -> Result<Vec<Tensor>, String> {
    let mut rest = bytes;
    let mut tensors = Vec::with_capacity(headers.len());
    for header in headers {
        let element: ElementType = header.element_type()?;
        let (this, others) = rest
            .split_at_checked(header.bytes()?)
            .ok_or("an output has too few bytes")?;
        let tensor = Tensor::new(element, header.shape.clone(), this.to_vec());
        tensors.push(tensor.map_err(|error| error.to_string())?);
        rest = others;
    }
    Ok(tensors)
}
