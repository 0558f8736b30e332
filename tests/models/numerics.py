#!/usr/bin/env python3
"""What reduced numerics do to a trained model: the score with every layer in 32 bits, every layer reduced, and each
layer reduced alone.

    numerics.py yolo-mini.onnx --arithmetic i8
    numerics.py vocnet-mini.onnx --arithmetic f16 --pairs 6

It repeats in torch what layerlab's simulated processors compute: `f16` rounds weights, what enters a layer and every
operator's result to 16-bit floats, keeps sums in 16 bits too, and computes LRN in 16 bits throughout; `i8` rounds
weight matrices, what enters a layer and every operator's result to 255 levels of one scale for the whole tensor.
A layer is a convolution, pooling or fully connected operator with the cheap ones that follow.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import torch
from torch.nn import functional

from scenes import read
from scores import HERE, METRICS
from trained import Net, Node, apply, key

BATCH = 50

# No operators of their own, or without arithmetic.
FREE = {"Flatten", "Dropout"}


class F16:
    @staticmethod
    def round(x: torch.Tensor) -> torch.Tensor:
        return x.half().float()

    @staticmethod
    def weights(matrix: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return F16.round(matrix), F16.round(bias)

    @staticmethod
    def apply(node: Node, x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
        match node.op:
            case "Conv":
                matrix, bias = weights
                return F16.round(F16.convolution(node, x, matrix) + bias[:, None, None])
            case "Gemm":
                matrix, bias = weights
                sums = torch.zeros(len(x), len(matrix), dtype=torch.half)
                for column, weight in zip(x.half().T, matrix.half().T):
                    sums += column[:, None] * weight
                return F16.round(sums.float() + bias)
            case "LRN":
                return F16.lrn(node, x.half()).float()
        return F16.round(apply(node, x, weights))

    @staticmethod
    def convolution(node: Node, x: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        """Product by product in the order of the weights, each product and each sum rounded."""
        (pad, *_), (stride, _), groups = (node.attributes[name] for name in ("pads", "strides", "group"))
        outputs, inputs, kernel, _ = matrix.shape
        count, _, height, width = x.shape
        height, width = ((side + 2 * pad - kernel) // stride + 1 for side in (height, width))
        x = functional.pad(x, [pad] * 4).half()
        matrix = matrix.half()
        parts = []
        for group in range(groups):
            channels = range(group * inputs, (group + 1) * inputs)
            rows = matrix[group * outputs // groups : (group + 1) * outputs // groups]
            images = []
            for image in x:
                sums = torch.zeros(len(rows), height, width, dtype=torch.half)
                for at, channel in enumerate(channels):
                    for down in range(kernel):
                        for across in range(kernel):
                            lines = slice(down, down + stride * (height - 1) + 1, stride)
                            columns = slice(across, across + stride * (width - 1) + 1, stride)
                            sums += image[channel, lines, columns] * rows[:, at, down, across, None, None]
                images.append(sums)
            parts.append(torch.stack(images))
        return torch.cat(parts, 1).float()

    @staticmethod
    def lrn(node: Node, x: torch.Tensor) -> torch.Tensor:
        size, channels = node.attributes["size"], x.shape[1]
        squares = functional.pad((x * x).float(), [0, 0, 0, 0, size // 2, size // 2])
        sums = sum(squares[:, offset : offset + channels] for offset in range(size)).half()
        alpha, bias, beta = (torch.tensor(node.attributes[name]).half() for name in ("alpha", "bias", "beta"))
        return x / ((bias + alpha / size * sums).float() ** beta.float()).half()


class I8:
    @staticmethod
    def round(x: torch.Tensor) -> torch.Tensor:
        """One scale for each image's tensor."""
        finite = torch.where(x.isfinite(), x, 0.0).flatten(1).double()
        scale = finite.abs().amax(1).clamp(min=1e-30).reshape(-1, *[1] * (x.dim() - 1)) / 127.0
        return ((x.double() / scale).round().clamp(-127, 127).nan_to_num() * scale).float()

    @staticmethod
    def weights(matrix: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return I8.round(matrix[None])[0], bias

    @staticmethod
    def apply(node: Node, x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
        if node.op == "Gemm":
            # The addition of the bias is an operator of its own.
            matrix, bias = weights
            return I8.round(I8.round(functional.linear(x, matrix)) + bias)
        return I8.round(apply(node, x, weights))


ARITHMETICS = {"f16": F16, "i8": I8}


class Mixed:
    """A model of which some layers are reduced."""

    def __init__(self, model: onnx.ModelProto, arithmetic: str, pixels: np.ndarray) -> None:
        self.net = Net(model)
        self.arithmetic = ARITHMETICS[arithmetic]
        self.layers = list(dict.fromkeys(node.layer for node in self.net.nodes))
        self.exact, self.reduced = {}, {}
        for node in self.net.nodes:
            weights = [self.net.weights[key(name)].detach() for name in node.weights if key(name) in self.net.weights]
            self.exact[node.name] = weights
            self.reduced[node.name] = list(self.arithmetic.weights(*weights)) if weights else []
        x = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().contiguous()
        # What enters each layer, and the answer, when all is exact.
        self.entering = {}
        for layer in self.layers:
            self.entering[layer] = x
            x = self.layer(layer, x, False)
        self.answers = x.numpy()

    @torch.no_grad()
    def layer(self, layer: str, x: torch.Tensor, reduce: bool) -> torch.Tensor:
        nodes = [node for node in self.net.nodes if node.layer == layer]
        parts = []
        for part in x.split(BATCH):
            if reduce:
                part = self.arithmetic.round(part)
            for node in nodes:
                if reduce and node.op not in FREE:
                    part = self.arithmetic.apply(node, part, self.reduced[node.name])
                else:
                    part = apply(node, part, self.exact[node.name])
            parts.append(part)
        return torch.cat(parts)

    def run(self, reduced: set[str]) -> np.ndarray:
        """The answers with these layers reduced."""
        start = min(map(self.layers.index, reduced))
        x = self.entering[self.layers[start]]
        for layer in self.layers[start:]:
            x = self.layer(layer, x, layer in reduced)
        return x.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--arithmetic", choices=ARITHMETICS, required=True)
    parser.add_argument("--images", type=int, help="only the first so many of the held-out set")
    parser.add_argument("--pairs", type=int, default=0, metavar="N", help="also all pairs of the N worst layers")
    parser.add_argument("--scenes", type=Path, default=HERE / "scenes")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    pixels, truth = read(args.scenes)
    pixels, truth = pixels[: args.images], truth[: args.images]
    model = onnx.load(args.model)
    metric = METRICS[model.graph.name]
    mixed = Mixed(model, args.arithmetic, pixels)
    exact = metric(mixed.answers, truth)
    print(f"{model.graph.name}, {args.arithmetic}, {len(pixels)} images; f32 scores {exact:.4f}")

    def loss(reduced: set[str]) -> float:
        return exact - metric(mixed.run(reduced), truth)

    print(f"loss with all layers reduced {loss(set(mixed.layers)):.4f}")
    losses = {}
    for layer in mixed.layers:
        losses[layer] = loss({layer})
        print(f"{layer:4} {losses[layer]:8.4f}", flush=True)
    worst = sorted(losses, key=losses.__getitem__)[-args.pairs :] if args.pairs else []
    for pair in combinations([layer for layer in mixed.layers if layer in worst], 2):
        together, alone = loss(set(pair)), sum(losses[layer] for layer in pair)
        print(f"{pair[0]:4} {pair[1]:4} {together:8.4f}, alone {alone:8.4f}, more {together - alone:+.4f}", flush=True)


if __name__ == "__main__":
    main()
