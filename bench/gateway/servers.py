"""Starts, watches and stops the measured processes. Each has a free port of its own, and is stopped by its process
id.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
REQUEST = b'{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Tell me of the harbour."}]}'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Server:
    """A process that answers chat completions on `port`."""

    name: str
    command: list[str]
    port: int
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    # Additional headers that a client has to send. `:path` replaces the path.
    headers: dict[str, str] = field(default_factory=dict)
    # Text that the answer of a ready server to a chat completion contains, and the time to wait for it.
    seconds_to_start: float = 20
    process: subprocess.Popen | None = None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / "log"
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                self.command, cwd=self.folder, env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + self.seconds_to_start
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                end = log.read_text(errors="replace")[-1500:]
                raise RuntimeError(f"{self.name} does not answer; the end of its log:\n{end}")
            time.sleep(0.2)

    def answers(self) -> bool:
        headers = {"content-type": "application/json", "authorization": "Bearer sk-bench", **self.headers}
        path = headers.pop(":path", "/v1/chat/completions")
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=REQUEST, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status == 200 and b"harbour was quiet" in answer.read()
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            # The server has its own session, because some servers start other processes.
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def pids(self) -> list[int]:
        """Returns the ids of the process and of the processes that it started."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    after_name = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                # Fields 3 to 6 of the file: state, parent, group, session.
                if int(after_name[3]) == self.process.pid:
                    found.append(int(entry.name))
        return found

    def cpu_seconds(self) -> float:
        """Returns the CPU time used so far by all threads, in seconds with nanosecond resolution."""
        total = 0
        for pid in self.pids():
            for task in Path(f"/proc/{pid}/task").iterdir():
                try:
                    total += int((task / "schedstat").read_text().split()[0])
                except OSError:
                    continue
        return total / 1e9

    def resident_bytes(self) -> int:
        """Returns the current resident memory in bytes."""
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE for pid in self.pids())


def built(program: str, manifest: Path, package: str) -> Path:
    """Builds a program for release and returns its path."""
    import json

    # Build with its own manifest, because the two workspaces share no settings.
    build = ["cargo", "build", "--release", "--locked", "--manifest-path", str(manifest), "--package", package]
    subprocess.run([*build, "--bin", program], check=True)
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--manifest-path", str(manifest)]
    described = subprocess.run(metadata, check=True, stdout=subprocess.PIPE)
    return Path(json.loads(described.stdout)["target_directory"]) / "release" / program


def endmark(name: str, program: Path, folder: Path, upstream: int, settings: str) -> Server:
    """Returns the gateway with these settings on top of its defaults."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "endmark.toml"
    configuration.write_text(
        f'listen = "127.0.0.1:{port}"\nstore = "sqlite:{folder / "endmark.db"}"\n{settings}\n'
        f'[upstreams.scripted]\nformat = "openai"\nbase_url = "http://127.0.0.1:{upstream}/v1"\n'
    )
    # Write its log to a file, as operators do.
    return Server(name, [str(program), "serve", "--config", str(configuration)], port, folder)


def have(program: str) -> bool:
    return shutil.which(program) is not None


@contextmanager
def measuring() -> Iterator[tuple[Path, list[Server]]]:
    """Yields a folder for a measurement and a list of started servers; all of them are stopped at the end."""
    running: list[Server] = []
    # SIGTERM must stop the started servers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="endmark-bench-") as folder:
        try:
            yield Path(folder), running
        finally:
            for server in reversed(running):
                server.stop()
