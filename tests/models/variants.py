"""Tiny models, each with one thing that a reader of ONNX files must cope with (or refuse)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Callable

import onnx
from onnx import helper, numpy_helper

from graph import Dim, Graph, Tensor, write
from networks import PIXEL

SEED = 1
# What follows takes activations near 1; what comes first takes pixels.
GAIN = math.sqrt(2.0)
FIRST_GAIN = GAIN / PIXEL
CLASSES = 5
IMAGE = (3, 8, 8)


def first(graph: Graph, x: Tensor, channels: int = 4, bias: bool = True) -> Tensor:
    """The convolution that takes the pixels."""
    return graph.conv(x, "C1", channels, 3, gain=FIRST_GAIN, bias=bias)


def trunk(graph: Graph, x: Tensor) -> Tensor:
    """C1 P1 C2 P2: the start that most variants share."""
    x = graph.pool(graph.relu(first(graph, x)), "P1", 2, 2)
    return graph.pool(graph.relu(graph.conv(x, "C2", 6, 3)), "P2", 2, 2)


def chain(graph: Graph) -> Graph:
    x = trunk(graph, graph.input("image", IMAGE))
    x = graph.fc(graph.flatten(x), "F1", CLASSES)
    graph.output(graph.same("Softmax", x, "F1_softmax", axis=1))
    return graph


def opset7() -> onnx.ModelProto:
    """The oldest operator set that tract and onnxruntime read, with the operators whose form has changed since:
    Dropout's ratio and Split's sizes are attributes, batch norm is of version 7."""
    graph = Graph("opset7", SEED, opset=7)
    x = graph.input("image", IMAGE)
    x = graph.relu(graph.batch_norm(first(graph, x, bias=False), "C1_bn"))
    x = graph.pool(graph.lrn(x, "C1_lrn"), "P1", 2, 2, op="AveragePool")
    left, right = graph.split(x, "S1", [1, 3])
    x = graph.concat([graph.conv(left, "C2", 2, 3), right], "S1_concat")
    x = graph.dropout(graph.flatten(x), "dropout")
    graph.output(graph.same("Softmax", graph.fc(x, "F1", CLASSES), "F1_softmax", axis=1))
    return graph.model()


def newest_opset() -> onnx.ModelProto:
    """Operator set 21: Split counts its outputs instead of naming their sizes."""
    graph = Graph("newest-opset", SEED, opset=21)
    x = graph.input("image", IMAGE)
    x = graph.relu(graph.batch_norm(first(graph, x, bias=False), "C1_bn"))
    x = graph.pool(x, "P1", 2, 2, op="AveragePool")
    graph.node("Split", [x.name], "S1", ["S1_1", "S1_2"], axis=1, num_outputs=2)
    left, right = (Tensor(name, (2, *x.shape[1:])) for name in ("S1_1", "S1_2"))
    x = graph.concat([graph.conv(left, "C2", 2, 3), right], "S1_concat")
    x = graph.dropout(graph.flatten(x), "dropout")
    graph.output(graph.same("Softmax", graph.fc(x, "F1", CLASSES), "F1_softmax", axis=1))
    return graph.model()


def initializers_as_inputs() -> onnx.ModelProto:
    """IR version 3: the weights are listed among the graph's inputs, and only `image` is one."""
    return chain(Graph("initializers-as-inputs", SEED, opset=8)).model(weights_are_inputs=True)


def symbolic_batch() -> onnx.ModelProto:
    return chain(Graph("symbolic-batch", SEED, batch="N")).model()


def symbolic_size() -> onnx.ModelProto:
    """Height and width are left open; pooling to 1 x 1 makes any choice valid."""
    graph = Graph("symbolic-size", SEED)
    declared: tuple[Dim, ...] = (3, "H", "W")
    x = trunk(graph, graph.input("image", IMAGE, declared))
    graph.output(graph.fc(graph.flatten(graph.global_pool(x, "P3")), "F1", CLASSES))
    return graph.model()


def residual() -> onnx.ModelProto:
    """One shortcut that passes its block by, one with a convolution of its own."""
    graph = Graph("residual", SEED)
    x = graph.relu(first(graph, graph.input("image", IMAGE)))
    y = graph.conv(graph.relu(graph.conv(x, "C2", 4, 3)), "C3", 4, 3)
    x = graph.relu(graph.add(y, x, "A1"))
    y = graph.conv(x, "C4", 6, 3, stride=2)
    x = graph.relu(graph.add(y, graph.conv(x, "C5", 6, 1, stride=2), "A2"))
    graph.output(graph.fc(graph.flatten(graph.global_pool(x, "P1")), "F1", CLASSES))
    return graph.model()


def concat_split() -> onnx.ModelProto:
    """Three unequal parts: one convolved, one pooled, one passed by."""
    graph = Graph("concat-split", SEED)
    x = graph.relu(first(graph, graph.input("image", IMAGE), channels=6))
    one, two, three = graph.split(x, "S1", [3, 2, 1])
    parts = [graph.relu(graph.conv(one, "C2", 4, 3)), graph.pool(two, "P1", 3, 1, pad=1), three]
    x = graph.concat(parts, "S1_concat")
    graph.output(graph.fc(graph.flatten(graph.global_pool(x, "P2")), "F1", CLASSES))
    return graph.model()


def two_outputs() -> onnx.ModelProto:
    """The first layer's activations are an answer too, so they stay alive across every later cut."""
    graph = Graph("two-outputs", SEED)
    early = graph.relu(first(graph, graph.input("image", IMAGE)))
    x = graph.relu(graph.conv(graph.pool(early, "P1", 2, 2), "C2", 6, 3))
    x = graph.fc(graph.flatten(graph.pool(x, "P2", 2, 2)), "F1", CLASSES)
    graph.output(early)
    graph.output(x)
    return graph.model()


def two_inputs() -> onnx.ModelProto:
    """The second input is needed late, so it stays alive across every earlier cut."""
    graph = Graph("two-inputs", SEED)
    image = graph.input("image", IMAGE)
    sensors = graph.input("sensors", (4,))
    x = graph.flatten(trunk(graph, image))
    y = graph.relu(graph.fc(sensors, "F1", 6, FIRST_GAIN))
    graph.output(graph.fc(graph.concat([x, y], "join"), "F2", CLASSES))
    return graph.model()


def constant_nodes() -> onnx.ModelProto:
    """Weights that are not initialisers by themselves: C1's come out of Constant nodes; C2 and F1 share one
    initialiser, seen through a Reshape by the one and through a Transpose by the other."""
    graph = Graph("constant-nodes", SEED)
    x = graph.input("image", IMAGE)

    weight = graph.he((4, 3, 3, 3), 27, FIRST_GAIN)
    bias = graph.uniform((4,), -0.05, 0.05)
    for name, values in (("C1.weight", weight), ("C1.bias", bias)):
        graph.node("Constant", [], name, value=numpy_helper.from_array(values))
    graph.node("Conv", [x.name, "C1.weight", "C1.bias"], "C1", kernel_shape=[3, 3], pads=[1] * 4)
    x = graph.relu(Tensor("C1", (4, 8, 8)))

    shared = graph.weight("shared", graph.he((6, 4), 4, GAIN))
    kernel_shape = graph.shape_constant("C2.shape", [6, 4, 1, 1])
    graph.node("Reshape", [shared, kernel_shape], "C2.weight")
    graph.node("Conv", [x.name, "C2.weight"], "C2", kernel_shape=[1, 1])
    x = graph.relu(Tensor("C2", (6, 8, 8)))
    x = graph.flatten(graph.global_pool(x, "P1"))

    graph.node("Transpose", [shared], "F1.weight", perm=[1, 0])
    graph.node("Gemm", [x.name, "F1.weight"], "F1", transB=1)
    graph.output(Tensor("F1", (4,)))
    return graph.model()


def unknown_operator() -> onnx.ModelProto:
    """A made-up operator between two layers."""
    graph = Graph("unknown-operator", SEED)
    x = graph.relu(first(graph, graph.input("image", IMAGE)))
    x = graph.same("Swirl", x, "C1_swirl", domain="org.example.custom")
    graph.output(graph.fc(graph.flatten(graph.pool(x, "P1", 2, 2)), "F1", CLASSES))
    model = graph.model()
    model.opset_import.append(helper.make_opsetid("org.example.custom", 1))
    return model


def no_layers() -> onnx.ModelProto:
    """Runs, but has no convolution, pooling or fully connected node to start a layer."""
    graph = Graph("no-layers", SEED)
    x = graph.input("image", IMAGE)
    offset = graph.weight("offset", graph.uniform((3, 1, 1), -0.5, 0.5))
    graph.node("Add", [x.name, offset], "shift")
    graph.output(graph.relu(Tensor("shift", x.shape)))
    return graph.model()


def gemm_matmul() -> onnx.ModelProto:
    """The ways to write a fully connected layer: Gemm with and without transposed weights, with factors, without
    bias; MatMul with a bias added before or after it, and without."""
    graph = Graph("gemm-matmul", SEED)
    x = graph.input("features", (12,))

    def weight(name: str, rows: int, columns: int) -> str:
        return graph.weight(f"{name}.weight", graph.he((rows, columns), 8, GAIN))

    x = graph.relu(graph.fc(x, "F1", 8, FIRST_GAIN))
    graph.node("Gemm", [x.name, weight("F2", 8, 10), graph.bias("F2.bias", 1)], "F2", alpha=0.5, beta=2.0)
    x = graph.relu(Tensor("F2", (10,)))
    graph.node("Gemm", [x.name, weight("F3", 9, 10)], "F3", transB=1)
    x = graph.relu(Tensor("F3", (9,)))
    graph.node("MatMul", [x.name, weight("F4", 9, 8)], "F4")
    graph.node("Add", ["F4", graph.bias("F4.bias", 8)], "F4_bias")
    x = graph.relu(Tensor("F4_bias", (8,)))
    graph.node("MatMul", [x.name, weight("F5", 8, 7)], "F5")
    # The bias first: addition commutes, so exporters write either.
    graph.node("Add", [graph.bias("F5.bias", 7), "F5"], "F5_bias")
    x = graph.relu(Tensor("F5_bias", (7,)))
    graph.node("MatMul", [x.name, weight("F6", 7, CLASSES)], "F6")
    graph.output(Tensor("F6", (CLASSES,)))
    return graph.model()


def attention() -> onnx.ModelProto:
    """Operator set 23: Attention in one node, with heads of queries that share keys, after two steps whose keys and values
    are inputs, and those of all steps outputs."""
    steps, past, heads, shared, width = 3, 2, 4, 2, 4
    graph = Graph("attention", SEED, opset=23)
    x = graph.input("states", (steps, heads * width))
    keys, values = (graph.input(name, (shared, past, width)) for name in ("past_keys", "past_values"))
    q = graph.fc_each(x, "Q", heads * width)
    k, v = (graph.fc_each(x, name, shared * width) for name in ("K", "V"))
    inputs = [q.name, k.name, v.name, "", keys.name, values.name]
    graph.node("Attention", inputs, "A", ["A", "keys", "values"], q_num_heads=heads, kv_num_heads=shared, is_causal=1)
    graph.output(graph.add(x, graph.fc_each(Tensor("A", x.shape), "O", heads * width), "sum"))
    for name in ("keys", "values"):
        graph.output(Tensor(name, (shared, past + steps, width)))
    return graph.model()


def unsorted_names() -> onnx.ModelProto:
    """Half of the nodes have no name, and the names of the others sort against the order of the graph."""
    model = chain(Graph("unsorted-names", SEED)).model()
    for index, node in enumerate(model.graph.node):
        node.name = "" if index % 2 else f"{chr(ord('z') - index)}_{node.op_type}"
    return model


def external_data(folder: Path) -> onnx.ModelProto:
    """The weights are in a file beside the model."""
    return chain(Graph("external-data", SEED, external=folder / "external-data.onnx.data")).model()


VARIANTS: dict[str, Callable[[], onnx.ModelProto]] = {
    "opset7": opset7,
    "newest-opset": newest_opset,
    "initializers-as-inputs": initializers_as_inputs,
    "symbolic-batch": symbolic_batch,
    "symbolic-size": symbolic_size,
    "residual": residual,
    "concat-split": concat_split,
    "two-outputs": two_outputs,
    "two-inputs": two_inputs,
    "constant-nodes": constant_nodes,
    "unknown-operator": unknown_operator,
    "no-layers": no_layers,
    "gemm-matmul": gemm_matmul,
    "attention": attention,
    "unsorted-names": unsorted_names,
}


def write_all(folder: Path) -> None:
    for name, build in VARIANTS.items():
        write(build(), folder / f"{name}.onnx")
    write(external_data(folder), folder / "external-data.onnx")
