//! A segment that tract has optimised and runs.

use std::sync::Arc;
use std::time::Instant;

use layerlab_model::SubModel;
use layerlab_profiles::{Bytes, Nanos};
use rayon::ThreadPool;
use tract_linalg::multithread::{Executor, multithread_tract_scope};
use tract_onnx::prelude::{
    TValue, TVec, TractResult, TypedModel, TypedRunnableModel, TypedSimpleState,
};

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
        let (duration, outputs) = timed(&mut self.state, &self.threads, inputs)
            .and_then(|(duration, outputs)| Ok((duration, from_tract(outputs)?)))
            .map_err(|error| self.subject.cannot_run(error))?;
        Ok(Inference { outputs, duration })
    }
}

/// What a segment gives, and how long that takes.
pub(super) fn timed(
    state: &mut TypedSimpleState,
    threads: &Arc<ThreadPool>,
    inputs: TVec<TValue>,
) -> TractResult<(Nanos, TVec<TValue>)> {
    let executor = Executor::MultiThread(Arc::clone(threads));
    // On a thread of the set from beginning to end: what tract does not spread runs there, too.
    threads.install(|| {
        multithread_tract_scope(executor, || {
            let begin = Instant::now();
            let outputs = state.run(inputs);
            let duration = begin.elapsed();
            Ok((duration.into(), outputs?))
        })
    })
}

/// A segment as tract runs it fastest without letting the answers depend on where it was cut.
pub(in crate::runtime) fn optimized(cut: &SubModel) -> TractResult<TypedSimpleState> {
    ready(cut.optimized()?)
}

/// An optimised segment, ready to run.
pub(super) fn ready(optimized: TypedModel) -> TractResult<TypedSimpleState> {
    TypedRunnableModel::new(optimized)?.spawn()
}
