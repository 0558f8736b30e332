#!/usr/bin/env python3
"""Compares tables in Parquet, as DuckDB reads them, with the CSV tables of the profiles that were exported, to the last digit.

    same_numbers.py TABLES PROFILE...

Exit status: 1 if a number differs, or a row is missing or too much.
"""

from __future__ import annotations

import csv
import json
import sys
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import duckdb

# The columns of CSV tables that are left out, as docs/analysis.md says.
LEFT_OUT = {"segments": {"histogram"}, "layers": {"unresolved"}, "samples": set()}


def csv_rows(profile: Path, table: str) -> list[dict]:
    path = profile / table
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def expected(profile: Path, table: str) -> list[dict]:
    """The rows of a table, of the CSV tables that it is made of."""
    if table != "layers":
        return csv_rows(profile, f"{table}.csv")
    layers = {row["layer"]: row for row in csv_rows(profile, "layers.csv")}
    energies = {(row["layer"], row["processor"]): row for row in csv_rows(profile, "layer_energy.csv")}
    combinations = csv_rows(profile, "combinations.csv")
    rows = []
    for time in csv_rows(profile, "times.csv"):
        row = {**layers[time["layer"]], **time}
        energy = energies.get((time["layer"], time["processor"]), {})
        for name in time:
            if name.endswith("_ns"):
                row[name[:-3] + "_nj"] = energy.get(name[:-3] + "_nj", "")
        alone = [
            one
            for one in combinations
            if one["accelerator"] == time["processor"]
            and [place for place, digit in enumerate(one["combination"], 1) if digit != "0"] == [int(time["layer"])]
        ]
        for name in ("loss", "loss_ci95_low", "loss_ci95_high"):
            row[name] = alone[0][name] if alone else ""
        rows.append(row)
    return rows


def same(text: str, value) -> bool:
    """Whether a field of a CSV table and a value are the same."""
    if text == "":
        return value is None
    match value:
        case None:
            return False
        case int():
            return text == str(value)
        case float():
            return float(text) == value
        case _:
            return text == value


def microseconds(text: str) -> int:
    """Since 1970."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def compare(duck: duckdb.DuckDBPyConnection, tables: str, profile: Path) -> int:
    """How many numbers of a profile were compared; stops at the first that differs."""
    header = (profile / "profile.json").read_bytes()
    digest, document = sha256(header).hexdigest(), json.loads(header)
    emulated = {one["name"]: one.get("emulated", False) for one in document["processors"]}
    count = 0
    for table, left_out in LEFT_OUT.items():
        found = duck.execute(
            "SELECT * EXCLUDE (started_at, finished_at), epoch_us(started_at) AS started_us, epoch_us(finished_at) AS finished_us "
            f"FROM read_parquet('{tables}/{table}/*/*/{digest}.parquet', hive_partitioning = true, file_row_number = true) "
            "ORDER BY file_row_number"
        )
        names = [column[0] for column in found.description]
        found = [dict(zip(names, row)) for row in found.fetchall()]
        rows = expected(profile, table)
        assert len(found) == len(rows), f"{profile} {table}: {len(found)} rows, and {len(rows)} in CSV"
        for place, (row, other) in enumerate(zip(rows, found)):
            assert other["model"] == document["model"]["name"]
            assert other["model_sha256"] == document["model"]["sha256"]
            assert other["simulated"] == document["simulated"]
            assert other["emulated"] == emulated[other["processor"]]
            assert other["thermal"] == document.get("thermal", "cold")
            assert other["started_us"] == microseconds(document["provenance"]["started_at"])
            assert other["finished_us"] == microseconds(document["provenance"]["finished_at"])
            for name, text in row.items():
                if name in left_out:
                    continue
                assert same(text, other[name]), f"{profile} {table}, row {place}, {name}: {text!r} and {other[name]!r}"
                count += 1
    return count


def main() -> None:
    tables, *profiles = sys.argv[1:]
    duck = duckdb.connect()
    count = sum(compare(duck, tables, Path(profile)) for profile in profiles)
    for table in LEFT_OUT:
        files = len(list(Path(tables).glob(f"{table}/*/*/*")))
        assert files == len(profiles), f"{table} has {files} files of {len(profiles)} profiles"
    print(f"{count} numbers are the same")


if __name__ == "__main__":
    main()
