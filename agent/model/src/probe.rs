//! Makes probes: networks whose layers are of sizes that `layerlab_profiles::probe` says, of operators that every runtime
//! and most accelerators know.

use layerlab_profiles::Probe;
use layerlab_profiles::probe::PROBE_WINDOW;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto,
    TypeProto, ValueInfoProto, type_proto,
};

use crate::{
    ModelError, Network, QuantiseError, QuantiseOptions, RangeMethod, WeightScales, encode,
    quantise,
};

/// The operator set of the quantised twins' pairs, which every runtime here reads.
const OPSET: i64 = 13;
/// The version of the file format that came with it.
const IR_VERSION: i64 = 7;

const INPUT: &str = "input";
const OUTPUT: &str = "copies";

/// The network of a probe.
///
/// # Errors
/// When its tensors are too large to be numbered.
pub fn probe_network(probe: Probe) -> Result<Network, ModelError> {
    let [channels, side] = [probe.channels, probe.side].map(i64::from);
    let large = side.saturating_mul(PROBE_WINDOW as i64);
    let copies = (0..Probe::COPIES).map(|_| "same".to_owned());
    let graph = GraphProto {
        name: format!("probe-{}x{}", probe.channels, probe.side),
        input: vec![value(INPUT, &[1, channels, large, large])],
        output: vec![value(
            OUTPUT,
            &[1, channels.saturating_mul(Probe::COPIES as i64), side, side],
        )],
        node: vec![
            max_pool(INPUT, "kept", 3, 1, 1),
            max_pool(
                "kept",
                "narrowed",
                PROBE_WINDOW as i64,
                PROBE_WINDOW as i64,
                0,
            ),
            max_pool("narrowed", "same", 1, 1, 0),
            node("Concat", copies.collect(), OUTPUT, vec![int("axis", 1)]),
        ],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: IR_VERSION,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: OPSET,
        }],
        graph: Some(graph),
        ..ModelProto::default()
    };
    Network::from_onnx(&encode::to_bytes(model))
}

/// The quantised twin of a probe's network, for runtimes that compute in 8 bits only where a network says how. Nobody reads
/// its answers; the ranges are those of values from -1 to 1.
///
/// # Errors
/// When tract cannot run the network.
pub fn probe_twin(network: &Network) -> Result<Network, QuantiseError> {
    let elements: u64 = network.inputs().iter().map(|spec| spec.elements()).sum();
    let image = (0..elements).map(|place| if place % 2 == 0 { -1.0 } else { 1.0 });
    let images = std::iter::once(image.collect::<Vec<f32>>());
    let options = QuantiseOptions {
        weights: WeightScales::PerTensor,
        ranges: RangeMethod::MinMax,
    };
    Ok(quantise(network, &images, options)?.network)
}

/// Maxima of square windows.
fn max_pool(input: &str, output: &str, window: i64, stride: i64, border: i64) -> NodeProto {
    let attributes = vec![
        ints("kernel_shape", &[window; 2]),
        ints("strides", &[stride; 2]),
        ints("pads", &[border; 4]),
    ];
    node("MaxPool", vec![input.to_owned()], output, attributes)
}

fn node(
    op_type: &str,
    input: Vec<String>,
    output: &str,
    attribute: Vec<AttributeProto>,
) -> NodeProto {
    NodeProto {
        name: format!("{output}_node"),
        op_type: op_type.to_owned(),
        input,
        output: vec![output.to_owned()],
        attribute,
        ..NodeProto::default()
    }
}

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Int as i32,
        i: value,
        ..AttributeProto::default()
    }
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Ints as i32,
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}

/// A tensor of 32-bit floats.
fn value(name: &str, shape: &[i64]) -> ValueInfoProto {
    let dim = shape.iter().map(|&length| Dimension {
        value: Some(dimension::Value::DimValue(length)),
        ..Dimension::default()
    });
    let tensor = type_proto::Tensor {
        elem_type: DataType::Float as i32,
        shape: Some(TensorShapeProto { dim: dim.collect() }),
    };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}

#[cfg(test)]
mod tests {
    use layerlab_profiles::Bytes;

    use super::*;

    fn probes() -> Vec<Probe> {
        let mut probes = Probe::around([40, 3_000_000].map(Bytes::from_bytes));
        probes.extend(Probe::around([2_000].map(Bytes::from_bytes)));
        probes
    }

    /// The arithmetic on probes' times rests on these numbers.
    #[test]
    fn the_reader_finds_in_a_probe_what_the_probe_is_said_to_be() {
        for probe in probes() {
            let network = probe_network(probe).expect("a network");
            let found: Vec<_> = network
                .layers()
                .iter()
                .map(|layer| {
                    let operations = layer.additions + layer.multiplications;
                    (layer.input_bytes, layer.output_bytes, operations)
                })
                .collect();
            let said = probe
                .layers()
                .map(|one| (one.input, one.output, one.operations));
            assert_eq!(found, said, "{probe:?}");
            assert!(
                network
                    .layers()
                    .iter()
                    .all(|layer| layer.parameter_bytes == Bytes::ZERO),
                "{probe:?}"
            );
        }
    }

    #[test]
    fn a_probe_has_a_quantised_twin_of_the_same_layers() {
        let probe = Probe {
            channels: 3,
            side: 2,
        };
        let network = probe_network(probe).expect("a network");
        let twin = probe_twin(&network).expect("a twin");
        assert_eq!(twin.layer_count(), network.layer_count());
        let pairs = (1..=3).flat_map(|layer| twin.operators(layer).to_vec());
        assert!(pairs.into_iter().any(|one| one.op_type == "QuantizeLinear"));
    }
}
