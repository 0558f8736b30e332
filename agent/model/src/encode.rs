//! From an ONNX message to bytes.
//!
//! tract's copy of the format is of a kind in which zero is nothing and is not written. In ONNX's own, an attribute has
//! a value or has none, and some runtimes take one without for the operator's default: Qualcomm's would expand weights
//! with `axis` 0 along axis 1. So zeros of attributes are written here.

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::{AttributeProto, ModelProto, NodeProto};

// Numbers of fields in onnx.proto.
const MODEL_GRAPH: u32 = 7;
const GRAPH_NODE: u32 = 1;
const NODE_ATTRIBUTE: u32 = 5;
const ATTRIBUTE_F: u32 = 2;
const ATTRIBUTE_I: u32 = 3;
const ATTRIBUTE_S: u32 = 4;

/// A field's number and its length take no more bytes.
const LONGEST_FIELD_HEADER: usize = 20;

/// `model` as a file. The same message gives the same bytes.
pub(crate) fn to_bytes(mut model: ModelProto) -> Vec<u8> {
    let graph = model.graph.take();
    let mut bytes = model.encode_to_vec();
    if let Some(mut graph) = graph {
        let mut nodes = Vec::new();
        for node in std::mem::take(&mut graph.node) {
            put(GRAPH_NODE, &of_node(node), &mut nodes);
        }
        // Weights may be hundreds of megabytes: they are copied once, to where they stay.
        let length = graph.encoded_len() + nodes.len();
        bytes.reserve_exact(LONGEST_FIELD_HEADER + length);
        encode_key(MODEL_GRAPH, WireType::LengthDelimited, &mut bytes);
        encode_varint(length as u64, &mut bytes);
        graph.encode_raw(&mut bytes);
        bytes.extend(nodes);
    }
    bytes
}

fn of_node(mut node: NodeProto) -> Vec<u8> {
    let attributes = std::mem::take(&mut node.attribute);
    let mut bytes = node.encode_to_vec();
    for attribute in &attributes {
        put(NODE_ATTRIBUTE, &of_attribute(attribute), &mut bytes);
    }
    bytes
}

fn of_attribute(attribute: &AttributeProto) -> Vec<u8> {
    let mut bytes = attribute.encode_to_vec();
    match AttributeType::try_from(attribute.r#type) {
        // Minus zero is no zero to prost.
        Ok(AttributeType::Float) if attribute.f.to_bits() == 0 => {
            encode_key(ATTRIBUTE_F, WireType::ThirtyTwoBit, &mut bytes);
            bytes.extend(0_f32.to_le_bytes());
        }
        Ok(AttributeType::Int) if attribute.i == 0 => {
            encode_key(ATTRIBUTE_I, WireType::Varint, &mut bytes);
            encode_varint(0, &mut bytes);
        }
        Ok(AttributeType::String) if attribute.s.is_empty() => {
            put(ATTRIBUTE_S, &[], &mut bytes);
        }
        _ => {}
    }
    bytes
}

/// Writes a field that has a length.
fn put(field: u32, content: &[u8], bytes: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, bytes);
    encode_varint(content.len() as u64, bytes);
    bytes.extend(content);
}

#[cfg(test)]
mod tests {
    use tract_onnx::pb::GraphProto;

    use super::*;

    #[test]
    fn zeros_of_attributes_are_written_and_nothing_else_changes() {
        let attribute = |name: &str, kind: AttributeType| AttributeProto {
            name: name.to_owned(),
            r#type: kind as i32,
            ..AttributeProto::default()
        };
        let zeros = [
            (AttributeType::Int, vec![0x18, 0]),
            (AttributeType::Float, vec![0x15, 0, 0, 0, 0]),
            (AttributeType::String, vec![0x22, 0]),
            (AttributeType::Ints, vec![]),
        ];
        for (kind, written) in &zeros {
            let zero = attribute("a", *kind);
            let mut expected = zero.encode_to_vec();
            expected.extend(written);
            assert_eq!(of_attribute(&zero), expected, "{kind:?}");
            assert_eq!(AttributeProto::decode(&expected[..]), Ok(zero));
        }
        let mut seven = attribute("a", AttributeType::Int);
        seven.i = 7;
        assert_eq!(of_attribute(&seven), seven.encode_to_vec());

        let model = ModelProto {
            ir_version: 8,
            graph: Some(GraphProto {
                name: "g".into(),
                node: vec![NodeProto {
                    op_type: "Concat".into(),
                    attribute: zeros.map(|(kind, _)| attribute("a", kind)).to_vec(),
                    ..NodeProto::default()
                }],
                ..GraphProto::default()
            }),
            ..ModelProto::default()
        };
        assert_eq!(ModelProto::decode(&to_bytes(model.clone())[..]), Ok(model));
    }
}
