#!/usr/bin/env python3
"""Small networks of QDQ pairs around one operator each, and what quantised networks answer.

    pairs.py FOLDER      writes FOLDER/operators/*.onnx, and FOLDER/answers.json about these and FOLDER's own models
    pairs.py --check FOLDER   makes all of it anew and compares

Answers are those of onnxruntime with all its rewrites left out, so that it computes each node as it stands in the file.
Inputs are not stored: `pixels` says how to make them. Needs requirements-check.txt.
"""

from __future__ import annotations

import os

# Newer builds of onnxruntime report to their maker.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
# What goes into each network. Its first layer, P1, changes nothing, but a network needs a layer.
SHAPE = (1, 4, 5, 5)
# Inputs that each network is asked about.
SEEDS = (1, 2, 3)
# How inputs are made of pixels. The networks that are not made here take these as they are.
PIXELS = {"minus": 0, "divided_by": 1}
SMALL = {"minus": 128, "divided_by": 16}

# No powers of two: with these, multiplying by the inverse of a scale is not dividing by it.
STEP = 0.063
# No mean of few numbers of the other step is half-way between two of this: what engines make of such a mean depends on the
# order in which they add.
MEAN_STEP = 0.0571
TYPES = {"u8": (np.uint8, 128), "i8": (np.int8, 0)}


def pixels(count: int, seed: int) -> np.ndarray:
    """Numbers from 0 to 255 that look random, the same on every machine and in every language."""
    mixed = (np.arange(count, dtype=np.uint64) * 2654435761 + seed * 40503) % 2**32
    mixed = (mixed ^ (mixed >> np.uint64(15))) * np.uint64(2246822519) % 2**32
    return (mixed >> np.uint64(24)).astype(np.float32)


class Network:
    """Layer P1, a pair, one operator, a pair, and layer P2, at which the network can be cut."""

    def __init__(self, element: str) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.element = element

    def constant(self, name: str, values: object) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, operator: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def pair(self, tensor: str, step: float, zero: int | None = None, element: str | None = None) -> str:
        number, middle = TYPES[element or self.element]
        parameters = [
            self.constant(f"{tensor}.scale", np.float32(step)),
            self.constant(f"{tensor}.zero", number(middle if zero is None else zero)),
        ]
        quantised = self.node("QuantizeLinear", [tensor, *parameters], f"{tensor}.quantised")
        return self.node("DequantizeLinear", [quantised, *parameters], f"{tensor}.dequantised")

    def model(self, name: str, output: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, SHAPE)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        model.producer_name = "pairs.py"
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        del model.graph.value_info[:]
        onnx.checker.check_model(model, full_check=True)
        return model


# Each takes the network and the tensor of the first pair, and gives the operator's output.
Operator = Callable[[Network, str], str]


def plain(operator: str, **attributes: object) -> Operator:
    return lambda network, x: network.node(operator, [x], "operator", **attributes)


def with_constants(operator: str, *constants: object, **attributes: object) -> Operator:
    def build(network: Network, x: str) -> str:
        names = ["" if c is None else network.constant(f"constant{i}", c) for i, c in enumerate(constants)]
        return network.node(operator, [x, *names], "operator", **attributes)

    return build


def softmax_of_rows(network: Network, x: str) -> str:
    """As it ends a classifier: over the only axis that is longer than 1."""
    flat = network.node("Flatten", [x], "flat")
    return network.node("Softmax", [network.pair(flat, STEP)], "operator", axis=1)


def concat(network: Network, x: str) -> str:
    other = network.pair(network.node("Neg", [x], "other"), 0.091)
    return network.node("Concat", [x, other], "operator", axis=1)


def twice(operator: str) -> Operator:
    def build(network: Network, x: str) -> str:
        other = network.pair(network.node("Abs", [x], "other"), 0.037, 0 if network.element == "u8" else -128)
        return network.node(operator, [x, other], "operator")

    return build


WEIGHTS = pixels(4 * 4 * 9, 7).reshape(4, 4, 3, 3) / 640 - 0.2
PER_CHANNEL = np.array([0.5, -1.25, 2.0, 0.75], np.float32)

# Name: the operator, the step of its output, and the output's zero point where it is not in the middle (as u8).
OPERATORS: dict[str, tuple[Operator, float, int | None]] = {
    "softmax": (softmax_of_rows, 1 / 255, 0),
    "softmax-of-columns": (plain("Softmax", axis=3), 1 / 255, 0),
    "softmax-of-channels": (plain("Softmax", axis=1), 1 / 255, 0),
    "log-softmax": (plain("LogSoftmax", axis=1), 0.08, 255),
    "sigmoid": (plain("Sigmoid"), 1 / 255, 0),
    "tanh": (plain("Tanh"), 0.0078, None),
    "relu": (plain("Relu"), 0.031, 0),
    "leaky-relu": (plain("LeakyRelu", alpha=0.1), 0.041, None),
    "p-relu": (with_constants("PRelu", PER_CHANNEL.reshape(4, 1, 1) / 8), 0.041, None),
    "clip": (with_constants("Clip", np.float32(0), np.float32(6)), 6 / 255, 0),
    "hard-swish": (plain("HardSwish"), 0.034, None),
    "hard-sigmoid": (plain("HardSigmoid"), 1 / 255, 0),
    "elu": (plain("Elu"), 0.041, None),
    "softplus": (plain("Softplus"), 0.033, 0),
    "erf": (plain("Erf"), 0.0079, None),
    "exp": (plain("Exp"), 7.1, 0),
    "neg": (plain("Neg"), STEP, None),
    "concat": (concat, 0.091, None),
    "add": (twice("Add"), 0.071, None),
    "mul": (twice("Mul"), 0.23, None),
    "add-constant": (with_constants("Add", PER_CHANNEL.reshape(1, 4, 1, 1)), 0.077, None),
    "mul-constant": (with_constants("Mul", PER_CHANNEL.reshape(1, 4, 1, 1)), 0.12, None),
    "conv": (with_constants("Conv", WEIGHTS.astype(np.float32), PER_CHANNEL, pads=[1] * 4), 0.11, None),
    "max-pool": (plain("MaxPool", kernel_shape=[3, 3], strides=[2, 2]), STEP, None),
    "average-pool": (plain("AveragePool", kernel_shape=[2, 2]), MEAN_STEP, None),
    "global-average-pool": (plain("GlobalAveragePool"), STEP / 4, None),
    "resize-nearest": (
        with_constants(
            "Resize", None, np.array([1, 1, 2, 2], np.float32),
            mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric",
        ),
        STEP,
        None,
    ),
    "resize-linear": (
        with_constants("Resize", None, np.array([1, 1, 2, 2], np.float32), mode="linear"),
        MEAN_STEP,
        None,
    ),
    "lrn": (plain("LRN", size=3, alpha=0.3, beta=0.75, bias=1.0), 0.033, None),
    "batch-normalization": (
        with_constants("BatchNormalization", PER_CHANNEL, PER_CHANNEL / 2, PER_CHANNEL / 3, np.abs(PER_CHANNEL)),
        0.13,
        None,
    ),
    "instance-normalization": (with_constants("InstanceNormalization", PER_CHANNEL, PER_CHANNEL / 2), 0.037, None),
    "layer-normalization": (
        with_constants("LayerNormalization", np.arange(1, 6, dtype=np.float32) / 4, axis=-1), 0.017, None,
    ),
    "reduce-mean": (plain("ReduceMean", axes=[3], keepdims=1), MEAN_STEP, None),
    "cum-sum": (with_constants("CumSum", np.int64(3)), 0.25, None),
    "transpose": (plain("Transpose", perm=[0, 2, 3, 1]), STEP, None),
    "reshape": (with_constants("Reshape", np.array([1, 4, 25, 1])), STEP, None),
    "pad": (with_constants("Pad", np.array([0, 0, 1, 1, 0, 0, 1, 1]), np.float32(0)), STEP, None),
}

# The second pair holds the other integers.
MIXED = {"relu": ("u8", "i8"), "sigmoid": ("i8", "u8")}


def build(operator: str, into: str, out: str) -> onnx.ModelProto:
    make, step, zero = OPERATORS[operator]
    network = Network(into)
    pooled = network.node("MaxPool", ["image"], "P1", kernel_shape=[1, 1])
    x = make(network, network.pair(pooled, STEP))
    if zero is not None and out == "i8":
        zero -= 128
    x = network.pair(x, step, zero, out)
    # It pools no rows.
    if operator != "softmax":
        x = network.pair(network.node("MaxPool", [x], "P2", kernel_shape=[1, 1]), step, zero, out)
    return network.model(operator, x)


def models() -> dict[str, onnx.ModelProto]:
    kinds = [(operator, element, element) for operator in OPERATORS for element in TYPES]
    found = {f"{operator}-{element}": build(operator, element, element) for operator, element, _ in kinds}
    for operator, (into, out) in MIXED.items():
        found[f"{operator}-{into}-{out}"] = build(operator, into, out)
    return dict(sorted(found.items()))


def asked(model: onnx.ModelProto, image: dict[str, int]) -> list[np.ndarray]:
    """The inputs of a model, whose only input is an image."""
    shape = [dimension.dim_value for dimension in model.graph.input[0].type.tensor_type.shape.dim]
    values = (pixels(int(np.prod(shape)), seed) for seed in SEEDS)
    return [((value - image["minus"]) / np.float32(image["divided_by"])).reshape(shape) for value in values]


def answers(model: onnx.ModelProto, image: dict[str, int]) -> dict[str, object]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    engine = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    name = model.graph.input[0].name
    given = [engine.run(None, {name: value})[0] for value in asked(model, image)]
    assert all(np.isfinite(value).all() and np.ptp(value) > 0 for value in given), "answers that mean nothing"
    outputs = [[float(f"{number:.9g}") for number in value.ravel()] for value in given]
    return {"image": image, "seeds": list(SEEDS), "outputs": outputs}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="compare with what is there")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder
    given = {path.stem: onnx.load(path) for path in sorted(folder.glob("*.onnx"))}
    small = models()
    found = {name: answers(model, PIXELS) for name, model in given.items()}
    found |= {f"operators/{name}": answers(model, SMALL) for name, model in small.items()}
    text = "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found.items()) + "\n}\n"
    everything = {folder / "operators" / f"{name}.onnx": model.SerializeToString() for name, model in small.items()}
    everything[folder / "answers.json"] = text.encode()
    if not arguments.check:
        (folder / "operators").mkdir(exist_ok=True)
        for path, content in everything.items():
            path.write_bytes(content)
        return
    for path, content in everything.items():
        assert path.read_bytes() == content, f"{path} is another"


if __name__ == "__main__":
    main()
