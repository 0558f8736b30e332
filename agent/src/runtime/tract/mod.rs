//! tract on the CPU of the machine that the agent runs on: 32-bit floats, a thread for each core of a named set.

mod convert;
mod engine;
mod session;
mod threads;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use layerlab_model::Network;
use layerlab_profiles::Segment;
use layerlab_protocol::{Numerics, ProcessorKind};
use rayon::{ThreadPool, ThreadPoolBuildError};

pub(super) use self::convert::{from_tract, to_tract};
pub(super) use self::engine::start;
pub(super) use self::session::optimized;

use self::engine::TractSetup;
use self::session::TractSession;
use super::memory::estimated_memory;
use super::process::{RuntimeChild, RuntimeSetup, SharedChild};
use super::setup::RuntimesSetup;
use super::{ProcessorOffer, Runtime, RuntimeError, SegmentOnProcessor, Session, Unsupported};
use crate::device::CoreSet;

/// The runtime's name.
pub(super) const TRACT: &str = "tract";

/// The version of tract that the lock file pins; tract does not say it itself. Held by a test.
const TRACT_VERSION: &str = "0.23.9";

/// tract on each set of this machine's cores: in a child process for each visit where a network is profiled, and else in the
/// agent's own.
struct TractRuntime {
    sets: Vec<CoreSet>,
    /// The threads of each set that was used, by its place.
    threads: BTreeMap<usize, Arc<ThreadPool>>,
    /// The child process of each set that was timed, by its place.
    children: BTreeMap<usize, SharedChild>,
    setup: RuntimesSetup,
}

/// tract is part of the agent, so that every machine has it.
pub(super) fn offered(cores: &[CoreSet], setup: &RuntimesSetup) -> Option<Box<dyn Runtime>> {
    Some(Box::new(TractRuntime {
        sets: cores.to_vec(),
        threads: BTreeMap::new(),
        children: BTreeMap::new(),
        setup: setup.clone(),
    }))
}

impl TractRuntime {
    fn threads(&mut self, place: usize) -> Result<Arc<ThreadPool>, ThreadPoolBuildError> {
        if let Some(threads) = self.threads.get(&place) {
            return Ok(Arc::clone(threads));
        }
        let threads = threads::threads(&self.sets[place])?;
        self.threads.insert(place, Arc::clone(&threads));
        Ok(threads)
    }

    /// Whether these cores are to be measured as if they were an accelerator.
    fn is_accelerator(&self, set: &CoreSet) -> bool {
        self.setup.onnxruntime.as_accelerator.as_ref() == Some(&set.name)
    }

    fn child(&mut self, place: usize) -> Result<SharedChild, serde_json::Error> {
        if let Some(child) = self.children.get(&place) {
            return Ok(child.clone());
        }
        let setup = RuntimeSetup {
            runtime: TRACT.to_owned(),
            setup: serde_json::to_value(TractSetup {
                cores: self.sets[place].clone(),
                copies_count: self.is_accelerator(&self.sets[place]),
            })?,
        };
        let child = RuntimeChild::new(self.setup.child_program(Vec::new()), setup);
        let child = SharedChild::new(child, None);
        self.children.insert(place, child.clone());
        Ok(child)
    }
}

impl Runtime for TractRuntime {
    fn name(&self) -> &str {
        TRACT
    }

    fn version(&self) -> &str {
        TRACT_VERSION
    }

    fn processors(&self) -> Vec<ProcessorOffer> {
        let offer = |set: &CoreSet| ProcessorOffer {
            name: set.name.clone(),
            kind: match self.is_accelerator(set) {
                true => ProcessorKind::Accelerator,
                false => ProcessorKind::Cpu,
            },
            numerics: Numerics::F32,
            emulated: false,
            memory: None,
            threads: Some(set.cores.len() as u32),
            pinned_to_cores: set.pinned.then(|| set.cores.clone()),
        };
        self.sets.iter().map(offer).collect()
    }

    /// A network that was read is one that tract knows: it gave every tensor's type and shape.
    fn supports(&self, _: usize, _: &Network, _: Segment) -> Result<(), Unsupported> {
        Ok(())
    }

    fn load(
        &mut self,
        processor: usize,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        let subject = SegmentOnProcessor {
            processor: self.sets[processor].name.clone(),
            segment,
        };
        let begin = Instant::now();
        let cut = network
            .segment(segment)
            .map_err(|error| subject.cannot_load(error))?;
        // Whatever tract does not run is no fault of the device.
        let state = optimized(&cut).map_err(|error| RuntimeError::Unsupported {
            processor: subject.processor.clone(),
            segment,
            reason: Unsupported::because(error),
        })?;
        let threads = self
            .threads(processor)
            .map_err(|error| subject.cannot_load(error))?;
        Ok(Box::new(TractSession {
            memory: estimated_memory(network, segment),
            load_time: begin.elapsed().into(),
            state,
            threads,
            subject,
        }))
    }

    fn begin_visit(&mut self) {
        for child in self.children.values() {
            child.end();
        }
    }

    fn load_timed(
        &mut self,
        processor: usize,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, RuntimeError> {
        let subject = SegmentOnProcessor {
            processor: self.sets[processor].name.clone(),
            segment,
        };
        let child = self
            .child(processor)
            .map_err(|error| subject.cannot_load(error))?;
        child.load_segment(subject, network)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use layerlab_model::ElementType;
    use layerlab_profiles::{Bytes, Nanos};

    use super::*;
    use crate::device::{Device, Host};
    use crate::runtime::{Inference, OnnxRuntimeOptions, Tensor, timing_input};

    fn network(name: &str) -> Arc<Network> {
        let path = format!("{}/../tests/models/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
        Arc::new(Network::open(path.as_ref(), &Default::default()).expect("a model"))
    }

    fn tract(host: &Host) -> Box<dyn Runtime> {
        let setup = RuntimesSetup {
            onnxruntime: OnnxRuntimeOptions::default(),
            program: PathBuf::new(),
            scratch: std::env::temp_dir(),
            compiled: None,
        };
        offered(host.cores(), &setup).expect("it is always there")
    }

    #[test]
    fn the_version_is_the_one_in_the_lock_file() {
        let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"));
        let entry = format!("name = \"tract-onnx\"\nversion = \"{TRACT_VERSION}\"\n");
        assert!(lock.contains(&entry));
    }

    fn run(
        tract: &mut dyn Runtime,
        network: &Arc<Network>,
        segment: (u32, u32),
        inputs: &[Tensor],
    ) -> Inference {
        let segment = Segment::try_from(segment).expect("a segment");
        let mut session = tract.load(0, network, segment).expect("loaded");
        assert!(session.memory() > Bytes::ZERO && session.load_time() > Nanos::ZERO);
        session.run(inputs).expect("an inference")
    }

    #[test]
    fn two_halves_give_the_bits_of_the_whole_within_the_time_that_passed() {
        let network = network("inception");
        let layers = network.layer_count();
        let input = timing_input(network.inputs(), 1);
        let host = Host::new();
        let mut tract = tract(&host);
        let before = host.now();
        let whole = run(tract.as_mut(), &network, (1, layers), &input);
        let left = run(tract.as_mut(), &network, (1, layers / 2), &input);
        let right = run(
            tract.as_mut(),
            &network,
            (layers / 2 + 1, layers),
            &left.outputs,
        );
        assert_eq!(right.outputs, whole.outputs);
        let durations = [&whole, &left, &right].map(|inference| inference.duration);
        assert!(durations.iter().all(|&duration| duration > Nanos::ZERO));
        assert!(host.now() >= before + durations.into_iter().sum());
    }

    #[test]
    fn inputs_that_do_not_fit_are_an_error_of_one_line() {
        let network = network("vgg16");
        let mut session = tract(&Host::new())
            .load(0, &network, Segment::single(2))
            .expect("loaded");
        for inputs in [
            vec![],
            vec![Tensor::from_floats(ElementType::F32, vec![1], &[0.0]).expect("a tensor")],
        ] {
            let sentence = session.run(&inputs).expect_err("bad inputs").to_string();
            assert!(
                sentence.starts_with("cannot run layers 2..=2 on cpu:all: "),
                "{sentence}"
            );
            assert!(!sentence.contains('\n'), "{sentence}");
        }
    }
}
