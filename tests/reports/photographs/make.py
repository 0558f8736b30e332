#!/usr/bin/env python3
"""Two networks that others trained, and photographs for them: what `cargo tool compression` compresses beside this project's own.

    make.py FOLDER

The networks are the convolutions of VGG16 and of AlexNet, at full width and without batch normalisation, as Ghildyal and Liu trained them on
pieces of photographs to tell which of two looks more like a third ("Shift-tolerant Perceptual Similarity Metric", ECCV 2022); their package
has the weights. Before each step to a smaller map they blur it. The photographs are those that scikit-image and matplotlib come with. Of the
three packages only data is read, none is installed. Needs requirements-train.txt of tests/models, and pip.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from PIL import Image

HERE = Path(__file__).parent
OPSET = 17
SIDE = 224

PHOTOGRAPHS = {
    "scikit_image": [
        "skimage/data/astronaut.png",
        "skimage/data/chelsea.png",
        "skimage/data/coffee.png",
        "skimage/data/motorcycle_left.png",
        "skimage/data/rocket.jpg",
    ],
    "matplotlib": ["matplotlib/mpl-data/sample_data/grace_hopper.jpg"],
}

# Convolutions: the number of the module that has the weights, zeros around, "blur" where a blur comes before the ReLU. "P2" and "P3"
# are maxima over so many pixels a side, and blurred.
VGG16 = [(0, 1), (2, 1), "P2", (6, 1), (8, 1), "P2", (12, 1), (14, 1), (16, 1), "P2",
         (20, 1), (22, 1), (24, 1), "P2", (28, 1), (30, 1), (32, 1)]  # fmt: skip
ALEXNET = [(0, 2, "blur"), "P3", (5, 2), "P3", (9, 1), (11, 1), (13, 1)]
NETWORKS = {"vgg16-of-photographs": ("vgg", VGG16), "alexnet-of-photographs": ("alex", ALEXNET)}


def wheels(folder: Path) -> dict[str, zipfile.ZipFile]:
    """The packages, by name."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    machine = ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64", "--python-version", "3.11"]
    subprocess.run([*command, *machine, "-r", HERE / "requirements.txt", "-d", folder], check=True)
    return {file.name.split("-")[0]: zipfile.ZipFile(file) for file in folder.glob("*.whl")}


class Chain:
    """A network in which each node takes what the one before gave."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        self.weights = {name.split(".", 2)[2]: value.numpy() for name, value in weights.items() if name.startswith("net.")}
        # Channels are divided by this behind the mean, which the set subtracts; so are the first weights.
        self.scale = weights["scaling_layer.scale"].numpy().reshape(1, -1, 1, 1)
        self.nodes, self.values = [], []
        self.last = "image"

    def add(self, op: str, name: str, *values: np.ndarray, **attributes) -> None:
        inputs = [f"{name}_{place}" for place in range(len(values))]
        self.values += [numpy_helper.from_array(value, called) for value, called in zip(values, inputs)]
        self.nodes.append(helper.make_node(op, [self.last, *inputs], [name], name, **attributes))
        self.last = name

    def conv(self, name: str, module: int, pad: int, *blurred: str) -> None:
        weight, bias = self.weights[f"{module}.weight"], self.weights[f"{module}.bias"]
        if module == 0:
            weight = weight / self.scale
        self.add("Conv", name, weight, bias, kernel_shape=weight.shape[2:], pads=[pad] * 4)
        if blurred:
            self.blur(name, len(bias))
        self.add("Relu", f"{name}_relu")

    def blur(self, name: str, channels: int) -> None:
        """The binomial filter of 3 x 3, at every second pixel, over a map that goes on as in a mirror."""
        self.add("Pad", f"{name}_pad", np.array([0, 0, 2, 2] * 2), mode="reflect")
        line = np.array([1, 2, 1], np.float32) / 4
        filters = np.broadcast_to(np.outer(line, line), (channels, 1, 3, 3))
        self.add("Conv", f"{name}_blur", filters.copy(), kernel_shape=[3, 3], strides=[2, 2], group=channels)

    def model(self, name: str) -> onnx.ModelProto:
        image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, SIDE, SIDE])
        last = helper.make_tensor_value_info(self.last, onnx.TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, name, [image], [last], self.values)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model, full_check=True)
        return model


def network(name: str, weights: dict[str, torch.Tensor], layers: list) -> onnx.ModelProto:
    chain = Chain(weights)
    convolutions = pools = channels = 0
    for layer in layers:
        if isinstance(layer, str):
            pools += 1
            kernel = int(layer[1:])
            chain.add("MaxPool", f"P{pools}", kernel_shape=[kernel, kernel])
            chain.blur(f"P{pools}", channels)
        else:
            convolutions += 1
            chain.conv(f"C{convolutions}", *layer)
            channels = len(chain.weights[f"{layer[0]}.bias"])
    return chain.model(name)


def crops(photograph: Image.Image) -> list[Image.Image]:
    """The largest square in the middle, and the four corners of half its side."""
    width, height = photograph.size
    side = min(width, height)
    left, top, half = (width - side) // 2, (height - side) // 2, side // 2
    corners = [(left + x, top + y, left + x + half, top + y + half) for x in (0, half) for y in (0, half)]
    return [photograph.crop(box) for box in [(left, top, left + side, top + side), *corners]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    packages = wheels(folder / "wheels")
    for name, (weights, layers) in NETWORKS.items():
        file = packages["stlpips_pytorch"].read(f"stlpips_pytorch/weights/vST0.0/{weights}_shift_tolerant.pth")
        tensors = torch.load(io.BytesIO(file), map_location="cpu", weights_only=True)
        onnx.save(network(name, tensors, layers), folder / f"{name}.onnx")
        shift = tensors["scaling_layer.shift"].flatten().tolist()
    # Pixels are brought to between -1 and 1 before the shift.
    mean = ",".join(str(127.5 * (1 + one)) for one in shift)
    (folder / "mean.txt").write_text(f"{mean}\n")
    rows = ["image,label"]
    for package, files in PHOTOGRAPHS.items():
        for file in files:
            photograph = Image.open(io.BytesIO(packages[package].read(file))).convert("RGB")
            for place, crop in enumerate(crops(photograph)):
                rows.append(f"{Path(file).stem}-{place}.png,{Path(file).stem}")
                crop.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(pictures / rows[-1].split(",")[0])
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
