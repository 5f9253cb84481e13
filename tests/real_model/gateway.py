"""Runs Endmark as a separate process in front of a model server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from model_server import SetUpError, free_port, stop_process, wait_until_ready

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def program() -> Path:
    """Returns the release build, in the target directory that cargo uses."""
    described = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=REPOSITORY, stdout=subprocess.PIPE, check=True
    )
    found = Path(json.loads(described.stdout)["target_directory"]) / "release" / "endmark"
    if not found.exists():
        raise SetUpError(f"{found} is missing: cargo build --release --package endmark-cli")
    return found


class Gateway:
    """`endmark serve` with a configuration and a store in `folder`, on a free port."""

    def __init__(
        self,
        folder: Path,
        upstreams: dict[str, dict[str, str]],
        resume: dict[str, object],
        prices: dict[str, dict[str, float]] | None = None,
        window: dict[str, object] | None = None,
    ):
        self.folder = folder
        self.upstreams = upstreams
        self.prices = prices or {}
        self.tables = {"resume": resume, **({"compact.window": window} if window else {})}
        self.program = program()
        self.port = free_port()
        self.log = folder / "endmark.log"
        self.process: subprocess.Popen | None = None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def configuration(self) -> Path:
        return self.folder / "endmark.toml"

    def base_url(self, upstream: str | None = None) -> str:
        return f"{self.origin}/u/{upstream}/v1" if upstream else f"{self.origin}/v1"

    def start(self) -> Gateway:
        self.folder.mkdir(parents=True, exist_ok=True)
        # A fresh store, so that the rows shown afterwards belong to this run.
        for file in self.folder.glob("endmark.db*"):
            file.unlink()
        self.write_configuration()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(self.program), "serve", "--config", str(self.configuration)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        wait_until_ready(f"{self.origin}/endmark/readyz", self.process, self.log)
        return self

    def write_configuration(self) -> None:
        tables = {f"upstreams.{name}": settings for name, settings in self.upstreams.items()}
        tables |= {f"prices.{json.dumps(model)}": prices for model, prices in self.prices.items()}
        lines = [f'listen = "127.0.0.1:{self.port}"', f'store = "sqlite:{self.folder / "endmark.db"}"']
        for table, settings in {**tables, **self.tables}.items():
            lines += ["", f"[{table}]"]
            # JSON strings and numbers are also valid TOML.
            lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        self.configuration.write_text("\n".join(lines) + "\n")

    def command(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(self.program), *arguments, "--config", str(self.configuration)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def stop(self) -> None:
        if self.process:
            stop_process(self.process)

    def __enter__(self) -> Gateway:
        return self.start()

    def __exit__(self, *_) -> None:
        self.stop()
