#!/usr/bin/env python3
"""Networks of today on this machine and on a simulated phone, as tables of the layers that people know.

    networks.py FOLDER > tests/reports/networks.md

Profiles an encoder and a decoder of text in blocks (`layerlab model group`), MobileNetV3, a U-Net and a recogniser of speech with an
LSTM, all of the committed small scale, and prints what `layerlab show` says of each. What is in FOLDER is not measured again.
Needs a quiet machine and `cargo build --workspace --bins`. Takes some minutes.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/models"
# What each is, and the rules by which its nodes are blocks.
NETWORKS = {
    "bert": ("An encoder of text in the shape of BERT-base", "bert-layers.toml"),
    "gpt2-decode": ("A decoder of text in the shape of GPT-2: one word after those in its cache of keys and values", "gpt2-layers.toml"),
    "mobilenet-v3": ("MobileNetV3", None),
    "pix2pix": ("A U-Net, as in pix2pix", None),
    "deep-speech": ("A recogniser of speech with an LSTM (L1), as in Deep Speech", None),
}
DEVICES = {"host": ["--processors", "cpu:all"], "oneplus7": []}

HEADER = """\
# Networks of today, layer by layer

Made by

    python3 tests/reports/networks.py FOLDER > tests/reports/networks.md

Each network is of the committed small scale ([tests/models](../models/README.md)), with the layers that people know: the blocks of
transformers are named by rules (`layerlab model group`). What they cost on this machine by tract, on all cores, is **measured**; what
they cost on a phone in the shape of the OnePlus 7 is **simulated**. Networks this small spend nearly all of an accelerator's time
on being invoked and on moving data: alone, no layer but the LSTM is worth taking to that phone's.
"""


def layerlab(*arguments: object) -> str:
    command = [ROOT / "target/debug/layerlab", *map(str, arguments)]
    environment = os.environ | {"LAYERLAB_ADB": ""}
    print("layerlab", *arguments, file=sys.stderr)
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    print(HEADER, end="")
    for name, (about, rules) in NETWORKS.items():
        model = MODELS / f"{name}.onnx"
        if rules:
            blocks = folder / f"{name}.onnx"
            if not blocks.exists():
                layerlab("model", "group", model, "--layers", MODELS / rules, "--out", blocks)
            model = blocks
        print(f"\n## {about}")
        for device, options in DEVICES.items():
            out = folder / device / name
            if not out.exists():
                layerlab("profile", "--model", model, "--device", device, "--out", out, *options)
            table = layerlab("show", "--wide", out)
            lines = [line.rstrip() for line in table.splitlines() if not line.startswith("digest")]
            print("\n```\n" + "\n".join(lines).strip() + "\n```")


if __name__ == "__main__":
    main()
