#!/usr/bin/env python3
"""Has HiGHS find the least splits of the networks that `split-programs` prints, and compares what they cost.

    split-programs | split_programs.py

The integer program says what a split is (jointdnn 2.4), not how one is found: a variable for each group on each side, each
layer is run once, and a tensor crosses the link where a layer on the other side uses it. Costs of crossings are calculated
anew, by Eq. 21. Needs highspy; tests/split-programs installs it.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

import highspy
import numpy as np

# Costs are in ms and mJ, so that the solver's tolerances are far below what one ns is of a split's cost.
UNIT = 1e-6
# Solvers stop within a gap, and let limits be exceeded by about as much.
TOLERANCE = 1e-6
UP, DOWN = "upload", "download"


class Program:
    """Columns with three costs each, and rows."""

    def __init__(self) -> None:
        self.costs: list[tuple[int, int, int]] = []
        self.integer: list[bool] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def column(self, costs: tuple[int, int, int], integer: bool) -> int:
        self.costs.append(costs)
        self.integer.append(integer)
        return len(self.costs) - 1

    def least(self, minimise: int, limits: list[int | None]) -> float | None:
        columns = [[cost[place] * UNIT for cost in self.costs] for place in range(3)]
        rows = list(self.rows)
        for place, limit in enumerate(limits):
            if limit is not None:
                rows.append(({at: cost for at, cost in enumerate(columns[place]) if cost}, -highspy.kHighsInf, limit * UNIT))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.costs), len(rows)
        lp.col_cost_ = np.array(columns[minimise])
        lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.ones(lp.num_col_)
        lp.integrality_ = [highspy.HighsVarType.kInteger if one else highspy.HighsVarType.kContinuous for one in self.integer]
        lp.row_lower_ = np.array([low for _, low, _ in rows])
        lp.row_upper_ = np.array([high for _, _, high in rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(terms) for terms, _, _ in rows)])
        lp.a_matrix_.index_ = np.array([at for terms, _, _ in rows for at in terms])
        lp.a_matrix_.value_ = np.array([factor for terms, _, _ in rows for factor in terms.values()])
        highs = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", 0.0),
            ("primal_feasibility_tolerance", 1e-9),
            ("mip_feasibility_tolerance", 1e-9),
        ):
            assert highs.setOptionValue(option, value) == highspy.HighsStatus.kOk, option
        assert highs.passModel(lp) == highspy.HighsStatus.kOk
        highs.run()
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal, status
        return highs.getInfo().objective_function_value


def nearest(one: int, other: int) -> int:
    """Of one / other, halves up: costs are whole ns and nJ."""
    return (2 * one + other) // (2 * other)


def spent(microwatts: int, nanos: int) -> int:
    return nearest(microwatts * nanos, 10**6)


def crossing(instance: dict, way: str, size: int) -> tuple[int, int, int]:
    """What moving so many bytes costs: ns, nJ, and no server time."""
    link = instance[way]
    sending = nearest(size * 8 * 10**9, link["bps"])
    radio = nearest(link["slope"] * link["bps"], 10**6) + instance["base"]
    wait = waited(link["wait"], size)
    return (wait + sending, spent(radio, sending) + spent(instance["idle"], wait), 0)


def waited(wait, size):
    """What a transfer takes beside its bytes: between the smallest and a large one in proportion to them."""
    if size >= wait["large_from"]:
        return wait["large"]
    shares = (wait["large_from"] - size, size)
    return nearest(wait["smallest"] * shares[0] + wait["large"] * shares[1], wait["large_from"])


def program(instance: dict) -> Program:
    made = Program()
    layers = range(1, instance["layers"] + 1)
    runs: dict[int, dict[int, float]] = {layer: {} for layer in layers}
    # What of a layer runs on the server; the input, layer 0, is on the phone.
    served: dict[int, dict[int, float]] = {layer: {} for layer in (0, *layers)}
    for group in instance["groups"]:
        first, last = group["first"], group["last"]
        # Nothing leaves a group but from its last layer.
        if any(
            first <= tensor["producer"] < last
            and (tensor["is_result"] or any(to > last for to in tensor["consumers"]))
            for tensor in instance["tensors"]
        ):
            continue
        for side, cost in (("phone", group["phone"]), ("server", group["server"])):
            if cost is None:
                continue
            if side == "phone":
                costs = (cost[0], cost[1], 0)
            else:
                costs = (cost, spent(instance["idle"], cost), cost)
            at = made.column(costs, True)
            for layer in range(first, last + 1):
                runs[layer][at] = 1.0
                if side == "server":
                    served[layer][at] = 1.0
    for layer in layers:
        made.rows.append((runs[layer], 1.0, 1.0))
    for layer, size in zip(layers, instance["returned_weights"], strict=True):
        if size > 0:
            at = made.column(crossing(instance, DOWN, size), False)
            made.rows.append(({at: 1.0} | {it: -1.0 for it in served[layer]}, 0.0, highspy.kHighsInf))
    for tensor in instance["tensors"]:
        here = served[tensor["producer"]]
        ways = {way: made.column(crossing(instance, way, tensor["bytes"]), False) for way in (UP, DOWN)}
        users = [served[consumer] for consumer in tensor["consumers"]]
        # What the phone wants in the end is as if a layer there used it.
        users += [{}] * tensor["is_result"]
        for there in users:
            for way, sign in ((UP, 1.0), (DOWN, -1.0)):
                row = {ways[way]: 1.0}
                # A group that holds both counts for neither.
                for at in here.keys() ^ there.keys():
                    row[at] = sign if at in here else -sign
                made.rows.append((row, 0.0, highspy.kHighsInf))
    return made


def main() -> int:
    networks: dict[str, int] = {}
    compared = impossible = 0
    farthest = 0.0
    for line in sys.stdin:
        instance = json.loads(line)
        made = program(instance)
        networks[instance["kind"]] = networks.get(instance["kind"], 0) + 1
        for goal in instance["goals"]:
            found, least = goal["found"], made.least(goal["minimise"], goal["limits"])
            who = f"{instance['kind']} {instance['seed']}, {goal}"
            if found is None or least is None:
                assert found is None and least is None, f"{who}: HiGHS says {least}"
                impossible += 1
                continue
            apart = abs(found * UNIT - least) / max(least, 1.0)
            assert apart <= TOLERANCE, f"{who}: HiGHS says {least / UNIT}"
            farthest = max(farthest, apart)
            compared += 1
        if (done := sum(networks.values())) % 40 == 0:
            print(f"{done} networks, {compared + impossible} goals", file=sys.stderr, flush=True)
    if not compared:
        print("no network came in", file=sys.stderr)
        return 1
    kinds = ", ".join(f"{count} {kind}" for kind, count in networks.items())
    print(
        f"HiGHS {version('highspy')} agrees: {kinds}; {compared} least costs, at most {farthest:.1g} of them apart; "
        f"{impossible} that nothing keeps"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
