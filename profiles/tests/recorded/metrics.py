#!/usr/bin/env python3
"""Answers of made-up networks and what they are worth, as libraries that are not ours count it: metrics.json, which
profiles/tests/metrics.rs compares with layerlab's own metrics. Run it again only to add cases; the same versions write
the same bytes.

    pip install numpy==2.4.6 scikit-learn==1.9.1 torch==2.15.0 torchvision==0.29.2 pycocotools==2.0.11
    metrics.py

What comes from where:

| number | library |
|---|---|
| top-1 | sklearn.metrics.accuracy_score of the largest value |
| top-5 | sklearn.metrics.top_k_accuracy_score |
| multi-label tallies | sklearn.metrics.multilabel_confusion_matrix, for each image |
| multi-label score | sklearn.metrics.f1_score, micro |
| detection: corners | torchvision.ops.box_convert |
| detection: suppression | torchvision.ops.batched_nms |
| detection: overlaps | torchvision.ops.box_iou, asserted to be pycocotools.mask.iou |
| detection: which box finds which object | pycocotools.cocoeval.COCOeval |
| detection score | sklearn.metrics.f1_score of hits, false alarms and misses |
| verification | sklearn.metrics.pairwise.cosine_similarity, accuracy_score |

By hand, since no library has it: where YOLO's answer keeps which number, and what becomes of values that are not
finite (each place says what).
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import torch
import torchvision
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from sklearn.metrics import accuracy_score, f1_score, multilabel_confusion_matrix, top_k_accuracy_score
from sklearn.metrics.pairwise import cosine_similarity

FILE = Path(__file__).with_suffix(".json")

# Ours computes in 32 bits, the libraries in 64: a number nearer than this to its threshold would test rounding.
MARGIN = 1e-4

NOT_FINITE = [float("nan"), float("inf"), float("-inf")]

random = np.random.default_rng(1)


def f32(values: np.ndarray) -> np.ndarray:
    """As 32-bit floats of few digits, which are short to write."""
    return np.round(values, 4).astype(np.float32)


def spoil(values: np.ndarray, share: float) -> np.ndarray:
    """Some values become NaN or infinite."""
    spoilt = values.copy()
    where = random.random(values.shape) < share
    spoilt[where] = random.choice(NOT_FINITE, where.sum())
    return spoilt


def case(name: str, metric: dict, classes: int, answers: list[dict], score: float) -> dict:
    return {"name": name, "metric": metric, "classes": classes, "answers": answers, "score": float(score)}


def whole(right: bool) -> list[int]:
    """A wrong answer says what is not there, and does not say what is."""
    return [1, 0, 0] if right else [0, 1, 1]


def top_k(name: str, k: int, classes: int, images: int, spoilt: float) -> dict:
    # Distinct: a permutation, so that no tie is left to a library's taste.
    answers = f32(np.stack([random.permutation(classes) for _ in range(images)]) / classes - 0.3)
    answers = spoil(answers, spoilt)
    truths = random.integers(classes, size=images)
    # NaN and +inf of another class come before all numbers, -inf after; a true class that is not finite comes last.
    values = np.nan_to_num(answers.astype(np.float64), nan=1e6, posinf=1e6, neginf=-1e6)
    for row, answer, truth in zip(values, answers, truths, strict=True):
        if not np.isfinite(answer[truth]):
            row[truth] = -2e6
    labels = range(classes)
    if k == 1:
        found = values.argmax(axis=1)
        right = [accuracy_score([truth], [one]) == 1 for truth, one in zip(truths, found, strict=True)]
        score = accuracy_score(truths, found)
    else:
        single = [
            top_k_accuracy_score([truth], [row], k=k, labels=labels) for truth, row in zip(truths, values, strict=True)
        ]
        right = [one == 1 for one in single]
        score = top_k_accuracy_score(truths, values, k=k, labels=labels)
    return case(
        name,
        {"type": "top-k", "k": k},
        classes,
        [
            {"values": [answer], "truth": {"labels": [int(truth)]}, "tally": whole(one)}
            for answer, truth, one in zip(answers, truths, right, strict=True)
        ],
        score,
    )


def multi_label(name: str, threshold: float, classes: int, images: int, spoilt: float) -> dict:
    truths = random.random((images, classes)) < 0.15
    answers = f32(np.clip(0.35 * truths + random.random((images, classes)) * 0.65, 0, 1))
    answers = spoil(answers, spoilt)
    # What is not finite is wrong: found where it is not there, and not found where it is.
    found = np.where(np.isfinite(answers), answers >= np.float32(threshold), ~truths)
    matrices = multilabel_confusion_matrix(truths, found, samplewise=True)
    return case(
        name,
        {"type": "multi-label", "threshold": threshold},
        classes,
        [
            {
                "values": [answer],
                "truth": {"labels": np.flatnonzero(truth).tolist()},
                "tally": [int(matrix[1, 1]), int(matrix[0, 1]), int(matrix[1, 0])],
            }
            for answer, truth, matrix in zip(answers, truths, matrices, strict=True)
        ],
        f1_score(truths, found, average="micro", zero_division=1),
    )


def draw_objects(classes: int, most: int) -> list[dict]:
    objects = []
    for _ in range(random.integers(most + 1)):
        width, height = random.uniform(0.1, 0.5, 2)
        corner = [random.uniform(0, 1 - width), random.uniform(0, 1 - height)]
        x, y, width, height = f32(np.array([*corner, width, height]))
        objects.append({"class": int(random.integers(classes)), "x": x, "y": y, "width": width, "height": height})
    return objects


def draw_answer(grid: int, boxes: int, classes: int, objects: list[dict]) -> np.ndarray:
    """Noise, and in the cells of most objects and some of their neighbours boxes that are about right."""
    probabilities = random.uniform(0, 0.3, (grid, grid, classes))
    confidences = random.uniform(0, 0.5, (grid, grid, boxes))
    places = random.uniform(0.1, 0.9, (grid, grid, boxes, 4))
    for item in objects:
        middle = np.array([item["x"] + item["width"] / 2, item["y"] + item["height"] / 2], dtype=np.float64) * grid
        for _ in range(random.integers(0, 4)):
            column, row = np.clip(middle.astype(int) + random.integers(-1, 2, 2) * (random.random() < 0.4), 0, grid - 1)
            box = random.integers(boxes)
            label = item["class"] if random.random() < 0.85 else random.integers(classes)
            probabilities[row, column, label] = random.uniform(0.4, 1)
            confidences[row, column, box] = random.uniform(0.4, 1)
            size = np.sqrt([item["width"], item["height"]]) * random.uniform(0.85, 1.15, 2)
            places[row, column, box] = [*(middle - [column, row] + random.normal(0, 0.12, 2)), *size]
    return f32(np.concatenate([probabilities.ravel(), confidences.ravel(), places.ravel()]))


def decode(metric: dict, classes: int, answer: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Corners, scores and classes of all boxes that reach the threshold. What is not finite is no box."""
    grid, boxes = metric["grid"], metric["boxes"]
    values = torch.from_numpy(answer.astype(np.float64))
    probabilities, confidences, places = values.split([grid**2 * classes, grid**2 * boxes, grid**2 * boxes * 4])
    scores = confidences.reshape(grid, grid, boxes, 1) * probabilities.reshape(grid, grid, 1, classes)
    row, column = torch.meshgrid(torch.arange(grid), torch.arange(grid), indexing="ij")
    x, y, width, height = places.reshape(grid, grid, boxes, 4).unbind(-1)
    middles = [(column[..., None] + x) / grid, (row[..., None] + y) / grid]
    corners = torchvision.ops.box_convert(torch.stack([*middles, width**2, height**2], -1), "cxcywh", "xyxy")
    finite = corners.isfinite().all(-1)[..., None] & scores.isfinite()
    kept = finite & (scores >= metric["threshold"])
    row, column, box, label = kept.nonzero(as_tuple=True)
    return corners[row, column, box], scores[kept], label


def is_clear(metric: dict, classes: int, answer: np.ndarray, objects: list[dict]) -> bool:
    """No number is so near to its threshold, and no two scores are so near to each other, that rounding decides."""
    _, scores, _ = decode({**metric, "threshold": -1e9}, classes, answer)
    corners, high, labels = decode(metric, classes, answer)
    if len(scores) and (scores - metric["threshold"]).abs().min() < MARGIN / 10:
        return False
    for label in labels.unique():
        of_class = high[labels == label].sort().values
        if len(of_class) > 1 and of_class.diff().min() < MARGIN / 100:
            return False
    among = torchvision.ops.box_iou(corners, corners)
    with_objects = torchvision.ops.box_iou(corners, corners_of(objects))
    if ((among - metric["suppress_above"]).abs() < MARGIN).any():
        return False
    return not ((with_objects - metric["match_at_least"]).abs() < MARGIN).any()


def corners_of(objects: list[dict]) -> torch.Tensor:
    boxes = [[item[key] for key in ("x", "y", "width", "height")] for item in objects]
    return torchvision.ops.box_convert(torch.tensor(boxes, dtype=torch.float64).reshape(-1, 4), "xywh", "xyxy")


def detection(name: str, metric: dict, classes: int, images: int, most: int, spoilt: float) -> dict:
    metric = {"type": "detection", **metric}
    answers, kept = [], []
    while len(answers) < images:
        objects = draw_objects(classes, most)
        answer = spoil(draw_answer(metric["grid"], metric["boxes"], classes, objects), spoilt)
        if not is_clear(metric, classes, answer, objects):
            continue
        corners, scores, labels = decode(metric, classes, answer)
        best = torchvision.ops.batched_nms(corners, scores, labels, metric["suppress_above"])
        kept.append((corners[best], scores[best], labels[best]))
        answers.append({"values": [answer], "truth": {"boxes": objects}})
    tallies = match(metric, classes, answers, kept)
    for answer, tally in zip(answers, tallies, strict=True):
        answer["tally"] = tally
    hits, false_alarms, misses = np.sum(tallies, axis=0)
    there = [1] * hits + [0] * false_alarms + [1] * misses
    found = [1] * hits + [1] * false_alarms + [0] * misses
    return case(name, metric, classes, answers, f1_score(there, found))


def match(metric: dict, classes: int, answers: list[dict], kept: list[tuple]) -> list[list[int]]:
    """Hits, false alarms and misses of each image."""
    annotations, results = [], []
    for image, (answer, (corners, scores, labels)) in enumerate(zip(answers, kept, strict=True), 1):
        objects = answer["truth"]["boxes"]
        for item in objects:
            box = [float(item[key]) for key in ("x", "y", "width", "height")]
            # Matches are told by id, and 0 is no match.
            ids = {"id": len(annotations) + 1, "image_id": image, "category_id": item["class"] + 1}
            annotations.append({**ids, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
        boxes = torchvision.ops.box_convert(corners, "xyxy", "xywh")
        for box, score, label in zip(boxes.tolist(), scores.tolist(), labels.tolist(), strict=True):
            results.append({"image_id": image, "category_id": label + 1, "bbox": box, "score": score})
        if len(objects) and len(boxes):
            there = np.array([annotation["bbox"] for annotation in annotations[-len(objects) :]])
            theirs = mask.iou(boxes.numpy(), there, [0] * len(there))
            assert np.allclose(theirs, torchvision.ops.box_iou(corners, corners_of(objects)), atol=1e-9)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        images = [{"id": image} for image in range(1, len(answers) + 1)]
        categories = [{"id": label, "name": str(label)} for label in range(1, classes + 1)]
        truth.dataset = {"info": {}, "images": images, "categories": categories, "annotations": annotations}
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(results), "bbox")
        evaluation.params.iouThrs = np.array([metric["match_at_least"]])
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e9]], ["all"]
        evaluation.params.maxDets = [10_000]
        evaluation.evaluate()
    tallies = np.zeros((len(answers), 3), dtype=int)
    for entry in evaluation.evalImgs:
        if entry is not None:
            hits = int((entry["dtMatches"] > 0).sum())
            found, there = entry["dtMatches"].size, entry["gtMatches"].size
            tallies[entry["image_id"] - 1] += [hits, found - hits, there - hits]
    return tallies.tolist()


def verification(name: str, threshold: float, length: int, pairs: int, spoilt: float) -> dict:
    answers, same_all, said_all = [], [], []
    while len(answers) < pairs:
        same = bool(random.random() < 0.5)
        one = random.normal(size=length)
        other = one + random.normal(size=length) * random.uniform(0.3, 1.8) if same else random.normal(size=length)
        values = spoil(f32(np.stack([one, other])), spoilt)
        if np.isfinite(values).all():
            cosine = cosine_similarity(values[:1].astype(np.float64), values[1:].astype(np.float64))[0, 0]
            if abs(cosine - threshold) < MARGIN:
                continue
            said = bool(cosine >= threshold)
        else:
            # The angle to what is not finite is no number, and neither answer is right.
            said = not same
        same_all.append(same)
        said_all.append(said)
        answers.append({"values": list(values), "truth": {"same": same}, "tally": whole(said == same)})
    score = accuracy_score(same_all, said_all)
    return case(name, {"type": "verification", "threshold": threshold}, 0, answers, score)


class Encoder(json.JSONEncoder):
    def default(self, value: object) -> object:
        if isinstance(value, np.ndarray):
            return [self.default(one) for one in value]
        if isinstance(value, np.floating):
            # JSON has no such numbers.
            return float(str(value)) if np.isfinite(value) else str(value)
        return super().default(value)


def main() -> None:
    yolo = {"grid": 7, "boxes": 2, "threshold": 0.2, "suppress_above": 0.5, "match_at_least": 0.5}
    small = {"grid": 3, "boxes": 2, "threshold": 0.25, "suppress_above": 0.4, "match_at_least": 0.5}
    cases = [
        top_k("top-1", 1, 6, 60, 0),
        top_k("top-1, some values not finite", 1, 6, 60, 0.1),
        top_k("top-5", 5, 12, 60, 0),
        top_k("top-5, some values not finite", 5, 12, 60, 0.1),
        multi_label("multi-label", 0.5, 20, 60, 0),
        multi_label("multi-label, some values not finite", 0.5, 20, 60, 0.05),
        multi_label("multi-label at another threshold", 0.4375, 5, 60, 0),
        detection("detection as YOLO's", yolo, 20, 5, 5, 0),
        detection("detection, few cells", small, 3, 56, 4, 0),
        detection("detection, some values not finite", small, 3, 40, 4, 0.05),
        detection("detection, one class and crowded", {**small, "boxes": 3, "suppress_above": 0.6}, 1, 32, 8, 0),
        verification("verification", 0.6, 16, 60, 0),
        verification("verification, some values not finite", 0.6, 16, 60, 0.03),
    ]
    for one in cases:
        print(f"{one['name']}: {len(one['answers'])} answers, score {one['score']:.4f}")
    lines = ",\n".join(json.dumps(one, cls=Encoder, separators=(",", ":")) for one in cases)
    FILE.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
