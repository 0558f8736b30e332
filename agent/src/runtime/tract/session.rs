//! A segment that tract has optimised and runs.

use std::sync::Arc;
use std::time::Instant;

use layerlab_model::SubModel;
use layerlab_profiles::{Bytes, Nanos};
use rayon::ThreadPool;
use tract_linalg::multithread::{Executor, multithread_tract_scope};
use tract_onnx::prelude::{TractResult, TypedRunnableModel, TypedSimpleState};

use super::convert::{from_tract, to_tract};
use crate::runtime::{Inference, RuntimeError, SegmentOnProcessor, Session, Tensor};

/// A segment, optimised and ready to run.
pub(super) struct TractSession {
    pub(super) memory: Bytes,
    pub(super) load_time: Nanos,
    pub(super) state: TypedSimpleState,
    pub(super) threads: Arc<ThreadPool>,
    pub(super) subject: SegmentOnProcessor,
}

impl Session for TractSession {
    fn memory(&self) -> Bytes {
        self.memory
    }

    fn load_time(&self) -> Nanos {
        self.load_time
    }

    fn run(&mut self, inputs: &[Tensor]) -> Result<Inference, RuntimeError> {
        let inputs = to_tract(inputs).map_err(|error| self.subject.cannot_run(error))?;
        let executor = Executor::MultiThread(Arc::clone(&self.threads));
        let state = &mut self.state;
        // On a thread of the set from beginning to end: what tract does not spread runs there, too.
        let (duration, outputs) = self.threads.install(|| {
            multithread_tract_scope(executor, || {
                let begin = Instant::now();
                let outputs = state.run(inputs);
                (begin.elapsed(), outputs)
            })
        });
        let outputs = outputs
            .and_then(from_tract)
            .map_err(|error| self.subject.cannot_run(error))?;
        Ok(Inference {
            outputs,
            duration: duration.into(),
        })
    }
}

/// A segment as tract runs it fastest without letting the answers depend on where it was cut.
pub(in crate::runtime) fn optimized(cut: &SubModel) -> TractResult<TypedSimpleState> {
    TypedRunnableModel::new(cut.optimized()?)?.spawn()
}
