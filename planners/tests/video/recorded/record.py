"""Records what scikit-learn makes of simulated scores, for tests/video/calibration.rs to compare with.

Simulated, and so no answers of any network: scores between 0 and 1 that are right more often the higher they are, but not
as often as they say. Writes calibration.json beside this file. Needs scikit-learn; its version is recorded.

    python record.py
"""

import json
import pathlib

import numpy
import sklearn
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

HERE = pathlib.Path(__file__).parent
PROBES = numpy.round(numpy.linspace(-0.2, 1.2, 57), 6)


def case(name, scores, right):
    """One calibration problem and both answers to it."""
    sigmoid = _SigmoidCalibration().fit(scores, right)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(scores, right)
    return {
        "name": name,
        "scores": [float(s) for s in scores],
        "right": [bool(r) for r in right],
        "platt": {"slope": float(sigmoid.a_), "offset": float(sigmoid.b_), "probabilities": list(sigmoid.predict(PROBES))},
        "isotonic": [float(p) for p in isotonic.predict(PROBES)],
        "isotonic_at_scores": [float(p) for p in isotonic.predict(scores)],
    }


def main():
    random = numpy.random.default_rng(2022)
    cases = []
    for name, count, ceiling in [("overconfident", 150, 0.5), ("few", 12, 0.9), ("rare", 120, 0.08)]:
        scores = numpy.round(random.beta(2, 1, count), 4)
        cases.append(case(name, scores, random.random(count) < ceiling * scores))
    # Quantised networks give few different scores.
    scores = numpy.round(random.random(100) * 8) / 8
    cases.append(case("ties", scores, random.random(100) < scores))
    document = {"scikit_learn": sklearn.__version__, "probes": [float(p) for p in PROBES], "cases": cases}
    (HERE / "calibration.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
