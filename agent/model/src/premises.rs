//! What tract takes for granted of operators without looking: it does not end, or reads beyond an array, where that does
//! not hold. Looked at before tract is asked, of tensors whose shapes the file itself gives.

use tract_onnx::pb::NodeProto;

use crate::ModelError;
use crate::graph::Graph;
use crate::tensor::TensorSpec;

/// The operators whose first input has a batch and channels as its first axes, each with the places of the inputs that have
/// one number for each channel.
const OF_CHANNELS: [(&str, &[usize]); 12] = [
    ("AveragePool", &[]),
    ("BatchNormalization", &[1, 2, 3, 4]),
    ("Conv", &[2]),
    ("ConvInteger", &[]),
    ("ConvTranspose", &[2]),
    ("GlobalAveragePool", &[]),
    ("GlobalLpPool", &[]),
    ("GlobalMaxPool", &[]),
    ("InstanceNormalization", &[1, 2]),
    ("LRN", &[]),
    ("MaxPool", &[]),
    ("QLinearConv", &[8]),
];

/// Refuses nodes that are not what tract takes them for.
pub(crate) fn check(graph: &Graph) -> Result<(), ModelError> {
    for node in &graph.nodes {
        if node.op_type == "Transpose" {
            permutation(node, graph)?;
        }
        let known = OF_CHANNELS.iter().find(|(name, _)| *name == node.op_type);
        if let Some((_, vectors)) = known {
            channels(node, vectors, graph)?;
        }
    }
    Ok(())
}

/// Refuses a `Transpose` that leaves an axis out or names one twice.
fn permutation(node: &NodeProto, graph: &Graph) -> Result<(), ModelError> {
    let named = node.attribute.iter().filter(|one| one.name == "perm");
    for perm in named.map(|attribute| &attribute.ints) {
        let axes = input(node, 0, graph).map_or(perm.len(), |spec| spec.shape.len());
        let mut sorted = perm.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..axes as i64) {
            return Err(ModelError::Permutation {
                node: node.name.clone(),
                perm: perm.clone(),
                axes,
            });
        }
    }
    Ok(())
}

/// Refuses a node without an axis of channels, or whose inputs at the places `vectors` are no vectors.
fn channels(node: &NodeProto, vectors: &[usize], graph: &Graph) -> Result<(), ModelError> {
    let refusal =
        |TensorSpec { name, shape, .. }: &TensorSpec, expected| ModelError::ChannelShape {
            node: node.name.clone(),
            operator: node.op_type.clone(),
            shape: format!("`{name}` has the shape {shape:?} in place of {expected}"),
        };
    if let Some(spec) = input(node, 0, graph)
        && spec.shape.len() < 2
    {
        return Err(refusal(spec, "a batch and channels"));
    }
    let mut vectors = vectors
        .iter()
        .filter_map(|&place| input(node, place, graph));
    match vectors.find(|spec| spec.shape.len() != 1) {
        Some(spec) => Err(refusal(spec, "one number for each channel")),
        None => Ok(()),
    }
}

/// The input at a place of a node, unless it is computed or left out.
fn input<'a>(node: &NodeProto, place: usize, graph: &'a Graph) -> Option<&'a TensorSpec> {
    let name = node.input.get(place)?;
    let constant = graph.constants.get(name).map(|constant| &constant.spec);
    constant.or_else(|| graph.inputs.iter().find(|input| input.name == *name))
}
