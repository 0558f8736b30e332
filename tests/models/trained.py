"""The three networks that `train.py` trains, as ONNX graphs with random weights, and as torch modules made from such
graphs.

The graph is what counts: `Net` follows its nodes one by one, so what is trained is what is written. While training,
each layer with weights but the last is followed by batch normalisation; `Net.model` folds it into the weights, and the
file has none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Callable, Iterator

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import nn
from torch.nn import functional

from graph import Graph
from networks import PIXEL, Scale, alexnet, finish, start, vgg16
from scenes import CLASSES, SIDE
from scores import BOXES, GRID

# YOLO's convolutions and poolings in its order, with fewer channels: kernel and channels, "s2" strides, "P" pools.
# 112 pixels leave room for four halvings to a grid of 7 x 7, not for six; so C22 keeps the size, and so does P4.
YOLO_MINI = [
    (7, 12, "s2"), "P", (3, 24), "P",
    (1, 16), (3, 32), (1, 32), (3, 48), "P",
    *[(1, 32), (3, 48)] * 4, (1, 48), (3, 64), "P1",
    *[(1, 48), (3, 64)] * 2, (3, 48), (3, 48), (3, 48), (3, 16),
]  # fmt: skip

YOLO_HIDDEN = 160


def yolo_mini() -> Graph:
    slope = 0.1
    gain = math.sqrt(2.0 / (1.0 + slope * slope))
    graph, x = start("yolo-mini", Scale(input=SIDE), SIDE)
    for layer in YOLO_MINI:
        name = f"P{graph.counts.pool + 1}"
        if layer == "P":
            x = graph.pool(x, name, kernel=2, stride=2)
        elif layer == "P1":
            x = graph.pool(x, name, kernel=3, stride=1, pad=1)
        else:
            kernel, channels, *stride = layer
            first = gain / PIXEL if graph.counts.conv == 0 else gain
            name = f"C{graph.counts.conv + 1}"
            x = graph.relu(graph.conv(x, name, channels, kernel, 2 if stride else 1, gain=first), slope)
    x = graph.relu(graph.fc(graph.flatten(x), "F1", YOLO_HIDDEN, gain), slope)
    x = graph.fc(x, "F2", GRID * GRID * (BOXES * 5 + len(CLASSES)), gain=0.3)
    return finish(graph, x, "none")


def vocnet_mini() -> Graph:
    graph = alexnet(Scale(width=Fraction(1, 4), input=SIDE, hidden=128, classes=len(CLASSES)))
    graph.name = "vocnet-mini"
    return graph


def vgg_mini() -> Graph:
    scale = Scale(width=Fraction(1, 8), input=SIDE, hidden=128, classes=len(CLASSES), head="sigmoid")
    graph = vgg16(scale)
    graph.name = "vgg-mini"
    return graph


TRAINED: dict[str, Callable[[], Graph]] = {"vocnet-mini": vocnet_mini, "vgg-mini": vgg_mini, "yolo-mini": yolo_mini}


# -- a graph as a torch module


@dataclass(frozen=True)
class Node:
    """One operator of a chain: its attributes, and the names of its weights if it has any."""

    name: str
    op: str
    attributes: dict
    weights: list[str]

    @property
    def layer(self) -> str:
        return self.name.split("_")[0]


def chain(model: onnx.ModelProto) -> Iterator[Node]:
    """The nodes of a graph in which each takes what the one before gave."""
    known = {tensor.name for tensor in model.graph.initializer}
    last, layer = model.graph.input[0].name, ""
    for node in model.graph.node:
        assert node.input[0] == last, f"{node.name} does not follow {last}"
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        name = node.name
        if node.op_type == "Flatten":
            name = f"{layer}_{name}"
        found = Node(name, node.op_type, attributes, [name for name in node.input[1:] if name in known])
        last, layer = node.output[0], found.layer
        yield found


class Net(nn.Module):
    """The network of a graph. With `training_form`, layers with weights have a batch normalisation behind them, if
    it is to be `normalised`, and the input is divided by PIXEL: both are folded away by `model`."""

    def __init__(self, model: onnx.ModelProto, training_form: bool = False, normalised: bool = True) -> None:
        super().__init__()
        self.nodes = list(chain(model))
        self.training_form = training_form
        self.dropout = 0.0
        self.source = model
        values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.weights = nn.ParameterDict()
        self.norms = nn.ModuleDict()
        heavy = [node for node in self.nodes if node.op in ("Conv", "Gemm")]
        self.first, last = heavy[0], heavy[-1].name
        for node in heavy:
            for name in node.weights:
                self.weights[key(name)] = nn.Parameter(torch.tensor(np.array(values[name])))
            if training_form and normalised and node.name != last:
                _, bias = (self.weights[key(name)] for name in node.weights)
                bias.data.zero_()
                bias.requires_grad_(False)
                norm = nn.BatchNorm2d if node.op == "Conv" else nn.BatchNorm1d
                self.norms[node.name] = norm(bias.numel())
        if training_form:
            self.weights[key(self.first.weights[0])].data.mul_(PIXEL)

    def forward(self, x: torch.Tensor, upto: int | None = None, since: int = 0) -> torch.Tensor:
        """Nodes from `since` to before `upto`."""
        if self.training_form and since == 0:
            x = x / PIXEL
        for node in self.nodes[since:upto]:
            x = self.step(node, x)
        return x

    def step(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        x = apply(node, x, [self.weights[key(name)] for name in node.weights if key(name) in self.weights])
        if node.name in self.norms:
            x = self.norms[node.name](x)
        if node.op == "Dropout" and self.training and self.dropout:
            x = functional.dropout(x, self.dropout)
        return x

    @torch.no_grad()
    def model(self, description: str) -> onnx.ModelProto:
        """The graph with the weights that are here now."""
        values = {name: self.weights[key(name)].double() for node in self.nodes for name in node.weights
                  if key(name) in self.weights}  # fmt: skip
        if self.training_form:
            for node in self.nodes:
                if node.name in self.norms:
                    norm = self.norms[node.name]
                    factor = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
                    weight, bias = node.weights
                    values[weight] = values[weight] * factor.reshape(-1, *[1] * (values[weight].dim() - 1))
                    values[bias] = (values[bias] - norm.running_mean.double()) * factor + norm.bias.double()
            values[self.first.weights[0]] /= PIXEL
        model = onnx.ModelProto()
        model.CopyFrom(self.source)
        model.graph.doc_string = description
        for tensor in model.graph.initializer:
            if tensor.name in values:
                array = values[tensor.name].numpy().astype("<f4")
                assert list(array.shape) == list(tensor.dims), tensor.name
                tensor.raw_data = np.ascontiguousarray(array).tobytes()
        return model


@dataclass(frozen=True)
class Sizes:
    """How large activations are that training has left near 1: `first` in the first layer, `growth` times more in each
    further one, and log-normal with `spread` from channel to channel."""

    first: float
    growth: float
    spread: float


def resize(model: onnx.ModelProto, sizes: Sizes, seed: int) -> onnx.ModelProto:
    """The same function with activations of other sizes: each channel of a layer times a factor of its own, and the
    weights that the next layer has for it divided by that. Max pooling and (leaky) ReLU let positive factors through;
    LRN does not, so layers before one are left as they are."""
    rng = np.random.default_rng(seed)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    tensors = {tensor.name: tensor for tensor in result.graph.initializer}
    values = {name: numpy_helper.to_array(tensor).astype(np.float64) for name, tensor in tensors.items()
              if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims}  # fmt: skip
    before, size = None, sizes.first
    for node in chain(model):
        if node.op == "LRN":
            before = None
        if node.op not in ("Conv", "Gemm"):
            continue
        if before:
            weight, bias = (values[name] for name in before.weights)
            factors = size * np.exp(sizes.spread * rng.standard_normal(len(bias)))
            size *= sizes.growth
            weight *= factors.reshape(-1, *[1] * (weight.ndim - 1))
            bias *= factors
            after = values[node.weights[0]]
            if node.op == "Conv":
                groups = after.reshape(node.attributes["group"], -1, *after.shape[1:])
                groups /= factors.reshape(len(groups), 1, -1, 1, 1)
            else:
                # A flattened channel is as many columns as it had pixels.
                after /= np.repeat(factors, after.shape[1] // len(factors))
        before = node
    for name, array in values.items():
        tensors[name].raw_data = array.astype("<f4").tobytes()
    return result


def key(name: str) -> str:
    """Names in torch have no dots."""
    return name.replace(".", "_")


def apply(node: Node, x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    """What an operator computes."""
    match node.op:
        case "Conv":
            pads, group = node.attributes["pads"], node.attributes["group"]
            return functional.conv2d(x, *weights, stride=node.attributes["strides"], padding=pads[:2], groups=group)
        case "Gemm":
            return functional.linear(x, *weights)
        case "MaxPool":
            pads = node.attributes["pads"]
            return functional.max_pool2d(x, node.attributes["kernel_shape"], node.attributes["strides"], pads[:2])
        case "Relu":
            return functional.relu(x)
        case "LeakyRelu":
            return functional.leaky_relu(x, node.attributes["alpha"])
        case "LRN":
            return lrn(node, x)
        case "Sigmoid":
            return torch.sigmoid(x)
        case "Flatten":
            return x.flatten(1)
        case "Dropout":
            return x
    raise ValueError(f"{node.name}: {node.op}")


def lrn(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Sums of squares over neighbouring channels, as a convolution with a band of ones."""
    size, channels = node.attributes["size"], x.shape[1]
    place = torch.arange(channels)
    band = ((place[:, None] - place[None, :]).abs() <= size // 2).to(x.dtype)
    sums = functional.conv2d(x * x, band[:, :, None, None])
    sums = node.attributes["bias"] + node.attributes["alpha"] / size * sums
    assert node.attributes["beta"] == 0.75
    # A power of -3/4 out of roots, which are much faster.
    return x * (sums * sums.sqrt()).rsqrt()
