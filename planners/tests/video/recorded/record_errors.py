"""Records the calibration errors that pycalib and MAPIE find, for tests/video/calibration.rs to compare with.

Simulated confidences, and so of no network. The three implementations disagree about which bin holds the end that two share:
no confidence here is one. Writes errors.json beside this file. Needs pycalib (ECE and MCE) and mapie (ECE); versions are
recorded.

    python record_errors.py
"""

import importlib.metadata
import json
import pathlib
import random

import numpy
from mapie.metrics.calibration import expected_calibration_error
from pycalib.metrics import binary_ECE, binary_MCE

HERE = pathlib.Path(__file__).parent
BINS = 10


def case(name, confidences, chance, source):
    """Confidences, which of their answers were right, and the two errors of them."""
    right = [source.random() < chance(confidence) for confidence in confidences]
    arrays = numpy.array(right, dtype=int), numpy.array(confidences)
    expected = float(binary_ECE(*arrays, bins=BINS))
    # Its num_bins counts the ends of bins.
    by_mapie = expected_calibration_error(*arrays, num_bins=BINS + 1, split_strategy="uniform")
    assert abs(expected - by_mapie) < 1e-12, f"{name}: {expected} by pycalib, {by_mapie} by MAPIE"
    return {
        "name": name,
        "confidences": confidences,
        "right": right,
        "expected_error": expected,
        "maximum_error": float(binary_MCE(*arrays, bins=BINS)),
    }


def rounded(value):
    """To four digits, and away from the ends of bins."""
    value = round(value, 4)
    at_end = abs(value * BINS - round(value * BINS)) < 0.002
    return round(value + 0.0003, 4) if at_end else value


def main():
    source = random.Random(2022)

    def draw(count, shape):
        return [rounded(shape(source.random())) for _ in range(count)]

    cases = [
        case("overconfident", draw(2000, lambda u: 0.998 * u**0.3), lambda p: 0.6 * p, source),
        case("underconfident", draw(500, lambda u: 0.3 + 0.4 * u), lambda p: min(1.0, 1.5 * p), source),
        case("calibrated", draw(1000, lambda u: 0.998 * u), lambda p: p, source),
        case("empty bins", draw(40, lambda u: 0.21 + 0.07 * u if u < 0.5 else 0.9 + 0.07 * u), lambda p: 0.5, source),
    ]
    versions = {name: importlib.metadata.version(name) for name in ("pycalib", "mapie")}
    (HERE / "errors.json").write_text(json.dumps({**versions, "cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
