"""What the report reads from published profiles."""

import csv
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy


# How often times follow from weights and weights from times; more change nothing that matters.
ROUNDS = 10
# What lies further from nothing than so many standard deviations counts less: Huber's choice, for 95 % of the efficiency.
HUBER = 1.345
# How many times the median of absolute deviations a normal distribution's standard deviation is.
NORMAL_MAD = 1.4826


class LayerTime(NamedTuple):
    """A compute time with its 95 % interval, in nanoseconds."""

    value: float
    low: float
    high: float


class Ratio(NamedTuple):
    """How much more one is than another, as a share of the other, with the standard error of that."""

    more: float
    error: float


# A segment's time in a visit, as a logarithm, by (segment, visit).
Times = dict[tuple[tuple[int, int], int], float]


class Published:
    """A profile, and one of its processors."""

    def __init__(self, folder: Path, processor: str) -> None:
        self.folder = folder
        self.processor = processor
        self.header = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
        self.layers = [row["name"] for row in self.table("layers.csv")]
        times = [row for row in self.table("times.csv") if row["processor"] == processor]
        self.rows = sorted(times, key=lambda row: int(row["layer"]))

    def table(self, name: str) -> list[dict[str, str]]:
        with open(self.folder / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def times(self) -> list[LayerTime]:
        """The compute time of each layer, layer 1 first. One without an interval has itself as its interval."""
        def time(row: dict[str, str]) -> LayerTime:
            value = float(row["compute_ns"])
            low, high = row["compute_ci95_low_ns"], row["compute_ci95_high_ns"]
            return LayerTime(value, float(low or value), float(high or value))

        return [time(row) for row in self.rows]

    def sum_of_parts(self) -> float:
        """All layers, and the transfers into the first and out of the last one: T(L) of all layers here."""
        total = sum(time.value for time in self.times())
        return total + float(self.rows[0]["to_processor_ns"] or 0) + float(self.rows[-1]["from_processor_ns"] or 0)

    def whole(self) -> float | None:
        """The median of the whole model, timed as one segment in turn with others; None where that was not timed."""
        wanted = (self.processor, "1", str(len(self.layers)))
        for row in self.table("segments.csv"):
            if (row["processor"], row["first_layer"], row["last_layer"]) == wanted:
                return float(row["median_ns"])
        return None

    def sentinels(self) -> list[float]:
        """The sentinels, each the median of several runs of the whole model in a row, at both ends of all accepted blocks."""
        blocks = [row for row in self.table("blocks.csv") if row["processor"] == self.processor and not row["rejection"]]
        return [float(row[end]) for row in blocks for end in ("sentinel_before_ns", "sentinel_after_ns")]

    def times_in_visits(self) -> Times:
        """The logarithm of each segment's median in each visit, in nanoseconds."""
        samples = defaultdict(list)
        for row in self.table("samples.csv"):
            if row["processor"] == self.processor:
                segment = (int(row["first_layer"]), int(row["last_layer"]))
                samples[segment, int(row["order"])].append(int(row["duration_ns"]))
        return {key: math.log(statistics.median(durations)) for key, durations in samples.items()}

    def sum_against_whole(self) -> Ratio | None:
        """How much longer layers and neighbours say that the whole is than it is, with the speeds of visits taken out: the
        sum of all pairs of neighbours less that of the layers that are in two of them. The error is a jackknife's over
        visits. Written independently of layerlab. None where the design has no pairs, or the whole has fewer than three visits."""
        times = self.times_in_visits()
        whole = (1, len(self.layers))
        visits = {visit for _, visit in times}
        has_pairs = any(segment == (2, 3) for segment, _ in times)
        if not has_pairs or sum(segment == whole for segment, _ in times) < 3:
            return None
        estimate = longer(times, whole)
        without = []
        for left_out in visits:
            kept = {key: time for key, time in times.items() if key[1] != left_out}
            without.append(longer(kept, whole))
        count = len(without)
        mean = statistics.mean(without)
        error = math.sqrt((count - 1) / count * sum((one - mean) ** 2 for one in without))
        return Ratio(estimate, error)

    def additivity(self) -> tuple[str, str]:
        """What the profile's own test of additivity says: the misfit, and how often chance explains it."""
        for one in self.header.get("additivity", []):
            if one["processor"] == self.processor:
                return f"{one['misfit_percent']:.1f}%", f"{one['p_value']:.3f}"
        return "not tested", ""

    def milliseconds_per_passing_megabyte(self) -> LayerTime | None:
        """What each megabyte costs that passes through a segment, as published, in milliseconds; None where nothing does."""
        for one in self.header.get("additivity", []):
            cost = one.get("ns_per_passing_byte")
            # A nanosecond for each byte is a millisecond for each megabyte.
            if one["processor"] == self.processor and cost and cost["ci95_low"] is not None:
                return LayerTime(cost["value"], cost["ci95_low"], cost["ci95_high"])
        return None


def linked(times: Times, segment: tuple[int, int]) -> Times:
    """What was timed in visits that have segments in common with those of `segment`, or with such visits, and so on: between
    others no speeds can be compared."""
    segments, visits = {segment}, set()
    while True:
        reached = {visit for one, visit in times if one in segments}
        if reached == visits:
            return {key: time for key, time in times.items() if key[1] in visits}
        visits = reached
        segments = {one for one, visit in times if visit in visits}


def at_one_speed(times: Times) -> dict[tuple[int, int], float]:
    """The logarithm of each segment's time, with the speeds of visits taken out: both together by least squares, in which what
    lies far off counts less (Huber)."""
    segments, visits = sorted({segment for segment, _ in times}), sorted({visit for _, visit in times})
    segment_places = {segment: place for place, segment in enumerate(segments)}
    visit_places = {visit: len(segments) + place for place, visit in enumerate(visits)}
    rows = numpy.array([segment_places[segment] for segment, _ in times])
    columns = numpy.array([visit_places[visit] for _, visit in times])
    values = numpy.array(list(times.values()))
    weights = numpy.ones(len(values))
    for _ in range(ROUNDS):
        normal = numpy.zeros((len(segments) + len(visits),) * 2)
        right = numpy.zeros(len(normal))
        for one in (rows, columns):
            numpy.add.at(right, one, weights * values)
            for other in (rows, columns):
                numpy.add.at(normal, (one, other), weights)
        # All speeds together are none. Where a visit left out parts the others, nothing says more than that they are small.
        normal[len(segments) :, len(segments) :] += 1.0
        normal[numpy.diag_indices_from(normal)] += 1e-9
        solution = numpy.linalg.solve(normal, right)
        left = numpy.abs(values - solution[rows] - solution[columns])
        # A segment of one visit leaves nothing.
        usual = NORMAL_MAD * numpy.median(left[left > 1e-9])
        weights = numpy.minimum(1.0, HUBER * usual / numpy.maximum(left, 1e-9))
    return dict(zip(segments, solution))


def longer(times: Times, whole: tuple[int, int]) -> float:
    """How much longer the sum of the parts is than the whole, where a segment's time in a visit is that of the segment times
    the speed of the visit."""
    segments = at_one_speed(times)
    parts = sum(math.exp(segments[layer, layer + 1]) for layer in range(1, whole[1]))
    parts -= sum(math.exp(segments[layer, layer]) for layer in range(2, whole[1]))
    return parts / math.exp(segments[whole]) - 1.0
