"""Runs Endmark for the matrix, with and without TLS, in front of a server that injects faults."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real_model"))

import gateway  # noqa: E402
from model_server import SetUpError, last_lines  # noqa: E402

REPOSITORY = gateway.REPOSITORY
TLS = REPOSITORY / "crates" / "endmark-cli" / "tests" / "tls"
CERTIFICATE = TLS / "first.pem"
# Retry refusals only for a short time.
TABLES = {"retry": {"max_retries": 1}}


class Gateway(gateway.Gateway):
    """`endmark serve` with more configuration than upstreams."""

    def __init__(self, folder: Path, upstreams: dict[str, dict[str, str]], tls: bool = False, **tables: dict):
        # Limit a model that continues after a cut, so that it takes seconds instead of minutes.
        super().__init__(folder, upstreams, {"mode": "auto", "continuation_tokens": 120})
        self.tables |= {**TABLES, **tables}
        self.tls = tls
        if tls:
            self.tables["tls"] = {"certificate": str(CERTIFICATE), "key": str(TLS / "first.key.pem")}

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.port}" if self.tls else super().origin

    def start(self) -> Gateway:
        if not self.tls:
            return super().start()
        self.folder.mkdir(parents=True, exist_ok=True)
        for file in self.folder.glob("endmark.db*"):
            file.unlink()
        self.write_configuration()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(self.program), "serve", "--config", str(self.configuration)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
                return self
            except OSError:
                time.sleep(0.05)
        raise SetUpError(f"the gateway does not listen:\n{last_lines(self.log)}")
