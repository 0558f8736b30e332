#!/usr/bin/env python3
"""Answers of made-up detectors after YOLO's first version and what they are worth, counted by NumPy alone:
detectors.json, which profiles/tests/metrics.rs compares with layerlab's own metrics. Run it again only to add cases; the
same version writes the same bytes.

    pip install numpy==2.4.6
    detectors.py

Decoders, suppression, overlaps and matching are written here anew, over whole arrays and in 64 bits, from what the
exporters of YOLOv5 and YOLOv8 and the paper on SSD (Liu et al. 2016, section 2.2) say; nothing follows the Rust code.
Cases in which rounding would decide are drawn again.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".json")

# Ours computes in 32 bits, NumPy here in 64: a number nearer than this to its threshold would test rounding.
MARGIN = 1e-4

NOT_FINITE = [float("nan"), float("inf"), float("-inf")]

WIDTH, HEIGHT, CLASSES, IMAGES = 96, 64, 3, 12

GRIDS = [
    {"columns": 3, "rows": 2, "sizes": [[0.3, 0.3], [0.5, 0.25]]},
    # Cells that do not end where the image ends, as those of feature maps that were padded.
    {"columns": 2, "rows": 2, "step": [0.45, 0.55], "sizes": [[0.25, 0.5], [0.6, 0.6], [0.4, 0.2]]},
]
PRIORS = {"centre_variance": 0.1, "size_variance": 0.2, "grids": GRIDS}

random = np.random.default_rng(1)


def short(values: np.ndarray) -> np.ndarray:
    """As 32-bit floats of few digits, which are short to write."""
    return np.round(values, 4).astype(np.float32)


def prior_boxes() -> np.ndarray:
    """Centre, width and height of each prior."""
    boxes = []
    for grid in GRIDS:
        across, down = grid.get("step", [1 / grid["columns"], 1 / grid["rows"]])
        rows, columns, sizes = np.meshgrid(
            np.arange(grid["rows"]), np.arange(grid["columns"]), np.arange(len(grid["sizes"])), indexing="ij"
        )
        shapes = np.array(grid["sizes"])[sizes.ravel()]
        boxes.append(np.column_stack([(columns.ravel() + 0.5) * across, (rows.ravel() + 0.5) * down, shapes]))
    return np.concatenate(boxes)


def corners(centred: np.ndarray) -> np.ndarray:
    middle, size = centred[:, :2], centred[:, 2:]
    return np.concatenate([middle - size / 2, middle + size / 2], axis=1)


def encode(kind: dict, boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The answer that says these boxes (centre, width, height as shares) and scores (box by class)."""
    pixels = boxes * [WIDTH, HEIGHT, WIDTH, HEIGHT]
    if kind["type"] == "yolo-v5":
        confidence = scores.max(axis=1, keepdims=True) ** 0.5
        return short(np.hstack([pixels, confidence, scores / confidence]).ravel())
    if kind["type"] == "yolo-v8":
        return short(np.hstack([pixels, scores]).T.ravel())
    if "priors" in kind:
        priors = prior_boxes()
        places = (boxes[:, :2] - priors[:, :2]) / priors[:, 2:] / PRIORS["centre_variance"]
        places = np.hstack([places, np.log(boxes[:, 2:] / priors[:, 2:]) / PRIORS["size_variance"]])
    else:
        places = corners(boxes)
    background = 1 - scores.max(axis=1, keepdims=True)
    outputs = [places.ravel(), np.hstack([background, scores]).ravel()]
    return short(np.concatenate(outputs if kind["outputs"] == "boxes-first" else outputs[::-1]))


def decode(kind: dict, answer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners and scores (box by class) that an answer says; NaN where a box is not finite."""
    values = answer.astype(np.float64)
    size = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])
    with np.errstate(all="ignore"):
        if kind["type"] == "yolo-v5":
            table = values.reshape(-1, 5 + CLASSES)
            return corners(table[:, :4] / size), table[:, 5:] * table[:, 4:5]
        if kind["type"] == "yolo-v8":
            table = values.reshape(4 + CLASSES, -1).T
            return corners(table[:, :4] / size), table[:, 4:]
        count = len(values) // (5 + CLASSES)
        if kind["outputs"] == "boxes-first":
            places, scores = np.split(values, [4 * count])
        else:
            scores, places = np.split(values, [(1 + CLASSES) * count])
        places, scores = places.reshape(count, 4), scores.reshape(count, 1 + CLASSES)[:, 1:]
        if "priors" not in kind:
            return places, scores
        priors = prior_boxes()
        middle = priors[:, :2] + PRIORS["centre_variance"] * places[:, :2] * priors[:, 2:]
        return corners(np.hstack([middle, priors[:, 2:] * np.exp(PRIORS["size_variance"] * places[:, 2:])])), scores


def overlaps(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Intersection over union of each with each."""
    ours, theirs = ours[:, None], theirs[None]
    sides = np.minimum(ours[..., 2:], theirs[..., 2:]) - np.maximum(ours[..., :2], theirs[..., :2])
    shared = np.clip(sides, 0, None).prod(axis=-1)
    union = (ours[..., 2:] - ours[..., :2]).prod(axis=-1) + (theirs[..., 2:] - theirs[..., :2]).prod(axis=-1) - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def judge(metric: dict, answer: np.ndarray, objects: list[dict]) -> list[int] | None:
    """Hits, false alarms and misses; `None` where rounding would decide."""
    boxes, scores = decode(metric["decoder"], answer)
    finite = np.isfinite(boxes).all(axis=1)[:, None] & np.isfinite(scores)
    if (np.abs(scores[finite] - metric["threshold"]) < MARGIN).any():
        return None
    total = np.zeros(3, dtype=int)
    for label in range(CLASSES):
        found = np.flatnonzero(finite[:, label] & (np.nan_to_num(scores[:, label]) >= metric["threshold"]))
        found = found[np.argsort(-scores[found, label])]
        if (np.abs(np.diff(scores[found, label])) < MARGIN / 10).any():
            return None
        among = overlaps(boxes[found], boxes[found])
        there = [[one[key] for key in ("x", "y", "width", "height")] for one in objects if one["class"] == label]
        there = np.array(there, dtype=np.float64).reshape(-1, 4)
        there = np.hstack([there[:, :2], there[:, :2] + there[:, 2:]])
        between = overlaps(boxes[found], there)
        near = [np.abs(among - metric["suppress_above"]), np.abs(between - metric["match_at_least"])]
        if any((one < MARGIN).any() for one in near):
            return None
        alive = np.ones(len(found), dtype=bool)
        for place in range(len(found)):
            if alive[place]:
                alive[place + 1 :] &= among[place, place + 1 :] <= metric["suppress_above"]
        free = np.ones(len(there), dtype=bool)
        hits = 0
        for row in between[alive]:
            best = int(np.argmax(np.where(free, row, -1))) if free.any() else -1
            if best >= 0 and row[best] >= metric["match_at_least"]:
                free[best] = False
                hits += 1
        total += [hits, int(alive.sum()) - hits, int(free.sum())]
    return total.tolist()


def draw_objects() -> list[dict]:
    objects = []
    for _ in range(random.integers(1, 5)):
        size = random.uniform(0.2, 0.5, 2)
        x, y, width, height = short(np.concatenate([random.uniform(0, 1 - size), size])).tolist()
        objects.append({"class": int(random.integers(CLASSES)), "x": x, "y": y, "width": width, "height": height})
    return objects


def draw_answer(kind: dict, count: int, objects: list[dict]) -> np.ndarray:
    """Noise, and around most objects some boxes that are about right."""
    boxes = np.hstack([random.uniform(0.1, 0.9, (count, 2)), random.uniform(0.15, 0.5, (count, 2))])
    scores = random.uniform(0.01, 0.3, (count, CLASSES))
    places = iter(random.permutation(count))
    for item in objects:
        size = np.array([item["width"], item["height"]])
        middle = np.array([item["x"], item["y"]]) + size / 2
        for place in [next(places) for _ in range(random.integers(0, 4))]:
            boxes[place] = [*(middle + random.normal(0, 0.03, 2)), *(size * random.uniform(0.85, 1.15, 2))]
            label = item["class"] if random.random() < 0.85 else random.integers(CLASSES)
            scores[place, label] = random.uniform(0.3, 0.95)
    return encode(kind, boxes, scores)


def case(name: str, kind: dict, count: int, spoilt: float = 0.0) -> dict:
    metric = {"type": "decoded-detection", "decoder": kind}
    metric |= {"threshold": 0.25, "suppress_above": 0.45, "match_at_least": 0.5}
    answers = []
    while len(answers) < IMAGES:
        objects = draw_objects()
        answer = draw_answer(kind, count, objects)
        where = random.random(answer.shape) < spoilt
        answer[where] = random.choice(NOT_FINITE, where.sum())
        tally = judge(metric, answer, objects)
        if tally is not None:
            answers.append({"values": [answer], "truth": {"boxes": objects}, "tally": tally})
    hits, false_alarms, misses = np.sum([answer["tally"] for answer in answers], axis=0)
    score = 2 * hits / (2 * hits + false_alarms + misses)
    return {"name": name, "metric": metric, "classes": CLASSES, "answers": answers, "score": float(score)}


class Encoder(json.JSONEncoder):
    def default(self, value: object) -> object:
        if isinstance(value, np.ndarray):
            # JSON has no numbers that are not finite.
            return [float(str(one)) if np.isfinite(one) else str(one) for one in value]
        return super().default(value)


def main() -> None:
    pixels = {"width": WIDTH, "height": HEIGHT}
    five, eight = {"type": "yolo-v5", **pixels}, {"type": "yolo-v8", **pixels}
    plain = {"type": "ssd", "outputs": "boxes-first"}
    priors = {"type": "ssd", "outputs": "scores-first", "priors": PRIORS}
    cases = [
        case("YOLOv5", five, 24),
        case("YOLOv5, some values not finite", five, 24, 0.03),
        case("YOLOv8", eight, 24),
        case("YOLOv8, some values not finite", eight, 24, 0.03),
        case("SSD, corners", plain, 24),
        case("SSD, offsets to priors", priors, len(prior_boxes())),
        case("SSD, offsets to priors, some values not finite", priors, len(prior_boxes()), 0.03),
    ]
    for one in cases:
        tallies = np.sum([answer["tally"] for answer in one["answers"]], axis=0)
        print(f"{one['name']}: {len(one['answers'])} answers, {tallies.tolist()}, score {one['score']:.4f}")
    lines = ",\n".join(json.dumps(one, cls=Encoder, separators=(",", ":")) for one in cases)
    FILE.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
