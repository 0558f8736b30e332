//! tract in a child process, where it is timed: each visit has a process of its own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use layerlab_model::SubModel;
use layerlab_profiles::Nanos;
use rayon::ThreadPool;
use serde::{Deserialize, Serialize};
use tract_onnx::prelude::TypedSimpleState;

use super::convert::{from_tract, to_tract};
use super::session::{ready, timed};
use super::{TRACT_VERSION, threads};
use crate::device::CoreSet;
use crate::runtime::process::{Engine, LoadedModel, ModelNotLoaded, TensorHeader, tensors};

/// What the child process is told.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TractSetup {
    /// What it computes on.
    pub(super) cores: CoreSet,
    /// Whether the time of an inference begins with the inputs and ends with the outputs in main memory, as an accelerator's
    /// does, so that it holds waking the threads up, too; or is that of running alone.
    pub(super) copies_count: bool,
}

/// tract on one set of cores.
struct TractEngine {
    threads: Arc<ThreadPool>,
    copies_count: bool,
    sessions: HashMap<u64, TypedSimpleState>,
}

/// Makes tract ready in this process, on the cores that it is told.
///
/// # Errors
/// Why it cannot be, for a person.
pub(in crate::runtime) fn start(setup: &serde_json::Value) -> Result<Box<dyn Engine>, String> {
    let TractSetup {
        cores,
        copies_count,
    } = TractSetup::deserialize(setup).map_err(|error| error.to_string())?;
    cores.bind_this_thread();
    Ok(Box::new(TractEngine {
        threads: threads::threads(&cores).map_err(|error| error.to_string())?,
        copies_count,
        sessions: HashMap::new(),
    }))
}

impl Engine for TractEngine {
    fn version(&self) -> &str {
        TRACT_VERSION
    }

    fn load(
        &mut self,
        session: u64,
        model: &[u8],
        _: Option<&Path>,
    ) -> Result<LoadedModel, ModelNotLoaded> {
        let begin = Instant::now();
        // Whatever tract does not run is no fault of the device.
        let state = SubModel::optimized_from(model)
            .map_err(|error| ModelNotLoaded::Refused(error.to_string()))
            .and_then(|optimized| {
                ready(optimized).map_err(|error| ModelNotLoaded::Refused(error.to_string()))
            })?;
        self.sessions.insert(session, state);
        Ok(LoadedModel {
            load_time: begin.elapsed().into(),
            ..LoadedModel::default()
        })
    }

    fn run(
        &mut self,
        session: u64,
        inputs: &[TensorHeader],
        bytes: &[u8],
        outputs: &mut Vec<u8>,
    ) -> Result<(Nanos, Vec<TensorHeader>), String> {
        let state = self
            .sessions
            .get_mut(&session)
            .ok_or_else(|| format!("there is no session {session}"))?;
        let begin = Instant::now();
        let inputs = to_tract(&tensors(inputs, bytes)?).map_err(|error| error.to_string())?;
        let (running, given) =
            timed(state, &self.threads, inputs).map_err(|error| error.to_string())?;
        let given = from_tract(given).map_err(|error| error.to_string())?;
        for tensor in &given {
            outputs.extend_from_slice(tensor.bytes());
        }
        let duration = match self.copies_count {
            true => begin.elapsed().into(),
            false => running,
        };
        Ok((duration, given.iter().map(TensorHeader::of).collect()))
    }

    fn forget(&mut self, session: u64) {
        self.sessions.remove(&session);
    }
}
