"""A small layer on top of `onnx.helper`: a graph under construction that knows the shape of every tensor.

Knowing the shapes gives weights their fan-in, refuses an input too small for the network with the name of the node
where it runs out, and counts parameters and multiplications while the graph is written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

# Old enough for every runtime in use on phones, new enough for today's operator forms, and inside the range that
# tract is tested against (9 to 18).
DEFAULT_OPSET = 17

# A protocol buffer cannot be larger; beyond it weights have to live in a file of their own.
LARGEST_FILE = 2**31 - 1

Dim = int | str


@dataclass(frozen=True)
class Tensor:
    """A value in the graph. `shape` leaves the batch out: (channels, height, width), (steps, features), (features,)."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass
class Counts:
    conv: int = 0
    pool: int = 0
    fc: int = 0
    recurrent: int = 0
    parameters: int = 0
    multiplications: int = 0

    def __str__(self) -> str:
        recurrent = f"{self.recurrent} recurrent, " if self.recurrent else ""
        return (
            f"{self.conv} conv, {self.pool} pool, {self.fc} fc, {recurrent}"
            f"{self.parameters:,} parameters, {self.multiplications:,} multiplications"
        )


@dataclass
class Graph:
    """One ONNX model being built. Nodes are appended in topological order, each output is named after its node."""

    name: str
    seed: int
    opset: int = DEFAULT_OPSET
    batch: Dim = 1
    # Where weights go when not into the model itself; written while the graph is built, so that a network of a
    # gigabyte never sits in memory as a whole.
    external: Path | None = None
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.initializers: list[TensorProto] = []
        if self.external:
            self.external.write_bytes(b"")

    # -- ends of the graph

    def input(self, name: str, shape: tuple[int, ...], declared: tuple[Dim, ...] | None = None) -> Tensor:
        """`declared` is what the file says where that differs from the shape counted with: names of dimensions."""
        self.inputs.append(self._value_info(name, declared or shape))
        return Tensor(name, shape)

    def tokens(self, name: str, count: int) -> Tensor:
        """Numbers of words, whole ones."""
        declared = helper.make_tensor_value_info(name, TensorProto.INT64, [self.batch, count])
        self.inputs.append(declared)
        return Tensor(name, (count,))

    def output(self, x: Tensor, declared: tuple[Dim, ...] | None = None) -> None:
        self.outputs.append(self._value_info(x.name, declared or x.shape))

    def _value_info(self, name: str, shape: tuple[Dim, ...]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [self.batch, *shape])

    # -- weights

    def uniform(self, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
        # Uniform rather than normal: scaled random bits are the same on every machine, while the tails of a normal
        # go through the platform's logarithm.
        values = self.rng.random(shape, dtype=np.float32)
        values *= np.float32(high - low)
        values += np.float32(low)
        return values

    def he(self, shape: tuple[int, ...], fan_in: int, gain: float) -> np.ndarray:
        """Weights that keep the mean square of the activations through the layer (He et al. 2015): variance
        gain^2 / fan_in, and a uniform distribution of that variance reaches to sqrt(3) standard deviations."""
        bound = gain * math.sqrt(3.0 / fan_in)
        return self.uniform(shape, -bound, bound)

    def weight(self, name: str, values: np.ndarray) -> str:
        """Adds an initialiser; a float one counts as parameters and goes to the external file if there is one."""
        # Tensors are little-endian in ONNX, whatever the machine.
        values = np.asarray(values, dtype=values.dtype.newbyteorder("<"), order="C")
        tensor = TensorProto(name=name, dims=values.shape, data_type=helper.np_dtype_to_tensor_dtype(values.dtype))
        is_parameter = values.dtype == np.float32
        if is_parameter:
            self.counts.parameters += values.size
        if self.external and is_parameter:
            with self.external.open("ab") as file:
                offset = file.tell()
                values.tofile(file)
            place = {"location": self.external.name, "offset": str(offset), "length": str(values.nbytes)}
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in place.items())
        else:
            tensor.raw_data = values.tobytes()
        self.initializers.append(tensor)
        return name

    def bias(self, name: str, size: int) -> str:
        # Not zero, or a reader that loses biases would go unnoticed; small, so that activations keep their scale.
        return self.weight(name, self.uniform((size,), -0.05, 0.05))

    # -- nodes

    def node(self, op: str, inputs: list[str], name: str, outputs: list[str] | None = None, **attributes) -> str:
        """Appends any node; returns the name of its (first) output."""
        outputs = outputs or [name]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, **attributes))
        return outputs[0]

    def same(self, op: str, x: Tensor, name: str, **attributes) -> Tensor:
        """A node with one input whose output has the same shape."""
        return Tensor(self.node(op, [x.name], name, **attributes), x.shape)

    def relu(self, x: Tensor, slope: float = 0.0) -> Tensor:
        if slope:
            return self.same("LeakyRelu", x, f"{x.name}_relu", alpha=slope)
        return self.same("Relu", x, f"{x.name}_relu")

    def dropout(self, x: Tensor, name: str, ratio: float = 0.5) -> Tensor:
        if self.opset < 12:
            return self.same("Dropout", x, name, ratio=ratio)
        amount = self.setting(f"{name}.ratio", ratio)
        return Tensor(self.node("Dropout", [x.name, amount], name), x.shape)

    def setting(self, name: str, value: float) -> str:
        """A constant that sets an operator up: float, but no parameter of the network and always inline."""
        self.initializers.append(
            TensorProto(name=name, data_type=TensorProto.FLOAT, raw_data=np.float32(value).astype("<f4").tobytes())
        )
        return name

    def shape_constant(self, name: str, values: list[int]) -> str:
        return self.weight(name, np.array(values, dtype=np.int64))

    def conv(
        self,
        x: Tensor,
        name: str,
        channels: int,
        kernel: int,
        stride: int = 1,
        pad: int | None = None,
        groups: int = 1,
        gain: float = math.sqrt(2.0),
        bias: bool = True,
    ) -> Tensor:
        """`pad` keeps the size at stride 1 if not given."""
        pad = kernel // 2 if pad is None else pad
        height, width = self._window(x, name, kernel, stride, pad)
        fan_in = x.shape[0] // groups * kernel * kernel
        shape = (channels, x.shape[0] // groups, kernel, kernel)
        inputs = [x.name, self.weight(f"{name}.weight", self.he(shape, fan_in, gain))]
        if bias:
            inputs.append(self.bias(f"{name}.bias", channels))
        self.node(
            "Conv",
            inputs,
            name,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=groups,
        )
        self.counts.conv += 1
        self.counts.multiplications += channels * height * width * fan_in
        return Tensor(name, (channels, height, width))

    def deconv(
        self, x: Tensor, name: str, channels: int, kernel: int, stride: int, pad: int, gain: float = math.sqrt(2.0)
    ) -> Tensor:
        """A transposed convolution; counts as a convolution."""
        height, width = ((side - 1) * stride + kernel - 2 * pad for side in x.shape[1:])
        # Each output pixel is the sum of so many of the kernel's.
        fan_in = x.shape[0] * kernel * kernel // (stride * stride)
        shape = (x.shape[0], channels, kernel, kernel)
        weight = self.weight(f"{name}.weight", self.he(shape, fan_in, gain))
        inputs = [x.name, weight, self.bias(f"{name}.bias", channels)]
        self.node(
            "ConvTranspose", inputs, name, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4
        )
        self.counts.conv += 1
        self.counts.multiplications += x.size * channels * kernel * kernel
        return Tensor(name, (channels, height, width))

    def reshape(self, x: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
        sizes = self.shape_constant(f"{name}.sizes", [0, *shape])
        return Tensor(self.node("Reshape", [x.name, sizes], name), shape)

    def clip(self, x: Tensor, low: float, high: float) -> Tensor:
        name = f"{x.name}_clip"
        ends = [self.setting(f"{name}.low", low), self.setting(f"{name}.high", high)]
        return Tensor(self.node("Clip", [x.name, *ends], name), x.shape)

    def fc_each(
        self, x: Tensor, name: str, features: int, gain: float = math.sqrt(2.0), names: tuple[str, str] | None = None
    ) -> Tensor:
        """One fully connected layer for each step of a sequence; `names` are those of its product and its sum."""
        steps, size = x.shape
        product_name, sum_name = names or (name, f"{name}_add")
        weight = self.weight(f"{name}.weight", self.he((size, features), size, gain))
        product = self.node("MatMul", [x.name, weight], product_name)
        self.counts.fc += 1
        self.counts.multiplications += steps * size * features
        sum_of = self.node("Add", [product, self.bias(f"{name}.bias", features)], sum_name)
        return Tensor(sum_of, (steps, features))

    def product(self, a: Tensor, b: Tensor, name: str) -> Tensor:
        """A product of two computed stacks of matrices."""
        shared = a.shape[-1]
        self.node("MatMul", [a.name, b.name], name)
        self.counts.fc += 1
        shape = (*a.shape[:-1], b.shape[-1])
        self.counts.multiplications += math.prod(shape) * shared
        return Tensor(name, shape)

    def transpose(self, x: Tensor, name: str, order: list[int]) -> Tensor:
        """`order` counts the axes without the batch, which stays the first."""
        self.node("Transpose", [x.name], name, perm=[0, *(axis + 1 for axis in order)])
        return Tensor(name, tuple(x.shape[axis] for axis in order))

    def layer_norm(self, x: Tensor, name: str) -> Tensor:
        size = (x.shape[-1],)
        scale = self.weight(f"{name}.weight", self.uniform(size, 0.8, 1.2))
        bias = self.weight(f"{name}.bias", self.uniform(size, -0.1, 0.1))
        return Tensor(self.node("LayerNormalization", [x.name, scale, bias], name, axis=-1, epsilon=1e-5), x.shape)

    def lstm(self, x: Tensor, name: str, hidden: int) -> Tensor:
        """An LSTM over a sequence, forwards. ONNX has the steps before the batch."""
        steps, size = x.shape
        weights = [
            self.weight(f"{name}.weight", self.he((1, 4 * hidden, size), size, 1.0)),
            self.weight(f"{name}.recurrence", self.he((1, 4 * hidden, hidden), hidden, 1.0)),
            self.weight(f"{name}.bias", self.uniform((1, 8 * hidden), -0.05, 0.05)),
        ]
        turned = self.node("Transpose", [x.name], f"{name}_steps", perm=[1, 0, 2])
        states = self.node("LSTM", [turned, *weights], name, hidden_size=hidden)
        # There is one direction.
        one_way = self.node("Squeeze", [states, self.shape_constant(f"{name}.axes", [1])], f"{name}_squeeze")
        self.counts.recurrent += 1
        self.counts.multiplications += steps * 4 * hidden * (size + hidden)
        return Tensor(self.node("Transpose", [one_way], f"{name}_batch", perm=[1, 0, 2]), (steps, hidden))

    def pool(self, x: Tensor, name: str, kernel: int, stride: int, pad: int = 0, op: str = "MaxPool") -> Tensor:
        height, width = self._window(x, name, kernel, stride, pad)
        self.node(op, [x.name], name, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4)
        self.counts.pool += 1
        return Tensor(name, (x.shape[0], height, width))

    def global_pool(self, x: Tensor, name: str) -> Tensor:
        self.node("GlobalAveragePool", [x.name], name)
        self.counts.pool += 1
        return Tensor(name, (x.shape[0], 1, 1))

    def _window(self, x: Tensor, name: str, kernel: int, stride: int, pad: int) -> tuple[int, int]:
        height, width = ((side + 2 * pad - kernel) // stride + 1 for side in x.shape[1:])
        if min(height, width) < 1:
            raise SystemExit(f"{self.name}: the input is too small: only {x.shape[1:]} is left for {name}")
        return height, width

    def flatten(self, x: Tensor, name: str = "flatten") -> Tensor:
        return Tensor(self.node("Flatten", [x.name], name, axis=1), (x.size,))

    def fc(self, x: Tensor, name: str, features: int, gain: float = math.sqrt(2.0)) -> Tensor:
        weight = self.weight(f"{name}.weight", self.he((features, x.size), x.size, gain))
        self.node("Gemm", [x.name, weight, self.bias(f"{name}.bias", features)], name, transB=1)
        self.counts.fc += 1
        self.counts.multiplications += features * x.size
        return Tensor(name, (features,))

    def batch_norm(self, x: Tensor, name: str, scale: float = 1.0) -> Tensor:
        """`scale` is the middle of gamma. Statistics stay near 0 and 1, which is what the weights give anyway."""
        size = (x.shape[0],)
        inputs = [
            x.name,
            self.weight(f"{name}.scale", self.uniform(size, 0.8 * scale, 1.2 * scale)),
            self.weight(f"{name}.bias", self.uniform(size, -0.1, 0.1)),
            self.weight(f"{name}.mean", self.uniform(size, -0.1, 0.1)),
            self.weight(f"{name}.var", self.uniform(size, 0.8, 1.2)),
        ]
        return Tensor(self.node("BatchNormalization", inputs, name, epsilon=1e-5), x.shape)

    def lrn(self, x: Tensor, name: str) -> Tensor:
        # The constants of AlexNet as Caffe published it.
        return self.same("LRN", x, name, size=5, alpha=1e-4, beta=0.75, bias=1.0)

    def add(self, a: Tensor, b: Tensor, name: str) -> Tensor:
        assert a.shape == b.shape, f"{name}: {a.shape} + {b.shape}"
        return Tensor(self.node("Add", [a.name, b.name], name), a.shape)

    def concat(self, parts: list[Tensor], name: str) -> Tensor:
        self.node("Concat", [part.name for part in parts], name, axis=1)
        return Tensor(name, (sum(part.shape[0] for part in parts), *parts[0].shape[1:]))

    def split(self, x: Tensor, name: str, sizes: list[int]) -> list[Tensor]:
        parts = [Tensor(f"{name}_{index}", (size, *x.shape[1:])) for index, size in enumerate(sizes, 1)]
        outputs = [part.name for part in parts]
        if self.opset < 13:
            self.node("Split", [x.name], name, outputs, axis=1, split=sizes)
        else:
            self.node("Split", [x.name, self.shape_constant(f"{name}.sizes", sizes)], name, outputs, axis=1)
        return parts

    # -- the file

    def model(self, description: str = "", weights_are_inputs: bool = False) -> onnx.ModelProto:
        """`weights_are_inputs` is how files of IR version 3 had to be: initialisers are defaults of graph inputs."""
        inputs = list(self.inputs)
        if weights_are_inputs:
            inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in self.initializers]
        graph = helper.make_graph(self.nodes, self.name, inputs, self.outputs, self.initializers, description or None)
        opsets = [helper.make_opsetid("", self.opset)]
        # Version 4 is the first one where weights need not be inputs.
        ir = 3 if weights_are_inputs else max(4, helper.find_min_ir_version_for(opsets))
        return helper.make_model(graph, opset_imports=opsets, ir_version=ir, producer_name="layerlab-models")


def write(model: onnx.ModelProto, path: Path) -> None:
    if model.ByteSize() > LARGEST_FILE:
        raise SystemExit(f"{path}: more than 2 GiB of weights do not fit into one ONNX file, use --external-data")
    path.write_bytes(model.SerializeToString(deterministic=True))
