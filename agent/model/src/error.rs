//! Everything that can be wrong with a model: one variant per case, one sentence that names the file,
//! node or tensor and says what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a model cannot be profiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file does not exist or cannot be read.
    #[error("cannot read the model `{}` ({source}): check the path and its permissions", path.display())]
    Unreadable {
        /// The file asked for.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The bytes are no ONNX model.
    #[error(
        "{model} is not an ONNX model ({reason}): export the network to ONNX and give that file"
    )]
    NotOnnx {
        /// The file, or how the bytes came.
        model: String,
        /// What was found instead.
        reason: String,
    },
    /// The bytes begin like an ONNX model and stop early.
    #[error(
        "{model} is cut short ({length} bytes, in the middle of a field): copy or download it again"
    )]
    Truncated {
        /// The file, or how the bytes came.
        model: String,
        /// How many bytes there are.
        length: u64,
    },
    /// More than one protobuf message can hold, once external data is inside.
    #[error(
        "{model} takes {bytes} bytes as one file and ONNX files end at 2 GiB: quantise or split the network"
    )]
    TooLarge {
        /// The file, or how the bytes came.
        model: String,
        /// Its size with everything inside.
        bytes: u64,
    },
    /// The operator set is missing or older than 7.
    #[error(
        "the model uses operator set {found} and 7 is the oldest supported: export it with a newer one"
    )]
    OldOpset {
        /// The version the model names; 0 if it names none.
        found: i64,
    },
    /// An operator that tract does not know.
    #[error(
        "node `{node}` is a `{operator}`, an operator that is not supported: export the model without it"
    )]
    UnknownOperator {
        /// The node's name.
        node: String,
        /// Its operator type, with its domain if that is not ONNX's own.
        operator: String,
    },
    /// An operator of a domain that the model does not import.
    #[error(
        "node `{node}` is a `{operator}` of the operator domain `{domain}`, which the model does not import: \
         export the model again"
    )]
    DomainNotImported {
        /// The node's name.
        node: String,
        /// Its operator type.
        operator: String,
        /// Its domain.
        domain: String,
    },
    /// Two nodes of one name.
    #[error(
        "two nodes are called `{node}`: export the model with a name of its own for each node, or with none"
    )]
    DuplicateNode {
        /// The name.
        node: String,
    },
    /// An operator whose output has as many elements as the input's values make it have.
    #[error(
        "node `{node}` is a `{operator}`, the size of whose output depends on what the network computes: cut the \
         model off before it, and do this step outside the network"
    )]
    SizeOfValues {
        /// The node's name.
        node: String,
        /// Its operator type.
        operator: String,
    },
    /// A `Transpose` that leaves an axis out or names one twice.
    #[error(
        "node `{node}` is a `Transpose` whose `perm` {perm:?} does not name each of {axes} axes once: export the model \
         again"
    )]
    Permutation {
        /// The node's name.
        node: String,
        /// The order of axes that it names.
        perm: Vec<i64>,
        /// How many axes there are.
        axes: usize,
    },
    /// An operator over channels, with an input that is not shaped by them.
    #[error("node `{node}` is a `{operator}`, whose input {shape}: export the model again")]
    ChannelShape {
        /// The node's name.
        node: String,
        /// Its operator type.
        operator: String,
        /// The input's name and shape, and what the operator takes there.
        shape: String,
    },
    /// An output that is declared as something else than what the model computes.
    #[error(
        "the model declares its output `{output}` as {declared}, and it computes {computed}: export the model again"
    )]
    DeclaredOutput {
        /// The output's name.
        output: String,
        /// Type and shape as declared, a `?` for each open dimension.
        declared: String,
        /// Type and shape as they follow from the inputs.
        computed: String,
    },
    /// A computed tensor without elements.
    #[error(
        "node `{node}` gives the tensor `{tensor}` of shape {shape:?}, which has no element: export the model with \
         larger inputs, or without that node"
    )]
    EmptyTensor {
        /// The node's name.
        node: String,
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        shape: Vec<u64>,
    },
    /// A tensor larger than any device's memory.
    #[error(
        "the tensor `{tensor}` of shape {shape:?} takes more than 16 GiB, which no device holds: export the model \
         for smaller inputs"
    )]
    HugeTensor {
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        shape: Vec<u64>,
    },
    /// More operations than can be added up.
    #[error(
        "the model takes more than 10^18 operations, which no device ends: export it for smaller inputs"
    )]
    TooManyOperations,
    /// A node that runs other graphs.
    #[error(
        "node `{node}` is a `{operator}`, and control flow cannot be cut into layers: export the model \
         with fixed shapes and without branches and loops"
    )]
    ControlFlow {
        /// The node's name.
        node: String,
        /// Its operator type.
        operator: String,
    },
    /// A dimension of an input has no value.
    #[error(
        "the dimension `{dimension}` (axis {axis} of the input `{input}`) is open: give it with \
         --dim {dimension}=VALUE"
    )]
    UnresolvedDimension {
        /// The name by which to give it.
        dimension: String,
        /// The input that has it.
        input: String,
        /// Its axis in that input, counted from 0.
        axis: usize,
    },
    /// A value was given for a dimension that the model does not leave open.
    #[error(
        "--dim {dimension} names no open dimension of the model; {}",
        known_dimensions(known)
    )]
    UnknownDimension {
        /// The name that was given.
        dimension: String,
        /// The names that the model knows.
        known: Vec<String>,
    },
    /// A value that no dimension can have.
    #[error("--dim {dimension}={value} is no size: give a whole number from 1 to 2147483647")]
    DimensionOutOfRange {
        /// The name that was given.
        dimension: String,
        /// The value that was given.
        value: u64,
    },
    /// An input whose number of axes is not even known.
    #[error(
        "the input `{input}` has no tensor shape: export the model with the shapes of its inputs"
    )]
    InputWithoutShape {
        /// The input's name.
        input: String,
    },
    /// Nothing in the model is a layer.
    #[error(
        "the model has no layer: none of its {nodes} nodes is a convolution, a fully connected, a pooling or a \
         recurrent operator"
    )]
    NoLayers {
        /// How many nodes there are.
        nodes: usize,
    },
    /// The layers that the model names itself cannot be read, or are others than its nodes'.
    #[error(
        "the model's metadata entry `layerlab.layers` cannot be used ({reason}): make the file again with `layerlab \
         model group`"
    )]
    NamedLayers {
        /// What is wrong.
        reason: String,
    },
    /// A node that two layers have.
    #[error("the node `{node}` is in the layers `{}` and `{}`: have it in one", layers[0], layers[1])]
    NodeOfTwoLayers {
        /// The node's name.
        node: String,
        /// The layers.
        layers: [String; 2],
    },
    /// Layers of which neither can run before the other.
    #[error(
        "the layers `{}` and `{}` need what the other gives, so that neither can run first: make them one layer",
        layers[0],
        layers[1]
    )]
    TangledLayers {
        /// The layers.
        layers: [String; 2],
    },
    /// Nodes that wait for each other.
    #[error(
        "node `{node}` takes, by way of other nodes, what it gives itself: export the model again"
    )]
    Cycle {
        /// One of the nodes.
        node: String,
    },
    /// A tensor that nothing gives.
    #[error(
        "{reader} needs the tensor `{tensor}`, which nothing in the model gives: export the model again"
    )]
    MissingTensor {
        /// The tensor's name.
        tensor: String,
        /// The node or graph output that needs it.
        reader: String,
    },
    /// A tensor that is given twice.
    #[error("the tensor `{tensor}` is given twice: export the model again")]
    DuplicateTensor {
        /// The tensor's name.
        tensor: String,
    },
    /// Data kept beside the model that is not there.
    #[error(
        "the tensor `{tensor}` keeps its data in `{location}`, which cannot be read ({reason}): put that \
         file beside the model"
    )]
    ExternalData {
        /// The tensor's name.
        tensor: String,
        /// The file it names, relative to the model's folder.
        location: String,
        /// What went wrong.
        reason: String,
    },
    /// Data kept outside the folder of the model.
    #[error(
        "the tensor `{tensor}` keeps its data in `{location}`, outside the model's folder, where layerlab \
         does not read: put the data beside the model and name it relative to it"
    )]
    ExternalDataOutside {
        /// The tensor's name.
        tensor: String,
        /// The path it names.
        location: String,
    },
    /// A constant whose fields contradict each other.
    #[error("the constant `{tensor}` is damaged ({reason}): export the model again")]
    DamagedConstant {
        /// The tensor's name.
        tensor: String,
        /// What does not fit.
        reason: String,
    },
    /// A tensor of an element type that cannot be computed with.
    #[error(
        "the tensor `{tensor}` has elements of type {element}, which is not supported: export the model \
         with 32-bit floats"
    )]
    UnsupportedElement {
        /// The tensor's name.
        tensor: String,
        /// The element type as ONNX calls it.
        element: String,
    },
    /// Types and shapes that do not fit together, or that do not follow from the inputs.
    #[error("the shapes in the model cannot be worked out ({reason}): export it with fixed shapes")]
    Shapes {
        /// The node or tensor, and what does not fit.
        reason: String,
    },
    /// A segment that goes beyond the model.
    #[error("layers {segment} were asked for and the model has {layers}")]
    SegmentBeyondModel {
        /// The segment asked for.
        segment: layerlab_profiles::Segment,
        /// How many layers there are.
        layers: u32,
    },
}

fn known_dimensions(known: &[String]) -> String {
    if known.is_empty() {
        "every dimension of it is fixed".to_owned()
    } else {
        format!("it has {}", known.join(", "))
    }
}
