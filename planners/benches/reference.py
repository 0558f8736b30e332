"""The same as planners.rs with scikit-learn, as one would write it down from the paper: grid search with
GridSearchCV, then Algorithm 1 and 2 with one prediction call for each step, deduplicated by a set.

It solves the same problem: the simulated network of tests/recorded. Only for timing beside
`cargo bench --workspace --bench planners`; nothing else uses it.

    python reference.py
"""

import csv
import pathlib
import time

import numpy
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import MinMaxScaler

LAYERS, KEEP, BASELINE = 26, 100, 0.8
RECORDED = pathlib.Path(__file__).parent.parent / "tests" / "recorded"
GRIDS = {
    "ridge": (Ridge(), {"alpha": [1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0]}),
    "mlp": (
        MLPRegressor(solver="lbfgs", max_iter=200, random_state=0),
        {"hidden_layer_sizes": [(16, 8), (32, 16)], "alpha": [0.01, 0.1, 1.0]},
    ),
    "gbrt": (
        GradientBoostingRegressor(random_state=0),
        {"n_estimators": [50, 100, 200, 300], "max_depth": [2, 3, 4], "learning_rate": [0.05, 0.1, 0.2]},
    ),
}


def table(name):
    with open(RECORDED / name, newline="") as file:
        return list(csv.DictReader(file))


class Network:
    """Times and features of the recorded network, and its training rows."""

    def __init__(self):
        layers = table("network.csv")

        def column(name):
            return numpy.array([float(layer[name]) for layer in layers])

        self.cpu, self.npu = column("cpu_ns"), column("npu_ns")
        self.cuts = numpy.append(column("transfer_before_ns"), float(layers[-1]["transfer_after_ns"]))
        sums = ["parameter_bytes", "input_bytes", "output_bytes", "additions", "multiplications"]
        self.columns = numpy.column_stack([numpy.ones(LAYERS), column("single_loss"), *map(column, sums)])
        rows = [row for row in table("rows.csv") if row["set"] == "train"]
        self.losses = numpy.array([float(row["loss"]) for row in rows])
        self.features = self.rows([[int(bit) for bit in row["combination"]] for row in rows])

    def time(self, x):
        ends = self.cuts[0] * x[0] + self.cuts[-1] * x[-1]
        moves = sum(abs(x[i] - x[i - 1]) * self.cuts[i] for i in range(1, LAYERS))
        return ends + moves + sum(self.npu[i] if x[i] else self.cpu[i] for i in range(LAYERS))

    def rows(self, combinations):
        bits = numpy.array(combinations)
        sums = bits @ self.columns
        sums[:, 1] /= numpy.maximum(sums[:, 0], 1)
        return numpy.column_stack([bits, sums])


def mlmp(network, scaler, model, within=None, at_least=None):
    """Algorithm 1 with a time limit, Algorithm 2 with an accuracy requirement."""

    def triples(combinations):
        losses = model.predict(scaler.transform(network.rows(combinations)))
        accuracies = numpy.clip(BASELINE - losses, 0, BASELINE)
        return [(x, network.time(x), a) for x, a in zip(combinations, accuracies)]

    start = 1 if within else 0
    kept, evaluated = triples([(start,) * LAYERS]), 1
    best = kept[0]
    for _ in range(LAYERS):
        moved = {
            x[:i] + (1 - start,) + x[i + 1:]
            for x, _, _ in kept for i in range(LAYERS) if x[i] == start
        }
        if within:
            moved = [x for x in moved if network.time(x) <= within]
        if not moved:
            break
        found = triples(list(moved))
        evaluated += len(found)
        if within:
            found.sort(key=lambda t: (-t[2], t[1]))
            best = max(best, found[0], key=lambda t: t[2])
            least, kept = float("inf"), []
            for triple in found:
                if triple[1] < least:
                    least = triple[1]
                    kept.append(triple)
        else:
            found = [t for t in found if t[2] >= at_least]
            if not found:
                break
            found.sort(key=lambda t: (t[1], -t[2]))
            best = min(best, found[0], key=lambda t: t[1])
            most, kept = -1, []
            for triple in found:
                if triple[2] > most:
                    most = triple[2]
                    kept.append(triple)
        kept = kept[:KEEP]
    return best, evaluated


def timed(name, function, repeat=1):
    started = time.perf_counter()
    for _ in range(repeat):
        result = function()
    took = (time.perf_counter() - started) / repeat
    print(f"{name}: {took * 1e3:.1f} ms")
    return result


def main():
    network = Network()
    scaler = MinMaxScaler().fit(network.features)
    scaled = scaler.transform(network.features)
    for name, (model, grid) in GRIDS.items():
        search = GridSearchCV(model, grid, cv=5, scoring="neg_mean_squared_error", n_jobs=2)
        timed(f"grid search of {name}", lambda: search.fit(scaled, network.losses))
    slow, fast = network.time((0,) * LAYERS), network.time((1,) * LAYERS)
    for trees in [100, 300]:
        model = GradientBoostingRegressor(n_estimators=trees, max_depth=3, random_state=0)
        model.fit(scaled, network.losses)
        questions = {"Max-Accuracy": {"within": (slow + fast) / 2}, "Min-Time": {"at_least": BASELINE / 2}}
        for name, limit in questions.items():
            (_, nanos, accuracy), evaluated = timed(
                f"{name}, 26 layers, K = 100, {trees} trees",
                lambda: mlmp(network, scaler, model, **limit), 3,
            )
            print(f"    {nanos / 1e6:.1f} ms at accuracy {accuracy:.4f}, {evaluated} combinations evaluated")


if __name__ == "__main__":
    main()
