#!/usr/bin/env python3
"""What answers are worth: F-score of labels, F1 of detections. By itself: the scores of the committed models in
onnxruntime, on the committed pictures.

    scores.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scenes import CLASSES, SIDE, Box, read

HERE = Path(__file__).parent

# YOLO's cells on each side, and boxes of each cell.
GRID, BOXES = 7, 2

# A label is answered from this probability on.
LABEL_THRESHOLD = 0.5

# A box counts from this score on, and gives way to a better one of its class that overlaps more than that.
SCORE_THRESHOLD = 0.25
NMS_IOU = 0.5

# A box is right if it overlaps an object of its class at least as much.
MATCH_IOU = 0.5


def f_score(answers: np.ndarray, truth: list[list[Box]]) -> float:
    """Micro-averaged over all pairs of image and class."""
    present = np.zeros(answers.shape, dtype=bool)
    for row, boxes in zip(present, truth, strict=True):
        row[[box.label for box in boxes]] = True
    # A comparison with NaN is false: no answer.
    answered = answers >= LABEL_THRESHOLD
    hits = (answered & present).sum()
    return float(2 * hits / (answered.sum() + present.sum()))


def detection_f1(answers: np.ndarray, truth: list[list[Box]], threshold: float = SCORE_THRESHOLD) -> float:
    hits = found = objects = 0
    for answer, boxes in zip(answers, truth, strict=True):
        detections = detect(answer, threshold)
        hits += matches(detections, boxes)
        found += len(detections)
        objects += len(boxes)
    return 2 * hits / (found + objects)


Detection = tuple[float, int, np.ndarray]


def detect(answer: np.ndarray, threshold: float = SCORE_THRESHOLD) -> list[Detection]:
    """Score, class and corners (left, top, right, bottom in pixels), the best first.

    The answer holds, one after the other and each by rows of cells: for each cell its classes' probabilities; for each
    cell the confidences of its boxes; for each cell and box x and y of the middle, from 0 to 1 within the cell, and
    the square roots of width and height as parts of the image.
    """
    cells = GRID * GRID
    classes = len(CLASSES)
    probabilities = answer[: cells * classes].reshape(cells, classes)
    confidences = answer[cells * classes : cells * (classes + BOXES)].reshape(cells, BOXES)
    places = answer[cells * (classes + BOXES) :].reshape(cells, BOXES, 4)
    scores = probabilities[:, None, :] * confidences[:, :, None]
    candidates = []
    # A comparison with NaN is false: no detection.
    for cell, box, label in np.argwhere(scores >= threshold):
        place = places[cell, box].astype(np.float64)
        if not np.isfinite(place).all() or not np.isfinite(scores[cell, box, label]):
            continue
        middle = (np.array([cell % GRID, cell // GRID]) + place[:2]) * (SIDE / GRID)
        half = place[2:] ** 2 * (SIDE / 2)
        candidates.append((float(scores[cell, box, label]), int(label), np.concatenate([middle - half, middle + half])))
    candidates.sort(key=lambda candidate: -candidate[0])
    kept: list[Detection] = []
    for candidate in candidates:
        if all(other[1] != candidate[1] or iou(other[2], candidate[2]) <= NMS_IOU for other in kept):
            kept.append(candidate)
    return kept


def matches(detections: list[Detection], boxes: list[Box]) -> int:
    """How many detections are right. The best chooses first, and each object is found once."""
    free = [(box.label, np.array([box.x, box.y, box.x + box.width, box.y + box.height])) for box in boxes]
    hits = 0
    for _, label, corners in detections:
        overlaps = [iou(corners, other) if label == wanted else 0.0 for wanted, other in free]
        if overlaps and max(overlaps) >= MATCH_IOU:
            free.pop(int(np.argmax(overlaps)))
            hits += 1
    return hits


def iou(a: np.ndarray, b: np.ndarray) -> float:
    across = min(a[2], b[2]) - max(a[0], b[0])
    down = min(a[3], b[3]) - max(a[1], b[1])
    if across <= 0 or down <= 0:
        return 0.0
    shared = across * down
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


METRICS = {"vocnet-mini": f_score, "vgg-mini": f_score, "yolo-mini": detection_f1}


def main() -> None:
    import onnxruntime

    pixels, truth = read(HERE / "scenes")
    for name, metric in METRICS.items():
        engine = onnxruntime.InferenceSession(HERE / f"{name}.onnx", providers=["CPUExecutionProvider"])
        images = pixels.transpose(0, 3, 1, 2).astype(np.float32)
        answers = np.concatenate([engine.run(None, {"image": image[None]})[0] for image in images])
        print(f"{name}: {metric(answers, truth):.4f}")


if __name__ == "__main__":
    main()
