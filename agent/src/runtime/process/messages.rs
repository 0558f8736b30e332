//! What the agent and the child process of a runtime say to each other.

use std::path::PathBuf;

use layerlab_model::ElementType;
use layerlab_profiles::Nanos;
use layerlab_protocol::PlacedNode;
use serde::{Deserialize, Serialize};

use crate::runtime::Tensor;

/// What one child is for: a runtime on one processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runtime) struct RuntimeSetup {
    /// The runtime, by the name that profiles give it.
    pub(in crate::runtime) runtime: String,
    /// What the runtime is told, in a form of its own.
    pub(in crate::runtime) setup: serde_json::Value,
}

/// What the agent asks for. The bytes of models and tensors follow as the frame's payload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ChildRequest {
    /// The first request: load the runtime.
    Start(RuntimeSetup),
    /// Make the model in the payload, or a compiled one, ready to run.
    Load {
        session: u64,
        /// A compiled model to be read instead of the payload.
        compiled: Option<PathBuf>,
        /// Where to write what was compiled.
        save_to: Option<PathBuf>,
    },
    /// Run a session on the tensors in the payload.
    Run {
        session: u64,
        inputs: Vec<TensorHeader>,
    },
    /// Run a session on the tensors in the payload, which it keeps, or on those that it kept last, and say only how long that
    /// took.
    Time {
        session: u64,
        /// `None` for those that it kept.
        inputs: Option<Vec<TensorHeader>>,
    },
    /// Free a session.
    Forget { session: u64 },
}

/// What the child answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ChildAnswer {
    /// The runtime is loaded.
    Started { version: String },
    /// The session is ready.
    Loaded {
        load_time: Nanos,
        /// Where each node was placed; of a compiled model this is one node for all.
        nodes: Vec<PlacedNode>,
        /// The files of libraries that the process has loaded by now.
        libraries: Vec<PathBuf>,
    },
    /// The outputs are in the payload.
    Ran {
        duration: Nanos,
        outputs: Vec<TensorHeader>,
    },
    /// So long took a run whose outputs nobody wants.
    Timed { duration: Nanos },
    /// The session is gone.
    Forgotten,
    /// The processor cannot run the model, for this reason.
    Refused { reason: String },
    /// Anything else that went wrong.
    Failed { cause: String },
}

/// A tensor whose bytes are in the payload, one tensor after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runtime) struct TensorHeader {
    /// The number that ONNX has for the type of its elements.
    pub(in crate::runtime) element: i32,
    pub(in crate::runtime) shape: Vec<usize>,
}

impl TensorHeader {
    /// What tensor it is whose bytes are in the payload.
    pub(in crate::runtime) fn of(tensor: &Tensor) -> TensorHeader {
        TensorHeader {
            element: tensor.element().onnx(),
            shape: tensor.shape().to_vec(),
        }
    }

    /// How many bytes the tensor has.
    pub(in crate::runtime) fn bytes(&self) -> Result<usize, String> {
        let size = self.element_type()?.bytes().as_bytes() as usize;
        Ok(self.shape.iter().product::<usize>() * size)
    }

    /// The type of its elements.
    pub(in crate::runtime) fn element_type(&self) -> Result<ElementType, String> {
        ElementType::from_onnx(self.element)
    }
}

/// The tensors whose bytes follow one another.
///
/// # Errors
/// When the bytes are too few, for a person.
pub(in crate::runtime) fn tensors(
    headers: &[TensorHeader],
    bytes: &[u8],
) -> Result<Vec<Tensor>, String> {
    let mut rest = bytes;
    let mut tensors = Vec::with_capacity(headers.len());
    for header in headers {
        let element: ElementType = header.element_type()?;
        let (this, others) = rest
            .split_at_checked(header.bytes()?)
            .ok_or("a tensor has too few bytes")?;
        let tensor = Tensor::new(element, header.shape.clone(), this.to_vec());
        tensors.push(tensor.map_err(|error| error.to_string())?);
        rest = others;
    }
    Ok(tensors)
}
