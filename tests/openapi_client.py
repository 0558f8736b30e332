"""Uses a lab through the client that tests/openapi-client has made in the package `client`: a job is submitted, waited for, and its
profiles are fetched and compared with what was published."""

import sys
from pathlib import Path

from client import AuthenticatedClient
from client.api.default import (
    download_profile_file,
    list_devices,
    list_profiles,
    show_job,
    submit_job,
)
from client.models import Problem

from web_lab import Lab, wait_for


def use(client: AuthenticatedClient, data: Path) -> None:
    wait_for("two devices", lambda: len(list_devices.sync(client=client).items) == 2)
    refused = submit_job.sync(client=client, body={"models": ["nothing.onnx"]})
    assert isinstance(refused, Problem), refused
    print(f"refused as it should be: {refused.detail}")
    job = {
        "models": ["alexnet.onnx"],
        "devices": [{"abi": "x86_64", "each": True}],
        "measure": {"design": "local"},
    }
    submitted = submit_job.sync(client=client, body=job)
    print(f"submitted job {submitted.job}")
    wait_for("the end of the job", lambda: show_job.sync(submitted.job, client=client).state == "done")
    print(f"job {submitted.job} is done")
    profiles = list_profiles.sync(client=client).items
    assert len(profiles) == 2, profiles
    for profile in profiles:
        files = list(data.glob("profiles/**/profile.json"))
        fetched = download_profile_file.sync_detailed(profile.run, "times.csv", client=client)
        assert fetched.status_code == 200, fetched
        published = [file.parent / "times.csv" for file in files]
        assert any(fetched.content == file.read_bytes() for file in published), profile
        print(f"fetched times.csv of run {profile.run}: {len(fetched.content)} bytes, as published")


def main() -> None:
    with Lab(Path(sys.argv[1]), "operator") as lab, AuthenticatedClient(base_url=lab.url, token=lab.token) as client:
        use(client, lab.path / "data")


if __name__ == "__main__":
    main()
