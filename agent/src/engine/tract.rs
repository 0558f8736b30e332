//! The CPU of the machine that the agent runs on, through tract: 32-bit floats, a thread for each core of
//! a named set.

mod convert;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use layerlab_model::{Network, SubModel, TensorSpec};
use layerlab_profiles::document::{Clock, Device, Numerics, Processor, ProcessorKind};
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::Conditions;
use rayon::{ThreadPool, ThreadPoolBuildError};
use tract_linalg::multithread::{Executor, multithread_tract_scope};
use tract_onnx::prelude::{TractResult, TypedRunnableModel, TypedSimpleState};

use super::cores::{CoreSet, core_sets};
use super::{
    DeviceDescription, Engine, EngineError, Inference, Invocation, Session, Subject, Tensor,
};

pub(super) use self::convert::{from_tract, to_tract};

/// The version of tract that the lock file pins; tract does not say it itself. Held by a test.
pub(super) const TRACT_VERSION: &str = "0.23.9";

/// This machine: its cores, all together and by speed.
#[derive(Debug)]
pub struct Host {
    start: Instant,
    sets: Vec<CoreSet>,
    /// The threads of each set that was used, by its place.
    threads: BTreeMap<usize, Arc<ThreadPool>>,
}

impl Host {
    /// The engine; its clock starts now.
    pub fn new() -> Self {
        let sets = core_sets(Path::new("/sys"));
        Host {
            start: Instant::now(),
            sets,
            threads: BTreeMap::new(),
        }
    }

    fn threads(&mut self, place: usize) -> Result<Arc<ThreadPool>, ThreadPoolBuildError> {
        if let Some(threads) = self.threads.get(&place) {
            return Ok(Arc::clone(threads));
        }
        let threads = self.sets[place].threads()?;
        self.threads.insert(place, Arc::clone(&threads));
        Ok(threads)
    }
}

impl Default for Host {
    fn default() -> Self {
        Host::new()
    }
}

impl Engine for Host {
    fn describe(&self) -> DeviceDescription {
        let processor = |set: &CoreSet| Processor {
            name: set.name.clone(),
            kind: ProcessorKind::Cpu,
            numerics: Numerics::F32,
            runtime: "tract".to_owned(),
            runtime_version: TRACT_VERSION.to_owned(),
            memory_bytes: None,
            threads: Some(set.cores.len() as u32),
            pinned_to_cores: set.pinned.then(|| set.cores.clone()),
        };
        DeviceDescription {
            device: Device {
                name: hostname(),
                simulated: false,
                clock: Clock::Monotonic,
            },
            system: super::system(),
            processors: self.sets.iter().map(processor).collect(),
        }
    }

    fn now(&self) -> Nanos {
        self.start.elapsed().into()
    }

    fn idle(&mut self, gap: Nanos) {
        std::thread::sleep(gap.into());
    }

    fn conditions(&mut self) -> Conditions {
        crate::conditions::read(Path::new("/sys"))
    }

    fn load(
        &mut self,
        processor: &str,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, EngineError> {
        let Some(place) = self.sets.iter().position(|set| set.name == processor) else {
            let known = self.sets.iter().map(|set| set.name.clone()).collect();
            return Err(EngineError::UnknownProcessor {
                processor: processor.to_owned(),
                known,
            });
        };
        let subject = Subject {
            processor: processor.to_owned(),
            segment,
        };
        let begin = Instant::now();
        let cut = network
            .segment(segment)
            .map_err(|error| subject.cannot_load(error))?;
        let state = optimized(&cut).map_err(|error| subject.cannot_load(error))?;
        let threads = self
            .threads(place)
            .map_err(|error| subject.cannot_load(error))?;
        Ok(Box::new(HostSession {
            start: self.start,
            memory: memory(network, segment),
            load_time: begin.elapsed().into(),
            state,
            threads,
            subject,
        }))
    }
}

/// A segment, optimised and ready to run.
struct HostSession {
    start: Instant,
    memory: Bytes,
    load_time: Nanos,
    state: TypedSimpleState,
    threads: Arc<ThreadPool>,
    subject: Subject,
}

impl Session for HostSession {
    fn memory(&self) -> Bytes {
        self.memory
    }

    fn load_time(&self) -> Nanos {
        self.load_time
    }

    fn run(&mut self, inputs: &[Tensor], _: Invocation) -> Result<Inference, EngineError> {
        // Copied before the clock is read, and the outputs after: a program of one's own would have them in
        // tract's form.
        let inputs = to_tract(inputs).map_err(|error| self.subject.cannot_run(error))?;
        let executor = Executor::MultiThread(Arc::clone(&self.threads));
        let state = &mut self.state;
        // On a thread of the set from beginning to end: what tract does not spread runs there, too.
        let (begin, duration, outputs) = self.threads.install(|| {
            multithread_tract_scope(executor, || {
                let begin = Instant::now();
                let outputs = state.run(inputs);
                (begin, begin.elapsed(), outputs)
            })
        });
        let outputs = outputs
            .and_then(from_tract)
            .map_err(|error| self.subject.cannot_run(error))?;
        Ok(Inference {
            outputs,
            started: begin.duration_since(self.start).into(),
            duration: duration.into(),
        })
    }
}

/// A segment as tract runs it fastest without letting the answers depend on where it was cut.
pub(super) fn optimized(cut: &SubModel) -> TractResult<TypedSimpleState> {
    TypedRunnableModel::new(cut.optimized()?)?.spawn()
}

/// An estimate: weights once, inputs and outputs once. tract also repacks weights and reuses buffers,
/// and says nothing about either.
fn memory(network: &Network, segment: Segment) -> Bytes {
    let tensors = |cut| network.frontier(cut).iter().map(TensorSpec::bytes).sum();
    let layers = &network.layers()[segment.first() as usize - 1..segment.last() as usize];
    let weights: Bytes = layers.iter().map(|layer| layer.parameter_bytes).sum();
    weights + tensors(segment.first() - 1) + tensors(segment.last())
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use layerlab_model::ElementType;

    use super::*;

    #[test]
    fn the_version_is_the_one_in_the_lock_file() {
        let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"));
        let entry = format!("name = \"tract-onnx\"\nversion = \"{TRACT_VERSION}\"\n");
        assert!(lock.contains(&entry));
    }

    #[test]
    fn a_processor_that_does_not_exist_is_named_with_those_that_do() {
        let error = EngineError::UnknownProcessor {
            processor: "npu".into(),
            known: vec!["cpu:all".into()],
        };
        assert_eq!(
            error.to_string(),
            "this device has no processor `npu`: choose one of cpu:all"
        );
    }

    fn run(
        host: &mut Host,
        network: &Arc<Network>,
        segment: (u32, u32),
        inputs: &[Tensor],
    ) -> Inference {
        let segment = Segment::try_from(segment).expect("a segment");
        let mut session = host.load("cpu:all", network, segment).expect("loaded");
        assert!(session.memory() > Bytes::ZERO && session.load_time() > Nanos::ZERO);
        session
            .run(inputs, Invocation::sample(1, 0))
            .expect("an inference")
    }

    #[test]
    fn two_halves_give_the_bits_of_the_whole_and_the_clock_moves_on() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/models/inception.onnx"
        );
        let network = Arc::new(Network::open(path.as_ref(), &Default::default()).expect("a model"));
        let layers = network.layers().len() as u32;
        let input = crate::engine::timing_input(network.frontier(0), 1);
        let mut host = Host::new();
        let whole = run(&mut host, &network, (1, layers), &input);
        let left = run(&mut host, &network, (1, layers / 2), &input);
        let right = run(&mut host, &network, (layers / 2 + 1, layers), &left.outputs);
        assert_eq!(right.outputs, whole.outputs);
        for (earlier, later) in [(&whole, &left), (&left, &right)] {
            assert!(earlier.duration > Nanos::ZERO);
            assert!(earlier.started + earlier.duration <= later.started);
        }
        assert!(host.now() >= right.started + right.duration);
    }

    #[test]
    fn inputs_that_do_not_fit_are_an_error_of_one_line() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/models/vgg16.onnx");
        let network = Arc::new(Network::open(path.as_ref(), &Default::default()).expect("a model"));
        let mut session = Host::new()
            .load("cpu:all", &network, Segment::single(2))
            .expect("loaded");
        for inputs in [
            vec![],
            vec![Tensor::from_floats(ElementType::F32, vec![1], &[0.0]).expect("a tensor")],
        ] {
            let error = session
                .run(&inputs, Invocation::sample(1, 0))
                .expect_err("bad inputs");
            let sentence = error.to_string();
            assert!(
                sentence.starts_with("cannot run layers 2..=2 on cpu:all: "),
                "{sentence}"
            );
            assert!(!sentence.contains('\n'), "{sentence}");
        }
    }
}
