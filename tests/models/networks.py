"""The five networks, at any width and resolution.

Layers are named as in the papers' figures: C1, P1, C2 ... F1, F2; what follows a layer carries its name (C1_relu).
All take raw pixels, 0 to 255. The weights are random, so the answers mean nothing; structure, shapes, arithmetic and
the scale of the activations are those of the real networks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Callable

from graph import DEFAULT_OPSET, Dim, Graph, Tensor

# Averages of many positive numbers near 4 reach the last layer of ResNet and Inception and add up; without this the
# softmax would be certain of one class whatever the image.
AFTER_GLOBAL_POOL = 0.25

# Root mean square of a pixel that is uniform over 0..255: divides the first layer's weights, so that activations
# start near 1.
PIXEL = 147.0


@dataclass(frozen=True)
class Scale:
    """What may be chosen about a network. `None` leaves the choice to the network."""

    width: Fraction = Fraction(1)
    input: int | None = None
    classes: int | None = None
    hidden: int | None = None
    head: str | None = None
    seed: int = 1
    opset: int = DEFAULT_OPSET
    batch: Dim = 1
    external: Path | None = field(default=None, compare=False)

    def channels(self, full: int) -> int:
        """Even, because AlexNet's grouped convolutions halve them."""
        return max(2, 2 * round(full * self.width / 2))


def start(name: str, scale: Scale, side: int) -> tuple[Graph, Tensor]:
    graph = Graph(name, scale.seed, scale.opset, scale.batch, scale.external)
    side = scale.input or side
    return graph, graph.input("image", (3, side, side))


def finish(graph: Graph, x: Tensor, head: str) -> Graph:
    """The last activation, if any, belongs to the last layer."""
    if head != "none":
        x = graph.same({"softmax": "Softmax", "sigmoid": "Sigmoid"}[head], x, f"{x.name}_{head}")
    graph.output(x)
    return graph


# YOLO v1 (Redmon et al. 2016, figure 3): kernel and channels of each convolution, "s2" strides, "P" pools.
YOLO = [
    (7, 64, "s2"), "P", (3, 192), "P",
    (1, 128), (3, 256), (1, 256), (3, 512), "P",
    *[(1, 256), (3, 512)] * 4, (1, 512), (3, 1024), "P",
    *[(1, 512), (3, 1024)] * 2, (3, 1024), (3, 1024, "s2"), (3, 1024), (3, 1024),
]  # fmt: skip

# A grid of 7 x 7 cells, each with 2 boxes of 5 numbers.
YOLO_CELLS, YOLO_BOXES = 7 * 7, 2 * 5


def yolo_small(scale: Scale) -> Graph:
    """24 convolutions, 4 poolings, 2 fully connected, leaky ReLU 0.1. The answer keeps its 7 x 7 grid at every
    resolution, because the last layer is fully connected and decoders count on it."""
    slope = 0.1
    gain = math.sqrt(2.0 / (1.0 + slope * slope))
    graph, x = start("yolo-small", scale, 448)
    for layer in YOLO:
        if layer == "P":
            x = graph.pool(x, f"P{graph.counts.pool + 1}", kernel=2, stride=2)
            continue
        kernel, channels, *stride = layer
        first = graph.counts.conv == 0
        x = graph.conv(
            x,
            f"C{graph.counts.conv + 1}",
            scale.channels(channels),
            kernel,
            stride=2 if stride else 1,
            gain=gain / PIXEL if first else gain,
        )
        x = graph.relu(x, slope)
    x = graph.flatten(x)
    x = graph.relu(graph.fc(x, "F1", scale.hidden or scale.channels(4096), gain), slope)
    x = graph.dropout(x, "F1_dropout")
    x = graph.fc(x, "F2", YOLO_CELLS * (YOLO_BOXES + (scale.classes or 20)), gain=1.0)
    return finish(graph, x, scale.head or "none")


def alexnet(scale: Scale) -> Graph:
    """AlexNet as Caffe published it, with the 20 independent answers of VocNet."""
    graph, x = start("alexnet", scale, 227)
    he = math.sqrt(2.0)
    # The original keeps pixels unscaled, and its LRN only does something because activations are large there. So
    # they stay near `lively` up to the second LRN, and the third convolution brings them down to 1.
    lively = 50.0

    x = graph.relu(graph.conv(x, "C1", scale.channels(96), 11, stride=4, pad=0, gain=he * lively / PIXEL))
    x = graph.pool(graph.lrn(x, "C1_lrn"), "P1", 3, 2)
    x = graph.relu(graph.conv(x, "C2", scale.channels(256), 5, groups=2))
    x = graph.pool(graph.lrn(x, "C2_lrn"), "P2", 3, 2)
    x = graph.relu(graph.conv(x, "C3", scale.channels(384), 3, gain=he / lively))
    x = graph.relu(graph.conv(x, "C4", scale.channels(384), 3, groups=2))
    x = graph.relu(graph.conv(x, "C5", scale.channels(256), 3, groups=2))
    x = graph.pool(x, "P3", 3, 2)
    x = classifier(graph, scale, x, scale.classes or 20)
    return finish(graph, x, scale.head or "sigmoid")


def classifier(graph: Graph, scale: Scale, x: Tensor, classes: int) -> Tensor:
    """The three fully connected layers that AlexNet and VGG end in."""
    x = graph.flatten(x)
    for name in ("F1", "F2"):
        x = graph.relu(graph.fc(x, name, scale.hidden or scale.channels(4096)))
        x = graph.dropout(x, f"{name}_dropout")
    return graph.fc(x, "F3", classes, gain=1.0)


def vgg16(scale: Scale) -> Graph:
    graph, x = start("vgg16", scale, 224)
    for block, (depth, channels) in enumerate([(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)], 1):
        for _ in range(depth):
            gain = math.sqrt(2.0) / (PIXEL if graph.counts.conv == 0 else 1.0)
            x = graph.relu(graph.conv(x, f"C{graph.counts.conv + 1}", scale.channels(channels), 3, gain=gain))
        x = graph.pool(x, f"P{block}", 2, 2)
    x = classifier(graph, scale, x, scale.classes or 1000)
    return finish(graph, x, scale.head or "softmax")


def resnet50(scale: Scale) -> Graph:
    """Bottlenecks B1 to B16 with their batch norms kept apart, as exporters leave them when asked to."""
    graph, x = start("resnet50", scale, 224)
    x = conv_bn(graph, x, "C1", scale.channels(64), 7, stride=2, gain=math.sqrt(2.0) / PIXEL)
    x = graph.pool(graph.relu(x), "P1", 3, 2, pad=1)
    block = 0
    for stage, (depth, channels) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)]):
        for position in range(depth):
            block += 1
            stride = 2 if stage > 0 and position == 0 else 1
            x = bottleneck(graph, x, f"B{block}", scale.channels(channels), scale.channels(4 * channels), stride)
    x = graph.flatten(graph.global_pool(x, "P2"))
    x = graph.fc(x, "F1", scale.classes or 1000, gain=AFTER_GLOBAL_POOL)
    return finish(graph, x, scale.head or "softmax")


def bottleneck(graph: Graph, x: Tensor, name: str, inner: int, outer: int, stride: int) -> Tensor:
    shortcut = x
    y = graph.relu(conv_bn(graph, x, f"{name}_C1", inner, 1))
    y = graph.relu(conv_bn(graph, y, f"{name}_C2", inner, 3, stride))
    # Sixteen sums of equal parts would multiply the variance by 2^16; a quiet branch keeps activations in range,
    # which training does in a real ResNet.
    y = conv_bn(graph, y, f"{name}_C3", outer, 1, scale=0.4)
    if stride != 1 or x.shape[0] != outer:
        shortcut = conv_bn(graph, x, f"{name}_down", outer, 1, stride, gain=1.0)
    return graph.relu(graph.add(y, shortcut, f"{name}_add"))


def conv_bn(
    graph: Graph,
    x: Tensor,
    name: str,
    channels: int,
    kernel: int,
    stride: int = 1,
    gain: float = math.sqrt(2.0),
    scale: float = 1.0,
) -> Tensor:
    x = graph.conv(x, name, channels, kernel, stride, gain=gain, bias=False)
    return graph.batch_norm(x, f"{name}_bn", scale)


# GoogLeNet's blocks 3a, 3b and 4a (Szegedy et al. 2015, table 1): 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool.
INCEPTION = {"I1": (64, 96, 128, 16, 32, 32), "I2": (128, 128, 192, 32, 96, 64), "I3": (192, 96, 208, 16, 48, 64)}


def inception(scale: Scale) -> Graph:
    """GoogLeNet's stem and three blocks, then a split of which one half is convolved and the other passes by: cuts
    through it have two tensors alive, cuts through a block up to four."""
    graph, x = start("inception", scale, 224)
    x = graph.relu(graph.conv(x, "C1", scale.channels(64), 7, stride=2, gain=math.sqrt(2.0) / PIXEL))
    x = graph.pool(x, "P1", 3, 2, pad=1)
    x = graph.relu(graph.conv(x, "C2", scale.channels(64), 1))
    x = graph.relu(graph.conv(x, "C3", scale.channels(192), 3))
    x = graph.pool(x, "P2", 3, 2, pad=1)
    x = inception_block(graph, x, "I1", scale)
    x = inception_block(graph, x, "I2", scale)
    x = graph.pool(x, "P3", 3, 2, pad=1)
    # Later Inceptions average where the first took the maximum; one block does, so that both kinds are met.
    x = inception_block(graph, x, "I3", scale, pool="AveragePool")
    half = x.shape[0] // 2
    left, right = graph.split(x, "S1", [half, x.shape[0] - half])
    left = graph.relu(graph.conv(left, "C4", scale.channels(128), 3))
    x = graph.concat([left, right], "S1_concat")
    x = graph.dropout(graph.flatten(graph.global_pool(x, "P4")), "P4_dropout")
    x = graph.fc(x, "F1", scale.classes or 1000, gain=AFTER_GLOBAL_POOL)
    return finish(graph, x, scale.head or "softmax")


def inception_block(graph: Graph, x: Tensor, name: str, scale: Scale, pool: str = "MaxPool") -> Tensor:
    def conv(source: Tensor, suffix: str, channels: int, kernel: int) -> Tensor:
        return graph.relu(graph.conv(source, f"{name}_{suffix}", scale.channels(channels), kernel))

    one, three_reduce, three, five_reduce, five, pooled = INCEPTION[name]
    branches = [
        conv(x, "1x1", one, 1),
        conv(conv(x, "3x3_reduce", three_reduce, 1), "3x3", three, 3),
        conv(conv(x, "5x5_reduce", five_reduce, 1), "5x5", five, 5),
        conv(graph.pool(x, f"{name}_pool", 3, 1, pad=1, op=pool), "pool_1x1", pooled, 1),
    ]
    return graph.concat(branches, f"{name}_concat")


NETWORKS: dict[str, Callable[[Scale], Graph]] = {
    "yolo-small": yolo_small,
    "alexnet": alexnet,
    "vgg16": vgg16,
    "resnet50": resnet50,
    "inception": inception,
}

# The committed instances: small enough for a repository and for a test that runs each of them hundreds of times,
# large enough that layers differ in cost as they do at full scale. Together at most 3 MB.
SMALL = {
    "yolo-small": Scale(width=Fraction(1, 16), input=112, hidden=32),
    "alexnet": Scale(width=Fraction(3, 16), input=115, hidden=128),
    "vgg16": Scale(width=Fraction(1, 16), input=64, hidden=64, classes=20),
    "resnet50": Scale(width=Fraction(1, 16), input=64, classes=20),
    "inception": Scale(width=Fraction(3, 16), input=64, classes=20),
}
