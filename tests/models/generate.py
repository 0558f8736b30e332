#!/usr/bin/env python3
"""Writes the ONNX models that layerlab is tried on; see README.md.

    generate.py --all OUTDIR                                    the committed small instances and variants
    generate.py yolo-small --width 1 --input 448 -o FILE        one network, at any scale
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import variants
from graph import DEFAULT_OPSET, Dim, write
from networks import NETWORKS, SMALL, Scale


def generate(name: str, scale: Scale, path: Path) -> str:
    """Writes one network and returns a line about it."""
    graph = NETWORKS[name](scale)
    sizes = [dim.dim_value for dim in graph.inputs[0].type.tensor_type.shape.dim[1:]]
    # Of a picture, its side.
    size = sizes[1] if len(sizes) == 3 else " x ".join(map(str, sizes))
    description = f"{name}, width {scale.width}, input {size}, random weights of seed {scale.seed}"
    write(graph.model(description), path)
    return f"{path}: {graph.counts}"


def generate_all(folder: Path) -> list[str]:
    (folder / "variants").mkdir(parents=True, exist_ok=True)
    variants.write_all(folder / "variants")
    return [generate(name, scale, folder / f"{name}.onnx") for name, scale in SMALL.items()]


def batch(text: str) -> Dim:
    return "N" if text == "symbolic" else positive(text)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def width(text: str) -> Fraction:
    value = Fraction(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("model", nargs="?", choices=NETWORKS, help="the network to write")
    parser.add_argument("--all", type=Path, metavar="OUTDIR", help="write the committed instances and variants")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    parser.add_argument("--width", type=width, default=Fraction(1), help="factor on all channels, 0.25 or 1/16")
    parser.add_argument("--input", type=positive, help="pixels on each side, or frames (default: the network's own)")
    parser.add_argument("--classes", type=positive, help="(default: 20 or 1000, the network's own)")
    parser.add_argument("--hidden", type=positive, help="size of hidden fully connected layers (default: 4096 x width)")
    parser.add_argument("--head", choices=["none", "softmax", "sigmoid"], help="(default: the network's own)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=batch, default=1, metavar="N|symbolic")
    parser.add_argument("--opset", type=int, default=DEFAULT_OPSET, choices=range(7, 22), metavar="7..21")
    parser.add_argument("--external-data", action="store_true", help="weights into FILE.data")
    return parser


def main() -> None:
    parser = arguments()
    args = parser.parse_args()
    if args.all and not args.model and not args.output:
        print("\n".join(generate_all(args.all)))
        return
    if args.all or not args.model or not args.output:
        parser.error("give either --all OUTDIR, or a model and -o FILE")
    scale = Scale(
        width=args.width,
        input=args.input,
        classes=args.classes,
        hidden=args.hidden,
        head=args.head,
        seed=args.seed,
        opset=args.opset,
        batch=args.batch,
        external=Path(f"{args.output}.data") if args.external_data else None,
    )
    print(generate(args.model, scale, args.output))


if __name__ == "__main__":
    main()
