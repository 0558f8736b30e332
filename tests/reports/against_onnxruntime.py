#!/usr/bin/env python3
"""Compares derived layer times with directly timed ones and with ONNX Runtime's own profile of the same machine.

ONNX Runtime's CPU is profiled twice by layerlab: as the CPU that it is (each layer timed by itself, the direct times) and
as an accelerator (`--as-accelerator cpu:ort-all`: segments timed, layer times derived). This program reads both profiles,
times every node with ONNX Runtime's profiler, and prints a table in Markdown.

    against_onnxruntime.py --model M.onnx --direct PROFILE --derived PROFILE [--derived PROFILE] [--runs 30] [--threads 2]

Needs onnxruntime and numpy, of the version with which the profiles were made. A tool; nothing of layerlab needs it.
"""

import argparse
import csv
import json
import os
import statistics
import tempfile
from pathlib import Path


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with open(folder / table, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def layer_times(folder: Path, processor: str) -> dict[int, tuple[float, float, float]]:
    """Compute time and its 95 % interval of each layer, in nanoseconds."""
    times = {}
    for row in rows(folder, "times.csv"):
        if row["processor"] == processor:
            low, high = row["compute_ci95_low_ns"], row["compute_ci95_high_ns"]
            compute = float(row["compute_ns"])
            times[int(row["layer"])] = (compute, float(low or compute), float(high or compute))
    return times


def whole(folder: Path, processor: str, layers: int) -> float | None:
    """The median of the whole model's samples, in nanoseconds; None where the whole model was not timed."""
    for row in rows(folder, "segments.csv"):
        if (row["processor"], row["first_layer"], row["last_layer"]) == (processor, "1", str(layers)):
            return float(row["median_ns"])
    return None


def sum_of_parts(folder: Path, processor: str) -> float:
    """All layers and transfers of the whole model run as one unit: T(L) of the placement that has all layers there."""
    table = [row for row in rows(folder, "times.csv") if row["processor"] == processor]
    table.sort(key=lambda row: int(row["layer"]))
    total = sum(float(row["compute_ns"]) for row in table)
    return total + float(table[0]["to_processor_ns"] or 0) + float(table[-1]["from_processor_ns"] or 0)


def node_times(model: Path, names: list[str], runs: int, threads: int) -> dict[int, float]:
    """Median time of each layer's nodes by ONNX Runtime's profiler. A node that names no layer goes with the one before."""
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.intra_op_num_threads = threads
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(tempfile.mkdtemp(), "nodes")
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    random = numpy.random.default_rng(1)
    feeds = {i.name: (random.random(i.shape) * 255).astype("float32") for i in inputs}
    for _ in range(runs + 3):
        session.run(None, feeds)
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    numbers = {name: number for number, name in enumerate(names, start=1)}
    totals: list[dict[int, float]] = []
    layer = 0
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
            continue
        name = event["name"].removesuffix("_kernel_time")
        found = numbers.get(name)
        if found is not None and (not totals or found in totals[-1] or not layer):
            # The first layer again: another run begins.
            totals.append({})
        layer = found or layer
        if totals:
            totals[-1][layer] = totals[-1].get(layer, 0.0) + event["dur"] * 1000.0
    counted = totals[3:]
    return {number: statistics.median(run.get(number, 0.0) for run in counted) for number in numbers.values()}


def rank_correlation(a: list[float], b: list[float]) -> float:
    """Spearman's, without ties in practice."""
    def ranks(values: list[float]) -> list[float]:
        order = sorted(range(len(values)), key=lambda index: values[index])
        rank = [0.0] * len(values)
        for place, index in enumerate(order):
            rank[index] = float(place)
        return rank

    return statistics.correlation(ranks(a), ranks(b))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--direct", type=Path, required=True, help="profile of the processor as a CPU")
    parser.add_argument("--derived", type=Path, required=True, action="append", help="profile of it as an accelerator")
    parser.add_argument("--processor", default="cpu:ort-all")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    names = [row["name"] for row in rows(arguments.direct, "layers.csv")]
    direct = layer_times(arguments.direct, arguments.processor)
    nodes = node_times(arguments.model, names, arguments.runs, arguments.threads)
    print("| design | layers | direct time within the derived interval | intervals that overlap | sum against whole "
          "| rank correlation with direct times | rank correlation with ONNX Runtime's profile |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    layers = sorted(direct)
    correlation = rank_correlation([direct[n][0] for n in layers], [nodes[n] for n in layers])
    print(f"| (direct times) | {len(layers)} | | | | | {correlation:.4f} |")
    for folder in arguments.derived:
        derived = layer_times(folder, arguments.processor)
        design = json.loads((folder / "profile.json").read_text(encoding="utf-8"))["measurements"][0]["design"]
        within = sum(derived[n][1] <= direct[n][0] <= derived[n][2] for n in layers)
        overlap = sum(derived[n][1] <= direct[n][2] and direct[n][1] <= derived[n][2] for n in layers)
        total = whole(folder, arguments.processor, len(layers))
        against = "" if total is None else f"{sum_of_parts(folder, arguments.processor) / total - 1:+.2%}"
        with_direct = rank_correlation([derived[n][0] for n in layers], [direct[n][0] for n in layers])
        with_nodes = rank_correlation([derived[n][0] for n in layers], [nodes[n] for n in layers])
        print(f"| {design} | {len(layers)} | {within} | {overlap} | {against} | {with_direct:.4f} | {with_nodes:.4f} |")


if __name__ == "__main__":
    main()
