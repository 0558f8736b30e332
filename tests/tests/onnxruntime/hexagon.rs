//! The emulated Hexagon: what it computes, where it says that it computes, and what it refuses.

use std::sync::Arc;

use layerlab_agent::ModelWithTwin;
use layerlab_agent::runtime::RuntimeError;
use layerlab_model::{QuantiseOptions, RangeMethod, WeightScales, quantise};
use layerlab_profiles::Segment;
use layerlab_protocol::{Numerics, ProcessorKind};

use super::{Lab, SOC, folders, input, network, relative_distance, with_hexagon};

#[test]
fn it_is_offered_as_emulated_with_its_numerics() {
    let Some(folders) = folders() else { return };
    for (soc, expected) in [
        (
            SOC,
            [("qnn-htp-f16", Numerics::F16), ("qnn-htp-i8", Numerics::I8)],
        ),
        // The oldest one computes 32-bit networks in 32 bits.
        (
            "SM8350",
            [("qnn-htp-f32", Numerics::F32), ("qnn-htp-i8", Numerics::I8)],
        ),
    ] {
        let lab = Lab::open(with_hexagon(folders.clone(), soc));
        let processors = lab.runtimes.processors();
        let accelerators = processors.filter(|it| it.kind == ProcessorKind::Accelerator);
        let told: Vec<_> = accelerators
            .map(|it| (it.name.as_str(), it.numerics, it.emulated))
            .collect();
        assert_eq!(
            told,
            expected.map(|(name, numerics)| (name, numerics, true)),
            "{soc}"
        );
        assert!(
            lab.runtimes
                .processors()
                .all(|it| it.emulated == it.name.starts_with("qnn"))
        );
    }
}

#[test]
fn a_network_runs_wholly_on_it_and_its_layers_give_the_bits_of_the_whole() {
    let Some(folders) = folders() else { return };
    let mut lab = Lab::open(with_hexagon(folders, SOC));
    let model = network("vocnet-mini");
    let layers = model.model().layer_count();
    let session = lab.load("qnn-htp-f16", &model, (1, layers));
    let placed = session.placed().expect("ONNX Runtime says where nodes are");
    assert!(placed.fallback_refused);
    assert_eq!(placed.backend.as_deref(), Some("libQnnHtp.so"));
    let nodes = placed.nodes.len();
    assert!(
        nodes > layers as usize / 2,
        "{nodes} nodes of {layers} layers"
    );
    assert!(
        placed
            .nodes
            .iter()
            .all(|node| node.provider == "QNNExecutionProvider")
    );
    let hexagon = lab
        .runtimes
        .processors()
        .find(|it| it.name == "qnn-htp-f16");
    let libraries = hexagon
        .and_then(|it| it.runtime_libraries.clone())
        .expect("libraries");
    assert!(
        libraries
            .iter()
            .any(|library| library.name == "libQnnHtp.so"),
        "{libraries:?}"
    );
    drop(session);
    for name in ["vocnet-mini", "alexnet", "inception", "resnet50"] {
        let [whole, chain] = lab.whole_and_chain("qnn-htp-f16", &network(name));
        assert_eq!(chain, whole, "{name}");
    }
}

#[test]
fn a_session_for_the_cpu_is_on_the_cpu_where_the_hexagon_is_offered_too() {
    let Some(folders) = folders() else { return };
    let mut lab = Lab::open(with_hexagon(folders, SOC));
    let model = network("vocnet-mini");
    // The Hexagon is in use before and after.
    let before = lab.load("qnn-htp-f16", &model, (1, 2));
    let session = lab.load("cpu:ort-all", &model, (1, 2));
    let placed = session.placed().expect("ONNX Runtime says where nodes are");
    assert!(!placed.nodes.is_empty());
    assert!(
        placed
            .nodes
            .iter()
            .all(|node| node.provider == "CPUExecutionProvider")
    );
    let placed = before.placed().expect("ONNX Runtime says where nodes are");
    assert!(
        placed
            .nodes
            .iter()
            .all(|node| node.provider == "QNNExecutionProvider")
    );
}

#[test]
fn the_soc_decides_what_it_computes_in() {
    let Some(folders) = folders() else { return };
    let model = network("vocnet-mini");
    let whole = (1, model.model().layer_count());
    let input = input(&model);
    let distance = |soc: &str, processor: &str| {
        let mut lab = Lab::open(with_hexagon(folders.clone(), soc));
        let on_cpu = lab.outputs("cpu:ort-all", &model, whole, &input);
        relative_distance(&lab.outputs(processor, &model, whole, &input), &on_cpu)
    };
    let in_16_bits = distance(SOC, "qnn-htp-f16");
    assert!(in_16_bits > 1e-4 && in_16_bits < 1e-1, "{in_16_bits:e}");
    let in_32_bits = distance("SM8350", "qnn-htp-f32");
    assert!(in_32_bits < 1e-5, "{in_32_bits:e}");
}

#[test]
fn a_layer_that_it_cannot_run_is_refused_by_the_name_of_its_node() {
    let Some(folders) = folders() else { return };
    let mut lab = Lab::open(with_hexagon(folders, SOC));
    let model = network("variants/gemm-matmul");
    let layers = model.model().layers();
    let mut refused = Vec::new();
    for layer in layers {
        let segment = Segment::single(layer.number);
        match lab.runtimes.supports("qnn-htp-f16", &model, segment) {
            Ok(()) => {}
            Err(error @ RuntimeError::Unsupported { .. }) => {
                refused.push((layer.name.clone(), error.to_string()));
            }
            Err(error) => panic!("{error}"),
        }
    }
    let names: Vec<&str> = refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["F2"], "{refused:?}");
    let sentence = &refused[0].1;
    assert!(
        sentence.contains("HTP does not support Gemm at node "),
        "{sentence}"
    );
    // What contains it is refused when it is loaded.
    let whole = Segment::whole(layers.len() as u32);
    let error = lab.runtimes.load("qnn-htp-f16", &model, whole).err();
    let error = error.expect("it has F2");
    assert!(matches!(error, RuntimeError::Unsupported { .. }), "{error}");
    // Each layer on a processor that runs it: the answers are those of the CPU but for 16 bits.
    let mut mixed = input(&model);
    for layer in layers {
        let processor = match layer.name.as_str() {
            "F2" => "cpu:ort-all",
            _ => "qnn-htp-f16",
        };
        mixed = lab.outputs(processor, &model, (layer.number, layer.number), &mixed);
    }
    let on_cpu = lab.outputs(
        "cpu:ort-all",
        &model,
        (1, layers.len() as u32),
        &input(&model),
    );
    let distance = relative_distance(&mixed, &on_cpu);
    assert!(distance < 1e-2, "{distance:e}");
}

#[test]
fn eight_bits_need_a_quantised_twin() {
    let Some(folders) = folders() else { return };
    let lab = Lab::open(with_hexagon(folders, SOC));
    let model = network("vocnet-mini");
    let error = lab
        .runtimes
        .supports("qnn-htp-i8", &model, Segment::single(1));
    let sentence = error.expect_err("there is no twin").to_string();
    assert!(sentence.contains("--quantised"), "{sentence}");
}

#[test]
fn a_quantised_twin_runs_wholly_on_it_in_eight_bits() {
    let Some(folders) = folders() else { return };
    let mut lab = Lab::open(with_hexagon(folders, SOC));
    let float = network("vocnet-mini");
    let options = QuantiseOptions {
        weights: WeightScales::PerChannel,
        ranges: RangeMethod::MinMax,
    };
    let input = input(&float);
    let images = [input[0].to_floats()];
    let twin = quantise(float.model(), &images.into_iter(), options).expect("a twin");
    let both = ModelWithTwin::with_twin(Arc::clone(float.model()), &twin.network).expect("twins");
    let layers = both.model().layer_count();
    let placed = lab
        .load("qnn-htp-i8", &both, (1, layers))
        .placed()
        .expect("a proof");
    assert!(
        placed
            .nodes
            .iter()
            .all(|node| node.provider == "QNNExecutionProvider")
    );
    assert!(
        placed
            .nodes
            .iter()
            .any(|node| node.operator == "QuantizeLinear")
    );
    let [whole, chain] = lab.whole_and_chain("qnn-htp-i8", &both);
    let in_32_bits = lab.outputs("cpu:ort-all", &both, (1, layers), &input);
    for answers in [whole, chain] {
        let distance = relative_distance(&answers, &in_32_bits);
        assert!(distance > 1e-4 && distance < 0.2, "{distance:e}");
    }
}

#[test]
fn all_networks_run_wholly_on_it() {
    let Some(folders) = folders() else { return };
    let mut lab = Lab::open(with_hexagon(folders, SOC));
    for name in [
        "alexnet",
        "vgg16",
        "inception",
        "resnet50",
        "yolo-small",
        "vocnet-mini",
    ] {
        let model = network(name);
        let session = lab.load("qnn-htp-f16", &model, (1, model.model().layer_count()));
        let placed = session.placed().expect("ONNX Runtime says where nodes are");
        assert!(
            placed
                .nodes
                .iter()
                .all(|node| node.provider == "QNNExecutionProvider"),
            "{name}"
        );
    }
}

/// Loads every segment of a network, so many.
fn every_segment_runs(name: &str, segments: u32) {
    let Some(folders) = folders() else { return };
    let mut lab = Lab::open(with_hexagon(folders, SOC));
    let model = network(name);
    let layers = model.model().layer_count();
    let mut loaded = 0;
    for first in 1..=layers {
        for last in first..=layers {
            let session = lab.load("qnn-htp-f16", &model, (first, last));
            let placed = session.placed().expect("ONNX Runtime says where nodes are");
            let mut nodes = placed.nodes.iter();
            assert!(
                nodes.all(|node| node.provider == "QNNExecutionProvider"),
                "{name}: layers {first}..={last}"
            );
            loaded += 1;
        }
    }
    assert_eq!(loaded, segments);
}

#[test]
#[ignore = "takes minutes: make slow-test"]
fn every_segment_of_vocnet_mini_and_alexnet_runs_on_it() {
    every_segment_runs("vocnet-mini", 66);
    every_segment_runs("alexnet", 66);
}

#[test]
#[ignore = "takes minutes: make slow-test"]
fn every_segment_of_inception_runs_on_it() {
    every_segment_runs("inception", 465);
}

#[test]
#[ignore = "takes minutes: make slow-test"]
fn every_segment_of_vgg16_runs_on_it() {
    every_segment_runs("vgg16", 231);
}

#[test]
#[ignore = "takes minutes: make slow-test"]
fn every_segment_of_yolo_small_runs_on_it() {
    every_segment_runs("yolo-small", 465);
}

#[test]
#[ignore = "takes minutes: make slow-test"]
fn every_segment_of_resnet50_runs_on_it() {
    every_segment_runs("resnet50", 1596);
}
