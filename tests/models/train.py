#!/usr/bin/env python3
"""Trains vocnet-mini, vgg-mini and yolo-mini and writes them; see MODELS.md.

    train.py vocnet-mini -o vocnet-mini.onnx
    train.py vgg-mini -o vgg-mini.onnx
    train.py yolo-mini -o yolo-mini.onnx [--scenes FILE]     FILE keeps the rendered training scenes for the next time
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Callable

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional

from graph import write
from networks import PIXEL
from scenes import CLASSES, SIDE, TRAINING, VALIDATION, Box, Scene, render_many
from scores import BOXES, GRID, detection_f1, f_score
from trained import TRAINED, Net, Sizes, resize

SEED = 1
MOST_BOXES = 4
VALIDATION_IMAGES = 500

# What the activations that enter an LRN are scaled to at first. The original keeps pixels unscaled, and its LRN only
# does something because activations are large there.
LIVELY = 100.0


@dataclass(frozen=True)
class Recipe:
    epochs: int
    rate: float
    decay: float = 0.01
    batch: int = 64


LABELS = Recipe(epochs=6, rate=4e-3)
# Fewer epochs, because thirteen convolutions take longer.
VGG_LABELS = Recipe(epochs=3, rate=4e-3)
DROPOUT = 0.1

# yolo-mini in two parts: its convolutions, then the fully connected layers on the feature maps of so many mirrored
# and turned copies of each scene.
CONVOLUTIONS = Recipe(epochs=6, rate=4e-3)
FULLY_CONNECTED = Recipe(epochs=8, rate=4e-3, batch=256)
COPIES = 4

# Chosen on validation scenes so that reduced numerics cost something, and some layers far more than others. Batch
# normalisation leaves activations near 1; yolo-mini gets back those of pixels that were never divided by PIXEL. For
# vgg-mini nothing was chosen: it has those of vocnet-mini.
SIZES = {
    "vocnet-mini": Sizes(first=1.0, growth=1.0, spread=0.9),
    "vgg-mini": Sizes(first=1.0, growth=1.0, spread=0.9),
    "yolo-mini": Sizes(first=PIXEL, growth=1.13, spread=0.6),
}


# -- data


@dataclass(frozen=True)
class Data:
    """Pixels as they come out of the decoder, and `MOST_BOXES` rows for each image: middle, size (both as parts of
    the image) and class, or -1 where there is no more object."""

    pixels: np.ndarray
    boxes: torch.Tensor

    @classmethod
    def of(cls, scenes: list[Scene]) -> Data:
        boxes = torch.full((len(scenes), MOST_BOXES, 5), -1.0)
        for rows, scene in zip(boxes, scenes):
            for row, box in zip(rows, scene.boxes, strict=False):
                place = [box.x + box.width / 2, box.y + box.height / 2, box.width, box.height]
                row[:] = torch.tensor([*(value / SIDE for value in place), box.label])
        return cls(np.stack([scene.pixels() for scene in scenes]), boxes)

    def batch(self, index: np.ndarray, rng: np.random.Generator | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Images and boxes; with `rng`, mirrored and turned by right angles at random, and brighter or darker."""
        x = torch.from_numpy(self.pixels[index]).permute(0, 3, 1, 2).float()
        boxes = self.boxes[torch.from_numpy(index)].clone()
        if rng is None:
            return x, boxes
        there = boxes[..., 4] >= 0
        for axis in (0, 1):
            if rng.random() < 0.5:
                x = x.flip(3 - axis)
                boxes[..., axis] = torch.where(there, 1.0 - boxes[..., axis], boxes[..., axis])
        if rng.random() < 0.5:
            x = x.transpose(2, 3)
            boxes = boxes[..., [1, 0, 3, 2, 4]]
        gain = torch.from_numpy(rng.uniform(0.85, 1.15, (len(index), 1, 1, 1)).astype(np.float32))
        return (x * gain).clamp_(max=255.0).contiguous(memory_format=torch.channels_last), boxes


def training_data(count: int, kept: Path | None) -> Data:
    """Rendered, or taken from `kept` if that holds as many."""
    if kept and kept.exists():
        with np.load(kept) as file:
            if len(file["pixels"]) == count:
                return Data(file["pixels"], torch.from_numpy(file["boxes"]))
    data = Data.of(render_many(TRAINING, count))
    if kept:
        np.savez(kept, pixels=data.pixels, boxes=data.boxes.numpy())
    return data


# -- losses


def label_loss(answers: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    labels = boxes[..., 4].long()
    wanted = torch.zeros(len(boxes), len(CLASSES) + 1)
    wanted.scatter_(1, torch.where(labels < 0, len(CLASSES), labels), 1.0)
    return functional.binary_cross_entropy_with_logits(answers, wanted[:, :-1])


def detection_loss(answers: torch.Tensor, boxes: torch.Tensor, logits: bool = False) -> torch.Tensor:
    """YOLO's sum of squares (Redmon et al. 2016, equation 3), with its weights 5 and 0.5. With `logits`, classes and
    confidences are judged by their cross entropy instead."""
    count, classes = len(answers), len(CLASSES)
    probabilities, confidences, places = split(answers)
    image, row = (boxes[..., 4] >= 0).nonzero(as_tuple=True)
    x, y, width, height, label = boxes[image, row].unbind(1)
    column, line = (x * GRID).long(), (y * GRID).long()
    cell = line * GRID + column
    wanted = torch.stack([x * GRID - column, y * GRID - line, width.sqrt(), height.sqrt()], 1)

    guessed = places[image, cell]
    with torch.no_grad():
        overlap = overlaps(guessed, wanted[:, None])
        best = overlap.argmax(1)
        target = torch.zeros_like(confidences)
        target[image, cell, best] = overlap.amax(1)
        weight = torch.full_like(confidences, 0.5)
        weight[image, cell, best] = 1.0
    responsible = guessed[torch.arange(len(best)), best]
    loss = 5.0 * (responsible - wanted).square().sum()
    if logits:
        errors = functional.binary_cross_entropy_with_logits(confidences, target, reduction="none")
        loss = loss + functional.cross_entropy(probabilities[image, cell], label.long(), reduction="sum")
    else:
        errors = (confidences - target).square()
        one_hot = functional.one_hot(label.long(), classes)
        loss = loss + (probabilities[image, cell] - one_hot).square().sum()
    return (loss + (weight * errors).sum()) / count


def split(answers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Classes, confidences and places, each by image and cell; see `scores.detect` for the layout."""
    count, cells, classes = len(answers), GRID * GRID, len(CLASSES)
    probabilities, confidences, places = answers.split([cells * classes, cells * BOXES, cells * BOXES * 4], 1)
    return (
        probabilities.reshape(count, cells, classes),
        confidences.reshape(count, cells, BOXES),
        places.reshape(count, cells, BOXES, 4),
    )


def overlaps(guessed: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """IoU of boxes given as YOLO answers them, in the same cell."""

    def corners(places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        middle, half = places[..., :2] / GRID, places[..., 2:].square() / 2
        return middle - half, middle + half

    (a, b), (c, d) = corners(guessed), corners(wanted)
    shared = (torch.minimum(b, d) - torch.maximum(a, c)).clamp(min=0).prod(-1)
    return shared / ((b - a).prod(-1) + (d - c).prod(-1) - shared).clamp(min=1e-9)


# -- training


def fit(
    name: str,
    recipe: Recipe,
    module: nn.Module,
    count: int,
    loss_of: Callable[[np.ndarray, np.random.Generator], torch.Tensor],
    score: Callable[[], float],
) -> None:
    """Trains what of the module wants a gradient. `loss_of` takes the numbers of a batch out of `count`."""
    rng = np.random.default_rng(SEED)
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in parameters if parameter.dim() > 1]
    vectors = [parameter for parameter in parameters if parameter.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=recipe.rate)
    batches = count // recipe.batch
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.rate, total_steps=recipe.epochs * batches, pct_start=0.15
    )
    begin = time.perf_counter()
    for epoch in range(1, recipe.epochs + 1):
        module.train()
        order = rng.permutation(count)
        total = 0.0
        for step in range(batches):
            loss = loss_of(np.sort(order[step * recipe.batch : (step + 1) * recipe.batch]), rng)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 10.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        module.eval()
        minutes = (time.perf_counter() - begin) / 60
        line = f"{name}, epoch {epoch}: loss {total / batches:.4f}, validation {score():.4f}, {minutes:.1f} min"
        print(line, flush=True)


@torch.no_grad()
def answers(net: nn.Module, pixels: np.ndarray, batch: int = 100) -> np.ndarray:
    parts = np.split(pixels, range(batch, len(pixels), batch))
    return np.concatenate([net(torch.from_numpy(part).permute(0, 3, 1, 2).float()).numpy() for part in parts])


def train_labels(recipe: Recipe, net: Net, data: Data, pixels: np.ndarray, truth: list[list[Box]]) -> None:
    net.dropout = DROPOUT
    for before, node in zip(net.nodes, net.nodes[2:]):
        if node.op == "LRN":
            nn.init.constant_(net.norms[before.name].weight, LIVELY)

    def loss_of(index: np.ndarray, rng: np.random.Generator) -> torch.Tensor:
        x, boxes = data.batch(index, rng)
        # The loss has the sigmoid in itself.
        return label_loss(net(x, upto=-1), boxes)

    fit("all", recipe, net, len(data.pixels), loss_of, lambda: f_score(answers(net, pixels), truth))


class Helper(nn.Module):
    """A 1 x 1 convolution that has to find the objects in a feature map, cell by cell; thrown away afterwards. With
    helpers in the middle and at the end the convolutions learn fast, which through two fully connected layers they
    do not."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, len(CLASSES) + BOXES * 5, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """As yolo-mini answers, but for the scale of classes and confidences."""
        parts = self.conv(features).permute(0, 2, 3, 1).split([len(CLASSES), BOXES, BOXES * 4], 3)
        return torch.cat([part.flatten(1) for part in parts], 1)


def train_yolo(net: Net, data: Data, pixels: np.ndarray, truth: list[list[Box]]) -> None:
    names = [node.name for node in net.nodes]
    middle, end = (names.index(name) + 1 for name in ("C16_relu", "C24_relu"))
    helpers = nn.ModuleList(Helper(net.norms[name].num_features) for name in ("C16", "C24"))
    both = nn.ModuleDict({"net": net, "helpers": helpers}).to(memory_format=torch.channels_last)

    def maps(x: torch.Tensor) -> list[torch.Tensor]:
        first = net(x, upto=middle)
        return [first, net(first, since=middle, upto=end)]

    def score() -> float:
        return detection_f1(answers(net, pixels), truth)

    def helper_score() -> float:
        found = torch.from_numpy(answers(lambda x: helpers[1](maps(x)[1]), pixels))
        probabilities, confidences, places = split(found)
        parts = [probabilities.softmax(-1), confidences.sigmoid(), places]
        return detection_f1(torch.cat([part.flatten(1) for part in parts], 1).numpy(), truth)

    def convolutions_loss(index: np.ndarray, rng: np.random.Generator) -> torch.Tensor:
        x, boxes = data.batch(index, rng)
        return sum(detection_loss(helper(features), boxes, logits=True) for helper, features in zip(helpers, maps(x)))

    heads = [parameter for name, parameter in net.named_parameters() if "F1" in name or "F2" in name]
    heads = [parameter for parameter in heads if parameter.requires_grad]
    trunk = [parameter for parameter in both.parameters() if parameter.requires_grad]
    trunk = [parameter for parameter in trunk if all(parameter is not head for head in heads)]
    learn(heads, False)
    fit("convolutions", CONVOLUTIONS, both, len(data.pixels), convolutions_loss, helper_score)

    learn(heads, True)
    learn(trunk, False)
    features, places = feature_maps(lambda x: maps(x)[1], data)

    def head_loss(index: np.ndarray, rng: np.random.Generator) -> torch.Tensor:
        index = torch.from_numpy(index)
        return detection_loss(net(features[index].float(), since=end), places[index])

    fit("fully connected", FULLY_CONNECTED, net, len(features), head_loss, score)


def learn(parameters: list[nn.Parameter], wanted: bool) -> None:
    for parameter in parameters:
        parameter.requires_grad_(wanted)


@torch.no_grad()
def feature_maps(maps: Callable[[torch.Tensor], torch.Tensor], data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(SEED)
    features, places = [], []
    for _ in range(COPIES):
        for part in np.array_split(np.arange(len(data.pixels)), len(data.pixels) // 100):
            x, boxes = data.batch(part, rng)
            features.append(maps(x).contiguous().half())
            places.append(boxes)
    return torch.cat(features), torch.cat(places)


TRAIN = {
    "vocnet-mini": partial(train_labels, LABELS),
    "vgg-mini": partial(train_labels, VGG_LABELS),
    "yolo-mini": train_yolo,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=TRAIN)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--images", type=int, default=60_000, help="training scenes (default: %(default)s)")
    parser.add_argument("--scenes", type=Path, metavar="FILE", help="keeps the rendered training scenes (.npz)")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    data = training_data(args.images, args.scenes)
    validation = render_many(VALIDATION, VALIDATION_IMAGES)
    net = Net(TRAINED[args.model]().model(), training_form=True)
    net.to(memory_format=torch.channels_last)
    TRAIN[args.model](net, data, Data.of(validation).pixels, [scene.boxes for scene in validation])
    model = net.model(f"{args.model}, trained on {args.images} rendered scenes, seed {SEED}")
    model = resize(model, SIZES[args.model], SEED)
    onnx.checker.check_model(model, full_check=True)
    write(model, args.output)


if __name__ == "__main__":
    main()
