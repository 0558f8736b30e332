#!/usr/bin/env python3
"""Do the layers at the ends of a segment take there what they take in the whole? By ONNX Runtime's own profiler.

    ends.py MODEL PROFILE --layers 33-39 [--rounds 12] [--processes 3]

Cuts MODEL at the layers that PROFILE (a published profile's folder) names, with nothing but onnx. The prefixes that end with
each of --layers, the suffixes that begin with each, and the whole are run in turn on one thread, in an order drawn anew for each
round, with one working memory for all. Half of the processes, every other one, have sessions plan their memory (a memory pattern, in ONNX
Runtime's words, which is its default), and half have not. Inputs are read before a segment runs. Prints by how much the last node of a
prefix, the first node of a suffix, and all nodes of each take longer than the same nodes of the whole: the mean over segments
and processes, and its standard error over processes. And how much longer the whole takes without such a plan than with one, of
which every process times both in turn.
"""

import argparse
import csv
import json
import math
import multiprocessing
import os
import statistics
import tempfile
from pathlib import Path

import numpy
import onnxruntime

from by_hand import Cutter, share_memory

# Rounds before those that count.
WARM_UP = 2


class Profiled:
    """A segment that is ready to run, and is timed node by node."""

    def __init__(self, model: bytes, planned: bool, prefix: str) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.use_env_allocators", "1")
        options.enable_mem_pattern = planned
        options.enable_profiling = True
        options.profile_file_prefix = prefix
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        drawn = numpy.random.default_rng(1)
        self.given = {put.name: drawn.random(put.shape, dtype="float32") for put in self.session.get_inputs()}
        self.inputs = {name: onnxruntime.OrtValue.ortvalue_from_numpy(tensor) for name, tensor in self.given.items()}
        self.outputs = [put.name for put in self.session.get_outputs()]

    def run(self) -> None:
        for name, tensor in self.given.items():
            self.inputs[name].update_inplace(tensor)
            self.inputs[name].numpy().sum()
        self.session.run_with_ort_values(self.outputs, self.inputs)

    def node_times(self) -> dict[str, float]:
        """Each node's median in milliseconds, in the order in which they run."""
        events = json.loads(Path(self.session.end_profiling()).read_text(encoding="utf-8"))
        times: dict[str, list[float]] = {}
        for event in sorted(events, key=lambda event: event["ts"]):
            if event["name"].endswith("_kernel_time"):
                times.setdefault(event["name"].removesuffix("_kernel_time"), []).append(event["dur"] / 1e3)
        return {name: statistics.median(durations[WARM_UP:]) for name, durations in times.items()}


def longer_than_in_whole(
    model: Path, names: list[str], layers: range, rounds: int, planned: bool, seed: int
) -> tuple[dict[str, float], float]:
    """For each figure, the milliseconds, a mean over segments; and what the whole takes without a plan, as a share of what it takes with one."""
    cutter = Cutter(model, names)
    share_memory()
    whole = (1, cutter.count)
    prefixes = [(1, layer) for layer in layers]
    suffixes = [(layer, cutter.count) for layer in layers]
    segments = [(segment, planned) for segment in (whole, *prefixes, *suffixes)] + [(whole, not planned)]
    order = numpy.random.default_rng(seed)
    order.shuffle(segments)
    with tempfile.TemporaryDirectory() as folder:
        profiled = {
            (segment, plan): Profiled(cutter.segment(*segment), plan, os.path.join(folder, f"{segment}-{plan}"))
            for segment, plan in segments
        }
        for _ in range(WARM_UP + rounds):
            order.shuffle(segments)
            for segment in segments:
                profiled[segment].run()
        times = {segment: one.node_times() for segment, one in profiled.items()}
    found = {}
    for side, of_side, end in (("prefixes", prefixes, -1), ("suffixes", suffixes, 0)):
        longer = [longer_nodes(times[segment, planned], times[whole, planned]) for segment in of_side]
        found[f"{side}, the node at the cut"] = statistics.mean(nodes[end] for nodes in longer)
        found[f"{side}, all nodes"] = statistics.mean(sum(nodes) for nodes in longer)
    unplanned, with_plan = (sum(times[whole, plan].values()) for plan in (False, True))
    return found, unplanned / with_plan


def longer_nodes(of_segment: dict[str, float], of_whole: dict[str, float]) -> list[float]:
    """By how much the nodes of a segment take longer than the same ones of the whole."""
    return [time - of_whole[name] for name, time in of_segment.items() if name in of_whole]


def mean_with_error(values: list[float], format: str) -> str:
    error = f" ± {statistics.stdev(values) / math.sqrt(len(values)):{format}}" if len(values) > 1 else ""
    return f"{statistics.mean(values):+{format}}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("profile", type=Path)
    parser.add_argument("--layers", required=True, help="the first and the last, such as 33-39")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--processes", type=int, default=3, help="with a plan, and as many without")
    arguments = parser.parse_args()
    first, last = map(int, arguments.layers.split("-"))
    with open(arguments.profile / "layers.csv", newline="", encoding="utf-8") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    spawning = multiprocessing.get_context("spawn")
    found: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    wholes = []
    for seed in range(arguments.processes):
        for planned, of_processes in found.items():
            # Memory that is shared is shared by a whole process.
            with spawning.Pool(1) as process:
                asked = (arguments.model, names, range(first, last + 1), arguments.rounds, planned, seed)
                figures, whole = process.apply(longer_than_in_whole, asked)
            of_processes.append(figures)
            wholes.append(100.0 * (whole - 1.0))
    print("| longer than in the whole, ms | memory planned | not planned |\n|---|--:|--:|")
    for figure in found[True][0]:
        cells = [mean_with_error([figures[figure] for figures in of_processes], ".3f") for of_processes in found.values()]
        print(f"| {figure} | {' | '.join(cells)} |")
    print(f"\nWhat the whole takes without a plan, against with one: {mean_with_error(wholes, '.2f')} %.")


if __name__ == "__main__":
    main()
