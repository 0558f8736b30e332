#!/usr/bin/env python3
"""How large ten million samples are in Parquet and in CSV, and how long the queries of docs/analysis.md take on them: a page.

    make analysis-report

writes tests/reports/analysis.md. `report.py PROGRAMS SAMPLES` prints it, for the folder with layerlab's programs. The profiles are
those of a made-up fleet (tests/src/fleet.rs), and removed at the end.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from page import blocks, connection

TEMPLATE = Path(__file__).parents[2] / "profiles/published/oneplus7/yolo-mini"
REPEATS = 3


def size(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern))


def mebibytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), platform.machine())


def main() -> None:
    programs, samples = Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([programs / "fleet-profiles", TEMPLATE, folder / "profiles", samples], check=True)
        profiles = sorted((folder / "profiles").iterdir())
        export = [programs / "layerlab", "export", "--format", "parquet", "--out", folder / "tables"]
        before = time.monotonic()
        exporting = subprocess.Popen([*export, *profiles], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(exporting.pid, 0)
        assert status == 0, "the export failed"
        took = time.monotonic() - before
        memory = used.ru_maxrss * 1024

        os.chdir(folder)
        duck = connection()
        counts = {table: duck.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("layers", "segments", "samples")}
        csv = {
            "layers": size(folder, "profiles/*/times.csv") + size(folder, "profiles/*/layers.csv"),
            "segments": size(folder, "profiles/*/segments.csv"),
            "samples": size(folder, "profiles/*/samples.csv"),
        }
        print("# Ten million samples in Parquet\n")
        print(
            f"The tables of [docs/analysis.md](../../docs/analysis.md), of {len(profiles)} profiles of a made-up fleet: each is drawn "
            f"from `profiles/published/oneplus7/yolo-mini`, with other durations, and no phone was measured. Made by "
            f"`make analysis-report` on {os.cpu_count()} cores of {cpu()}, with the development build and DuckDB {version('duckdb')}, "
            f"while {os.getloadavg()[0]:.1f} programs ran on the average, this one among them.\n"
        )
        print("| table | rows | CSV | Parquet | share |\n|---|--:|--:|--:|--:|")
        for table, count in counts.items():
            parquet = size(folder, f"tables/{table}/*/*/*.parquet")
            print(f"| `{table}` | {count:,} | {mebibytes(csv[table])} | {mebibytes(parquet)} | {100 * parquet / csv[table]:.0f} % |")
        print(
            "\nThe CSV of `layers` is `layers.csv` and `times.csv` of each profile. Every row in Parquet says beside its numbers where it "
            "comes from, which CSV leaves to `profile.json`; where files have few rows, most of their size is the description of their "
            "columns.\n"
        )
        print(
            f"Exporting all of it, one profile after the other, took {took:.0f} s, and {mebibytes(memory)} of memory at most: "
            "a profile is read whole, and written a row group at a time.\n"
        )
        print(f"The queries of the page, the median of {REPEATS} times, each of which reads the files anew:\n")
        print("| question | rows of the answer | time |\n|---|--:|--:|")
        for question, code in blocks("sql"):
            if not question:
                continue
            times = []
            for _ in range(REPEATS):
                before = time.monotonic()
                answer = duck.execute(code).fetchall()
                times.append(time.monotonic() - before)
            print(f"| {question} | {len(answer):,} | {sorted(times)[REPEATS // 2]:.2f} s |")


if __name__ == "__main__":
    main()
