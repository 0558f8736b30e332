//! A runtime in its child process.

use std::path::{Path, PathBuf};

use layerlab_profiles::Nanos;
use layerlab_protocol::PlacedNode;

use super::messages::{RuntimeSetup, TensorHeader};

/// A runtime that has been loaded in a child process, for one processor, and its sessions there, each of which has a number.
pub(in crate::runtime) trait Engine {
    /// The runtime's version.
    fn version(&self) -> &str;

    /// Makes the ONNX model ready to run as `session`.
    ///
    /// Where the runtime compiles it, what comes of that is written into `save_to` if there is such a file.
    ///
    /// # Errors
    /// Why it was not loaded.
    fn load(
        &mut self,
        session: u64,
        model: &[u8],
        save_to: Option<&Path>,
    ) -> Result<LoadedModel, ModelNotLoaded>;

    /// Runs `session` once on the tensors in `bytes`, puts the outputs' bytes into `outputs`, which is empty, and says how long
    /// that took, as [`Session::run`](crate::runtime::Session::run) defines it.
    ///
    /// # Errors
    /// Why it gave nothing, for a person.
    fn run(
        &mut self,
        session: u64,
        inputs: &[TensorHeader],
        bytes: &[u8],
        outputs: &mut Vec<u8>,
    ) -> Result<(Nanos, Vec<TensorHeader>), String>;

    /// Frees `session`.
    fn forget(&mut self, session: u64);
}

/// Loads the runtime that a child process is for, or says why it cannot, for a person.
pub(in crate::runtime) type EngineStart = fn(&RuntimeSetup) -> Result<Box<dyn Engine>, String>;

/// What is known of a model that was loaded.
#[derive(Default)]
pub(in crate::runtime) struct LoadedModel {
    pub(in crate::runtime) load_time: Nanos,
    /// Where each node was placed, where the runtime chooses; of a compiled model this is one node for all.
    pub(in crate::runtime) nodes: Vec<PlacedNode>,
    /// The files of the runtime's libraries that the process has loaded by now.
    pub(in crate::runtime) libraries: Vec<PathBuf>,
}

/// Why a model was not loaded.
pub(in crate::runtime) enum ModelNotLoaded {
    /// The processor cannot run it, for this reason.
    Refused(String),
    /// Anything else.
    Failed(String),
}
