#!/usr/bin/env python3
"""The method on hardware that nobody simulated: ONNX Runtime's CPU, timed as the CPU that it is and as an accelerator.

    report.py FOLDER > tests/reports/onnxruntime.md

Makes AlexNet and ResNet-50 at full size in FOLDER, profiles them on this machine with layerlab (each layer by itself, then
in segments of which layer times are derived), profiles them with ONNX Runtime's own profiler, and prints a report in
Markdown. What is in FOLDER is not measured again, so that a report that was interrupted goes on. Needs a quiet machine,
`cargo build --workspace --bins`, and what requirements.txt names. Progress goes to standard error.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import re
import shlex
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import onnxruntime

from nodes import node_times
from pages import HUGE_PAGES, TUNABLES, with_pages
from passing import cost_of_passing
from published import Published

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = Path(onnxruntime.__file__).parent / "capi"
ORT = "cpu:ort-all"
TRACT = "cpu:all"
PREFIX_SUFFIX = "prefix-suffix"
# A profile that the machine disturbed is measured again so often.
ATTEMPTS = 3
DEVICE_FAILED = 4
# One that contradicts itself is not measured again until it does not: it is told as it is.
CONTRADICTS_ITSELF = 6
# A run that takes longer waits for a machine that does not become quiet.
DEADLINE_S = 3600
# The argument of the processes that models run in, and how often the others are looked for.
RUNTIME_CHILD = b"runtime-child"
MOVED_EVERY_S = 1
# So often ONNX Runtime profiles a model, and so many inferences each time.
PROFILED_PROCESSES = 20
PROFILED_RUNS = 30
# How long by_hand.py asks a question.
BY_HAND_S = 60


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} load {os.getloadavg()[0]:.1f}: {text}", file=sys.stderr, flush=True)


def model(folder: Path, name: str, width: str) -> Path:
    path = folder / f"{name}.onnx"
    if not path.exists():
        say(f"{name} at width {width}")
        made = path.with_suffix(".new")
        generate = [sys.executable, ROOT / "tests/models/generate.py", name, "-o", made, "--width", width]
        subprocess.run(generate, check=True, stdout=subprocess.DEVNULL)
        made.rename(path)
    return path


def for_each(models: list[str], numbers: str) -> list[str]:
    """A number for each model: the same for all, or one for each in their order."""
    given = numbers.split(",")
    if len(given) not in (1, len(models)):
        sys.exit(f"{numbers}: give one number for all models, or one for each of the {len(models)}")
    return given * len(models) if len(given) == 1 else given


def last_cores(threads: int) -> list[int]:
    """So many cores, of which each is one thread of either runtime: not the first ones, which are interrupted most."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        sys.exit(f"this machine has {len(cores)} cores: ask for no more --threads")
    return cores[-threads:]


def on_cores(threads: int) -> list[str]:
    """The beginning of a command that has so many cores."""
    return ["taskset", "--cpu-list", ",".join(map(str, last_cores(threads)))]


@contextmanager
def kept_off(cores: list[int], programs: Path) -> Iterator[None]:
    """While this lasts, what layerlab runs of these programs is on other cores, but for the processes that models run in.

    Where it is on the same core, what it does between inferences makes suffixes scatter from visit to visit nearly twice as far.
    """
    others = os.sched_getaffinity(0) - set(cores)
    is_over = threading.Event()

    def move() -> None:
        while others and not is_over.wait(MOVED_EVERY_S):
            for process in Path("/proc").glob("[0-9]*"):
                # It may end at any time.
                with suppress(OSError):
                    is_ours = (process / "exe").resolve().parent == programs
                    if is_ours and RUNTIME_CHILD not in (process / "cmdline").read_bytes().split(b"\0"):
                        for thread in (process / "task").iterdir():
                            os.sched_setaffinity(int(thread.name), others)

    mover = threading.Thread(target=move)
    mover.start()
    try:
        yield
    finally:
        is_over.set()
        mover.join()


class Profiled(NamedTuple):
    """Where a profile is, if it is anywhere, and what is wrong with it."""

    folder: Path | None
    wrong: str | None


def profile(out: Path, threads: int, layerlab: Path, arguments: list[str]) -> Profiled:
    """Profiles into `out`, unless it is there, or kept beside it because it contradicts itself."""
    refused, why = out.with_name(f".{out.name}.refused"), ""
    for attempt in range(ATTEMPTS):
        if (out / "profile.json").exists():
            return Profiled(out, None)
        if (refused / "profile.json").exists():
            return Profiled(refused, "refused, for it contradicts itself: `layerlab check` says how")
        say(f"{out}, attempt {attempt + 1} of {ATTEMPTS}")
        command = [*on_cores(threads), layerlab, "profile", "--device", "host", "--out", out, *arguments]
        environment = os.environ | {"LAYERLAB_ONNXRUNTIME": str(LIBRARIES), "LAYERLAB_ADB": ""}
        environment.pop("LAYERLAB_QNN", None)
        environment.pop("LAYERLAB_EMULATE", None)
        try:
            with kept_off(last_cores(threads), layerlab.resolve().parent):
                ended = subprocess.run(
                    command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S
                )
        except subprocess.TimeoutExpired:
            return Profiled(None, f"it did not end within {DEADLINE_S} s: the machine is not quiet")
        if ended.returncode not in (0, DEVICE_FAILED, CONTRADICTS_ITSELF):
            sys.exit(f"{out}: {ended.stderr}")
        why = (ended.stderr.strip().splitlines() or [""])[-1]
        if ended.returncode:
            say(why)
        if ended.returncode == CONTRADICTS_ITSELF:
            return Profiled(refused, f"refused: {why}")
    return Profiled(out, None) if (out / "profile.json").exists() else Profiled(None, why)


def least_squares(folder: Path, layerlab: Path) -> Path:
    """The profile in `folder` with its layer times by least squares, which takes out how fast each visit was."""
    out = folder.with_name(f"{folder.name}-least-squares")
    if not (out / "profile.json").exists():
        derive = [layerlab, "derive", folder, "--method", "graph", "--out", out]
        subprocess.run(derive, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out


class Nodes(NamedTuple):
    """What each layer takes by ONNX Runtime's profiler, layer 1 first: its median in each of several processes."""

    in_processes: list[list[float]]

    def times(self) -> list[float]:
        return [statistics.median(times) for times in zip(*self.in_processes)]

    def halves(self) -> tuple[list[float], list[float]]:
        """The same from every other process, and from the others."""
        return Nodes(self.in_processes[::2]).times(), Nodes(self.in_processes[1::2]).times()


def nodes(out: Path, threads: int, path: Path, layers: list[str]) -> Nodes:
    """Profiles by ONNX Runtime on the same cores, each in a process of its own, as each visit of layerlab is."""
    if not out.exists():
        say(f"{out}")
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, last_cores(threads))
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            profiles = [(path, layers, threads, PROFILED_RUNS)] * PROFILED_PROCESSES
            times = pool.starmap(node_times, profiles, chunksize=1)
        os.sched_setaffinity(0, cores)
        out.write_text(json.dumps(times), encoding="utf-8")
    return Nodes(json.loads(out.read_text(encoding="utf-8")))


def pages(out: Path) -> str:
    """What pages.py says of this machine."""
    if not out.exists():
        say("pages of memory")
        compare = [*on_cores(1), sys.executable, Path(__file__).with_name("pages.py")]
        ended = subprocess.run(compare, check=True, stdout=subprocess.PIPE, text=True)
        out.write_text(ended.stdout, encoding="utf-8")
    return out.read_text(encoding="utf-8")


def by_hand(out: Path, name: str, path: Path, direct: Path) -> str:
    """What by_hand.py says of a model."""
    if not out.exists():
        say(f"{out}")
        rows = []
        for memory, options in (("one for each segment", []), ("one for all", ["--shared-memory"])):
            script = [sys.executable, Path(__file__).with_name("by_hand.py"), path, direct, "--seconds", str(BY_HAND_S), *options]
            ended = subprocess.run([*on_cores(1), *script], check=True, stdout=subprocess.PIPE, text=True)
            said = re.fullmatch(r"(\d+) rounds; the whole takes (.+); its parts (.+)\n", ended.stdout)
            rows.append(line([name, memory, *said.groups()]))
        out.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return out.read_text(encoding="utf-8")


def same_answers(out: Path) -> str:
    """What the test says that compares the answers of both runtimes."""
    if not out.exists():
        say("the answers of tract and ONNX Runtime")
        test = ["cargo", "test", "--workspace", "--test", "onnxruntime", "tract_and_onnx_runtime", "--", "--nocapture"]
        environment = os.environ | {"LAYERLAB_ONNXRUNTIME": str(LIBRARIES), "LAYERLAB_QNN": str(LIBRARIES)}
        ended = subprocess.run(test, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        found = re.findall(r"^(\S+): relative L2 (\S+)$", ended.stdout, re.MULTILINE)
        out.write_text("".join(f"| {name} | {distance} |\n" for name, distance in found), encoding="utf-8")
    return out.read_text(encoding="utf-8")


def rank_correlation(a: list[float], b: list[float]) -> float:
    """Spearman's; no two times are equal in practice."""
    def ranks(values: list[float]) -> list[float]:
        rank = [0.0] * len(values)
        for place, index in enumerate(sorted(range(len(values)), key=values.__getitem__)):
            rank[index] = float(place)
        return rank

    return statistics.correlation(ranks(a), ranks(b))


def milliseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.2f}"


def row(name: str, threads: int, design: str, direct: Published, derived: Published, by_nodes: list[float]) -> str:
    """How a derived profile compares with the direct times and with ONNX Runtime's profile."""
    pairs = list(zip(derived.times(), direct.times()))
    within = sum(one.low <= other.value <= one.high for one, other in pairs)
    reverse = sum(other.low <= one.value <= other.high for one, other in pairs)
    overlap = sum(one.low <= other.high and other.low <= one.high for one, other in pairs)
    whole = derived.whole()
    parts = derived.sum_of_parts()
    of_sentinels = [statistics.mean(derived.sentinels()), statistics.median(derived.sentinels())]
    against = ["not timed" if whole is None else f"{parts / whole - 1:+.1%}"]
    same_speed = derived.sum_against_whole()
    against += ["" if same_speed is None else f"{same_speed.more:+.1%} ± {same_speed.error:.1%}"]
    against += [f"{parts / one - 1:+.1%}" for one in of_sentinels]
    values = [one.value for one, _ in pairs]
    with_direct = rank_correlation(values, [other.value for _, other in pairs])
    resolved = [place for place, (one, _) in enumerate(pairs) if one.low > 0]
    of_resolved = [[times[place] for place in resolved] for times in (values, by_nodes)]
    shares = [f"{count / len(pairs):.0%}" for count in (within, reverse, overlap)]
    cells = [name, threads, design, len(pairs), *shares, *against, f"{with_direct:.3f}"]
    cells += [f"{rank_correlation(values, by_nodes):.3f}", len(resolved), f"{rank_correlation(*of_resolved):.3f}"]
    return line(cells)


def unsteadiness(sentinels: list[float]) -> list[str]:
    """How many sentinels there were, and their standard deviation and their mean's, of their mean."""
    relative = statistics.stdev(sentinels) / statistics.mean(sentinels)
    return [str(len(sentinels)), f"{relative:.1%}", f"{relative / len(sentinels) ** 0.5:.1%}"]


def passing(path: Path, design: str, derived: Published) -> list[str]:
    """What each megabyte costs that passes through, as published and calculated anew; of prefixes and suffixes nothing does."""
    published = derived.milliseconds_per_passing_megabyte()
    cost = None if design.startswith(PREFIX_SUFFIX) else cost_of_passing(path, derived)
    return [
        "" if published is None else f"{published.value:+.3f} ms, {published.low:+.3f} to {published.high:+.3f}",
        "" if cost is None else f"{cost.milliseconds_per_megabyte:+.3f} ± {cost.error:.3f} ms",
    ]


def line(cells: list[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


HEADER = """\
# Derived times against directly timed ones

{machine}; ONNX Runtime {version} at optimisation level 2, tract beside it. AlexNet and ResNet-50 at width {width}, weights
drawn at random, batch 1. All memory in pages of 2 MiB where the kernel grants them (below). Made by

    {command}

*Direct*: ONNX Runtime as the CPU that it is, each layer a segment of its own, timed in passes over the whole model.
*Derived*: the same library as an accelerator (`--as-accelerator {ort}`): inputs are copied in and outputs out, only
segments are timed, and the times of layers follow from them (docs/method.md). Whatever of layerlab runs no model is on other
cores, where there are any. *Profile*: the library's own profiler, which
times every node of the whole model, here in {processes} processes, {runs} inferences of each; how far half of them agree with the
other half stands in a row of its own. *Sum*: all layers with the moving in and out of the model; against the whole model in
turn with the other segments (the median of its samples), and against the
mean and the median of the sentinels, which are the whole model several times in a row at both ends of each block. With
adaptive the whole has a turn in one round of eight, and each visit has its own speed: *at one speed* is the same comparison with the speeds
of visits taken out, by a calculation in Python that shares nothing with layerlab's, and its standard error (a jackknife over
visits; times of neighbours less those of the layers between, so that prefix-suffix has none, and with what passes through
these in it). *Resolved* is a layer whose interval does not reach zero.

## Layers

| model | threads | design | layers | direct time in the derived interval | derived time in the direct interval | intervals \
overlap | sum against whole | at one speed | sum against sentinels' mean | against their median | rank correlation with direct | rank correlation with profile | resolved layers | their rank \
correlation with profile |
|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""

DEVIATIONS = """
## What deviates

- *Direct times and the profiler's.* Timed directly, every layer is an inference of its own, which the profiler's nodes are not.
  What that costs is in the direct time of each layer; in derived times it is part of the cuts.
- *Prefix and suffix.* A layer's time is the difference of four times that are as long as half of the model on average, so that
  their errors count in full however short the layer is. The table says how many layers are resolved at all.
- *The speed of the machine.* Derived times are at the average speed of all visits, since speeds are taken out.
  The sentinels' mean is at the average speed as well, their median at the usual one.
- *The sum.* Where times add up, it differs from the whole by noise alone. Each profile tests that by segments that its fit has
  not seen: how far these were from what was predicted, and how often chance alone would take them so far. Beside it, how
  unsteady the machine was: the standard deviation of the sentinels, and what is left of it in their mean if they are independent.
- *What passes through.* A segment inside of a residual block takes the tensor of the shortcut and gives it again. Where
  that costs less than moving it in and out where it is used or made, S(i,j) is no sum of a_i and b_j there, and many short
  segments would say that the whole is longer than it is. The fit therefore has a term for it (docs/method.md §3). The last columns are what
  each megabyte costs beside moving in and out: as the profile has it, with its 95 % interval, and with its standard error by a
  calculation that shares nothing with it (`passing.py`). AlexNet has no shortcuts.

| model | threads | design | misfit | by chance | sentinels | standard deviation | of the mean | for each MB that passes | \
by `passing.py` |
|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"""

GUESSES = """
Not tested, and no more than a guess: that a second thread is woken anew for each layer that is an inference of its own. What is
known of the machine is that it shares its cores, and is faster or slower for seconds to minutes
(docs/method.md §8), of which each profile saw its own minutes.
"""

MEMORY = """
## Working memory

Why the agent gives all segments one working memory (an arena, in ONNX Runtime's words). `tests/reports/onnxruntime/by_hand.py` asks
whether parts add up without layerlab: it cuts a network with nothing but onnx, and times all layers, all pairs of neighbours and the
whole in turn in one process on one thread. *Parts*: all pairs less the layers that are in two of them, against the whole, with the
standard error of the median over rounds. No term for what passes through is in that. With a memory for each, a
segment writes where nothing was written since its own last turn, and the layers of the whole where the ones before have just been.

| model | working memory | rounds | the whole takes | parts against the whole |
|---|---|--:|--:|--:|
"""

PAGES = """
## Pages of memory

Why all of this was measured with pages of 2 MiB (`GLIBC_TUNABLES=glibc.malloc.hugetlb=1`): AlexNet's first fully connected layer,
whose 151 MB of weights are read once in each inference, timed by `tests/reports/onnxruntime/pages.py` in processes that take
turns. Which pages of 4 KiB a process is given decides how fast it reads them, for as long as the process or the load lives. Of
the differences between processes, and between loads, the columns give the standard deviation.
"""

SIDE_BY_SIDE = """
## tract and ONNX Runtime side by side

The sum of all layers, each timed directly, in milliseconds; beside it what ONNX Runtime's profiler says of all nodes.

| model | threads | tract | ONNX Runtime | its profile |
|---|--:|--:|--:|--:|"""

ANSWERS = """
How far ONNX Runtime's answers are from tract's, of the committed models, relative L2:

| model | distance |
|---|--:|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layerlab", type=Path, default=ROOT / "target/debug/layerlab")
    parser.add_argument("--models", default="alexnet,resnet50")
    parser.add_argument("--width", default="1", help="factor on all channels; smaller ones are for trying this out")
    parser.add_argument("--threads", default="2,1")
    parser.add_argument("--budget", default="120s", help="device time of the adaptive design")
    parser.add_argument("--target-ci", default="2", help="per cent at which it stops earlier")
    parser.add_argument("--runs", type=int, default=1, help="how often each design is measured, to see how far its results scatter")
    each = "; one number for all models, or one for each of them, with commas"
    parser.add_argument("--visits", default="5", help=f"in which the samples of prefix-suffix are taken{each}")
    parser.add_argument("--samples", default="20", help=f"of each segment with prefix-suffix{each}")
    parser.add_argument("--direct-samples", default="100", help="of each layer that is timed directly")
    arguments = parser.parse_args()
    if os.environ.get(TUNABLES) != HUGE_PAGES:
        # glibc reads it when a process begins.
        os.execve(sys.executable, [sys.executable, *sys.argv], with_pages(huge=True))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = arguments.models.split(",")
    settings = zip(names, for_each(names, arguments.samples), for_each(names, arguments.visits))
    machine, rows, side_by_side, unsteady, memories, missing = None, [], [], [], [], []
    for name, samples, visits in settings:
        designs = {
            "adaptive": ["--design", "adaptive", "--budget", arguments.budget, "--target-ci", arguments.target_ci],
            PREFIX_SUFFIX: ["--design", PREFIX_SUFFIX, "--samples", samples, "--visits", visits],
        }
        path = model(arguments.folder, name, arguments.width)
        for threads in map(int, arguments.threads.split(",")):
            folder = arguments.folder / f"{name}-{threads}"
            common = ["--model", str(path), "--gap-us", "0"]
            both = ["--processors", f"{TRACT},{ORT}", "--samples", arguments.direct_samples]
            profiled = profile(folder / "direct", threads, arguments.layerlab, common + both)
            if profiled.wrong:
                missing.append(f"{name}, {threads} threads, direct: {profiled.wrong}")
            if profiled.folder is None:
                continue
            direct = Published(profiled.folder, ORT)
            machine = machine or direct.header["device"]
            profiles = nodes(folder / "nodes.json", threads, path, direct.layers)
            by_nodes = profiles.times()
            with_itself = rank_correlation(*profiles.halves())
            with_direct = rank_correlation([time.value for time in direct.times()], by_nodes)
            for times, correlation in (("half of the profile's processes", with_itself), ("direct times", with_direct)):
                cells = [name, threads, f"({times})", len(by_nodes), *[""] * 8]
                rows.append(line([*cells, f"{correlation:.3f}", "", ""]))
            tract = Published(profiled.folder, TRACT).sum_of_parts()
            sums = [tract, direct.sum_of_parts(), sum(by_nodes)]
            side_by_side.append(line([name, threads, *map(milliseconds, sums)]))
            as_accelerator = ["--as-accelerator", ORT, "--processors", ORT]
            for (design, options), run in itertools.product(designs.items(), range(1, arguments.runs + 1)):
                out = folder / (design if run == 1 else f"{design}-{run}")
                design = design if arguments.runs == 1 else f"{design}, run {run}"
                profiled = profile(out, threads, arguments.layerlab, common + as_accelerator + options)
                if profiled.wrong:
                    missing.append(f"{name}, {threads} threads, {design}: {profiled.wrong}")
                if profiled.folder is None:
                    continue
                derived = Published(profiled.folder, ORT)
                said = f"{design}, differencing" if design.startswith(PREFIX_SUFFIX) else design
                rows.append(row(name, threads, f"{said} (refused)" if profiled.wrong else said, direct, derived, by_nodes))
                if design.startswith(PREFIX_SUFFIX) and not profiled.wrong:
                    derived = Published(least_squares(out, arguments.layerlab), ORT)
                    rows.append(row(name, threads, f"{design}, least squares", direct, derived, by_nodes))
                about = [*derived.additivity(), *unsteadiness(derived.sentinels()), *passing(path, design, derived)]
                unsteady.append(line([name, threads, design, *about]))
        if direct_profiles := sorted(arguments.folder.glob(f"{name}-*/direct/profile.json")):
            memories.append(by_hand(arguments.folder / f"{name}.by-hand.md", name, path, direct_profiles[0].parent))
    print(HEADER.format(
            machine=described(machine),
            version=onnxruntime.__version__,
            width=arguments.width,
            command=shlex.join(["python", "tests/reports/onnxruntime/report.py", "FOLDER", *sys.argv[2:]]),
            ort=ORT,
            processes=PROFILED_PROCESSES,
            runs=PROFILED_RUNS,
        ))
    print("\n".join(rows))
    if missing:
        print(f"\nNot published; what does not come about is tried {ATTEMPTS} times, what contradicts itself once:\n")
        print("\n".join(f"- {one}" for one in missing))
    print(DEVIATIONS)
    print("\n".join(unsteady))
    print(GUESSES, end="")
    print(MEMORY + "".join(memories), end="")
    print(PAGES)
    print(pages(arguments.folder / "pages.md"), end="")
    print(SIDE_BY_SIDE)
    print("\n".join(side_by_side))
    print(ANSWERS)
    print(same_answers(arguments.folder / "answers.md"), end="")


def described(device: dict | None) -> str:
    """The machine in a few words."""
    if device is None:
        return "No profile came about"
    known = [device["name"], *(str(device[key]) for key in ("soc", "os", "kernel") if device.get(key))]
    return ", ".join(known)


if __name__ == "__main__":
    main()
