#!/usr/bin/env python3
"""Profiles the same model on this computer again and again, half of the times beside a busy neighbour, and says how far the
profiles agree with themselves and with each other.

Of every published profile: does the sum of its layers agree with the whole as it was timed in the same visits? Of disjoint
pairs of profiles, both quiet or both disturbed: how many numbers does `layerlab compare` call different, though nothing is?
What was refused is counted with its reason. The answer is a table in Markdown.

    host_profiles.py --layerlab target/release/layerlab --model M.onnx [--model N.onnx] --out FOLDER [--profiles 40]

Every second pair of profiles is measured beside a process that burns one core for a second and rests for a second, in turns.
Profiles that are in FOLDER already are not measured again, so that the program may be stopped and goes on.
Needs nothing but Python; a tool, of which nothing in layerlab needs anything.
"""

import argparse
import csv
import json
import math
import multiprocessing
import statistics
import subprocess
import time
from collections import Counter
from pathlib import Path


def burn_in_turns() -> None:
    """Computes for a second, rests for a second, for ever."""
    while True:
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            pass
        time.sleep(1.0)


def is_disturbed(number: int) -> bool:
    """Whether the profile of this number, from 0, is measured beside the neighbour: two without, two with."""
    return number // 2 % 2 == 1


def measure(layerlab: Path, model: Path, folder: Path, number: int, options: list[str]) -> None:
    """Publishes the profile into `folder`, or writes beside it why there is none."""
    refused = folder.with_suffix(".refused")
    if folder.exists() or refused.exists():
        return
    neighbour = multiprocessing.Process(target=burn_in_turns, daemon=True)
    if is_disturbed(number):
        neighbour.start()
    command = [layerlab, "profile", "--model", model, "--device", "host", "--out", folder, *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if is_disturbed(number):
        neighbour.kill()
        neighbour.join()
    if ended.returncode != 0:
        lines = ended.stderr.strip().splitlines() or ["no reason given"]
        refused.write_text(f"{ended.returncode}: {lines[-1]}\n", encoding="utf-8")


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with open(folder / table, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# The 97.5th percentiles of Student's t, from one degree of freedom on.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def whole_of_visits(visits: list[float]) -> tuple[float, float, float]:
    """The geometric mean of the whole's times in each visit, and its 95 % interval."""
    logarithms = [math.log(time) for time in visits]
    freedom = len(logarithms) - 1
    error = statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    reach = STUDENT[min(freedom, len(STUDENT)) - 1] * error
    middle = statistics.mean(logarithms)
    return math.exp(middle), math.exp(middle - reach), math.exp(middle + reach)


def parts_and_whole(folder: Path) -> dict[str, tuple[float, float, float, float]]:
    """Of each processor that is timed layer by layer the sum of its layers and, of the whole as it was timed at both ends of
    the blocks that count, its time with a 95 % interval that holds what differs between visits; in ns."""
    found = {}
    for measurement in json.loads((folder / "profile.json").read_text(encoding="utf-8"))["measurements"]:
        name = measurement["processor"]
        if measurement["design"] != "layer-pass":
            continue
        total = sum(float(row["compute_ns"]) for row in rows(folder, "times.csv") if row["processor"] == name)
        blocks = [row for row in rows(folder, "blocks.csv") if row["processor"] == name and not row["rejection"]]
        visits = [math.sqrt(float(row["sentinel_before_ns"]) * float(row["sentinel_after_ns"])) for row in blocks]
        found[name] = (total, *whole_of_visits(visits))
    return found


def flagged(layerlab: Path, one: Path, other: Path) -> tuple[int, int]:
    """How many numbers the two profiles share, and how many of them are called different."""
    command = [layerlab, "compare", "--json", one, other]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    numbers = json.loads(answer.stdout)
    return len(numbers), sum(number["significant"] for number in numbers)


def report(layerlab: Path, name: str, folders: list[Path]) -> None:
    published = [folder for folder in folders if folder.exists()]
    refused = [folder.with_suffix(".refused") for folder in folders]
    reasons = Counter(file.read_text(encoding="utf-8").strip() for file in refused if file.exists())
    checked = agreeing = 0
    misfits = []
    for folder in published:
        for total, whole, low, high in parts_and_whole(folder).values():
            checked += 1
            agreeing += low <= total <= high
            misfits.append(abs(total / whole - 1))
    shares = []
    for place in range(0, len(folders) - 1, 2):
        one, other = folders[place : place + 2]
        if one.exists() and other.exists():
            numbers, different = flagged(layerlab, one, other)
            shares.append(different / numbers)
    print(f"## {name}\n")
    print(f"- {len(folders)} profiles were asked for, {len(published)} published.")
    for reason, count in reasons.most_common():
        print(f"- refused {count} times: {reason}")
    if checked:
        misfits.sort()
        print(
            f"- The sum of layers lies within the interval of the directly timed whole in {agreeing} of {checked}"
            f" ({agreeing / checked:.0%}); they differ by {misfits[len(misfits) // 2]:.2%} in the median and by"
            f" {misfits[-1]:.2%} at most."
        )
    if shares:
        mean = sum(shares) / len(shares)
        print(
            f"- `compare` of {len(shares)} disjoint pairs calls {mean:.1%} of the numbers different in the mean and"
            f" {max(shares):.1%} at most."
        )
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layerlab", type=Path, required=True)
    parser.add_argument("--model", type=Path, action="append", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--profiles", type=int, default=40)
    parser.add_argument("options", nargs="*", help="after --: given to `layerlab profile`")
    arguments = parser.parse_args()
    for model in arguments.model:
        place = arguments.out / model.stem
        place.mkdir(parents=True, exist_ok=True)
        folders = [place / f"{number:02}" for number in range(arguments.profiles)]
        for number, folder in enumerate(folders):
            measure(arguments.layerlab, model, folder, number, arguments.options)
        report(arguments.layerlab, model.stem, folders)


if __name__ == "__main__":
    main()
