"""What the report reads from published profiles."""

import csv
import json
from pathlib import Path
from typing import NamedTuple


class LayerTime(NamedTuple):
    """A compute time with its 95 % interval, in nanoseconds."""

    value: float
    low: float
    high: float


class Published:
    """A profile, and one of its processors."""

    def __init__(self, folder: Path, processor: str) -> None:
        self.folder = folder
        self.processor = processor
        self.header = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
        self.layers = [row["name"] for row in self.table("layers.csv")]
        times = [row for row in self.table("times.csv") if row["processor"] == processor]
        self.rows = sorted(times, key=lambda row: int(row["layer"]))

    def table(self, name: str) -> list[dict[str, str]]:
        with open(self.folder / name, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def times(self) -> list[LayerTime]:
        """The compute time of each layer, layer 1 first. One without an interval has itself as its interval."""
        def time(row: dict[str, str]) -> LayerTime:
            value = float(row["compute_ns"])
            low, high = row["compute_ci95_low_ns"], row["compute_ci95_high_ns"]
            return LayerTime(value, float(low or value), float(high or value))

        return [time(row) for row in self.rows]

    def sum_of_parts(self) -> float:
        """All layers, and the transfers into the first and out of the last one: T(L) of all layers here."""
        total = sum(time.value for time in self.times())
        return total + float(self.rows[0]["to_processor_ns"] or 0) + float(self.rows[-1]["from_processor_ns"] or 0)

    def whole(self) -> float | None:
        """The median of the whole model, timed as one segment in turn with others; None where that was not timed."""
        wanted = (self.processor, "1", str(len(self.layers)))
        for row in self.table("segments.csv"):
            if (row["processor"], row["first_layer"], row["last_layer"]) == wanted:
                return float(row["median_ns"])
        return None

    def sentinels(self) -> list[float]:
        """The sentinels, each the median of several runs of the whole model in a row, at both ends of all accepted blocks."""
        blocks = [row for row in self.table("blocks.csv") if row["processor"] == self.processor and not row["rejection"]]
        return [float(row[end]) for row in blocks for end in ("sentinel_before_ns", "sentinel_after_ns")]

    def additivity(self) -> tuple[str, str]:
        """What the profile's own test of additivity says: the misfit, and how often chance explains it."""
        for one in self.header.get("additivity", []):
            if one["processor"] == self.processor:
                return f"{one['misfit_percent']:.1f}%", f"{one['p_value']:.3f}"
        return "not tested", ""
