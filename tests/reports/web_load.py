#!/usr/bin/env python3
"""A lab under load over the web: 200 open streams of events, one client that opens one and reads nothing, and 500 requests a
second, while four simulated phones run. How long does the slowest hundredth of requests take, what does the daemon's memory grow
to, and is measuring on this computer disturbed?

Prints the page tests/reports/web_load.md. Needs `hey` (a Debian package), curl and a quiet machine. Everything runs on this one
computer, the phones' simulation too, so that it shows more disturbance than a lab whose phones compute elsewhere.

    web_load.py --layerlab target/release/layerlab --model tests/models/vocnet-mini.onnx [--seconds 60] [--pairs 4]
"""

import argparse
import asyncio
import csv
import json
import os
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

PHONES = ["mate10pro", "oneplus7", "pixel6", "trio"]
STREAMS = 200
REQUESTS_PER_SECOND = 500
WORKERS = 50
DEADLINE_SECONDS = 60


class Lab:
    """A daemon with a state folder of its own."""

    def __init__(self, layerlab: Path, model: Path, devices: list[str]):
        self.layerlab, self.model = layerlab, model.resolve()
        self.folder = tempfile.TemporaryDirectory(prefix="web-load-")
        self.path = Path(self.folder.name)
        local = ", ".join(f'"{device}"' for device in devices)
        (self.path / "config.toml").write_text(
            f"[phones]\nlocal = [{local}]\n[gates]\nload-percent = 100\nstorage-free-mebibytes = 0\n"
            f'[web]\nlisten = "127.0.0.1:0"\nmodels = "{self.model.parent}"\n',
            encoding="utf-8",
        )
        self.environment = dict(os.environ, LAYERLAB_STATE=str(self.path / "state"), LAYERLAB_DATA=str(self.path / "data"))
        self.environment["LAYERLAB_ADB"] = ""
        self.log = open(self.path / "log", "wb")
        self.daemon = subprocess.Popen(
            [layerlab, "daemon", "--config", self.path / "config.toml"], env=self.environment, stderr=self.log, stdout=self.log
        )
        self.address = self.wait_for(self.listening)
        self.token = self.run("token", "create", "load", "--role", "operator").strip().splitlines()[-1]
        self.wait_for(lambda: len(self.get("/api/v1/devices")["items"]) == len(devices))

    def wait_for(self, look):
        until = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < until:
            try:
                if found := look():
                    return found
            except (urllib.error.URLError, subprocess.CalledProcessError, FileNotFoundError):
                pass
            time.sleep(0.1)
        raise SystemExit(f"the lab did not come up:\n{(self.path / 'log').read_text(encoding='utf-8')}")

    def listening(self) -> str | None:
        for line in (self.path / "log").read_text(encoding="utf-8").splitlines():
            if "http://127.0.0.1:" in line:
                return line.split("http://")[1].split("/")[0].split()[0].strip('"')
        return None

    def run(self, *arguments) -> str:
        command = [self.layerlab, *arguments]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout

    def get(self, path: str):
        request = urllib.request.Request(f"http://{self.address}{path}", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return json.load(answer)

    def submit(self, name: str, text: str) -> None:
        job = self.path / f"{name}.toml"
        job.write_text(f'models = ["{self.model}"]\n{text}', encoding="utf-8")
        self.run("submit", str(job))

    def memory_mib(self, key: str) -> float:
        for line in Path(f"/proc/{self.daemon.pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
        raise SystemExit(f"no {key}")

    def close(self) -> None:
        self.daemon.kill()
        self.daemon.wait()
        self.log.close()
        self.folder.cleanup()


class Streams:
    """Open streams of events, in a process of their own, which says how many events came when it is told to end."""

    def __init__(self, lab: Lab, listening: int):
        self.process = subprocess.Popen(
            ["python3", __file__, "--streams", lab.address, lab.token, str(listening)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "open\n"

    def end(self) -> dict:
        said, _ = self.process.communicate("end\n", timeout=DEADLINE_SECONDS)
        return json.loads(said)


async def hold_streams(address: str, token: str, count: int) -> None:
    host, port = address.rsplit(":", 1)
    request = f"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()

    async def listen(events: list[int], place: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        try:
            while line := await reader.readline():
                events[place] += line.startswith(b"id:")
        finally:
            writer.close()

    events = [0] * count
    tasks = [asyncio.create_task(listen(events, place)) for place in range(count)]
    # One that asks and never reads.
    _, deaf = await asyncio.open_connection(host, int(port), limit=1)
    deaf.write(request)
    while not all(events):
        await asyncio.sleep(0.05)
        for task in tasks:
            if task.done():
                task.result()
    print("open", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, input)
    ended_early = sum(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    deaf.close()
    print(json.dumps({"fewest": min(events), "most": max(events), "ended_early": ended_early}), flush=True)


def hey(lab: Lab, path: str, seconds: int) -> dict:
    command = ["hey", "-z", f"{seconds}s", "-c", str(WORKERS), "-q", str(REQUESTS_PER_SECOND // WORKERS), "-o", "csv"]
    command += ["-H", f"Authorization: Bearer {lab.token}", f"http://{lab.address}{path}"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = list(csv.DictReader(said.splitlines()))
    times = sorted(float(row["response-time"]) for row in rows)
    wrong = sum(row["status-code"] != "200" for row in rows)
    at = lambda share: 1000 * times[min(len(times) - 1, int(share * len(times)))]
    return {"rate": len(times) / seconds, "p50": at(0.5), "p99": at(0.99), "most": 1000 * times[-1], "wrong": wrong}


def under_load(layerlab: Path, model: Path, seconds: int) -> list[str]:
    lab = Lab(layerlab, model, PHONES)
    try:
        lab.submit("long", "[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\nsamples = 20000\n")
        lab.wait_for(lambda: sum(it["state"] == "busy" for it in lab.get("/api/v1/devices")["items"]) == len(PHONES))
        before = lab.memory_mib("VmRSS")
        streams = Streams(lab, STREAMS)
        lines = []
        for path in ["/api/v1/devices", "/api/v1/jobs/1", "/metrics"]:
            found = hey(lab, path, seconds)
            busy = sum(it["state"] == "busy" for it in lab.get("/api/v1/devices")["items"])
            lines.append(
                f"| `{path}` | {found['rate']:.0f} | {found['p50']:.1f} | {found['p99']:.1f} | {found['most']:.1f} |"
                f" {found['wrong']} | {busy} |"
            )
        ended = streams.end()
        return [
            "| path | requests a second | median, ms | 99 %, ms | slowest, ms | not answered with 200 | phones at work at the end |",
            "| --- | --: | --: | --: | --: | --: | --: |",
            *lines,
            "",
            f"- The daemon's memory: {before:.0f} MiB before, {lab.memory_mib('VmRSS'):.0f} MiB after, {lab.memory_mib('VmHWM'):.0f}"
            " MiB at most.",
            f"- Events that a stream brought: {ended['fewest']} to {ended['most']}; {ended['ended_early']} of {STREAMS} streams ended"
            " before they were closed.",
        ]
    finally:
        lab.close()


def passes(profile: Path) -> list[float]:
    """What each pass over all layers took, in ns."""
    totals: dict[tuple[str, int], float] = {}
    with open(profile / "samples.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    counts: dict[tuple[str, str, str], int] = {}
    for row in rows:
        layer = (row["order"], row["block"], row["first_layer"])
        place = counts[layer] = counts.get(layer, 0) + 1
        key = (f"{row['order']}/{row['block']}", place)
        totals[key] = totals.get(key, 0.0) + float(row["duration_ns"])
    return list(totals.values())


def disturbance(layerlab: Path, model: Path, pairs: int) -> list[str]:
    """This computer is measured, in turns without and with streams and requests."""
    lab = Lab(layerlab, model, ["mate10pro"])
    medians, spreads = [], []
    try:
        for pair in range(pairs):
            found = []
            for loaded in [False, True]:
                out = lab.path / f"host-{pair}-{loaded}"
                streams = Streams(lab, STREAMS) if loaded else None
                command = ["hey", "-z", "600s", "-c", str(WORKERS), "-q", str(REQUESTS_PER_SECOND // WORKERS)]
                command += ["-H", f"Authorization: Bearer {lab.token}", f"http://{lab.address}/api/v1/devices"]
                load = subprocess.Popen(command, stdout=subprocess.DEVNULL) if loaded else None
                lab.run("profile", "--model", str(lab.model), "--device", "host", "--out", str(out))
                if loaded:
                    load.kill()
                    load.wait()
                    streams.end()
                times = passes(out)
                middle = statistics.median(times)
                spread = statistics.median(abs(time - middle) for time in times) / middle
                found.append((middle, spread))
            medians.append(found[1][0] / found[0][0])
            spreads.append(found[1][1] / found[0][1])
    finally:
        lab.close()
    shown = lambda ratios: ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    return [
        f"- The median pass over {model.stem} took, with the load as a multiple of without: {shown(medians)}.",
        f"- The median distance of passes from it, likewise: {shown(spreads)}.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layerlab", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=4)
    arguments = parser.parse_args()
    layerlab = arguments.layerlab.resolve()
    print("# A lab under load over the web\n")
    print(
        f"`tests/reports/web_load.py` made this page on a virtual machine with {os.cpu_count()} cores, which simulated four phones,"
        f" ran the daemon, held {STREAMS} streams of events open, and asked {REQUESTS_PER_SECOND} times a second for"
        f" {arguments.seconds} s for each path. One more stream was opened by a client that reads nothing.\n"
    )
    print("\n".join(under_load(layerlab, arguments.model, arguments.seconds)))
    print(
        "\n## Is measuring disturbed?\n\nThis computer itself was measured, with both of its cores, in turns without and with the same"
        " streams and requests from the same two cores. (Phones compute elsewhere.)\n"
    )
    print("\n".join(disturbance(layerlab, arguments.model, arguments.pairs)))


if __name__ == "__main__":
    import sys

    if sys.argv[1:2] == ["--streams"]:
        asyncio.run(hold_streams(sys.argv[2], sys.argv[3], int(sys.argv[4])))
    else:
        main()
