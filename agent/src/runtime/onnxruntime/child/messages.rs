//! What the agent and its child process say to each other.

use std::path::PathBuf;

use layerlab_model::ElementType;
use layerlab_profiles::Nanos;
use layerlab_protocol::PlacedNode;
use serde::{Deserialize, Serialize};

use crate::device::CoreSet;
use crate::runtime::onnxruntime::provider::Provider;

/// What one child is for: one processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runtime::onnxruntime) struct ChildSetup {
    /// ONNX Runtime's library.
    pub(in crate::runtime::onnxruntime) library: PathBuf,
    /// What computes.
    pub(in crate::runtime::onnxruntime) provider: Provider,
    /// The cores that the child's threads are bound to, and of which each has one thread.
    pub(in crate::runtime::onnxruntime) cores: CoreSet,
    /// Whether copying inputs into the runtime's own tensors and outputs out of them is part of an inference's time,
    /// as it is on an accelerator.
    pub(in crate::runtime::onnxruntime) copies_count: bool,
}

/// What the agent asks for. The bytes of models and tensors follow as the frame's payload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::runtime::onnxruntime) enum ChildRequest {
    /// The first request: load the library.
    Start(ChildSetup),
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
    /// Free a session.
    Forget { session: u64 },
}

/// What the child answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::runtime::onnxruntime) enum ChildAnswer {
    /// The library is loaded.
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
    /// The session is gone.
    Forgotten,
    /// The processor cannot run the model, for this reason.
    Refused { reason: String },
    /// Anything else that went wrong.
    Failed { cause: String },
}

/// A tensor whose bytes are in the payload, one tensor after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runtime::onnxruntime) struct TensorHeader {
    /// The number that ONNX has for the type of its elements.
    pub(in crate::runtime::onnxruntime) element: i32,
    pub(in crate::runtime::onnxruntime) shape: Vec<usize>,
}

impl TensorHeader {
    /// How many bytes the tensor has.
    pub(in crate::runtime::onnxruntime) fn bytes(&self) -> Result<usize, String> {
        let size = self.element_type()?.bytes().as_bytes() as usize;
        Ok(self.shape.iter().product::<usize>() * size)
    }

    /// The type of its elements.
    pub(in crate::runtime::onnxruntime) fn element_type(&self) -> Result<ElementType, String> {
        ElementType::from_onnx(self.element)
    }
}
