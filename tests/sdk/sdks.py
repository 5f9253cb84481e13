"""Installs the libraries, and runs one process for each that behaves like an application."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import SetUpError, new_environment, run  # noqa: E402

FOLDER = HERE.parent.parent / ".sdk"
PYTHON = FOLDER / "venv" / "bin" / "python"
ADAPTERS = HERE / "adapters"
# Longer than any case waits for a library.
PATIENCE_SECONDS = 90


@dataclass(frozen=True, eq=False)
class Sdk:
    """One library with one format."""

    name: str
    format: str
    program: tuple[str, ...]
    # Its stop reasons, by the way in which a reply ended.
    finishes: dict[str, str]
    # The rows that the library does not support.
    without: tuple[str, ...] = ()
    # Whether only scripts/full includes it, because it takes a minute to build or another test covers its framework.
    is_left_to_full: bool = False


def node(adapter: str) -> tuple[str, ...]:
    return ("node", str(FOLDER / "adapters" / adapter))


def python(adapter: str) -> tuple[str, ...]:
    return (str(PYTHON), str(ADAPTERS / adapter))


CARGO = FOLDER / "async-openai"
OPENAI_WORDS = {"whole": "stop", "limit": "length", "call": "tool_calls"}
RESPONSES_WORDS = {"whole": "completed", "limit": "max_output_tokens", "call": "completed"}
MESSAGES_WORDS = {"whole": "end_turn", "limit": "max_tokens", "call": "tool_use"}
GEMINI_WORDS = {"whole": "STOP", "limit": "MAX_TOKENS", "call": "STOP"}
AI_WORDS = {"whole": "stop", "limit": "length", "call": "tool-calls"}

SDKS = [
    Sdk("openai (Python)", "openai_chat", python("openai_chat.py"), OPENAI_WORDS),
    Sdk("openai (npm)", "openai_chat", node("openai_chat.mjs"), OPENAI_WORDS),
    # In scripts/test the framework tests cover versions 5 and 6 on Responses, in 12 s instead of 29 s.
    Sdk("ai (npm)", "openai_chat", node("ai_chat.mjs"), AI_WORDS, is_left_to_full=True),
    Sdk("openai (Python)", "openai_responses", python("openai_responses.py"), RESPONSES_WORDS),
    Sdk("openai (npm)", "openai_responses", node("openai_responses.mjs"), RESPONSES_WORDS),
    Sdk("anthropic (Python)", "anthropic_messages", python("anthropic_messages.py"), MESSAGES_WORDS),
    Sdk("@anthropic-ai/sdk (npm)", "anthropic_messages", node("anthropic_messages.mjs"), MESSAGES_WORDS),
    Sdk("google-genai (Python)", "gemini", python("google_genai.py"), GEMINI_WORDS),
    Sdk("@google/genai (npm)", "gemini", node("google_genai.mjs"), GEMINI_WORDS),
    Sdk(
        "async-openai (Rust)", "openai_chat", (str(CARGO / "debug" / "endmark-sdk-async-openai"),), OPENAI_WORDS,
        # This library is built without TLS, cannot compress requests, and retries by itself.
        ("compressed both ways, cut by its limit", "over TLS, cut by its limit", "a reply that is lost"),
        is_left_to_full=True,
    ),
]


def versions() -> dict[str, str]:
    """Returns the pinned versions by the names of the libraries."""
    found = {}
    for sdk in SDKS:
        package, _, where = sdk.name.partition(" (")
        if where == "npm)":
            found[sdk.name] = json.loads((HERE / "package.json").read_text())["dependencies"][package]
            continue
        file = "requirements.txt" if where == "Python)" else "async-openai/Cargo.toml"
        pinned = re.search(rf'^{package}(?:==| = {{ version = "=)([0-9.]+)', (HERE / file).read_text(), re.MULTILINE)
        found[sdk.name] = pinned[1]
    return found


def install(chosen: list[Sdk]) -> None:
    """Installs the libraries in one folder, unless they are installed already. The folder can be deleted at any time."""
    requirements, package = HERE / "requirements.txt", HERE / "package.json"

    def fill(place: Path) -> None:
        run([*new_environment(place / "venv"), "-r", str(requirements)])
        (place / "package.json").write_bytes(package.read_bytes())
        run(["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--silent"])

    installed(FOLDER, requirements.read_bytes() + package.read_bytes(), fill)
    # Node looks for packages in the folders above a program.
    (FOLDER / "adapters").mkdir(exist_ok=True)
    for adapter in ADAPTERS.glob("*.mjs"):
        (FOLDER / "adapters" / adapter.name).write_bytes(adapter.read_bytes())
    if any(sdk.program[0].startswith(str(CARGO)) for sdk in chosen):
        manifest = str(HERE / "async-openai" / "Cargo.toml")
        run(["cargo", "build", "--quiet", "--locked", "--manifest-path", manifest, "--target-dir", str(CARGO)])


class Library:
    """A running adapter, which reads requests and writes answers as lines."""

    def __init__(self, sdk: Sdk, certificate: Path, folder: Path = FOLDER):
        self.sdk = sdk
        self.log = folder / f"{Path(sdk.program[-1]).stem}.log"
        # The adapter must not use a configured proxy or real keys.
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = {
            **kept, "NO_PROXY": "127.0.0.1,localhost", "SSL_CERT_FILE": str(certificate),
            "NODE_EXTRA_CA_CERTS": str(certificate),
        }  # fmt: skip

    def __enter__(self) -> Library:
        self.errors = self.log.open("wb")
        self.process = subprocess.Popen(
            self.sdk.program, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()
        self.errors.close()

    def ask(self, case: dict) -> dict:
        # A library that hangs is a valid result.
        alarm = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        alarm.start()
        try:
            self.process.stdin.write(json.dumps(case).encode() + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = b""
        finally:
            alarm.cancel()
        if not line:
            words = self.log.read_text(errors="replace")[-2000:]
            raise SetUpError(f"{self.sdk.name} ended or hung:\n{words}")
        return json.loads(line)
