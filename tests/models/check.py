#!/usr/bin/env python3
"""Checks the models: check.py [--remake] [FILE ...], by default all that are committed.

Each is valid ONNX, and onnxruntime and tract give the same finite answers, which depend on the input. `--remake`
also generates the committed files again and compares the bytes. Needs requirements-check.txt.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import tract

import generate

HERE = Path(__file__).parent

# What an open dimension is set to.
DIMENSIONS = {"N": 1, "H": 32, "W": 32}

# Meant to be refused by every engine.
REFUSED = {"unknown-operator"}

# Trained, not generated; see train.py and objects.py.
TRAINED = {"vocnet-mini", "vgg-mini", "yolo-mini", "object-mini"}

# Two engines add up in different orders; on sums of a few thousand products that stays below this, relative to the
# largest answer.
TOLERANCE = 1e-4


def check(path: Path) -> str:
    """A line about the model; raises if anything is wrong with it."""
    onnx.checker.check_model(str(path), full_check=True)
    if path.stem in REFUSED:
        for engine in (run_onnxruntime, run_tract):
            try:
                engine(path, [])
            except Exception:
                continue
            raise AssertionError("should have been refused")
        return "valid, refused by the engines as it should be"

    model = onnx.load(path, load_external_data=False)
    first, second = ask(path, model, seed=1), ask(path, model, seed=2)
    for index, (one, other) in enumerate(zip(first, second)):
        assert np.isfinite(one).all(), f"output {index} is not finite"
        assert np.ptp(one) > 0, f"output {index} is all the same"
        assert np.abs(one - other).max() > 1e-6, f"output {index} does not depend on the input"

    inputs = values(model, seed=1)
    error = 0.0
    for ours, theirs in zip(first, run_tract(path, inputs), strict=True):
        error = max(error, float(np.abs(ours - theirs).max() / np.abs(ours).max()))
    assert error < TOLERANCE, f"onnxruntime and tract differ by {error:.1e}"
    largest = max(float(np.abs(output).max()) for output in first)
    return f"{milliseconds(path, inputs):6.2f} ms, largest answer {largest:.3g}, engines differ by {error:.0e}"


def ask(path: Path, model: onnx.ModelProto, seed: int) -> list[np.ndarray]:
    return run_onnxruntime(path, values(model, seed))


def values(model: onnx.ModelProto, seed: int) -> list[np.ndarray]:
    """Random pixels, 0 to 255, for each real input; whole ones where it takes whole numbers."""
    rng = np.random.default_rng(seed)
    weights = {tensor.name for tensor in model.graph.initializer}
    found = []
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = [DIMENSIONS[dim.dim_param] if dim.dim_param else dim.dim_value for dim in tensor.shape.dim]
        pixels = rng.random(shape, dtype=np.float32) * np.float32(255)
        found.append(pixels.astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)))
    return found


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_onnxruntime(path: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    engine = session(path)
    return engine.run(None, {value.name: data for value, data in zip(engine.get_inputs(), inputs)})


def runnable(path: Path, inputs: list[np.ndarray]) -> tract.Runnable:
    model = tract.onnx().load(path)
    for index, data in enumerate(inputs):
        model.set_input_fact(index, ",".join(map(str, data.shape)) + f",{data.dtype.kind}{8 * data.dtype.itemsize}")
    return model.into_model().into_runnable()


def run_tract(path: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    return [value.to_numpy() for value in runnable(path, inputs).run(inputs)]


def milliseconds(path: Path, inputs: list[np.ndarray]) -> float:
    """The best of a few runs in tract, the engine that tests use."""
    engine = runnable(path, inputs)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        engine.run(inputs)
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def committed(folder: Path) -> list[Path]:
    return [path for part in (folder, folder / "variants") for path in sorted(part.glob("*.onnx*"))]


def remake() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        generate.generate_all(Path(temporary))
        generated = [path for path in committed(HERE) if path.stem not in TRAINED]
        old = {path.relative_to(HERE): path.read_bytes() for path in generated}
        new = {path.relative_to(temporary): path.read_bytes() for path in committed(Path(temporary))}
    different = [str(path) for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)]
    if different:
        sys.exit(f"not what the generator writes: {', '.join(different)}")
    print(f"{len(old)} files, {sum(map(len, old.values())):,} bytes, are what the generator writes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--remake", action="store_true")
    args = parser.parse_args()
    failures = 0
    for path in args.files or [path for path in committed(HERE) if path.suffix == ".onnx"]:
        try:
            outcome = check(path)
        except Exception as error:
            failures += 1
            outcome = f"FAILED: {error}"
        print(f"{path.name:30} {path.stat().st_size:9,} B  {outcome}")
    if failures:
        sys.exit(f"{failures} failed")
    if args.remake:
        remake()


if __name__ == "__main__":
    main()
