//! ONNX Runtime and Qualcomm's emulator of its Hexagon, as the agent loads them: real libraries, found by the
//! environment variables LAYERLAB_ONNXRUNTIME and LAYERLAB_QNN (`make npu-test` installs them).

mod campaigns;
mod chains;
mod child_process;
mod command_line;
mod compile_cache;
mod emulated;
mod hexagon;
mod phones;
mod refusals;
mod working_memory;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use layerlab_agent::ModelWithTwin;
use layerlab_agent::device::Host;
use layerlab_agent::runtime::registry::{self, RegistryError};
use layerlab_agent::runtime::{OnnxRuntimeOptions, RuntimesSetup};
use layerlab_agent::runtime::{Runtimes, Session, Tensor, timing_input};
use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::Segment;
use layerlab_tests::skip::skip;
use layerlab_tests::{agent_program, model};
use tempfile::TempDir;

/// An SoC whose Hexagon computes in 16 bits.
const SOC: &str = "SM8550";

/// The runtimes of this machine, with a folder for whatever they write.
struct Lab {
    runtimes: Runtimes,
    state: TempDir,
}

/// Where ONNX Runtime and Qualcomm's libraries are, in this order; without them the test is skipped.
fn folders() -> Option<(PathBuf, PathBuf)> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from);
    let folders = folder("LAYERLAB_ONNXRUNTIME").zip(folder("LAYERLAB_QNN"));
    if folders.is_none() {
        skip(
            "ONNX Runtime",
            "run `make npu-test`, which installs it and Qualcomm's emulator",
        );
    }
    folders
}

/// What the agent is told to offer ONNX Runtime's CPU processors alone.
fn cpu_alone(onnxruntime: &Path) -> OnnxRuntimeOptions {
    OnnxRuntimeOptions {
        onnxruntime: Some(onnxruntime.to_owned()),
        ..OnnxRuntimeOptions::default()
    }
}

/// What the agent is told to offer the emulated Hexagon of `soc` beside the CPU.
fn with_hexagon((onnxruntime, qnn): (PathBuf, PathBuf), soc: &str) -> OnnxRuntimeOptions {
    OnnxRuntimeOptions {
        qnn: Some(qnn),
        emulate: Some(soc.to_owned()),
        ..cpu_alone(&onnxruntime)
    }
}

impl Lab {
    fn try_open(options: OnnxRuntimeOptions) -> Result<Lab, RegistryError> {
        Lab::try_open_with(options, agent_program())
    }

    /// The runtimes, whose child processes run `program`.
    fn try_open_with(options: OnnxRuntimeOptions, program: PathBuf) -> Result<Lab, RegistryError> {
        let state = tempfile::tempdir().expect("a folder");
        let setup = RuntimesSetup {
            onnxruntime: options,
            program,
            scratch: state.path().join("runtime"),
            compiled: Some(state.path().join("compiled")),
        };
        let runtimes = registry::runtimes(Host::new().cores(), &setup)?;
        Ok(Lab { runtimes, state })
    }

    fn open(options: OnnxRuntimeOptions) -> Lab {
        Lab::try_open(options).expect("the runtimes")
    }

    fn load(
        &mut self,
        processor: &str,
        model: &ModelWithTwin,
        segment: (u32, u32),
    ) -> Box<dyn Session> {
        let segment = Segment::try_from(segment).expect("a segment");
        let session = self.runtimes.load(processor, model, segment);
        session.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The outputs of a segment.
    fn outputs(
        &mut self,
        processor: &str,
        model: &ModelWithTwin,
        segment: (u32, u32),
        inputs: &[Tensor],
    ) -> Vec<Tensor> {
        let mut session = self.load(processor, model, segment);
        session
            .outputs(inputs)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The outputs of the whole model, and of its layers run one after the other.
    fn whole_and_chain(&mut self, processor: &str, model: &ModelWithTwin) -> [Vec<Tensor>; 2] {
        let input = input(model);
        let network = model.model();
        let layers = network.layer_count();
        let whole = self.outputs(processor, model, (1, layers), &input);
        // All that was ever there, by name.
        let named = |specs: &[TensorSpec], tensors: Vec<Tensor>| {
            let names = specs.iter().map(|spec| spec.name.clone());
            names.zip(tensors).collect::<Vec<_>>()
        };
        let mut memory: HashMap<String, Tensor> = HashMap::new();
        memory.extend(named(network.inputs(), input));
        let of = |memory: &HashMap<String, Tensor>, specs: &[TensorSpec]| -> Vec<Tensor> {
            let tensors = specs.iter().map(|spec| memory[&spec.name].clone());
            tensors.collect()
        };
        for layer in 1..=layers {
            let segment = Segment::single(layer);
            let inputs = of(&memory, &network.takes(segment));
            let outputs = self.outputs(processor, model, (layer, layer), &inputs);
            memory.extend(named(&network.gives(segment), outputs));
        }
        [whole, of(&memory, network.outputs())]
    }
}

/// A network of tests/models, without a twin.
fn network(name: &str) -> ModelWithTwin {
    let network = Network::open(&model(name), &Default::default()).expect("a model");
    ModelWithTwin::alone(Arc::new(network))
}

fn input(model: &ModelWithTwin) -> Vec<Tensor> {
    timing_input(model.model().inputs(), 1)
}

/// How far `found` is from `expected`, as a part of its length.
fn relative_distance(found: &[Tensor], expected: &[Tensor]) -> f64 {
    let floats = |tensors: &[Tensor]| {
        tensors
            .iter()
            .flat_map(Tensor::to_floats)
            .collect::<Vec<_>>()
    };
    let (found, expected) = (floats(found), floats(expected));
    assert_eq!(found.len(), expected.len());
    let squares =
        |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let differences = found.iter().zip(&expected).map(|(a, b)| f64::from(a - b));
    let length = squares(&mut expected.iter().copied().map(f64::from));
    (squares(&mut { differences }) / length).sqrt()
}
