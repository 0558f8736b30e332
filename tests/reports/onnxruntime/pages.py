#!/usr/bin/env python3
"""What the size of memory pages does to a layer of many weights: how far its time differs between processes and between loads.

    pages.py

Times AlexNet's first fully connected layer (9,216 numbers to 4,096, 151 MB of weights) in ONNX Runtime on one thread: in
processes that take turns, with pages of 4 KiB and with pages of 2 MiB, which glibc 2.35 asks Linux for where GLIBC_TUNABLES
says so and the kernel grants to those who ask (`/sys/kernel/mm/transparent_hugepage/enabled`: madvise or always). Prints a
table in Markdown.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TUNABLES = "GLIBC_TUNABLES"
# What makes glibc ask for huge pages.
HUGE_PAGES = "glibc.malloc.hugetlb=1"
INPUTS, OUTPUTS = 9216, 4096
PROCESSES = 6
LOADS = 4
WARM_UP = 3
RUNS = 20


def with_pages(huge: bool) -> dict[str, str]:
    """The environment of a process whose memory lies in pages of this kind."""
    return os.environ | {TUNABLES: HUGE_PAGES if huge else ""}


def layer() -> bytes:
    weights = numpy.random.default_rng(0).standard_normal((OUTPUTS, INPUTS), dtype="float32") / INPUTS
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["in", "weights"], ["out"], transB=1)],
        "fully connected",
        [helper.make_tensor_value_info("in", TensorProto.FLOAT, [1, INPUTS])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, OUTPUTS])],
        [numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9)
    return model.SerializeToString()


def medians_of_loads() -> list[float]:
    """The median time of each load of the layer in this process, in milliseconds."""
    model = layer()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    feeds = {"in": numpy.random.default_rng(1).random((1, INPUTS), dtype="float32")}
    medians = []
    for _ in range(LOADS):
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        times = []
        for _ in range(WARM_UP + RUNS):
            begin = time.perf_counter()
            session.run(None, feeds)
            times.append((time.perf_counter() - begin) * 1e3)
        medians.append(statistics.median(times[WARM_UP:]))
        del session
    return medians


def main() -> None:
    if sys.argv[1:] == ["one"]:
        print(json.dumps(medians_of_loads()))
        return
    measured: dict[bool, list[list[float]]] = {False: [], True: []}
    for _ in range(PROCESSES):
        for huge, processes in measured.items():
            ended = subprocess.run(
                [sys.executable, __file__, "one"], env=with_pages(huge), check=True, stdout=subprocess.PIPE, text=True
            )
            processes.append(json.loads(ended.stdout))
    print("| pages | processes | loads of each | fastest and slowest process | between processes | between loads of one |")
    print("|---|--:|--:|--:|--:|--:|")
    for huge, processes in measured.items():
        means = [statistics.mean(loads) for loads in processes]
        between = statistics.stdev(means) / statistics.mean(means)
        of_loads = statistics.mean(statistics.variance(loads) for loads in processes) ** 0.5 / statistics.mean(means)
        cells = ["2 MiB" if huge else "4 KiB", len(processes), LOADS, f"{min(means):.2f} ms, {max(means):.2f} ms"]
        print("|", " | ".join(map(str, [*cells, f"{between:.1%}", f"{of_loads:.1%}"])), "|")


if __name__ == "__main__":
    main()
