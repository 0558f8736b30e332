#!/usr/bin/env python3
"""How long does a segment take after each of the others? Without layerlab.

    after.py MODEL PROFILE SEGMENTS [--seconds 150]

Cuts MODEL at the layers that PROFILE (a published profile's folder) names, with nothing but onnx, and times SEGMENTS (8-8,8-9,9-9)
in ONNX Runtime on one thread, all in turn in an order drawn anew for each round, with one working memory for all. Prints
the median of each over all rounds, and over those in which it came after each of the others, with the standard errors of
the medians.
"""

import argparse
import csv
import random
import time
from collections import defaultdict
from pathlib import Path

from by_hand import WARM_UP, Cutter, Loaded, median_with_error, share_memory

# Of fewer inferences a median says little.
FEWEST = 100

Segment = tuple[int, int]


def said(times: list[float]) -> str:
    middle, error = median_with_error(times)
    return f"{1e6 * middle:.1f} ± {1e6 * error:.1f} µs"


def name(segment: Segment) -> str:
    return "{}-{}".format(*segment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("profile", type=Path)
    parser.add_argument("segments", help="first and last layer of each, as 8-8,8-9,9-9")
    parser.add_argument("--seconds", type=float, default=150.0)
    arguments = parser.parse_args()
    with open(arguments.profile / "layers.csv", newline="", encoding="utf-8") as file:
        cutter = Cutter(arguments.model, [row["name"] for row in csv.DictReader(file)])
    share_memory()
    segments: list[Segment] = [tuple(map(int, one.split("-"))) for one in arguments.segments.split(",")]
    loaded = {segment: Loaded(cutter.segment(*segment), shared_memory=True) for segment in segments}
    times: dict[Segment, dict[Segment, list[float]]] = {segment: defaultdict(list) for segment in segments}
    rounds, before, order = 0, None, list(segments)
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        random.shuffle(order)
        for segment in order:
            took = loaded[segment].run()
            if rounds >= WARM_UP:
                times[segment][before].append(took)
            before = segment
        rounds += 1
    print(f"{rounds - WARM_UP} rounds")
    for segment, by_before in times.items():
        print(f"{name(segment)}: {said([one for many in by_before.values() for one in many])}")
        for other in segments:
            if len(by_before[other]) >= FEWEST:
                print(f"    after {name(other)}: {said(by_before[other])}")


if __name__ == "__main__":
    main()
