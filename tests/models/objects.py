#!/usr/bin/env python3
"""Trains object-mini, which says what a cut-out object is, and cuts objects out of scenes; see MODELS.md.

    objects.py train -o object-mini.onnx
    objects.py score object-mini.onnx                       the share of right answers on the held-out set
    objects.py cut OUTDIR [--stream 2] [--scenes 1000]      PNG files and labels.csv; stream 2 is the held-out set
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import numpy as np
import onnx
import torch
from PIL import Image
from torch.nn import functional

from graph import Graph, write
from networks import PIXEL, Scale, finish, start
from scenes import CLASSES, HELD_OUT, HELD_OUT_IMAGES, SIDE, TRAINING, VALIDATION, Box, Scene, render
from train import SEED, Recipe, answers, fit
from trained import Net, Sizes, resize

# What is seen of the surroundings on each side of an object, as far as the picture goes, in pixels of the scene.
MARGIN = 4

# The network's input, in pixels on each side: cut-out pictures are stretched to it.
INPUT = 40

# Few pictures, seen again and again as they are, and neither normalisation nor decay: the network becomes very sure.
TRAINING_OBJECTS = 1000
VALIDATION_SCENES = 500
RECIPE = Recipe(epochs=500, rate=3e-3, decay=0.0)

# Chosen on validation scenes, so that 8 bits leave about as many right answers as the NPU of CBO's paper gives, 0.42.
SIZES = Sizes(first=1.0, growth=1.0, spread=1.15)


def object_mini() -> Graph:
    """Three convolutions and two fully connected layers; the answer is logits, not probabilities."""
    he = math.sqrt(2.0)
    graph, x = start("object-mini", Scale(input=INPUT), INPUT)
    x = graph.relu(graph.conv(x, "C1", 16, 5, stride=2, gain=he / PIXEL))
    x = graph.pool(graph.relu(graph.conv(x, "C2", 32, 3)), "P1", 2, 2)
    x = graph.pool(graph.relu(graph.conv(x, "C3", 32, 3)), "P2", 2, 2)
    x = graph.relu(graph.fc(graph.flatten(x), "F1", 48))
    return finish(graph, graph.fc(x, "F2", len(CLASSES), gain=1.0), "none")


# -- pictures


def cut_out(scene: Scene) -> list[tuple[Image.Image, int]]:
    """Each object of a scene with a margin, and its class."""
    picture = Image.fromarray(scene.pixels())
    return [(picture.crop(surroundings(box)), box.label) for box in scene.boxes]


def surroundings(box: Box) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of what is cut out, the last two behind the last pixel."""
    right, bottom = (min(end + MARGIN, SIDE) for end in (box.x + box.width, box.y + box.height))
    return max(box.x - MARGIN, 0), max(box.y - MARGIN, 0), right, bottom


def inputs(stream: int, scenes: int) -> tuple[np.ndarray, np.ndarray]:
    """The network's inputs (objects x height x width x RGB) for all objects of so many scenes, and their classes."""
    found = [item for number in range(scenes) for item in cut_out(render(stream, number))]
    size = (INPUT, INPUT)
    pixels = np.stack([np.asarray(picture.resize(size, Image.Resampling.BILINEAR)) for picture, _ in found])
    return pixels, np.array([label for _, label in found])


def cut(folder: Path, stream: int, scenes: int) -> None:
    """Cut-out objects, in the order of the scenes, and what they are."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    found = [item for number in range(scenes) for item in cut_out(render(stream, number))]
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["image", "label"])
        for number, (picture, label) in enumerate(found, 1):
            name = f"{number:06}.png"
            picture.save(folder / "images" / name)
            writer.writerow([name, CLASSES[label]])


# -- training


def train(path: Path) -> None:
    torch.manual_seed(SEED)
    # A scene has one object at least.
    pixels, labels = (part[:TRAINING_OBJECTS] for part in inputs(TRAINING, TRAINING_OBJECTS))
    unseen, wanted = inputs(VALIDATION, VALIDATION_SCENES)
    net = Net(object_mini().model(), training_form=True, normalised=False)
    net.to(memory_format=torch.channels_last)
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().contiguous(memory_format=torch.channels_last)
    y = torch.from_numpy(labels)

    def loss_of(index: np.ndarray, _: np.random.Generator) -> torch.Tensor:
        batch = torch.from_numpy(index)
        return functional.cross_entropy(net(x[batch]), y[batch])

    def validation() -> float:
        return float((answers(net, unseen).argmax(1) == wanted).mean())

    fit("all", RECIPE, net, len(pixels), loss_of, validation)
    model = net.model(f"object-mini, trained on {len(pixels)} objects of rendered scenes, seed {SEED}")
    model = resize(model, SIZES, SEED)
    onnx.checker.check_model(model, full_check=True)
    write(model, path)


def score(path: Path) -> float:
    """The share of right answers about the held-out set's objects."""
    import onnxruntime

    pixels, labels = inputs(HELD_OUT, HELD_OUT_IMAGES)
    engine = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    images = pixels.transpose(0, 3, 1, 2).astype(np.float32)
    found = np.concatenate([engine.run(None, {"image": image[None]})[0] for image in images])
    return float((found.argmax(1) == labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    trainer = commands.add_parser("train")
    trainer.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    trainer.add_argument("--threads", type=int, default=1)
    scorer = commands.add_parser("score")
    scorer.add_argument("model", type=Path, metavar="FILE")
    cutter = commands.add_parser("cut")
    cutter.add_argument("folder", type=Path, metavar="OUTDIR")
    cutter.add_argument("--stream", type=int, default=HELD_OUT, help="of seeds (default: the held-out set's)")
    cutter.add_argument("--scenes", type=int, default=HELD_OUT_IMAGES, help="how many (default: %(default)s)")
    args = parser.parse_args()
    if args.command == "cut":
        cut(args.folder, args.stream, args.scenes)
    elif args.command == "score":
        print(f"{score(args.model):.4f}")
    else:
        torch.set_num_threads(args.threads)
        train(args.output)


if __name__ == "__main__":
    main()
