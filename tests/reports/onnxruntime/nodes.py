"""What each layer takes by ONNX Runtime's own profiler, which times every node of the whole model."""

import json
import os
import statistics
import tempfile
from pathlib import Path

import numpy
import onnx
import onnxruntime

# Runs before those that count.
WARM_UP = 5


def layers_of_nodes(model: Path, layers: list[str]) -> dict[str, int]:
    """The number of the layer that each node belongs to, by the node's name. A node that names no layer belongs to the
    last one of those that feed it: the sum of two branches to the branch that layerlab counts last."""
    numbers = {name: number for number, name in enumerate(layers, start=1)}
    of_tensors: dict[str, int] = {}
    of_nodes: dict[str, int] = {}
    for node in onnx.load(model, load_external_data=False).graph.node:
        fed_by = [of_tensors[name] for name in node.input if name in of_tensors]
        layer = numbers.get(node.name, max(fed_by, default=1))
        of_nodes[node.name] = layer
        of_tensors.update(dict.fromkeys(node.output, layer))
    return of_nodes


def node_times(model: Path, layers: list[str], threads: int, runs: int) -> list[float]:
    """The median of each layer's nodes over `runs`, in nanoseconds, layer 1 first."""
    of_nodes = layers_of_nodes(model, layers)
    totals = []
    for events in profiled_runs(model, threads, runs + WARM_UP)[WARM_UP:]:
        total = [0.0] * len(layers)
        for name, nanoseconds in events:
            total[of_nodes[name] - 1] += nanoseconds
        totals.append(total)
    return [statistics.median(times) for times in zip(*totals)]


def profiled_runs(model: Path, threads: int, runs: int) -> list[list[tuple[str, float]]]:
    """Of each run, the name and the nanoseconds of each node. Nodes that were fused go by the first one's name."""
    options = onnxruntime.SessionOptions()
    # As layerlab has it: more than that would choose other layouts for the whole model than for its layers.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = os.path.join(folder, "nodes")
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        random = numpy.random.default_rng(1)
        feeds = {put.name: random.random(put.shape, dtype="float32") * 255 for put in session.get_inputs()}
        for _ in range(runs):
            session.run(None, feeds)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    spans = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["name"] == "model_run"]
    kernels = [event for event in events if event["name"].endswith("_kernel_time")]

    def named(event: dict) -> tuple[str, float]:
        return event["name"].removesuffix("_kernel_time").removeprefix("fused "), event["dur"] * 1000.0

    return [[named(event) for event in kernels if begin <= event["ts"] < end] for begin, end in spans]
