//! The quantised graph: pairs behind tensors, integers for constants.

use std::collections::{BTreeMap, HashMap, HashSet};

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::{AttributeProto, NodeProto};

use super::constants::{floats, integer_attribute, put, put_floats};
use super::scale::{AffineScale, ValueRange, biases, symmetric};
use super::structure::Structure;
use super::{QuantiseError, WeightScales};
use crate::graph::{Graph, named};
use crate::pairs::{DEQUANTISE, QUANTISE};
use crate::tensor::ElementType;

/// Operators whose constants are quantised like activations.
const WITH_CONSTANT_OPERANDS: [&str; 10] = [
    "Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Concat", "PRelu", "MatMul",
];

/// A quantised graph, and what was quantised.
pub(super) struct Rewritten {
    pub(super) graph: Graph,
    /// How many tensors pass a pair.
    pub(super) activations: usize,
    /// How many nodes have integer weights.
    pub(super) weights: usize,
}

/// Rewrites `graph`; tensors keep their names behind their pairs, so that those at the cuts are called as before.
pub(super) fn rewrite(
    graph: &Graph,
    structure: &Structure,
    ranges: &BTreeMap<String, ValueRange>,
    weights: WeightScales,
) -> Result<Rewritten, QuantiseError> {
    let mut scales: HashMap<&str, AffineScale> = HashMap::new();
    for (tensor, &range) in ranges {
        scales.insert(tensor, AffineScale::holding(range));
    }
    for (tensor, root) in structure.shared() {
        if let Some(&scale) = scales.get(root) {
            scales.insert(tensor, scale);
        }
    }
    let mut names: HashSet<String> = graph.constants.keys().cloned().collect();
    names.extend(graph.inputs.iter().map(|input| input.name.clone()));
    for node in &graph.nodes {
        names.insert(node.name.clone());
        names.extend(named(&node.output).map(str::to_owned));
    }
    let mut rewriter = Rewriter {
        graph: Graph {
            nodes: Vec::new(),
            ..graph.clone()
        },
        names,
        scales,
        weights,
        activations: 0,
        weighted: 0,
    };
    let mut entered: HashMap<&str, String> = HashMap::new();
    for input in &graph.inputs {
        let name = input.name.as_str();
        if rewriter.scales.contains_key(name) {
            let rounded = rewriter.fresh(format!("{name}.dequantised"));
            rewriter.pair(name, name, &rounded);
            entered.insert(name, rounded);
        }
    }
    let going: HashSet<usize> = structure.cut_off.values().copied().collect();
    for (index, node) in graph.nodes.iter().enumerate() {
        if going.contains(&index) {
            continue;
        }
        let mut node = node.clone();
        rewriter.quantise_constants(&mut node)?;
        for input in &mut node.input {
            if let Some(rounded) = entered.get(input.as_str()) {
                input.clone_from(rounded);
            }
        }
        if let Some(&activation) = structure.cut_off.get(&index) {
            node.output.clone_from(&graph.nodes[activation].output);
        }
        let mut behind = Vec::new();
        for output in &mut node.output {
            if rewriter.scales.contains_key(output.as_str()) {
                let name = output.clone();
                *output = rewriter.fresh(format!("{name}.float"));
                behind.push((output.clone(), name));
            }
        }
        rewriter.graph.nodes.push(node);
        for (float, name) in behind {
            rewriter.pair(&name, &float, &name);
        }
    }
    Ok(Rewritten {
        graph: rewriter.graph,
        activations: rewriter.activations,
        weights: rewriter.weighted,
    })
}

struct Rewriter<'a> {
    graph: Graph,
    /// Names of tensors and nodes that are taken.
    names: HashSet<String>,
    scales: HashMap<&'a str, AffineScale>,
    weights: WeightScales,
    activations: usize,
    weighted: usize,
}

impl Rewriter<'_> {
    /// `stem`, or a name like it that nothing has; it is taken from now on.
    fn fresh(&mut self, stem: String) -> String {
        let mut free = stem;
        while !self.names.insert(free.clone()) {
            free.push('_');
        }
        free
    }

    /// Puts the pair of `tensor` between `from` and `to`.
    fn pair(&mut self, tensor: &str, from: &str, to: &str) {
        let Some(&scale) = self.scales.get(tensor) else {
            return;
        };
        let [factor, zero] = self.put_scale(tensor, scale);
        let integers = self.fresh(format!("{tensor}.quantised"));
        for (operator, input, output) in [
            (QUANTISE, from, integers.as_str()),
            (DEQUANTISE, &integers, to),
        ] {
            self.push(operator, [input, &factor, &zero], output, None);
        }
        self.activations += 1;
    }

    fn push(&mut self, operator: &str, inputs: [&str; 3], output: &str, axis: Option<usize>) {
        let attribute = axis.map(|axis| AttributeProto {
            name: "axis".to_owned(),
            r#type: AttributeType::Int as i32,
            i: axis as i64,
            ..AttributeProto::default()
        });
        let name = self.fresh(format!("{output}.{operator}"));
        self.graph.nodes.push(NodeProto {
            name,
            op_type: operator.to_owned(),
            input: inputs.map(str::to_owned).to_vec(),
            output: vec![output.to_owned()],
            attribute: attribute.into_iter().collect(),
            ..NodeProto::default()
        });
    }

    /// Constants for the scale and the zero point of `tensor`: their names.
    fn put_scale(&mut self, tensor: &str, scale: AffineScale) -> [String; 2] {
        let names = ["scale", "zero_point"].map(|what| self.fresh(format!("{tensor}.{what}")));
        put_floats(&mut self.graph, &names[0], &[], &[scale.scale]);
        put(
            &mut self.graph,
            &names[1],
            ElementType::U8,
            &[],
            vec![scale.zero_point],
        );
        names
    }

    /// Replaces the constants of `node` that are quantised by nodes that expand them.
    fn quantise_constants(&mut self, node: &mut NodeProto) -> Result<(), QuantiseError> {
        let axis = match node.op_type.as_str() {
            "Conv" => Some(0),
            "ConvTranspose" if integer_attribute(node, "group", 1) == 1 => Some(1),
            "Gemm" if integer_attribute(node, "transB", 0) != 0 => Some(0),
            "Gemm" | "MatMul" => Some(1),
            "ConvTranspose" => None,
            _ => return self.quantise_operands(node),
        };
        let weight = node.input.get(1).and_then(|name| floats(&self.graph, name));
        let input = self.scales.get(node.input[0].as_str()).copied();
        let (Some((shape, values)), Some(input)) = (weight, input) else {
            return self.quantise_operands(node);
        };
        let shape = shape.to_vec();
        let per_channel = self.weights == WeightScales::PerChannel;
        let axis = axis.filter(|&axis| per_channel && shape.len() > axis);
        if node.op_type == "MatMul" && shape.len() != 2 {
            return self.quantise_operands(node);
        }
        finite(&node.input[1], &values)?;
        let channels = match node.op_type.as_str() {
            "Conv" => shape[0],
            "ConvTranspose" => shape[1] * integer_attribute(node, "group", 1).unsigned_abs(),
            "Gemm" if integer_attribute(node, "transB", 0) != 0 => shape[0],
            _ => shape[1],
        };
        let bias = self.bias(node, channels as usize)?;
        let parts: Option<Vec<f64>> = bias.as_ref().map(|values| {
            let part = |value: &f32| f64::from(*value) / f64::from(input.scale);
            values.iter().map(part).collect()
        });
        let weights = symmetric(&values, &shape, axis, parts.as_deref());
        let name = node.input[1].clone();
        let bytes = weights.integers.iter().map(|value| value.to_le_bytes()[0]);
        let bytes = bytes.collect();
        node.input[1] = self.expand(
            &name,
            ElementType::I8,
            &shape,
            bytes,
            (&weights.scales, axis),
        );
        if let Some(values) = bias {
            let (integers, scales) = biases(&values, input.scale, &weights.scales);
            let bytes = integers.iter().flat_map(|value| value.to_le_bytes());
            let bytes = bytes.collect();
            let name = node.input[2].clone();
            let axis = axis.map(|_| 0);
            node.input[2] =
                self.expand(&name, ElementType::I32, &[channels], bytes, (&scales, axis));
        }
        self.weighted += 1;
        Ok(())
    }

    /// The bias of a convolution or `Gemm`, one value for each channel; none where it has none or computes it.
    fn bias(&self, node: &NodeProto, channels: usize) -> Result<Option<Vec<f32>>, QuantiseError> {
        let name = node.input.get(2).filter(|name| !name.is_empty());
        let Some((name, (_, values))) =
            name.and_then(|name| Some((name, floats(&self.graph, name)?)))
        else {
            return Ok(None);
        };
        finite(name, &values)?;
        Ok(match values.len() {
            length if length == channels => Some(values),
            1 => Some(vec![values[0]; channels]),
            _ => None,
        })
    }

    /// A constant of integers without zero point and the node that expands it: the name of what that gives. There is
    /// one scale for each index of `axis`, or one.
    fn expand(
        &mut self,
        stem: &str,
        element: ElementType,
        shape: &[u64],
        bytes: Vec<u8>,
        (scales, axis): (&[f32], Option<usize>),
    ) -> String {
        let [integers, scale, zero, floats] = ["quantised", "scale", "zero_point", "dequantised"]
            .map(|what| self.fresh(format!("{stem}.{what}")));
        let channels: &[u64] = match axis {
            Some(_) => &[scales.len() as u64],
            None => &[],
        };
        put(&mut self.graph, &integers, element, shape, bytes);
        put_floats(&mut self.graph, &scale, channels, scales);
        let zeros = vec![0; scales.len() * element.bytes().as_bytes() as usize];
        put(&mut self.graph, &zero, element, channels, zeros);
        self.push(DEQUANTISE, [&integers, &scale, &zero], &floats, axis);
        floats
    }

    /// Quantises constants that are operands like any other.
    fn quantise_operands(&mut self, node: &mut NodeProto) -> Result<(), QuantiseError> {
        if !WITH_CONSTANT_OPERANDS.contains(&node.op_type.as_str()) {
            return Ok(());
        }
        for place in 0..node.input.len() {
            let name = node.input[place].clone();
            let Some((shape, values)) = floats(&self.graph, &name) else {
                continue;
            };
            let shape = shape.to_vec();
            let range = finite(&name, &values)?;
            let scale = AffineScale::holding(range);
            let bytes = values.iter().map(|&value| scale.quantise(value)).collect();
            let [factor, zero] = self.put_scale(&name, scale);
            let [integers, floats] =
                ["quantised", "dequantised"].map(|what| self.fresh(format!("{name}.{what}")));
            put(&mut self.graph, &integers, ElementType::U8, &shape, bytes);
            self.push(DEQUANTISE, [&integers, &factor, &zero], &floats, None);
            node.input[place] = floats;
        }
        Ok(())
    }
}

/// The range of a constant's values.
fn finite(name: &str, values: &[f32]) -> Result<ValueRange, QuantiseError> {
    ValueRange::of(values).ok_or_else(|| QuantiseError::WeightNotFinite {
        tensor: name.to_owned(),
    })
}
