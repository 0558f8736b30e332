#!/usr/bin/env python3
"""Renders the scenes that the trained models see: shapes in coats of colour and texture, in front of clutter.

    scenes.py scenes            the held-out set that is committed: JPEG files, annotations.json, labels.csv, VOC XML
    scenes.py scenes --check    renders it again and compares every byte

A picture depends only on its stream and its number. Training draws from a stream of its own and goes through the same
JPEG encoder, so that it differs from the held-out set by the seed alone.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import multiprocessing
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image, ImageDraw

SIDE = 112

SHAPES = ["disc", "ring", "square", "triangle", "cross"]
COATS = ["red", "green", "striped", "dotted"]
CLASSES = [f"{coat} {shape}" for coat in COATS for shape in SHAPES]

# The streams of seeds; the third is what thresholds and lengths of training are chosen on.
TRAINING, HELD_OUT, VALIDATION = 1, 2, 3

HELD_OUT_IMAGES = 1000
VOC_FILES = 10
QUALITY = 75

# How often a scene has one, two, three and four objects.
COUNTS = [0.35, 0.30, 0.20, 0.15]
LARGEST = [60.0, 54.0, 46.0, 42.0]
SMALLEST = 24.0

# Two objects may hide this part of each other's box, so both can be seen.
OVERLAP = 0.10


@dataclass(frozen=True)
class Box:
    """An object: its class and the pixels that it covers, x and y to the right and down."""

    label: int
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Scene:
    jpeg: bytes
    boxes: list[Box]

    def pixels(self) -> np.ndarray:
        """Height x width x RGB, as any decoder gives them."""
        return decode(self.jpeg)


def decode(jpeg: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))


def render(stream: int, number: int) -> Scene:
    rng = np.random.default_rng([stream, number])
    canvas = background(rng)
    clutter(rng, canvas)
    boxes = objects(rng, canvas)
    if rng.random() < 0.5:
        twigs(rng, canvas)
    light(rng, canvas)
    buffer = io.BytesIO()
    Image.fromarray(canvas.clip(0, 255).round().astype(np.uint8)).save(buffer, "JPEG", quality=QUALITY)
    return Scene(buffer.getvalue(), boxes)


# -- what is behind


def noise(rng: np.random.Generator, cells: int) -> np.ndarray:
    """Smooth noise from -1 to 1: random values on a grid of cells, interpolated."""
    grid = rng.integers(0, 256, (cells, cells), dtype=np.uint8)
    smooth = Image.fromarray(grid).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(smooth, dtype=np.float32) / 127.5 - 1.0


def dull(rng: np.random.Generator) -> np.ndarray:
    """A colour without much colour."""
    return rng.uniform(50, 190) + rng.uniform(-28, 28, 3)


def background(rng: np.random.Generator) -> np.ndarray:
    one, other = dull(rng), dull(rng)
    blend = 0.5 + 0.5 * noise(rng, int(rng.integers(2, 6)))
    canvas = one + blend[..., None] * (other - one)
    canvas += rng.uniform(0, 22) * noise(rng, int(rng.integers(8, 40)))[..., None]
    return canvas.astype(np.float32)


def clutter(rng: np.random.Generator, canvas: np.ndarray) -> None:
    """Dull polygons and ellipses, blended in."""
    for _ in range(int(rng.integers(0, 7))):
        mask = Image.new("L", (SIDE, SIDE))
        draw = ImageDraw.Draw(mask)
        x, y = rng.uniform(-10, SIDE + 10, 2)
        size = rng.uniform(4, 30)
        if rng.random() < 0.3:
            draw.ellipse([x - size, y - size * 0.6, x + size, y + size * 0.6], fill=255)
        else:
            corners = rng.uniform(-size, size, (int(rng.integers(3, 6)), 2)) + [x, y]
            draw.polygon([tuple(corner) for corner in corners], fill=255)
        alpha = np.asarray(mask, dtype=np.float32)[..., None] * np.float32(rng.uniform(0.3, 0.8) / 255)
        canvas += alpha * (dull(rng).astype(np.float32) - canvas)


def twigs(rng: np.random.Generator, canvas: np.ndarray) -> None:
    """Thin lines that also run across objects."""
    mask = Image.new("L", (SIDE, SIDE))
    draw = ImageDraw.Draw(mask)
    for _ in range(int(rng.integers(1, 5))):
        ends = rng.uniform(-10, SIDE + 10, 4)
        draw.line(list(ends), fill=int(rng.integers(90, 220)), width=int(rng.integers(1, 3)))
    alpha = np.asarray(mask, dtype=np.float32)[..., None] / np.float32(255)
    canvas += alpha * (dull(rng).astype(np.float32) - canvas)


def light(rng: np.random.Generator, canvas: np.ndarray) -> None:
    """Lighting of the whole scene: strength, tint, a slope, and the grain of the sensor."""
    slope = rng.uniform(-0.22, 0.22, 2)
    across = np.linspace(-1, 1, SIDE, dtype=np.float32)
    shade = 1.0 + slope[0] * across[None, :] + slope[1] * across[:, None]
    tint = rng.uniform(0.65, 1.15) * rng.uniform(0.93, 1.07, 3)
    canvas *= (shade[..., None] * tint).astype(np.float32)
    canvas += rng.uniform(0, 3.5) * rng.standard_normal((SIDE, SIDE, 1), dtype=np.float32)


# -- the objects


def objects(rng: np.random.Generator, canvas: np.ndarray) -> list[Box]:
    count = int(rng.choice(4, p=COUNTS))
    boxes: list[Box] = []
    for _ in range(count + 1):
        for _ in range(30):
            width = rng.uniform(SMALLEST, LARGEST[count])
            height = min(max(width * rng.uniform(0.8, 1.25), SMALLEST), LARGEST[count])
            x, y = (rng.uniform(side / 2, SIDE - side / 2) for side in (width, height))
            place = (x - width / 2, y - height / 2, width, height)
            if all(hidden(place, box) <= OVERLAP for box in boxes):
                boxes.append(paint(rng, canvas, int(rng.integers(len(CLASSES))), x, y, width, height))
                break
    return boxes


def hidden(place: tuple[float, float, float, float], box: Box) -> float:
    """The shared area as a part of the smaller box."""
    x, y, width, height = place
    across = min(x + width, box.x + box.width) - max(x, box.x)
    down = min(y + height, box.y + box.height) - max(y, box.y)
    return max(across, 0) * max(down, 0) / min(width * height, box.width * box.height)


def paint(
    rng: np.random.Generator, canvas: np.ndarray, label: int, x: float, y: float, width: float, height: float
) -> Box:
    left, top = max(int(x - width / 2), 0), max(int(y - height / 2), 0)
    right, bottom = min(int(x + width / 2) + 1, SIDE), min(int(y + height / 2) + 1, SIDE)
    down, across = np.mgrid[top:bottom, left:right].astype(np.float32)
    # From -1 to 1 within the box, and turned a little.
    u, v = (across + 0.5 - x) / (width / 2), (down + 0.5 - y) / (height / 2)
    shape = SHAPES[label % len(SHAPES)]
    alpha = (0.5 - outside(rng, shape, u, v) * min(width, height) / 2).clip(0, 1)
    solid = alpha > 0.5
    colour = coat(rng, COATS[label // len(SHAPES)], across - x, down - y)
    slope = rng.uniform(-0.2, 0.2, 2)
    colour = colour * (1.0 + slope[0] * u + slope[1] * v)[..., None]
    patch = canvas[top:bottom, left:right]
    patch += alpha[..., None] * (colour - patch)
    rows, columns = np.flatnonzero(solid.any(1)), np.flatnonzero(solid.any(0))
    return Box(
        label,
        left + int(columns[0]),
        top + int(rows[0]),
        int(columns[-1] - columns[0]) + 1,
        int(rows[-1] - rows[0]) + 1,
    )


def outside(rng: np.random.Generator, shape: str, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """How far outside of the shape a point is, negative inside, in half sides of the box."""
    if shape in ("disc", "ring"):
        radius = np.hypot(u, v)
        if shape == "disc":
            return radius - 1.0
        inner = rng.uniform(0.45, 0.6)
        return np.maximum(radius - 1.0, inner - radius)
    angle = rng.uniform(-0.25, 0.25)
    cos, sin = np.cos(angle), np.sin(angle)
    # The turned shape is drawn smaller, so that it stays within the box.
    reach = abs(cos) + abs(sin)
    u, v = (cos * u + sin * v) * reach, (cos * v - sin * u) * reach
    if shape == "square":
        return np.maximum(abs(u), abs(v)) - 1.0
    if shape == "cross":
        arm = rng.uniform(0.28, 0.4)
        upright = np.maximum(abs(u) - arm, abs(v) - 1.0)
        level = np.maximum(abs(u) - 1.0, abs(v) - arm)
        return np.minimum(upright, level)
    # A triangle that points to any of the four sides.
    for _ in range(int(rng.integers(4))):
        u, v = v, -u
    return np.maximum(v - 1.0, (2.0 * abs(u) - v - 1.0) / np.sqrt(5.0))


def coat(rng: np.random.Generator, name: str, across: np.ndarray, down: np.ndarray) -> np.ndarray:
    if name == "red":
        return np.float32([205, 45, 40]) + rng.uniform(-25, 25, 3).astype(np.float32) + 0 * across[..., None]
    if name == "green":
        return np.float32([50, 160, 60]) + rng.uniform(-25, 25, 3).astype(np.float32) + 0 * across[..., None]
    angle = rng.uniform(0, np.pi)
    along = np.cos(angle) * across + np.sin(angle) * down
    aside = np.cos(angle) * down - np.sin(angle) * across
    if name == "striped":
        light, dark = np.float32([235, 205, 60]), np.float32([45, 40, 50])
        period = rng.uniform(7, 11)
        wave = np.sin(along * (2 * np.pi / period) + rng.uniform(0, 6.28))
    else:
        light, dark = np.float32([50, 75, 195]), np.float32([225, 230, 235])
        period = rng.uniform(8, 12)
        phase = rng.uniform(0, 6.28, 2)
        wave = 0.6 - np.cos(along * (2 * np.pi / period) + phase[0]) - np.cos(aside * (2 * np.pi / period) + phase[1])
    part = (0.5 + 1.5 * wave).clip(0, 1)[..., None].astype(np.float32)
    colour = dark + part * (light - dark)
    return colour + rng.uniform(-22, 22, 3).astype(np.float32)


# -- sets of scenes


def render_one(task: tuple[int, int]) -> Scene:
    return render(*task)


def render_many(stream: int, count: int, processes: int = 2) -> list[Scene]:
    with multiprocessing.Pool(processes) as pool:
        return pool.map(render_one, [(stream, number) for number in range(count)], chunksize=100)


def file_name(number: int) -> str:
    return f"{number:06}.jpg"


def write(folder: Path) -> None:
    """The held-out set in the forms in which such sets are found."""
    scenes = render_many(HELD_OUT, HELD_OUT_IMAGES)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for number, scene in enumerate(scenes, 1):
        (folder / "images" / file_name(number)).write_bytes(scene.jpeg)
    (folder / "annotations.json").write_text(coco(scenes))
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["image", "labels"])
        for number, scene in enumerate(scenes, 1):
            present = sorted({box.label for box in scene.boxes})
            writer.writerow([file_name(number), ";".join(CLASSES[label] for label in present)])
    annotations = folder / "voc" / "Annotations"
    annotations.mkdir(parents=True, exist_ok=True)
    for number, scene in enumerate(scenes[:VOC_FILES], 1):
        (annotations / file_name(number)).with_suffix(".xml").write_text(voc(number, scene))


def coco(scenes: list[Scene]) -> str:
    """COCO's detection format, one image and one object to a line."""
    images = [
        {"id": number, "file_name": file_name(number), "width": SIDE, "height": SIDE}
        for number in range(1, len(scenes) + 1)
    ]
    annotations = []
    for number, scene in enumerate(scenes, 1):
        for box in scene.boxes:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": box.label + 1,
                    "bbox": [box.x, box.y, box.width, box.height],
                    "area": box.width * box.height,
                    "iscrowd": 0,
                }
            )
    categories = [{"id": index, "name": name} for index, name in enumerate(CLASSES, 1)]
    parts = {"images": images, "annotations": annotations, "categories": categories}
    lists = (f'"{key}": [\n' + ",\n".join(map(json.dumps, value)) + "\n]" for key, value in parts.items())
    return "{" + ",\n".join(lists) + "}\n"


def voc(number: int, scene: Scene) -> str:
    """PASCAL VOC's form; corners are pixels that belong to the object, counted from 1."""
    root = ElementTree.Element("annotation")

    def add(parent: ElementTree.Element, **values: object) -> None:
        for tag, value in values.items():
            ElementTree.SubElement(parent, tag).text = str(value)

    add(root, folder="images", filename=file_name(number))
    add(ElementTree.SubElement(root, "size"), width=SIDE, height=SIDE, depth=3)
    add(root, segmented=0)
    for box in scene.boxes:
        item = ElementTree.SubElement(root, "object")
        add(item, name=CLASSES[box.label], pose="Unspecified", truncated=0, difficult=0)
        corners = {"xmin": box.x + 1, "ymin": box.y + 1, "xmax": box.x + box.width, "ymax": box.y + box.height}
        add(ElementTree.SubElement(item, "bndbox"), **corners)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def read(folder: Path) -> tuple[np.ndarray, list[list[Box]]]:
    """A written set: pixels (images x height x width x RGB) and the objects of each image."""
    description = json.loads((folder / "annotations.json").read_text())
    boxes: dict[int, list[Box]] = {image["id"]: [] for image in description["images"]}
    for item in description["annotations"]:
        boxes[item["image_id"]].append(Box(item["category_id"] - 1, *item["bbox"]))
    files = [folder / "images" / image["file_name"] for image in description["images"]]
    return np.stack([decode(file.read_bytes()) for file in files]), list(boxes.values())


def check(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary))
        old, new = (
            {path.relative_to(top): path.read_bytes() for path in top.rglob("*") if path.is_file()}
            for top in (folder, Path(temporary))
        )
    different = [str(path) for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)]
    if different:
        sys.exit(f"not what is rendered: {', '.join(different)}")
    print(f"{len(old)} files, {sum(map(len, old.values())):,} bytes, are what is rendered")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    (check if args.check else write)(args.folder)


if __name__ == "__main__":
    main()
