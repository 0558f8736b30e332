"""A lab of two simulated phones on the web, for programs that nobody here wrote: its daemon, and a token for it."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

DEADLINE_SECONDS = 120


def wait_for(what, look):
    """What `look` says as soon as it says something."""
    until = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < until:
        if found := look():
            return found
        time.sleep(0.1)
    raise SystemExit(f"{what} did not come")


class Lab:
    """The daemon, for as long as it is used: `with Lab(program, role) as lab`."""

    def __init__(self, layerlab: Path, role: str):
        self.layerlab, self.role = layerlab.resolve(), role
        self.folder = tempfile.TemporaryDirectory(prefix="web-lab-")
        self.path = Path(self.folder.name)

    def __enter__(self):
        models = Path("tests/models").resolve()
        config = self.path / "config.toml"
        config.write_text(
            '[phones]\nlocal = ["mate10pro", "oneplus7"]\n[gates]\nload-percent = 100\nstorage-free-mebibytes = 0\n'
            f'[web]\nlisten = "127.0.0.1:0"\nmodels = "{models}"\n',
            encoding="utf-8",
        )
        environment = dict(os.environ, LAYERLAB_ADB="", LAYERLAB_STATE=f"{self.path}/state", LAYERLAB_DATA=f"{self.path}/data")
        self.log = open(self.path / "log", "wb")
        self.daemon = subprocess.Popen(
            [self.layerlab, "daemon", "--config", config], env=environment, stdout=self.log, stderr=self.log
        )
        self.url = wait_for("the lab", self.address)
        command = [self.layerlab, "token", "create", "program", "--role", self.role]
        said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        self.token = said.strip().splitlines()[-1]
        return self

    def address(self) -> str | None:
        for line in (self.path / "log").read_text(encoding="utf-8").splitlines():
            if "http://" in line:
                return "http://" + line.split("http://")[1].split()[0]
        return None

    def __exit__(self, *_):
        self.daemon.terminate()
        self.daemon.wait()
        self.log.close()
        self.folder.cleanup()
