#!/usr/bin/env python3
"""yolo-mini with activations near 1, as training left them: `train.py` ends by multiplying each channel by a factor and
dividing the next layer's weights by it, and the factors follow from its seed. Here they are taken back; the function is
the same but for rounding.

    unscaled.py -o yolo-mini-unscaled.onnx
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

# As in train.py, which needs torch: SEED and SIZES["yolo-mini"].
SEED = 1
FIRST, GROWTH, SPREAD = 147.0, 1.13, 0.6


def unscaled(model: onnx.ModelProto) -> onnx.ModelProto:
    """`resize` of trained.py, the other way round: factors are drawn in the same order."""
    rng = np.random.default_rng(SEED)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    tensors = {tensor.name: tensor for tensor in result.graph.initializer}
    values = {
        name: numpy_helper.to_array(tensor).astype(np.float64)
        for name, tensor in tensors.items()
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims
    }
    heavy = [node for node in model.graph.node if node.op_type in ("Conv", "Gemm")]
    size = FIRST
    for before, node in zip(heavy, heavy[1:]):
        weight, bias = (values[name] for name in before.input[1:])
        factors = size * np.exp(SPREAD * rng.standard_normal(len(bias)))
        size *= GROWTH
        weight /= factors.reshape(-1, *[1] * (weight.ndim - 1))
        bias /= factors
        after = values[node.input[1]]
        if node.op_type == "Conv":
            after *= factors.reshape(1, -1, 1, 1)
        else:
            # A flattened channel is as many columns as it had pixels.
            after *= np.repeat(factors, after.shape[1] // len(factors))
    for name, array in values.items():
        tensors[name].raw_data = array.astype("<f4").tobytes()
    result.graph.name = "yolo-mini-unscaled"
    result.graph.doc_string = "yolo-mini without the change of its activations' sizes"
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    output = parser.parse_args().output
    model = unscaled(onnx.load(Path(__file__).parent / "yolo-mini.onnx"))
    onnx.checker.check_model(model, full_check=True)
    output.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
