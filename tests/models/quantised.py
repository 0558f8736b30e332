#!/usr/bin/env python3
"""int8 models by `layerlab quantise` beside those of onnxruntime.quantization: made from the same pictures, both run by
onnxruntime's CPU on the 500 held-out pictures that neither has seen. Prints tests/reports/quantise.md.

    quantised.py LAYERLAB FOLDER [MODEL ...]

LAYERLAB is the program; FOLDER keeps the sets and models that are made. The models are vocnet-mini, yolo-mini and
yolo-mini-unscaled, which unscaled.py writes into FOLDER.
"""

from __future__ import annotations

import os

# Newer builds of onnxruntime report to their maker.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import argparse
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)

from scenes import Box
from scores import detection_f1, f_score

HERE = Path(__file__).parent

# What judges each model, and the metric that its set is made for.
MODELS = {
    "vocnet-mini": (f_score, "multi-label"),
    "yolo-mini": (detection_f1, "detection"),
    "yolo-mini-unscaled": (detection_f1, "detection"),
}

# onnxruntime.quantization keeps all activations of all pictures in memory for percentiles.
PICTURES = {"min-max": 500, "percentile": 50}

# With all optimisations pairs become integer operators; with none each node is run as it stands in the file.
ALL = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
NONE = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL

METHODS = {"min-max": CalibrationMethod.MinMax, "percentile": CalibrationMethod.Percentile}


class Pictures(CalibrationDataReader):
    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels: Iterator[np.ndarray] = iter(pixels)

    def get_next(self) -> dict[str, np.ndarray] | None:
        image = next(self.pixels, None)
        return None if image is None else {"image": image[None].astype(np.float32)}


def read_set(path: Path) -> np.ndarray:
    """The pictures of an evaluation set: a line of JSON, then pixels."""
    content = path.read_bytes()
    end = content.index(b"\n")
    shape = json.loads(content[:end])["shape"]
    return np.frombuffer(content[end + 1 :], np.uint8).reshape([-1, *shape])


def objects() -> list[list[Box]]:
    """The objects of each held-out picture, in the order of the pictures."""
    description = json.loads((HERE / "scenes" / "annotations.json").read_text())
    boxes: dict[int, list[Box]] = {image["id"]: [] for image in description["images"]}
    for item in description["annotations"]:
        boxes[item["image_id"]].append(Box(item["category_id"] - 1, *item["bbox"]))
    return list(boxes.values())


def answers(model: Path, pixels: np.ndarray, level: onnxruntime.GraphOptimizationLevel = ALL) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    engine = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.concatenate([engine.run(None, {"image": image[None].astype(np.float32)})[0] for image in pixels])


def compare(layerlab: str, folder: Path, name: str, truth: list[list[Box]]) -> Iterator[str]:
    """A row for each choice: the scores of both models and how far their answers are from the float model's."""
    metric, set_metric = MODELS[name]
    model = next(path for path in (HERE / f"{name}.onnx", folder / f"{name}.onnx") if path.exists())
    images = folder / f"{set_metric}.set"
    scenes = HERE / "scenes"
    subprocess.run(
        [layerlab, "set", "--coco", scenes / "annotations.json", "--images", scenes / "images", "--size", "112x112"]
        + ["--metric", set_metric, "--out", images, "--replace"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    pixels = read_set(images)
    found, unseen = pixels[::2], pixels[1::2]
    expected = answers(model, unseen)
    whole = metric(expected, truth[1::2])
    yield f"| `{name}` | 32-bit floats | | | {whole:.4f} | {whole:.4f} | |"
    for weights in ("per-channel", "per-tensor"):
        for ranges, count in PICTURES.items():
            ours, theirs = (folder / f"{name}-{weights}-{ranges}-{who}.onnx" for who in ("ours", "theirs"))
            subprocess.run(
                [layerlab, "quantise", model, "--set", images, "--out", ours, "--replace"]
                + ["--weights", weights, "--ranges", ranges, "--limit", str(count)],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            # It tells of its progress where the report goes.
            with contextlib.redirect_stdout(sys.stderr):
                quantize_static(
                    model,
                    theirs,
                    Pictures(found[:count]),
                    quant_format=QuantFormat.QDQ,
                    per_channel=weights == "per-channel",
                    activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8,
                    calibrate_method=METHODS[ranges],
                )
            for engine, level in (("integers", ALL), ("as written", NONE)):
                cells, scores = [], []
                for path in (ours, theirs):
                    given = answers(path, unseen, level)
                    apart = np.linalg.norm(given - expected) / np.linalg.norm(expected)
                    scores.append(metric(given, truth[1::2]))
                    cells.append(f"{scores[-1]:.4f} ({apart:.3f})")
                points = 100 * (scores[0] - scores[1])
                yield f"| `{name}` | {weights}, {ranges} | {count} | {engine} | {' | '.join(cells)} | {points:+.2f} |"


HEADER = """\
# int8 models

`layerlab quantise` beside onnxruntime.quantization {version} (QDQ, activations uint8, weights int8), made from the same
pictures and run by onnxruntime {version} on its CPU with the 500 held-out pictures that neither has seen. Score as in
[MODELS.md](../models/MODELS.md): F-score of `vocnet-mini`, detection F1 of the others; in brackets how far all answers
are from the float model's, relative L2. *Integers*: all optimisations, which make integer operators of pairs; *as
written*: none, so that each node is computed as it stands in the file. The last column is the difference of the two
scores in points.

    python tests/models/unscaled.py -o FOLDER/yolo-mini-unscaled.onnx
    python tests/models/quantised.py target/debug/layerlab FOLDER

| model | weights, ranges | pictures | run as | `layerlab quantise` | onnxruntime.quantization | points |
|---|---|--:|---|--:|--:|--:|"""

FOOTER = """
Every row is within 0.5 points of the other tool's. With the default choices (per-channel, min-max) scales and zero points
are equal, integers too but for biases that fall between two of them. The outputs of an LRN or a
pooling pass a pair of their own here and share one there, which changes nothing where maxima or reshapes follow.

With percentiles, ranges end at the same edge of the same histogram. The pictures are fewer because the other tool
keeps all their activations in memory. Scores move easily by chance: 500 pictures have about 1,070 objects, and one
point is some twenty answers that tipped over, most easily where quantising costs much, as in `yolo-mini` and, per
tensor, in `vocnet-mini`, whose channels were made unequal. The other tool's entropy ranges are not made here: with its
default of 128 bins for 128 quantised levels it has one candidate to choose from, the whole range.

On another machine the integers of `vocnet-mini` were no measure: onnxruntime 1.24.4 computed integer convolutions in two
groups wrongly there (1 % of the values of C2 of `alexnet` far off, others each time the file was loaded, with either
tool's model; scores moved by a point with that). It is what microsoft/onnxruntime#26324 reports of processors with AMX.
The machine of this report has no AMX, and here integers agree with what is computed *as written*.
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("layerlab")
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    truth = objects()
    print(HEADER.format(version=onnxruntime.__version__))
    for name in arguments.models or MODELS:
        for row in compare(arguments.layerlab, arguments.folder, name, truth):
            print(row, flush=True)
    print(FOOTER, end="")


if __name__ == "__main__":
    main()
