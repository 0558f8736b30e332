#!/usr/bin/env python3
"""A trained network with activations near 1, as training left them: `train.py` ends by multiplying each channel by a factor
and dividing the next layer's weights by it, and the factors follow from its seed. Here they are taken back; the function is
the same but for rounding.

    unscaled.py -o yolo-mini-unscaled.onnx
    unscaled.py vgg-mini -o vgg-mini-unscaled.onnx
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

# As in train.py, which needs torch: SEED and SIZES, each network's first, growth and spread.
SEED = 1
SIZES = {"vocnet-mini": (1.0, 1.0, 0.9), "vgg-mini": (1.0, 1.0, 0.9), "yolo-mini": (147.0, 1.13, 0.6)}


def unscaled(name: str, model: onnx.ModelProto) -> onnx.ModelProto:
    """`resize` of trained.py, the other way round: factors are drawn in the same order."""
    rng = np.random.default_rng(SEED)
    size, growth, spread = SIZES[name]
    result = onnx.ModelProto()
    result.CopyFrom(model)
    tensors = {tensor.name: tensor for tensor in result.graph.initializer}
    values = {
        weights: numpy_helper.to_array(tensor).astype(np.float64)
        for weights, tensor in tensors.items()
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims
    }
    before = None
    for node in model.graph.node:
        if node.op_type == "LRN":
            # Layers before one were left as they are.
            before = None
        if node.op_type not in ("Conv", "Gemm"):
            continue
        if before is not None:
            weight, bias = (values[weights] for weights in before.input[1:])
            factors = size * np.exp(spread * rng.standard_normal(len(bias)))
            size *= growth
            weight /= factors.reshape(-1, *[1] * (weight.ndim - 1))
            bias /= factors
            after = values[node.input[1]]
            if node.op_type == "Conv":
                group = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
                groups = after.reshape(group, -1, *after.shape[1:])
                groups *= factors.reshape(group, 1, -1, 1, 1)
            else:
                # A flattened channel is as many columns as it had pixels.
                after *= np.repeat(factors, after.shape[1] // len(factors))
        before = node
    for tensor, array in values.items():
        tensors[tensor].raw_data = array.astype("<f4").tobytes()
    result.graph.name = f"{name}-unscaled"
    result.graph.doc_string = f"{name} without the change of its activations' sizes"
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=SIZES, nargs="?", default="yolo-mini")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    model = unscaled(arguments.model, onnx.load(Path(__file__).parent / f"{arguments.model}.onnx"))
    onnx.checker.check_model(model, full_check=True)
    arguments.output.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
