#!/usr/bin/env python3
"""Can losses of accuracy be learnt from the table that a profile has of them? Learns from the rows whose part is
`train`, prints R² on those whose part is `test`, and exits with 1 below 0.95.

    losses.py PROFILE
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold

FEATURES = [
    "npu_layers",
    "mean_single_loss",
    "npu_parameter_bytes",
    "npu_input_bytes",
    "npu_output_bytes",
    "npu_additions",
    "npu_multiplications",
]

LEAST_R2 = 0.95
SEED = 1

# Chosen from by cross-validation on the rows to learn from.
SETTINGS = {
    "n_estimators": [300, 1000],
    "max_depth": [2, 3, 4],
    "learning_rate": [0.03, 0.1],
    "subsample": [0.5, 1.0],
}


def read(path: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features and losses of each part."""
    parts: dict[str, list[tuple[list[float], float]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            x = [float(digit) for digit in row["combination"]]
            x += [float(row[name]) for name in FEATURES]
            parts.setdefault(row["part"], []).append((x, float(row["loss"])))
    return {
        part: (np.array([x for x, _ in rows]), np.array([loss for _, loss in rows]))
        for part, rows in parts.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile", type=Path, help="the profile's folder")
    parts = read(parser.parse_args().profile / "combinations.csv")
    missing = {"train", "test"} - parts.keys()
    if missing:
        sys.exit(f"the table has no rows of part {', '.join(sorted(missing))}; evaluate random placements")
    search = GridSearchCV(
        GradientBoostingRegressor(random_state=SEED),
        SETTINGS,
        cv=KFold(5, shuffle=True, random_state=SEED),
        scoring="r2",
    )
    search.fit(*parts["train"])
    features, losses = parts["test"]
    predicted = search.predict(features)
    r2 = r2_score(losses, predicted)
    settings = ", ".join(f"{name} {value}" for name, value in sorted(search.best_params_.items()))
    print(f"chosen: {settings}; R² {search.best_score_:.4f} in cross-validation of {len(parts['train'][1])} rows")
    print(f"R² {r2:.4f} on {len(losses)} rows, mean absolute error {np.abs(predicted - losses).mean():.4f}")
    return 0 if r2 >= LEAST_R2 else 1


if __name__ == "__main__":
    sys.exit(main())
