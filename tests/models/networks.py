"""The networks, at any width and resolution.

Layers are named as in the papers' figures: C1, P1, C2 ... F1, F2; what follows a layer carries its name (C1_relu).
Those that take pictures take raw pixels, 0 to 255. The weights are random, so the answers mean nothing; structure,
shapes, arithmetic and the scale of the activations are those of the real networks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Callable

import numpy as np

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
    blocks: int | None = None

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


def autoencoder(scale: Scale) -> Graph:
    """A picture to a code and back: convolutions that halve its sides, two fully connected layers around the code, and
    transposed convolutions that double them. Both ends are large, and the middle is small (jointdnn figure 2b)."""
    graph, x = start("autoencoder", scale, 128)
    channels = (64, 128, 256, 512)
    for number, count in enumerate(channels, 1):
        gain = math.sqrt(2.0) / (PIXEL if number == 1 else 1.0)
        x = graph.relu(graph.conv(x, f"C{number}", scale.channels(count), 4, stride=2, pad=1, gain=gain))
    spread = x.shape
    x = graph.fc(graph.flatten(x), "F1", scale.hidden or scale.channels(512), gain=1.0)
    x = graph.relu(graph.fc(x, "F2", math.prod(spread)))
    x = graph.reshape(x, "F2_reshape", spread)
    for number, count in enumerate(reversed(channels[:-1]), 1):
        x = graph.relu(graph.deconv(x, f"U{number}", scale.channels(count), 4, stride=2, pad=1))
    x = graph.deconv(x, f"U{len(channels)}", 3, 4, stride=2, pad=1, gain=1.0)
    return finish(graph, x, scale.head or "sigmoid")


# What a chair is asked for by: which of 809, from where (4 values), and in which of 12 ways it is changed.
CHAIR_WISH = 809 + 4 + 12


def chair(scale: Scale) -> Graph:
    """A picture from a few values, in the shape of the network that generates chairs (Dosovitskiy et al. 2015): fully
    connected layers, then transposed convolutions that double the sides, each but the last followed by a convolution.
    The input is small and the output large (jointdnn figure 2c). `input` is the picture's side."""
    side = scale.input or 128
    if side % 16:
        raise SystemExit("chair: a side is a multiple of 16, because four layers double it")
    graph = Graph("chair", scale.seed, scale.opset, scale.batch, scale.external)
    # Values go from 0 to 255 as pixels do, so that one check asks all networks.
    x = graph.input("wish", (scale.channels(CHAIR_WISH),))
    x = graph.relu(graph.fc(x, "F1", scale.channels(512), gain=math.sqrt(2.0) / PIXEL))
    x = graph.relu(graph.fc(x, "F2", scale.channels(1024)))
    x = graph.relu(graph.fc(x, "F3", scale.channels(1024)))
    spread = (scale.channels(256), side // 16, side // 16)
    x = graph.reshape(graph.relu(graph.fc(x, "F4", math.prod(spread))), "F4_reshape", spread)
    for number, count in enumerate((256, 92, 48), 1):
        x = graph.relu(graph.deconv(x, f"U{number}", scale.channels(count), 4, stride=2, pad=1))
        x = graph.relu(graph.conv(x, f"C{number}", scale.channels(count), 3))
    x = graph.deconv(x, "U4", 3, 4, stride=2, pad=1, gain=1.0)
    return finish(graph, x, scale.head or "sigmoid")


def pix2pix(scale: Scale) -> Graph:
    """The U-Net of Pix2Pix (Isola et al. 2017, section 6.1.1): convolutions C1, C2 ... that halve the sides down to one
    pixel, and as many transposed ones U1, U2 ... back, each of which also takes what the convolution of its size made:
    in the middle as many tensors are alive as there are convolutions."""
    graph, x = start("pix2pix", scale, 256)
    side = x.shape[1]
    depth = side.bit_length() - 1
    if side != 2**depth or not 3 <= depth <= 8:
        raise SystemExit("pix2pix: a side is 8, 16, 32, 64, 128 or 256, because each layer halves it down to 1")
    channels = [scale.channels(64 * min(8, 2**level)) for level in range(depth)]
    slope = 0.2
    gain = math.sqrt(2.0 / (1.0 + slope * slope))
    skips: list[Tensor] = []
    for number, count in enumerate(channels, 1):
        # No batch norm in the first, nor in the last, whose channels are one pixel each.
        x = graph.conv(x, f"C{number}", count, 4, stride=2, pad=1, gain=gain / (PIXEL if number == 1 else 1.0))
        if 1 < number < depth:
            x = graph.batch_norm(x, f"C{number}_bn")
        x = graph.relu(x, slope)
        skips.append(x)
    for number in range(1, depth):
        count = channels[depth - 1 - number]
        x = graph.batch_norm(graph.deconv(x, f"U{number}", count, 4, stride=2, pad=1), f"U{number}_bn")
        if number <= 3:
            x = graph.dropout(x, f"U{number}_dropout")
        x = graph.concat([graph.relu(x), skips[depth - 1 - number]], f"U{number}_concat")
    x = graph.deconv(x, f"U{depth}", 3, 4, stride=2, pad=1, gain=1.0)
    return finish(graph, x, scale.head or "sigmoid")


# 26 coefficients of a frame of sound and of the 9 frames before and after it.
SPEECH_FRAME = 26 * (2 * 9 + 1)


def deep_speech(scale: Scale) -> Graph:
    """A recogniser of speech in the shape of Deep Speech (Hannun et al. 2014), with an LSTM where the paper has a plain
    recurrent layer: for each frame three fully connected layers (ReLU, clipped at 20), a recurrent one over the frames,
    two fully connected ones, and letters' probabilities. `input` is the number of frames."""
    frames = scale.input or 100
    graph = Graph("deep-speech", scale.seed, scale.opset, scale.batch, scale.external)
    # Values go from 0 to 255 as pixels do, so that one check asks all networks.
    x = graph.input("sound", (frames, scale.channels(SPEECH_FRAME)))
    hidden = scale.hidden or scale.channels(2048)
    for number in (1, 2, 3):
        gain = math.sqrt(2.0) / (PIXEL if number == 1 else 1.0)
        x = graph.clip(graph.fc_each(x, f"F{number}", hidden, gain), 0.0, 20.0)
    x = graph.lstm(x, "L1", hidden)
    x = graph.clip(graph.fc_each(x, "F4", hidden), 0.0, 20.0)
    # 26 letters, a space, an apostrophe and the blank of CTC.
    x = graph.fc_each(x, "F5", scale.classes or 29, gain=2.0)
    return finish(graph, x, scale.head or "softmax")


# MobileNetV3-Small (Howard et al. 2019, table 2): kernel, channels inside and out, whether channels are weighed
# (squeeze and excite), whether the activation is hard swish, and the stride.
MOBILENET = [
    (3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2), *[(5, 240, 40, True, True, 1)] * 2,
    (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2), *[(5, 576, 96, True, True, 1)] * 2,
]  # fmt: skip


def mobilenet_v3(scale: Scale) -> Graph:
    """MobileNetV3-Small: blocks B1 to B11 that widen (C1), convolve each channel by itself (C2), weigh channels by what
    a small network makes of their means (pool, S1, S2) and narrow again (C3)."""
    graph, x = start("mobilenet-v3", scale, 224)
    x = conv_bn(graph, x, "C1", scale.channels(16), 3, stride=2, gain=math.sqrt(2.0) / PIXEL)
    x = graph.same("HardSwish", x, "C1_swish")
    for number, (kernel, inner, outer, weighs, swish, stride) in enumerate(MOBILENET, 1):
        block = (kernel, scale.channels(inner), scale.channels(outer), weighs, swish, stride)
        x = inverted_residual(graph, x, f"B{number}", block)
    x = graph.same("HardSwish", conv_bn(graph, x, "C2", scale.channels(576), 1), "C2_swish")
    x = graph.flatten(graph.global_pool(x, "P1"))
    x = graph.same("HardSwish", graph.fc(x, "F1", scale.hidden or scale.channels(1024)), "F1_swish")
    x = graph.fc(x, "F2", scale.classes or 1000)
    return finish(graph, x, scale.head or "softmax")


def inverted_residual(graph: Graph, x: Tensor, name: str, block: tuple[int, int, int, bool, bool, int]) -> Tensor:
    kernel, inner, outer, weighs, swish, stride = block

    # What keeps the mean square of activations through either: hard swish lets less through.
    gain = 1.8 if swish else math.sqrt(2.0)

    def activation(y: Tensor) -> Tensor:
        return graph.same("HardSwish", y, f"{y.name}_swish") if swish else graph.relu(y)

    y = activation(conv_bn(graph, x, f"{name}_C1", inner, 1, gain=1.0))
    y = graph.conv(y, f"{name}_C2", inner, kernel, stride, groups=inner, gain=gain, bias=False)
    y = activation(graph.batch_norm(y, f"{name}_C2_bn"))
    if weighs:
        weight = graph.global_pool(y, f"{name}_pool")
        weight = graph.relu(graph.conv(weight, f"{name}_S1", max(2, inner // 4), 1))
        weight = graph.conv(weight, f"{name}_S2", inner, 1, gain=1.0)
        weight = graph.same("HardSigmoid", weight, f"{name}_S2_sigmoid", alpha=1 / 6, beta=0.5)
        y = Tensor(graph.node("Mul", [y.name, weight.name], f"{name}_weighed"), y.shape)
    is_residual = stride == 1 and x.shape[0] == outer
    # Weights of channels are near one half. As in ResNet, a quiet branch keeps activations in range.
    narrowing = 2.0 * gain if weighs else gain
    y = conv_bn(graph, y, f"{name}_C3", outer, 1, gain=narrowing, scale=0.4 if is_residual else 1.0)
    return graph.add(y, x, f"{name}_add") if is_residual else y


def bert(scale: Scale) -> Graph:
    """An encoder of text in the shape of BERT-base (Devlin et al. 2019), with nodes named as PyTorch's exporter names
    those of Hugging Face's model: embeddings, twelve blocks of attention and a network of two layers, each with a sum
    and a normalisation behind it, and a classifier of the first word. `input` is the number of words."""
    words = scale.input or 128
    hidden, blocks = scale.channels(768), 12
    heads = max(2, hidden // 64)
    graph = Graph("bert", scale.seed, scale.opset, scale.batch, scale.external)
    tokens = graph.tokens("input_ids", words)
    table = graph.weight("embeddings.word.weight", graph.uniform((scale.channels(30522), hidden), -1.0, 1.0))
    place = graph.weight("embeddings.position.weight", graph.uniform((words, hidden), -1.0, 1.0))
    x = graph.node("Gather", [table, tokens.name], "/embeddings/word_embeddings/Gather")
    x = Tensor(graph.node("Add", [x, place], "/embeddings/Add"), (words, hidden))
    x = graph.layer_norm(x, "/embeddings/LayerNorm/LayerNormalization")
    for block in range(blocks):
        x = encoder_block(graph, x, f"/encoder/layer.{block}", heads, scale.hidden or 4 * hidden)
    place = graph.weight("/pooler.first", np.array(0, dtype=np.int64))
    first = graph.node("Gather", [x.name, place], "/pooler/Gather", axis=1)
    x = graph.fc(Tensor(first, (hidden,)), "/pooler/dense/Gemm", hidden, gain=1.0)
    x = graph.same("Tanh", x, "/pooler/activation/Tanh")
    return finish(graph, graph.fc(x, "/classifier/Gemm", scale.classes or 2), scale.head or "none")


def encoder_block(graph: Graph, x: Tensor, name: str, heads: int, inner: int) -> Tensor:
    words, hidden = x.shape
    each = hidden // heads

    def linear(source: Tensor, part: str, features: int, gain: float = 1.0) -> Tensor:
        part = f"{name}/{part}"
        return graph.fc_each(source, part, features, gain, names=(f"{part}/MatMul", f"{part}/Add"))

    def by_head(part: str, order: list[int], suffix: str) -> Tensor:
        y = linear(x, f"attention/self/{part}", hidden)
        y = graph.reshape(y, f"{name}/attention/self/Reshape{suffix}", (words, heads, each))
        return graph.transpose(y, f"{name}/attention/self/Transpose{suffix}", order)

    query, key = by_head("query", [1, 0, 2], ""), by_head("key", [1, 2, 0], "_1")
    scores = graph.product(query, key, f"{name}/attention/self/MatMul")
    root = graph.setting(f"{name}.root", math.sqrt(each))
    scores = Tensor(graph.node("Div", [scores.name, root], f"{name}/attention/self/Div"), scores.shape)
    scores = graph.same("Softmax", scores, f"{name}/attention/self/Softmax", axis=-1)
    y = graph.product(scores, by_head("value", [1, 0, 2], "_2"), f"{name}/attention/self/MatMul_1")
    y = graph.transpose(y, f"{name}/attention/self/Transpose_3", [1, 0, 2])
    y = graph.reshape(y, f"{name}/attention/self/Reshape_3", (words, hidden))
    y = graph.add(linear(y, "attention/output/dense", hidden), x, f"{name}/attention/output/Add")
    x = graph.layer_norm(y, f"{name}/attention/output/LayerNorm/LayerNormalization")
    y = linear(x, "intermediate/dense", inner, math.sqrt(2.0))
    y = gelu(graph, y, f"{name}/intermediate/intermediate_act_fn")
    y = graph.add(linear(y, "output/dense", hidden), x, f"{name}/output/Add")
    return graph.layer_norm(y, f"{name}/output/LayerNorm/LayerNormalization")


def gelu(graph: Graph, x: Tensor, name: str) -> Tensor:
    """x (1 + erf(x / sqrt 2)) / 2, in the nodes that exporters write before operator set 20."""
    settings = {"root": math.sqrt(2.0), "one": 1.0, "half": 0.5}
    root, one, half = (graph.setting(f"{name}.{key}", value) for key, value in settings.items())
    y = graph.node("Div", [x.name, root], f"{name}/Div")
    y = graph.node("Add", [graph.node("Erf", [y], f"{name}/Erf"), one], f"{name}/Add")
    y = graph.node("Mul", [x.name, y], f"{name}/Mul")
    return Tensor(graph.node("Mul", [y, half], f"{name}/Mul_1"), x.shape)


def gpt2_prefill(scale: Scale) -> Graph:
    """The decoder below on a prompt of `input` words, before which there is nothing."""
    return gpt2("gpt2-prefill", scale, words=scale.input or 128, past=0)


def gpt2_decode(scale: Scale) -> Graph:
    """The decoder below on one word, behind `input` others whose keys and values it is given."""
    return gpt2("gpt2-decode", scale, words=1, past=scale.input or 128)


def gpt2(name: str, scale: Scale, words: int, past: int) -> Graph:
    """A decoder of text in the shape of the small GPT-2 (Radford et al. 2019) with a cache of keys and values, whose
    inputs and outputs are named as Hugging Face's Optimum exports them, and whose nodes as PyTorch's exporter names those
    of Hugging Face's model: embeddings, twelve blocks that are normalised before they compute, and a head that shares the
    embeddings' table. There is no mask: the batch is one, and all words of the past count."""
    hidden, blocks = scale.channels(768), scale.blocks or 12
    heads = max(2, hidden // 64)
    graph = Graph(name, scale.seed, scale.opset, scale.batch, scale.external)
    tokens = graph.tokens("input_ids", words)
    vocabulary = scale.classes or round(50257 * scale.width)
    table = graph.weight("transformer.wte.weight", graph.uniform((vocabulary, hidden), -1.0, 1.0))
    places = max(words + past, round(1024 * scale.width))
    places = graph.weight("transformer.wpe.weight", graph.uniform((places, hidden), -1.0, 1.0))
    here = graph.weight("/transformer/positions", np.arange(past, past + words, dtype=np.int64))
    place = graph.node("Gather", [places, here], "/transformer/wpe/Gather")
    x = graph.node("Gather", [table, tokens.name], "/transformer/wte/Gather")
    x = Tensor(graph.node("Add", [x, place], "/transformer/Add"), (words, hidden))
    cached = [
        [
            graph.input(f"past_key_values.{block}.{part}", (heads, past, hidden // heads)) if past else None
            for part in ("key", "value")
        ]
        for block in range(blocks)
    ]
    presents = []
    for block in range(blocks):
        x, present = decoder_block(graph, x, block, heads, scale.hidden or 4 * hidden, cached[block])
        presents += present
    x = graph.layer_norm(x, "/transformer/ln_f/LayerNormalization")
    # The table turned round, which counts as no parameter again.
    turned = graph.node("Transpose", [table], "/lm_head/Transpose", perm=[1, 0])
    graph.node("MatMul", [x.name, turned], "/lm_head/MatMul", ["logits"])
    graph.counts.fc += 1
    graph.counts.multiplications += words * hidden * vocabulary
    graph.output(Tensor("logits", (words, vocabulary)))
    for present in presents:
        graph.output(present)
    return graph


def decoder_block(
    graph: Graph, x: Tensor, block: int, heads: int, inner: int, past: list[Tensor | None]
) -> tuple[Tensor, list[Tensor]]:
    """What it gives to the next block, and its keys and values."""
    words, hidden = x.shape
    each = hidden // heads
    name = f"/transformer/h.{block}"

    def linear(source: Tensor, part: str, features: int, gain: float = 1.0) -> Tensor:
        part = f"{name}/{part}"
        return graph.fc_each(source, part, features, gain, names=(f"{part}/MatMul", f"{part}/Add"))

    def by_head(part: str, suffix: str) -> Tensor:
        y = graph.reshape(Tensor(part, (words, hidden)), f"{name}/attn/Reshape{suffix}", (words, heads, each))
        return graph.transpose(y, f"{name}/attn/Transpose{suffix}", [1, 0, 2])

    def cached(part: str, suffix: str, before: Tensor | None, of: str) -> Tensor:
        present = f"present.{block}.{of}"
        now = by_head(part, suffix)
        if before is None:
            graph.node("Identity", [now.name], f"{name}/attn/Identity{suffix}", [present])
            return Tensor(present, now.shape)
        graph.node("Concat", [before.name, now.name], f"{name}/attn/Concat{suffix}", [present], axis=2)
        return Tensor(present, (heads, before.shape[1] + words, each))

    y = graph.layer_norm(x, f"{name}/ln_1/LayerNormalization")
    y = linear(y, "attn/c_attn", 3 * hidden)
    parts = [f"{name}/attn/{part}" for part in ("query", "key", "value")]
    sizes = graph.shape_constant(f"{name}/attn/Split.sizes", [hidden] * 3)
    graph.node("Split", [y.name, sizes], f"{name}/attn/Split", parts, axis=2)
    query = by_head(parts[0], "")
    key, value = cached(parts[1], "_1", past[0], "key"), cached(parts[2], "_2", past[1], "value")
    turned = graph.transpose(key, f"{name}/attn/Transpose_3", [0, 2, 1])
    scores = graph.product(query, turned, f"{name}/attn/MatMul")
    root = graph.setting(f"{name}.root", math.sqrt(each))
    scores = Tensor(graph.node("Div", [scores.name, root], f"{name}/attn/Div"), scores.shape)
    if words > 1:
        seen = np.tri(words, key.shape[1], key.shape[1] - words, dtype=bool)
        seen = graph.weight(f"{name}/attn/seen", seen)
        unseen = graph.setting(f"{name}.unseen", -1e4)
        scores = Tensor(graph.node("Where", [seen, scores.name, unseen], f"{name}/attn/Where"), scores.shape)
    scores = graph.same("Softmax", scores, f"{name}/attn/Softmax", axis=-1)
    y = graph.product(scores, value, f"{name}/attn/MatMul_1")
    y = graph.transpose(y, f"{name}/attn/Transpose_4", [1, 0, 2])
    y = graph.reshape(y, f"{name}/attn/Reshape_3", (words, hidden))
    x = graph.add(linear(y, "attn/c_proj", hidden), x, f"{name}/Add")
    y = graph.layer_norm(x, f"{name}/ln_2/LayerNormalization")
    y = gelu_by_tanh(graph, linear(y, "mlp/c_fc", inner, math.sqrt(2.0)), f"{name}/mlp/act")
    x = graph.add(linear(y, "mlp/c_proj", hidden), x, f"{name}/Add_1")
    return x, [key, value]


def gelu_by_tanh(graph: Graph, x: Tensor, name: str) -> Tensor:
    """x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, as GPT-2 approximates it."""
    settings = {"three": 3.0, "cubic": 0.044715, "root": math.sqrt(2.0 / math.pi), "one": 1.0, "half": 0.5}
    three, cubic, root, one, half = (graph.setting(f"{name}.{key}", value) for key, value in settings.items())
    cube = graph.node("Mul", [graph.node("Pow", [x.name, three], f"{name}/Pow"), cubic], f"{name}/Mul")
    y = graph.node("Mul", [graph.node("Add", [x.name, cube], f"{name}/Add"), root], f"{name}/Mul_1")
    y = graph.node("Add", [graph.node("Tanh", [y], f"{name}/Tanh"), one], f"{name}/Add_1")
    y = graph.node("Mul", [x.name, y], f"{name}/Mul_2")
    return Tensor(graph.node("Mul", [y, half], f"{name}/Mul_3"), x.shape)


def face(scale: Scale) -> Graph:
    """A picture of a face to an embedding, whose angle to that of another picture says whether both show the same
    person."""
    graph, x = start("face", scale, 112)
    for number, count in enumerate((64, 128, 256), 1):
        gain = math.sqrt(2.0) / (PIXEL if number == 1 else 1.0)
        x = graph.relu(graph.conv(x, f"C{number}", scale.channels(count), 3, gain=gain))
        x = graph.pool(x, f"P{number}", 2, 2)
    x = graph.fc(graph.flatten(x), "F1", scale.hidden or scale.channels(512), gain=1.0)
    return finish(graph, x, scale.head or "none")


def yolo_v8_like(scale: Scale) -> Graph:
    """A detector that answers as YOLOv8 is exported: 4 + classes values for each cell of two grids, boxes in pixels
    before scores, 1 x (4 + classes) x cells. The layers before are as simple as can be."""
    graph, x = start("yolo-v8-like", scale, 640)
    side, classes = x.shape[1], scale.classes or 80
    answers = []
    for number, count in enumerate((32, 64, 128, 256), 1):
        gain = math.sqrt(2.0) / (PIXEL if number == 1 else 1.0)
        x = graph.relu(graph.conv(x, f"C{number}", scale.channels(count), 3, stride=2, gain=gain))
        if number < 3:
            continue
        # Both heads are 1 x 1 convolutions; of a box centre and size are anywhere in the picture.
        boxes = graph.same("Sigmoid", graph.conv(x, f"B{number}", 4, 1, gain=1.0), f"B{number}_sigmoid")
        pixels = graph.setting(f"B{number}.side", float(side))
        boxes = Tensor(graph.node("Mul", [boxes.name, pixels], f"B{number}_pixels"), boxes.shape)
        scores = graph.same("Sigmoid", graph.conv(x, f"S{number}", classes, 1, gain=2.0), f"S{number}_sigmoid")
        answer = graph.concat([boxes, scores], f"S{number}_concat")
        answers.append(graph.reshape(answer, f"S{number}_cells", (4 + classes, math.prod(x.shape[1:]))))
    cells = sum(answer.shape[1] for answer in answers)
    graph.node("Concat", [answer.name for answer in answers], "answer", axis=2)
    graph.output(Tensor("answer", (4 + classes, cells)))
    return graph


NETWORKS: dict[str, Callable[[Scale], Graph]] = {
    "yolo-small": yolo_small,
    "alexnet": alexnet,
    "vgg16": vgg16,
    "resnet50": resnet50,
    "inception": inception,
    "autoencoder": autoencoder,
    "chair": chair,
    "pix2pix": pix2pix,
    "deep-speech": deep_speech,
    "mobilenet-v3": mobilenet_v3,
    "bert": bert,
    "gpt2-prefill": gpt2_prefill,
    "gpt2-decode": gpt2_decode,
    "face": face,
    "yolo-v8-like": yolo_v8_like,
}

# The committed instances: small enough for a repository and for a test that runs each of them hundreds of times,
# large enough that layers differ in cost as they do at full scale. Together at most 4 MB.
SMALL = {
    "yolo-small": Scale(width=Fraction(1, 16), input=112, hidden=32),
    "alexnet": Scale(width=Fraction(3, 16), input=115, hidden=128),
    "vgg16": Scale(width=Fraction(1, 16), input=64, hidden=64, classes=20),
    "resnet50": Scale(width=Fraction(1, 16), input=64, classes=20),
    "inception": Scale(width=Fraction(3, 16), input=64, classes=20),
    "autoencoder": Scale(width=Fraction(1, 16), input=64, hidden=16),
    "chair": Scale(width=Fraction(1, 16), input=64),
    "pix2pix": Scale(width=Fraction(1, 32), input=64),
    "deep-speech": Scale(width=Fraction(1, 32), input=16),
    "mobilenet-v3": Scale(width=Fraction(1, 8), input=64, classes=20),
    "bert": Scale(width=Fraction(1, 48), input=16),
    "gpt2-prefill": Scale(width=Fraction(1, 48), input=16, blocks=2),
    "gpt2-decode": Scale(width=Fraction(1, 48), input=32, blocks=2),
    "face": Scale(width=Fraction(1, 16), input=32, hidden=24),
    "yolo-v8-like": Scale(width=Fraction(1, 8), input=64, classes=3),
}
