#!/usr/bin/env python3
"""What does a tensor cost that passes through a segment, beside moving in and out?

    passing.py MODEL PROFILE [PROFILE ...]

A network's shortcuts pass through the segments that lie inside of a residual block: such a segment takes a tensor and gives it
again. The sum S(i,j) = a_i + b_j (docs/method.md) has it move in and out there as elsewhere. Here each profile's segments, with
the speeds of visits taken out, are adjusted to that sum by least squares with one more term, so many milliseconds for each
megabyte that passes. Prints that term with its standard error, and what remains unexplained with and without it. Written
independently of layerlab, with numpy alone. Of a model with few layers, `--design grouped` tells most.
"""

import argparse
import math
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy

from by_hand import Cutter
from published import Published, at_one_speed, linked

PROCESSOR = "cpu:ort-all"


class CostOfPassing(NamedTuple):
    """Beside moving in and out, with its standard error; what remains of the times as a share of them, with and without it."""

    milliseconds_per_megabyte: float
    error: float
    unexplained: float
    unexplained_without: float


def megabytes_passing(cutter: Cutter, first: int, last: int) -> float:
    given = set(cutter.frontier(last))
    passing = [name for name in cutter.frontier(first - 1) if name in given]
    return sum(4 * math.prod(cutter.shapes[name]) for name in passing) / 1e6


def adjusted(design: numpy.ndarray, times: numpy.ndarray, weights: numpy.ndarray) -> tuple[float, float, float]:
    """The last column's coefficient, its standard error, and what remains as a share of the times."""
    weighted = design * weights[:, None]
    values, _, rank, _ = numpy.linalg.lstsq(weighted, times * weights, rcond=None)
    left = weighted @ values - times * weights
    variance = float(left @ left) / (len(times) - rank)
    covariance = numpy.linalg.pinv(weighted.T @ weighted) * variance
    return float(values[-1]), math.sqrt(covariance[-1, -1]), math.sqrt(variance)


def cost_of_passing(model: Path, profile: Published) -> CostOfPassing | None:
    """What each megabyte costs that passes through a segment; None where nothing does."""
    cutter = Cutter(model, profile.layers)
    in_visits = linked(profile.times_in_visits(), (1, cutter.count))
    visits = Counter(segment for segment, _ in in_visits)
    measured = at_one_speed(in_visits)
    segments = sorted(measured)
    times = numpy.array([math.exp(measured[segment]) / 1e6 for segment in segments])
    weights = numpy.array([math.sqrt(visits[segment]) for segment in segments]) / times
    design = numpy.zeros((len(segments), 2 * cutter.count + 1))
    for row, (first, last) in enumerate(segments):
        design[row, first - 1] = design[row, cutter.count + last - 1] = 1.0
        design[row, -1] = megabytes_passing(cutter, first, last)
    if not design[:, -1].any():
        return None
    *_, without = adjusted(design[:, :-1], times, weights)
    return CostOfPassing(*adjusted(design, times, weights), without)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("profiles", type=Path, nargs="+")
    arguments = parser.parse_args()
    for folder in arguments.profiles:
        cost = cost_of_passing(arguments.model, Published(folder, PROCESSOR))
        if cost is None:
            print(f"{folder}: nothing passes through a segment")
            continue
        print(
            f"{folder}: {cost.milliseconds_per_megabyte:+.3f} ± {cost.error:.3f} ms for each MB that passes; "
            f"unexplained {cost.unexplained:.2%}, without the term {cost.unexplained_without:.2%}"
        )


if __name__ == "__main__":
    main()
