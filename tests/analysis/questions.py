#!/usr/bin/env python3
"""Runs each query of docs/analysis.md in DuckDB and in pandas, and compares both with what follows from the CSV tables.

    cd FOLDER; questions.py PROFILE...

FOLDER has the tables of these profiles in `tables`. What follows from the CSV tables is calculated here with the standard library
alone. Exit status: 1 if an answer differs, or a question has none.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from page import in_duckdb, in_pandas

TOLERANCE = 1e-9


def rows(profile: Path, table: str) -> list[dict]:
    with open(profile / table, newline="") as file:
        return list(csv.DictReader(file))


class Profile:
    def __init__(self, folder: Path) -> None:
        header = json.loads((folder / "profile.json").read_text())
        provenance = header["provenance"]
        phone = provenance.get("phone")
        self.model = header["model"]["name"]
        self.phone = phone["serial"] if phone else header["device"]["name"]
        self.simulated = header["simulated"]
        self.finished = datetime.fromisoformat(provenance["finished_at"])
        self.night = (datetime.fromisoformat(provenance["started_at"]) - timedelta(hours=12)).date()
        self.month = f"{self.night:%Y-%m}"
        self.times = rows(folder, "times.csv")
        self.segments = rows(folder, "segments.csv")
        self.samples = rows(folder, "samples.csv")
        self.combinations = rows(folder, "combinations.csv")
        self.predicted = {
            (one["processor"], segment["first_layer"], segment["last_layer"]): segment
            for one in header["additivity"]
            for segment in one["segments"]
        }

    def loss(self, processor: str, layer: int) -> float | None:
        for row in self.combinations:
            digits = row["combination"]
            alone = all((digit != "0") == (place == layer) for place, digit in enumerate(digits, 1))
            if row["accelerator"] == processor and alone:
                return float(row["loss"])
        return None


def quantile(values: list[int], share: float) -> float:
    """By linear interpolation between the two nearest."""
    values = sorted(values)
    place = share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def newest(profiles: list[Profile], *key: str) -> list[Profile]:
    found: dict = {}
    for profile in sorted(profiles, key=lambda profile: profile.finished):
        found[tuple(getattr(profile, name) for name in key)] = profile
    return list(found.values())


def marks(profiles: list[Profile]) -> list[tuple]:
    groups = defaultdict(list)
    for profile in profiles:
        groups[profile.model, profile.simulated, False, "cold"].append(profile)
    return [
        (*key, len({one.phone for one in group}), sum(len(one.times) for one in group)) for key, group in groups.items()
    ]


def slower(profiles: list[Profile]) -> list[tuple]:
    months = {}
    for profile in newest(profiles, "model", "phone", "month"):
        for row in profile.times:
            months[profile.model, profile.phone, row["processor"], int(row["layer"]), profile.month] = row
    answer = []
    for (*key, month), now in months.items():
        last = months.get((*key, "2026-10"))
        if month == "2026-11" and last and int(now["compute_ci95_low_ns"]) > int(last["compute_ci95_high_ns"]):
            answer.append((*key, int(now["compute_ns"]) / int(last["compute_ns"]) - 1))
    return answer


def odd(profiles: list[Profile]) -> list[tuple]:
    totals = defaultdict(lambda: defaultdict(int))
    for profile in newest(profiles, "model", "phone"):
        for row in profile.times:
            totals[profile.model, row["processor"]][profile.phone] += int(row["compute_ns"])
    answer = []
    for key, phones in totals.items():
        middle = median(phones.values())
        scale = 1.4826 * median(abs(total - middle) for total in phones.values())
        distances = {phone: (total - middle) / scale for phone, total in phones.items()}
        answer += [(*key, phone, distance) for phone, distance in distances.items() if abs(distance) > 3]
    return answer


def percentiles(profiles: list[Profile]) -> list[tuple]:
    durations = defaultdict(list)
    for profile in profiles:
        for row in profile.samples:
            if row["first_layer"] == "1":
                durations[profile.model, row["processor"], int(row["last_layer"])].append(int(row["duration_ns"]))
    return [(*key, *(quantile(values, share) for share in (0.5, 0.95, 0.99))) for key, values in durations.items()]


def drift(profiles: list[Profile]) -> list[tuple]:
    sums = defaultdict(dict)
    for profile in profiles:
        for row in profile.segments:
            nights = sums[profile.model, row["processor"], profile.phone]
            nights[profile.night] = nights.get(profile.night, 0) + int(row["median_ns"])
    answer = []
    for key, nights in sums.items():
        order = sorted(nights)
        answer += [(*key, night, nights[night] / nights[before] - 1) for before, night in zip(order, order[1:])]
    return answer


def additivity(profiles: list[Profile]) -> list[tuple]:
    groups = defaultdict(list)
    for profile in profiles:
        for row in profile.segments:
            place = (row["processor"], int(row["first_layer"]), int(row["last_layer"]))
            if segment := profile.predicted.get(place):
                groups[profile.model, row["processor"], profile.phone].append((int(row["median_ns"]), segment))
    answer = []
    for key, tested in groups.items():
        worst = max(abs(measured - one["predicted_ns"]) / measured for measured, one in tested)
        outside = sum(
            not one["predicted_ci95_low_ns"] <= measured <= one["predicted_ci95_high_ns"] for measured, one in tested
        )
        answer.append((*key, len(tested), worst, outside))
    return answer


def trade(profiles: list[Profile]) -> list[tuple]:
    saved, lost = defaultdict(list), defaultdict(list)
    for profile in newest(profiles, "model", "phone"):
        cpu = {row["layer"]: int(row["compute_ns"]) for row in profile.times if row["processor"] == "cpu"}
        for row in profile.times:
            key = (profile.model, row["processor"], int(row["layer"]))
            if (loss := profile.loss(row["processor"], int(row["layer"]))) is not None:
                saved[key].append(cpu[row["layer"]] - int(row["compute_ns"]))
                lost[key].append(loss)
    return [(*key, median(saved[key]), median(lost[key])) for key in saved]


QUESTIONS = {
    "marks": marks,
    "slower": slower,
    "odd": odd,
    "percentiles": percentiles,
    "drift": drift,
    "additivity": additivity,
    "trade": trade,
}


def plain(value):
    """A value as the standard library has it."""
    value = value.item() if hasattr(value, "item") else value
    return value.date() if isinstance(value, datetime) else value


def is_same(one, other) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return one == other


def main() -> int:
    profiles = [Profile(Path(folder)) for folder in sys.argv[1:]]
    measured = [profile for profile in profiles if not profile.simulated]
    answers = {"DuckDB": in_duckdb(), "pandas": in_pandas()}
    wrong = 0
    for name, question in QUESTIONS.items():
        expected = sorted(question(profiles if name == "marks" else measured))
        assert expected, f"{name}: these profiles have no answer, and so nothing was tested"
        for reader, found in answers.items():
            found = [tuple(map(plain, row)) for row in found[name].itertuples(index=False)]
            same = len(found) == len(expected) and all(
                all(map(is_same, one, other)) for one, other in zip(sorted(found), expected)
            )
            if not same:
                wrong += 1
                print(f"{name}: {reader} answers\n{sorted(found)[:5]} ...\nand the CSV tables say\n{expected[:5]} ...")
        print(f"{name}: {len(expected)} rows")
    for reader, found in answers.items():
        assert set(found) == set(QUESTIONS), f"{reader} is asked {set(found)}, and {set(QUESTIONS)} are known"
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
