"""Runs schemathesis, as tests/schemathesis says, against a lab of its own: PROGRAM SCHEMATHESIS EXAMPLES."""

import subprocess
import sys
from pathlib import Path

from web_lab import Lab

# Whether what is answered is right by the description. Whether what is refused should have been is not asked: a job is refused for
# what a description of JSON cannot say.
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# Its answer never ends.
STREAM = "/api/v1/events"


def main() -> None:
    layerlab, schemathesis, examples = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    with Lab(layerlab, "admin") as lab:
        command = [schemathesis, "run", "daemon/web/openapi.json", "--url", lab.url, "--checks", CHECKS]
        command += ["--header", f"Authorization: Bearer {lab.token}", "--exclude-path", STREAM]
        # It would lock itself out.
        command += ["--exclude-operation-id", "revoke_token", "--max-examples", examples, "--seed", "1"]
        ended = subprocess.run(command, check=False)
        if lab.daemon.poll() is not None:
            raise SystemExit("the daemon has ended")
    raise SystemExit(ended.returncode)


if __name__ == "__main__":
    main()
