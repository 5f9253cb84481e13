"""Defines the published agents: how each is installed, connected to a server, and given a task."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import new_environment, run  # noqa: E402

FOLDER = HERE.parent.parent / ".agents"
# An agent that waits for anything except the server is stopped, and counts as not finished.
PATIENCE_SECONDS = 150
TEXT = "The harbour was quiet that morning, and the gulls had not yet found the boats. Mira counted the nets twice."
REPORT = "The harbour was quiet.\nThe nets were counted twice.\n"


def install_from_npm(place: Path, *packages: str) -> None:
    (place / "package.json").write_text('{"private": true}\n')
    run(["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--silent", "--save-exact", *packages])


@dataclass(frozen=True)
class Agent:
    """One agent, at an exact version."""

    name: str
    # `pip` or `npm`, and the packages to install.
    kind: str
    packages: tuple[str, ...]
    program: str
    # Its name in `endmark setup`. Without one, the agent reads the address from the environment.
    setup: str | None
    format: str
    # The result of the task: printed `text`, or a `call` that writes a file.
    ends_in: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    # Configuration files that the agent needs to start.
    files: tuple[tuple[str, str], ...] = ()
    # Whether the installation takes minutes or much disk space, so that only scripts/full includes the agent.
    is_large: bool = False
    # The dependencies to install, if the agent declares more than it needs. Otherwise all declared ones are installed.
    needs: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return FOLDER / self.program

    @property
    def version(self) -> str:
        return self.packages[0].replace("==", "@").rsplit("@", 1)[1]

    def install(self) -> None:
        """Installs the agent in its own folder, unless it is installed already."""
        installed(self.folder, repr((self.packages, self.needs)).encode(), self.fill)

    def fill(self, place: Path) -> None:
        if self.kind == "pip":
            install = new_environment(place / "venv")
            run([*install, *(["--no-deps"] if self.needs else []), *self.packages])
            if self.needs:
                run([*install, *self.needs])
        else:
            install_from_npm(place, *self.packages)

    @property
    def executable(self) -> Path:
        binaries = self.folder / "venv" / "bin" if self.kind == "pip" else self.folder / "node_modules" / ".bin"
        return binaries / self.program

    def work(self, home: Path, root: str, endmark: Path) -> Work:
        """Runs the task in a separate home folder, with the server at `root`."""
        project = home / "project"
        project.mkdir(parents=True)
        for name, text in self.files:
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        environment = {
            "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "CI": "1",
            "NO_PROXY": "127.0.0.1", "OPENAI_API_KEY": "dummy", "GEMINI_API_KEY": "dummy",
            # Other files that the agent looks for do not exist.
            "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9",
            **dict(self.environment),
        }  # fmt: skip
        def set_up(*arguments: str) -> None:
            command = [str(endmark), "setup", self.setup, *arguments]
            subprocess.run(command, env=environment, cwd=project, check=True, stdout=subprocess.DEVNULL)

        if self.setup:
            set_up("--write", "--url", root, *(["--model", "agent-text"] if self.setup == "opencode" else []))
            written = naming(home, root)
        else:
            environment["OPENAI_BASE_URL"] = environment["OPENAI_API_BASE"] = f"{root}/v1"
        done = subprocess.Popen(
            [str(self.executable), *self.arguments], env=environment, cwd=project, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            output, errors = done.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            # Also stop its child processes, which are in the same session.
            os.killpg(done.pid, 9)
            output, errors = done.communicate()
        is_undone = True
        if self.setup:
            set_up("--undo")
            is_undone = bool(written) and not set(written) & set(naming(home, root))
        report, record = project / "report.txt", project / "trajectory.json"
        status = re.search(r'"exit_status": "(\w+)"', record.read_text()) if record.exists() else None
        return Work(
            done.returncode, output, errors,
            report.read_text() if report.exists() else None, status[1] if status else None, is_undone,
        )  # fmt: skip


def naming(home: Path, root: str) -> list[Path]:
    """Returns the files that contain this address."""
    small = (file for file in home.rglob("*") if file.is_file() and file.stat().st_size < 1 << 20)
    return [file for file in small if root.encode() in file.read_bytes()]


@dataclass(frozen=True)
class Work:
    """The result of an agent's work."""

    code: int
    output: str
    errors: str
    report: str | None
    # The exit status or message with which the agent ended.
    status: str | None
    # Whether the set-up was removed completely afterwards, regardless of files that the agent wrote.
    is_undone: bool


TASK = "Tell me of the harbour in two sentences. Use no tool."

AGENTS = [
    Agent(
        "mini-swe-agent", "pip", ("mini-swe-agent==2.4.6",), "mini", None, "openai_chat", "call",
        ("-m", "openai/agent-call", "-y", "--exit-immediately", "-t", "Write the report of the harbour to report.txt.",
         "-o", "trajectory.json"),
        (("MSWEA_CONFIGURED", "true"), ("MSWEA_COST_TRACKING", "ignore_errors"), ("MSWEA_SILENT_STARTUP", "1"),
         ("LITELLM_LOCAL_MODEL_COST_MAP", "True")),
        # Without `datasets`, which needs pandas and pyarrow, because only the agent's benchmarks import it.
        # Exact versions where pip would otherwise try one version after another.
        needs=("litellm==1.106.2", "openai==2.54.0", "mcp==2.3.0", "pyyaml", "requests", "jinja2", "pydantic>=2.0",
               "tenacity", "rich", "python-dotenv", "typer", "platformdirs", "textual", "prompt_toolkit"),
    ),
    Agent(
        "Codex", "npm", ("@openai/codex@0.169.0",), "codex", "codex", "openai_responses", "text",
        ("exec", "--skip-git-repo-check", "--model", "agent-text", TASK),
    ),
    Agent(
        "Gemini CLI", "npm", ("@google/gemini-cli@0.61.0",), "gemini", "gemini", "gemini", "text",
        ("--skip-trust", "--model", "agent-text", "--prompt", TASK),
        files=((".gemini/settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'),),
        is_large=True,
    ),
    Agent(
        "opencode", "npm", ("opencode-ai@1.18.33",), "opencode", "opencode", "openai_chat", "text",
        ("run", "--model", "endmark/agent-text", TASK),
        (("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
         ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")),
        is_large=True,
    ),
]  # fmt: skip
