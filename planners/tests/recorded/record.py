"""Records what scikit-learn does, for tests/recorded.rs to compare with.

Simulated, and so no profile of any device: a chain of 26 layers whose losses do not add up. Writes network.csv
(what each layer costs), rows.csv (300 combinations with the features of docs/method.md §6 and a loss) and expected.json
(what scikit-learn makes of the 250 training rows) beside this file. Needs scikit-learn; its version is recorded.

    python record.py
"""

import json
import pathlib

import numpy
import sklearn
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import MinMaxScaler

LAYERS, ROWS, TRAINING, SEEDS = 26, 300, 250, 10
SUMS = [
    "npu_layers", "mean_single_loss", "npu_parameter_bytes", "npu_input_bytes", "npu_output_bytes",
    "npu_additions", "npu_multiplications",
]
HERE = pathlib.Path(__file__).parent


def combinations(random):
    """k uniform in 1..=n, each layer on the NPU with probability k/n, distinct (mlmp 4.2.1)."""
    found = []
    while len(found) < ROWS:
        k = random.integers(1, LAYERS + 1)
        bits = tuple(int(b) for b in random.random(LAYERS) < k / LAYERS)
        if any(bits) and bits not in found:
            found.append(bits)
    return numpy.array(found)


def simulate(random):
    """Features and losses: layers lose accuracy, neighbours on the NPU lose more, and the loss saturates."""
    bits = combinations(random)
    alone = random.gamma(0.6, 0.04, LAYERS)
    pairs = random.gamma(0.5, 0.02, LAYERS - 1)

    def loss(x):
        raw = x @ alone + (x[:, 1:] * x[:, :-1]) @ pairs
        return 0.6 * (1 - numpy.exp(-raw / 0.6))

    columns = numpy.stack([
        random.integers(1_000, 4_000_000, LAYERS),
        random.integers(20_000, 800_000, LAYERS),
        random.integers(20_000, 800_000, LAYERS),
        random.integers(1_000_000, 200_000_000, LAYERS),
        random.integers(1_000_000, 200_000_000, LAYERS),
    ])
    single = loss(numpy.eye(LAYERS))
    counts = bits.sum(axis=1)
    features = numpy.column_stack([bits, counts, bits @ single / counts, bits @ columns.T])
    return bits, features, loss(bits) + random.normal(0, 0.004, ROWS), columns, single


def write_network(random, columns, single):
    """CPU times over two decades, an NPU ten to thirty times as fast, transfers of the order of its times."""
    cpu = (10 ** random.uniform(6, 8, LAYERS)).astype(int)
    npu = (cpu / random.uniform(10, 30, LAYERS)).astype(int)
    cuts = (10 ** random.uniform(5.5, 7, LAYERS + 1)).astype(int)
    with open(HERE / "network.csv", "w", newline="\n") as file:
        names = ["cpu_ns", "npu_ns", "transfer_before_ns", "transfer_after_ns", "single_loss"]
        file.write(",".join(["layer", *names, *(name.removeprefix("npu_") for name in SUMS[2:])]) + "\n")
        for l in range(LAYERS):
            row = [l + 1, cpu[l], npu[l], cuts[l], cuts[l + 1], float(single[l]), *columns[:, l]]
            file.write(",".join(map(str, row)) + "\n")


def main():
    bits, features, losses, columns, single = simulate(numpy.random.default_rng(2021))
    write_network(numpy.random.default_rng(2022), columns, single)
    with open(HERE / "rows.csv", "w", newline="\n") as file:
        file.write(",".join(["set", "combination", *SUMS, "loss"]) + "\n")
        for place, (row, x, loss) in enumerate(zip(bits, features, losses)):
            numbers = [repr(float(v)) for v in [*x[LAYERS:], loss]]
            which = "train" if place < TRAINING else "test"
            file.write(",".join([which, "".join(map(str, row)), *numbers]) + "\n")
    scaler = MinMaxScaler().fit(features[:TRAINING])
    train, test = scaler.transform(features[:TRAINING]), scaler.transform(features[TRAINING:])
    y, truth = losses[:TRAINING], losses[TRAINING:]
    expected = {"scikit_learn": sklearn.__version__, "ridge": [], "gbrt": [], "mlp": []}
    for penalty in [0.01, 1.0, 10.0]:
        ridge = Ridge(alpha=penalty).fit(train, y)
        expected["ridge"].append({
            "penalty": penalty, "intercept": ridge.intercept_, "coefficients": list(ridge.coef_),
            "predictions": list(ridge.predict(test)),
        })
    # Equally good splits are chosen by chance, so that one forest is one of several.
    for trees, depth, rate in [(100, 2, 0.1), (200, 3, 0.1), (300, 4, 0.05)]:
        r2 = [
            r2_score(truth, GradientBoostingRegressor(
                n_estimators=trees, max_depth=depth, learning_rate=rate, random_state=seed,
            ).fit(train, y).predict(test))
            for seed in range(SEEDS)
        ]
        expected["gbrt"].append({"trees": trees, "depth": depth, "learning_rate": rate, "r2": r2})
    # Networks start from random weights.
    for hidden, penalty in [((16, 8), 0.1), ((32, 16), 1.0)]:
        r2 = [
            r2_score(truth, MLPRegressor(
                hidden_layer_sizes=hidden, alpha=penalty, solver="lbfgs", max_iter=1000, random_state=seed,
            ).fit(train, y).predict(test))
            for seed in range(SEEDS)
        ]
        expected["mlp"].append({"hidden": hidden, "penalty": penalty, "iterations": 1000, "r2": r2})
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
