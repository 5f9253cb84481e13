"""Installs and runs third-party mocks: PyPI's llmock, which grades its client, and npm's aimock."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import DIRECT, free_port, new_environment, run, stop_process, wait_until_ready  # noqa: E402

FOLDER = HERE.parent.parent / ".graders"
PYTHON = FOLDER / "venv" / "bin" / "python"


def install() -> None:
    """Installs both in one folder, unless they are installed already. The folder can be deleted at any time."""
    requirements, package = HERE / "requirements.txt", HERE / "package.json"

    def fill(place: Path) -> None:
        run([*new_environment(place / "venv"), "-r", str(requirements)])
        (place / "package.json").write_bytes(package.read_bytes())
        run(["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--silent"])

    installed(FOLDER, requirements.read_bytes() + package.read_bytes(), fill)


class Process:
    """A server on its own port, which is stopped at the end."""

    def __init__(self, name: str, command: list[str], ready: str):
        self.port = free_port()
        self.log = FOLDER / f"{name}.log"
        self.command = [*command, "--port", str(self.port)]
        self.ready = ready
        self.process: subprocess.Popen | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def __enter__(self):
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        wait_until_ready(self.origin + self.ready, self.process, self.log)
        return self

    def __exit__(self, *_) -> None:
        stop_process(self.process)


class Grader(Process):
    """llmock: produces the requested faults and then grades how its client handled them."""

    def __init__(self):
        super().__init__("llmock", [str(PYTHON.parent / "llmock"), "serve"], "/_llmock/scenario")

    def told(self, behaviours: list[dict]) -> None:
        self.ask("POST", "/_llmock/reset")
        self.ask("POST", "/_llmock/scenario", {"behaviors": behaviours})

    def findings(self) -> list[str]:
        """Returns its complaints about the client, as `error code` or `warning code`."""
        verdict = self.ask("GET", "/_llmock/verdict")
        return sorted({f"{finding['severity']} {finding['code']}" for finding in verdict["findings"]})

    def ask(self, method: str, path: str, body: dict | None = None) -> dict:
        data = json.dumps(body).encode() if body is not None else None
        with DIRECT.open(urllib.request.Request(self.origin + path, data, method=method), timeout=20) as answer:
            return json.load(answer)


class Mock(Process):
    """aimock: answers according to its fixtures."""

    def __init__(self):
        program = FOLDER / "node_modules" / ".bin" / "llmock"
        fixtures = str(HERE / "fixtures.json")
        super().__init__("aimock", [str(program), "--fixtures", fixtures, "--strict", "--chunk-size", "12"], "/v1/models")
