#!/usr/bin/env python3
"""Answers of made-up segmentation networks and which pixels they are right about, counted by NumPy alone: pixels.json,
which profiles/tests/metrics.rs compares with layerlab's own metric. Run it again only to add cases; the same version
writes the same bytes.

    pip install numpy==2.4.6
    pixels.py
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".json")

CLASSES, HEIGHT, WIDTH, IMAGES = 4, 5, 7, 12

random = np.random.default_rng(1)


def case(name: str, spoilt: float) -> dict:
    answers = []
    for _ in range(IMAGES):
        # Regions of several pixels; the last class stands for what does not count.
        truth = np.kron(random.integers(CLASSES + 1, size=(3, 4)), np.ones((2, 2), dtype=int))[:HEIGHT, :WIDTH]
        scores = random.random((CLASSES, HEIGHT, WIDTH))
        scores[np.minimum(truth, CLASSES - 1), *np.indices(truth.shape)] += 0.35
        scores = np.round(scores, 4).astype(np.float32)
        where = random.random(scores.shape) < spoilt
        scores[where] = random.choice([float("nan"), float("inf"), float("-inf")], where.sum())
        # NaN and +inf of another class come before all numbers, -inf after; a true class that is not finite is wrong.
        sortable = np.nan_to_num(scores.astype(np.float64), nan=1e9, posinf=1e9, neginf=-1e9)
        own = np.take_along_axis(scores, np.minimum(truth, CLASSES - 1)[None], axis=0)[0]
        counts = truth < CLASSES
        right = int((counts & np.isfinite(own) & (sortable.argmax(axis=0) == truth)).sum())
        wrong = int(counts.sum()) - right
        classes = [int(one) if one < CLASSES else None for one in truth.ravel()]
        runs = [[one, len(list(pixels))] for one, pixels in groupby(classes)]
        values = [float(str(one)) if np.isfinite(one) else str(one) for one in scores.ravel()]
        answers.append({"values": [values], "truth": {"pixels": runs}, "tally": [right, wrong, wrong]})
    right, wrong, _ = np.sum([answer["tally"] for answer in answers], axis=0)
    metric = {"type": "pixel-accuracy", "width": WIDTH, "height": HEIGHT}
    score = float(right / (right + wrong))
    return {"name": name, "metric": metric, "classes": CLASSES, "answers": answers, "score": score}


def main() -> None:
    cases = [case("pixels", 0), case("pixels, some values not finite", 0.05)]
    for one in cases:
        print(f"{one['name']}: {len(one['answers'])} answers, score {one['score']:.4f}")
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases)
    FILE.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
