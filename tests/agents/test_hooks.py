#!/usr/bin/env python3
"""Real agents, headless, with the hooks that `endmark hook install` writes, and without them.

    cargo build --release --package endmark
    python3 tests/agents/test_hooks.py [--only NAME] [--document] [--program target/debug/endmark]

A scripted model has each agent run a command that prints 1.7 MB with one row that reports an error, and stop without having
written the report that it was asked for. With hooks the model's next request is to be small and to have the row, and the
agent is to be held until the report is there. The agents have dummy keys, homes of their own and the loopback address.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path[:0] = [str(HERE.parent / "real_model")]

from agents import FOLDER, PATIENCE_SECONDS  # noqa: E402
from model_server import run as run_quietly  # noqa: E402
from scripted_model import ScriptedModel  # noqa: E402

DOCUMENT = REPOSITORY / "docs" / "hooks.md"
CANARY = "ERROR row 9871: checksum mismatch in ledger.csv"
FLOOD = f"""\
for row in range(20000):
    if row == 9871:
        print("{CANARY}")
    print(f"row {{row:06d}} ok: processed a batch of 100 records, next cursor {{row * 7919 % 1000003}}")
"""
REPORT = "# Report\n\nThe nets were counted twice, and none is missing.\n"
TASK = "Run the check and write report.md."


@dataclass(frozen=True)
class Agent:
    """One agent, at an exact version."""

    name: str
    title: str
    package: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    # Settings of its own, with the model's address as ORIGIN.
    files: tuple[tuple[str, str], ...] = ()
    # How many characters its tool result has at most without a hook is its own affair; with one it is this.
    limit: str = "8000"
    # Codex cuts outputs before its hooks see them: its own setting, and the middle of what is above 1 MiB.
    keeps_row: bool = True
    row_kept: str = "row 015000 ok"

    def install(self) -> Path:
        folder = FOLDER / "hooks" / self.name
        program = folder / "node_modules" / ".bin" / self.name
        if not program.exists() or json.loads((folder / "package.json").read_text()).get("wanted") != self.package:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text('{"private": true}\n')
            run_quietly(["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent", "--save-exact", self.package])
            package = json.loads((folder / "package.json").read_text())
            (folder / "package.json").write_text(json.dumps({**package, "wanted": self.package}))
        return program


AGENTS = [
    Agent(
        "claude", "Claude Code", "@anthropic-ai/claude-code@2.1.331",
        ("--print", TASK, "--allowedTools", "Bash"),
        (("ANTHROPIC_BASE_URL", "ORIGIN"), ("ANTHROPIC_API_KEY", "dummy"), ("DISABLE_AUTOUPDATER", "1"),
         ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("IS_SANDBOX", "1")),
    ),
    Agent(
        "codex", "Codex", "@openai/codex@0.169.0",
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox",
         "--model", "gpt-5", TASK),
        (("OPENAI_API_KEY", "dummy"),),
        ((".codex/config.toml", 'model_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
          'base_url = "ORIGIN/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'),),
        keeps_row=False, row_kept="row 019990 ok",
    ),
    Agent(
        "gemini", "Gemini CLI", "@google/gemini-cli@0.61.0",
        ("--skip-trust", "--approval-mode", "yolo", "--model", "gemini-2.5-pro", "--prompt", TASK),
        (("GEMINI_API_KEY", "dummy"), ("GOOGLE_GEMINI_BASE_URL", "ORIGIN")),
        ((".gemini/settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'),),
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Work:
    """What an agent came to."""

    code: int
    output: str
    # By how many characters the request that followed the command was longer than the one before, and whether the row was in it.
    growth: int
    has_row: bool
    # Where the rest of the output can be read, if that was said.
    handle: str | None
    is_read: bool
    report: bool


def work(agent: Agent, program: Path, endmark: Path, is_hooked: bool) -> Work:
    home = FOLDER / "homes" / f"{agent.name}-{'hooked' if is_hooked else 'bare'}"
    shutil.rmtree(home, ignore_errors=True)
    project = home / "project"
    project.mkdir(parents=True)
    (project / "check.py").write_text(FLOOD)
    with ScriptedModel("python3 check.py", f"printf '{REPORT}' > report.md".replace("\n", "\\n")) as model:
        environment = {
            "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "CI": "1",
            "NO_PROXY": "127.0.0.1", "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9",
            **{name: value.replace("ORIGIN", model.origin) for name, value in agent.environment},
        }  # fmt: skip
        for name, text in agent.files:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text.replace("ORIGIN", model.origin))

        def run(*arguments: str) -> str:
            done = subprocess.run([endmark, *arguments], env=environment, cwd=project, capture_output=True, text=True)
            return done.stdout

        if is_hooked:
            run("hook", "install", "--agent", agent.name, "tool", "stop", "--max-chars", agent.limit, "--artifact", "report.md")
        done = subprocess.Popen(
            [program, *agent.arguments], env=environment, cwd=project, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = done.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            # With what it has started: it has a session of its own.
            os.killpg(done.pid, 9)
            output, _ = done.communicate()
        following = model.requests[1] if len(model.requests) > 1 else ""
        handle = re.search(r"endmark read (h\w+)", following)
        is_read = bool(handle) and agent.row_kept in run("read", handle[1], "--grep", agent.row_kept)
        return Work(
            done.returncode, output, len(following) - len(model.requests[0]) if following else 0, CANARY in following, handle and handle[1], is_read,
            (project / "report.md").exists(),
        )  # fmt: skip


def is_right(agent: Agent, bare: Work, hooked: Work) -> bool:
    first = 0 < hooked.growth < 12_000 and hooked.is_read and (hooked.has_row or not agent.keeps_row)
    return bool(first) and hooked.report and not bare.report and not bare.has_row and hooked.code == bare.code == 0


def line(agent: Agent, bare: Work, hooked: Work) -> str:
    def told(one: Work) -> str:
        row = "with the error row" if one.has_row else "without the error row"
        report = "the report is written" if one.report else "stops without the report"
        return f"+{one.growth:,} characters, {row}; {report}"

    return f"| {agent.title} {agent.package.rsplit('@', 1)[1]} | {told(bare)} | {told(hooked)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=REPOSITORY / "target" / "release" / "endmark")
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--document", action="store_true", help="write the table into docs/hooks.md")
    given = parser.parse_args()
    failed, lines = 0, ["| agent | without hooks: what its model gets of 1.6 MB, and the end | with hooks |", "|---|---|---|"]
    for agent in (agent for agent in AGENTS if given.only in agent.name):
        program = agent.install()
        bare, hooked = (work(agent, program, given.program.resolve(), is_hooked) for is_hooked in (False, True))
        right = is_right(agent, bare, hooked)
        failed += not right
        lines.append(line(agent, bare, hooked))
        print(f"{'ok  ' if right else 'FAIL'}  {lines[-1]}", flush=True)
        if not right:
            print(bare, hooked, sep="\n")
    if given.document:
        marked = re.compile(r"(<!-- hooks: written by tests/agents/test_hooks.py -->\n).*?(<!-- end -->)", re.DOTALL)
        DOCUMENT.write_text(marked.sub(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], DOCUMENT.read_text()))
    print(f"{failed} failed" if failed else "All as expected.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
