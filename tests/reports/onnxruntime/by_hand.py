#!/usr/bin/env python3
"""Do layers and pairs of neighbours add up to the whole? The question of report.py without layerlab.

    by_hand.py MODEL PROFILE [--seconds 200] [--shared-memory] [--rests 0,3]

Cuts MODEL at the layers that PROFILE (a published profile's folder) names, with nothing but onnx, and times every layer, every
pair of neighbours and the whole in ONNX Runtime on one thread, all in turn in an order drawn anew for each round: inputs are
copied in, outputs out. Prints how much longer all pairs, less the layers that are in two of them, are than the whole, with
the standard error of the median over rounds. With --rests the processor rests for so many milliseconds before each inference;
of several rests each has every other round, and a line of its own.
"""

import argparse
import csv
import math
import random
import statistics
import time
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

from nodes import layers_of_nodes
from published import NORMAL_MAD

# How much larger than the mean's the median's standard error is, of a normal distribution.
MEDIAN_ERROR = math.sqrt(math.pi / 2.0)
WARM_UP = 2


class Cutter:
    """A network whose tensors have known shapes, and the layer of each node."""

    def __init__(self, model: Path, layers: list[str]) -> None:
        self.model = onnx.shape_inference.infer_shapes(onnx.load(model))
        graph = self.model.graph
        self.count = len(layers)
        self.of_nodes = layers_of_nodes(model, layers)
        self.weights = {weight.name: weight for weight in graph.initializer}
        described = [*graph.input, *graph.value_info, *graph.output]
        self.shapes = {one.name: [side.dim_value for side in one.type.tensor_type.shape.dim] for one in described}
        # Of each tensor the layers that give it and that are the last to read it.
        self.given = {put.name: 0 for put in graph.input if put.name not in self.weights}
        self.read: dict[str, int] = {}
        for node in graph.node:
            layer = self.of_nodes[node.name]
            self.given.update(dict.fromkeys(node.output, layer))
            for name in node.input:
                self.read[name] = max(self.read.get(name, 0), layer)
        self.read.update({put.name: self.count + 1 for put in graph.output})

    def frontier(self, cut: int) -> list[str]:
        return [name for name, layer in self.given.items() if layer <= cut < self.read.get(name, 0)]

    def segment(self, first: int, last: int) -> bytes:
        """The layers as a model of their own. A tensor that passes through goes through an Identity, as layerlab has it."""
        nodes = [node for node in self.model.graph.node if first <= self.of_nodes[node.name] <= last]
        inside = {name for node in nodes for name in node.output}
        used = {name for node in nodes for name in node.input}
        takes, gives = self.frontier(first - 1), []
        for name in self.frontier(last):
            if name not in inside:
                nodes.append(helper.make_node("Identity", [name], [f"{name}.passed"]))
            gives.append((name if name in inside else f"{name}.passed", self.shapes[name]))
        graph = helper.make_graph(
            nodes,
            f"{first}-{last}",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name]) for name in takes],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in gives],
            [self.weights[name] for name in self.weights if name in used],
        )
        made = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        return made.SerializeToString()


class Loaded:
    """A segment that is ready to run."""

    def __init__(self, model: bytes, shared_memory: bool) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.intra_op_num_threads = 1
        if shared_memory:
            options.add_session_config_entry("session.use_env_allocators", "1")
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        drawn = numpy.random.default_rng(1)
        self.given = {put.name: drawn.random(put.shape, dtype="float32") for put in self.session.get_inputs()}
        self.inputs = {name: numpy.zeros_like(tensor) for name, tensor in self.given.items()}

    def run(self) -> float:
        begin = time.perf_counter()
        for name, tensor in self.given.items():
            numpy.copyto(self.inputs[name], tensor)
        self.session.run(None, self.inputs)
        return time.perf_counter() - begin


def median_with_error(values: list[float]) -> tuple[float, float]:
    """The median and its standard error, were the values normally distributed."""
    middle = statistics.median(values)
    scatter = NORMAL_MAD * statistics.median(abs(one - middle) for one in values)
    return middle, MEDIAN_ERROR * scatter / math.sqrt(len(values))


def share_memory() -> None:
    """Makes the working memory that is for all segments."""
    memory = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(memory, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("profile", type=Path)
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--shared-memory", action="store_true", help="one working memory for all segments, instead of one for each")
    parser.add_argument("--rests", type=lambda text: [float(one) for one in text.split(",")], default=[0.0], help="milliseconds")
    arguments = parser.parse_args()
    with open(arguments.profile / "layers.csv", newline="", encoding="utf-8") as file:
        cutter = Cutter(arguments.model, [row["name"] for row in csv.DictReader(file)])
    if arguments.shared_memory:
        share_memory()
    last = cutter.count
    singles = [(layer, layer) for layer in range(1, last + 1)]
    pairs = [(layer, layer + 1) for layer in range(1, last)]
    segments = [*singles, *pairs, (1, last)]
    loaded = {segment: Loaded(cutter.segment(*segment), arguments.shared_memory) for segment in segments}
    rounds: dict[float, list[dict[tuple[int, int], float]]] = {rest: [] for rest in arguments.rests}
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        for rest, of_rest in rounds.items():
            random.shuffle(segments)
            times = {}
            for segment in segments:
                if rest:
                    time.sleep(1e-3 * rest)
                times[segment] = loaded[segment].run()
            of_rest.append(times)
    for rest, of_rest in rounds.items():
        counted = of_rest[WARM_UP:]
        whole = statistics.median(one[1, last] for one in counted)
        longer = [sum(one[pair] for pair in pairs) - sum(one[layer] for layer in singles[1:-1]) - one[1, last] for one in counted]
        middle, error = median_with_error(longer)
        before = "" if arguments.rests == [0.0] else f"{rest:g} ms of rest: "
        print(f"{before}{len(counted)} rounds; the whole takes {1e3 * whole:.2f} ms; its parts {middle / whole:+.2%} ± {error / whole:.2%}")


if __name__ == "__main__":
    main()
