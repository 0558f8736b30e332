#!/usr/bin/env python3
"""Of profiles between which nothing changed: how often does a gate say that one of them is worse than others?

    gate_history.py [--layerlab target/debug/layerlab] [--gates 200] [--seed 18] FOLDER > TABLES

FOLDER holds profiles of one model on one device (`host_profiles.py` makes such), in the order of their names. For each number of
good profiles (1, 4, 8, 16), a gate is given so many good ones and a new one: once drawn at random of all, as runs of different
days are, and once as neighbours in the order of time, as runs of one hour are. `layerlab compare --gate` decides. Prints tables in
Markdown: alarms, how many chance allows (the binomial's 99 % quantile), and from how much on, in the middle of the gates, the whole
model and the layer that is seen worst would have been found. Needs nothing but Python.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

GOOD = [1, 4, 8, 16]
TOLERATED = ["0%", "5%"]
ALPHA = 0.01
PASSED, WORSE = 0, 7


def most_by_chance(gates: int, alpha: float) -> int:
    """The most alarms that a chance of alpha gives but once in a hundred times."""
    probability = (1 - alpha) ** gates
    total, count = probability, 0
    while total < 0.99:
        probability *= (gates - count) / (count + 1) * alpha / (1 - alpha)
        count += 1
        total += probability
    return count


def gate(layerlab: Path, tolerated: str, profiles: list[Path]) -> tuple[bool, float, float]:
    """Whether the last profile raised an alarm; from how much on the whole and the worst layer would have, as shares."""
    command = [layerlab, "compare", "--json", "--gate", tolerated, "--alpha", str(ALPHA), *profiles]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode not in (PASSED, WORSE):
        sys.exit(f"{profiles[-1]}: {ended.stderr}")
    numbers = json.loads(ended.stdout)["numbers"]
    whole = [number for number in numbers if number["what"] == "whole"]
    layers = [number for number in numbers if number["what"] == "layer"]
    # As `compare` says it: of the layer's own time, or of an average layer's where that is longer.
    average = sum(number["one"] for number in whole) / len(layers)

    def detectable(number: dict) -> float:
        # JSON has no infinity.
        return math.inf if number["detectable_95"] is None else number["detectable_95"]

    of_whole = max(detectable(number) / number["one"] for number in whole)
    of_layers = max(detectable(number) / max(number["one"], average) for number in layers)
    return ended.returncode == WORSE, of_whole, of_layers


def drawn(profiles: list[Path], good: int, gates: int, seed: int) -> list[list[Path]]:
    """Good profiles and a new one, at random."""
    chance = random.Random(f"{seed} {good}")
    return [chance.sample(profiles, good + 1) for _ in range(gates)]


def neighbours(profiles: list[Path], good: int, gates: int) -> list[list[Path]]:
    """Good profiles and the one after them, in the order of time; as many as there are."""
    starts = range(len(profiles) - good)
    return [profiles[start : start + good + 1] for start in starts][:gates]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layerlab", type=Path, default=Path("target/debug/layerlab"))
    parser.add_argument("--gates", type=int, default=200)
    parser.add_argument("--seed", type=int, default=18)
    arguments = parser.parse_args()
    profiles = sorted(path.parent for path in arguments.folder.glob("*/profile.json"))
    if len(profiles) <= max(GOOD):
        sys.exit(f"{arguments.folder} has {len(profiles)} profiles: {max(GOOD) + 1} are needed at least")
    ways = {
        "drawn at random": lambda good: drawn(profiles, good, arguments.gates, arguments.seed),
        "neighbours in time": lambda good: neighbours(profiles, good, arguments.gates),
    }
    print(f"{len(profiles)} profiles, alpha {ALPHA}, {arguments.seed} as the seed of what is drawn.")
    print("\n| profiles | tolerated | good ones | gates | alarms | at most by chance | whole found from | worst layer found from |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for way, choose in ways.items():
            for tolerated in TOLERATED:
                for good in GOOD:
                    gates = choose(good)
                    found = list(pool.map(lambda one: gate(arguments.layerlab, tolerated, one), gates))
                    alarms = sum(alarmed for alarmed, _, _ in found)
                    middle = [statistics.median(column) for column in list(zip(*found))[1:]]
                    seen = " | ".join("beyond measure" if math.isinf(share) else f"{share:.1%}" for share in middle)
                    most = most_by_chance(len(gates), ALPHA)
                    print(f"| {way} | {tolerated} | {good} | {len(gates)} | {alarms} | {most} | {seen} |", flush=True)


if __name__ == "__main__":
    main()
