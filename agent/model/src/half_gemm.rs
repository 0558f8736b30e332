//! Fully connected operators of 16-bit floats as tract runs them.
//!
//! tract multiplies a `Gemm`'s third input by a `beta` of 32 bits, which it then refuses for 16-bit inputs. What it is
//! given instead is the definition of `Gemm`: `alpha · A' · B' + beta · C` in single steps.

use std::borrow::Cow;
use std::collections::HashSet;

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

/// `model` with each `Gemm` whose weights are a constant of 16-bit floats taken apart.
pub(crate) fn as_products(model: &ModelProto) -> Cow<'_, ModelProto> {
    let Some(graph) = &model.graph else {
        return Cow::Borrowed(model);
    };
    let half: HashSet<&str> = graph
        .initializer
        .iter()
        .filter(|tensor| tensor.data_type == DataType::Float16 as i32)
        .map(|tensor| tensor.name.as_str())
        .collect();
    let is_half_gemm = |node: &NodeProto| {
        node.op_type == "Gemm" && node.input.get(1).is_some_and(|b| half.contains(b.as_str()))
    };
    if !graph.node.iter().any(is_half_gemm) {
        return Cow::Borrowed(model);
    }
    let mut steps = Steps {
        taken: tensor_names(graph),
        nodes: Vec::new(),
        scalars: Vec::new(),
    };
    for node in &graph.node {
        match is_half_gemm(node) {
            true => steps.take_apart(node),
            false => steps.nodes.push(node.clone()),
        }
    }
    let mut model = model.clone();
    if let Some(graph) = &mut model.graph {
        graph.node = steps.nodes;
        graph.initializer.extend(steps.scalars);
    }
    Cow::Owned(model)
}

fn tensor_names(graph: &GraphProto) -> HashSet<String> {
    let inputs = graph.input.iter().map(|input| &input.name);
    let constants = graph.initializer.iter().map(|tensor| &tensor.name);
    let given = graph.node.iter().flat_map(|node| &node.output);
    inputs.chain(constants).chain(given).cloned().collect()
}

/// The nodes of the new graph, and the constants that it has more than the old one.
struct Steps {
    taken: HashSet<String>,
    nodes: Vec<NodeProto>,
    scalars: Vec<TensorProto>,
}

impl Steps {
    fn take_apart(&mut self, gemm: &NodeProto) {
        let attribute = |name: &str| gemm.attribute.iter().find(|found| found.name == name);
        let factor = |name| attribute(name).map_or(1.0, |found| found.f);
        let is_set = |name| attribute(name).is_some_and(|found| found.i != 0);
        let side = |steps: &mut Steps, place: usize, transposed: bool| {
            let input = gemm.input[place].clone();
            match transposed {
                true => steps.step(gemm, "Transpose", &[&input], Some(axes_swapped())),
                false => input,
            }
        };
        let Some(output) = gemm.output.first() else {
            return;
        };
        let a = side(self, 0, is_set("transA"));
        let b = side(self, 1, is_set("transB"));
        let product = self.step(gemm, "MatMul", &[&a, &b], None);
        let mut result = self.scaled(gemm, product, factor("alpha"));
        if let Some(c) = gemm.input.get(2).filter(|c| !c.is_empty()) {
            let c = self.scaled(gemm, c.clone(), factor("beta"));
            result = self.step(gemm, "Add", &[&result, &c], None);
        }
        self.nodes.push(NodeProto {
            name: gemm.name.clone(),
            op_type: "Identity".to_owned(),
            input: vec![result],
            output: vec![output.clone()],
            ..NodeProto::default()
        });
    }

    fn scaled(&mut self, gemm: &NodeProto, tensor: String, factor: f32) -> String {
        if factor == 1.0 {
            return tensor;
        }
        let scalar = self.free_name(&format!("{}.factor", gemm.name));
        self.scalars.push(TensorProto {
            name: scalar.clone(),
            data_type: DataType::Float as i32,
            float_data: vec![factor],
            ..TensorProto::default()
        });
        let to_half = integer_attribute("to", DataType::Float16 as i64);
        let factor = self.step(gemm, "Cast", &[&scalar], Some(to_half));
        self.step(gemm, "Mul", &[&tensor, &factor], None)
    }

    /// Adds a node, and returns the name of what it gives.
    fn step(
        &mut self,
        gemm: &NodeProto,
        op_type: &str,
        inputs: &[&str],
        attribute: Option<AttributeProto>,
    ) -> String {
        let output = self.free_name(&format!("{}.{}", gemm.name, op_type.to_lowercase()));
        self.nodes.push(NodeProto {
            name: output.clone(),
            op_type: op_type.to_owned(),
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output: vec![output.clone()],
            attribute: attribute.into_iter().collect(),
            ..NodeProto::default()
        });
        output
    }

    fn free_name(&mut self, stem: &str) -> String {
        let mut name = stem.to_owned();
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

fn axes_swapped() -> AttributeProto {
    AttributeProto {
        name: "perm".to_owned(),
        r#type: AttributeType::Ints as i32,
        ints: vec![1, 0],
        ..AttributeProto::default()
    }
}

fn integer_attribute(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Int as i32,
        i: value,
        ..AttributeProto::default()
    }
}
