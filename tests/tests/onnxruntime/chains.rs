//! Segments run one after the other on ONNX Runtime's CPU give the bits of the whole network, wherever it is cut.

#![expect(
    clippy::print_stdout,
    reason = "tests/reports/onnxruntime puts the distances into its report"
)]

use layerlab_protocol::ProcessorKind;

use super::{Lab, cpu_alone, folders, input, network, relative_distance};

/// Chains, branches, skips, and caches that are taken and given in the middle.
const NETWORKS: [&str; 7] = [
    "alexnet",
    "inception",
    "resnet50",
    "vocnet-mini",
    "gpt2-prefill",
    "gpt2-decode",
    "variants/attention",
];

#[test]
fn a_chain_of_layers_gives_the_bits_of_the_whole() {
    let Some((onnxruntime, _)) = folders() else {
        return;
    };
    let mut lab = Lab::open(cpu_alone(&onnxruntime));
    for name in NETWORKS {
        let [whole, chain] = lab.whole_and_chain("cpu:ort-all", &network(name));
        assert_eq!(chain, whole, "{name}");
    }
}

#[test]
fn two_parts_give_the_bits_of_the_whole_at_every_cut() {
    let Some((onnxruntime, _)) = folders() else {
        return;
    };
    let mut lab = Lab::open(cpu_alone(&onnxruntime));
    // Each cut of the small ones, and some of the deep ones, whose cuts are alike.
    for (name, step) in [
        ("alexnet", 1),
        ("vocnet-mini", 1),
        ("inception", 5),
        ("resnet50", 9),
    ] {
        let model = network(name);
        let layers = model.model().layer_count();
        let input = input(&model);
        let whole = lab.outputs("cpu:ort-all", &model, (1, layers), &input);
        for cut in (1..layers).step_by(step) {
            let left = lab.outputs("cpu:ort-all", &model, (1, cut), &input);
            let right = lab.outputs("cpu:ort-all", &model, (cut + 1, layers), &left);
            assert_eq!(right, whole, "{name} cut after layer {cut}");
        }
    }
}

#[test]
fn tract_and_onnx_runtime_give_the_same_answers() {
    let Some((onnxruntime, _)) = folders() else {
        return;
    };
    let mut lab = Lab::open(cpu_alone(&onnxruntime));
    for name in NETWORKS {
        let model = network(name);
        let whole = (1, model.model().layer_count());
        let input = input(&model);
        let by_tract = lab.outputs("cpu:all", &model, whole, &input);
        let by_ort = lab.outputs("cpu:ort-all", &model, whole, &input);
        let distance = relative_distance(&by_ort, &by_tract);
        println!("{name}: relative L2 {distance:.1e}");
        assert!(distance < 1e-5, "{name}: {distance:e}");
    }
}

#[test]
fn the_cpu_is_offered_as_an_accelerator_where_that_is_asked_for() {
    let Some((onnxruntime, _)) = folders() else {
        return;
    };
    let mut options = cpu_alone(&onnxruntime);
    options.as_accelerator = Some("cpu:ort-all".to_owned());
    let mut lab = Lab::open(options);
    let mut processors = lab.runtimes.processors();
    let offered = processors.find(|processor| processor.name == "cpu:ort-all");
    let offered = offered.expect("it is offered");
    assert_eq!(offered.kind, ProcessorKind::Accelerator);
    assert_eq!(offered.runtime_version, "1.24.4");
    drop(processors);
    let model = network("vocnet-mini");
    let session = lab.load("cpu:ort-all", &model, (1, 3));
    let placed = session.placed().expect("ONNX Runtime says where nodes are");
    assert!(!placed.nodes.is_empty());
    // There is no other provider that nodes could fall back to.
    assert!(!placed.fallback_refused);
    let elsewhere = placed
        .nodes
        .iter()
        .find(|node| node.provider != "CPUExecutionProvider");
    assert_eq!(elsewhere, None);
}
