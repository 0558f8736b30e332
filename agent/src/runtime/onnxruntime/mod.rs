//! ONNX Runtime, whose library is found at run time: its CPU provider on each set of cores, and what else it has here.
//!
//! It is loaded in child processes, one for each processor: a driver that crashes takes its process with it and no other,
//! the threads of each keep to its cores, and no processor can change what another one is told.

mod engine;
mod error;
mod hexagon;
mod libraries;
mod offers;
mod probe;
mod provider;
mod setup;
mod soc;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use layerlab_model::{Network, SubModel};
use layerlab_profiles::Segment;
use layerlab_profiles::document::ONNX_RUNTIME;
use layerlab_protocol::Library;
use sha2::{Digest, Sha256};

pub use self::error::OnnxRuntimeError;
pub use self::hexagon::HexagonBarrier;

pub(super) use self::engine::start;

use super::process::{LoadFailure, SharedChild};
use super::setup::RuntimesSetup;
use super::{ProcessorOffer, Runtime, RuntimeError, SegmentOnProcessor, Session, Unsupported};
use crate::device::CoreSet;

/// ONNX Runtime with the processors that passed their probes.
struct OnnxRuntime {
    version: String,
    processors: Vec<OnnxProcessor>,
    left_out: Vec<String>,
}

/// A processor that passed its probe.
struct OnnxProcessor {
    offer: ProcessorOffer,
    options: BTreeMap<String, String>,
    libraries: Vec<Library>,
    /// Whether it finds out by compiling what it can run.
    compiles: bool,
    child: SharedChild,
    /// Which layers it can run, by the SHA-256 of each as a model.
    supported: Mutex<HashMap<[u8; 32], Result<(), Unsupported>>>,
}

/// ONNX Runtime on a machine with these cores, if the agent was told where it is.
///
/// # Errors
/// When it was told something that cannot be had.
pub(super) fn offered(
    cores: &[CoreSet],
    setup: &RuntimesSetup,
) -> Result<Option<Box<dyn Runtime>>, OnnxRuntimeError> {
    let Some(offered) = offers::processors(cores, setup)? else {
        return Ok(None);
    };
    Ok(Some(Box::new(OnnxRuntime {
        version: offered.version,
        processors: offered.processors,
        left_out: offered.left_out.iter().map(ToString::to_string).collect(),
    })))
}

impl Runtime for OnnxRuntime {
    fn name(&self) -> &str {
        ONNX_RUNTIME
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn processors(&self) -> Vec<ProcessorOffer> {
        let offers = self.processors.iter();
        offers.map(|processor| processor.offer.clone()).collect()
    }

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn options(&self, processor: usize) -> BTreeMap<String, String> {
        self.processors[processor].options.clone()
    }

    fn libraries(&self, processor: usize) -> Vec<Library> {
        self.processors[processor].libraries.clone()
    }

    /// A provider that compiles has a single layer compiled for the answer, once. It is asked about no longer segment
    /// before that is loaded.
    fn supports(
        &self,
        processor: usize,
        network: &Network,
        segment: Segment,
    ) -> Result<(), Unsupported> {
        let processor = &self.processors[processor];
        if !processor.compiles || segment.layers() > 1 {
            return Ok(());
        }
        let cut = network.segment(segment).map_err(Unsupported::because)?;
        processor.supports(cut)
    }

    /// What it says of a failure does not tell memory from other reasons, and loading takes long where it compiles.
    fn fits(&mut self, _: usize, _: &Arc<Network>, _: Segment) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn load(
        &mut self,
        processor: usize,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        let processor = &self.processors[processor];
        let subject = SegmentOnProcessor {
            processor: processor.offer.name.clone(),
            segment,
        };
        processor.child.load_segment(subject, network)
    }

    /// Each processor's child process ends.
    fn begin_visit(&mut self) {
        for processor in &self.processors {
            processor.child.end();
        }
    }
}

impl OnnxProcessor {
    /// Whether it can run a layer. One whose compilation kills the process, twice, is one that it cannot run.
    fn supports(&self, cut: SubModel) -> Result<(), Unsupported> {
        let model = cut.into_bytes();
        let key: [u8; 32] = Sha256::digest(&model).into();
        let known = |layers: &HashMap<_, Result<(), Unsupported>>| layers.get(&key).cloned();
        let lock = || {
            self.supported
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(answer) = known(&lock()) {
            return answer;
        }
        let answer = match self.child.load(&model) {
            Ok(loaded) => {
                self.child.forget(&loaded);
                Ok(())
            }
            Err(LoadFailure::Refused(why) | LoadFailure::Failed(why)) => {
                Err(Unsupported::because(why))
            }
        };
        lock().insert(key, answer.clone());
        answer
    }
}
