#!/usr/bin/env python3
"""Runs real headless agents with and without the hooks that `endmark hook install` writes.

    cargo build --release --package endmark-cli
    python3 tests/agents/test_hooks.py [--only NAME] [--document] [--program target/debug/endmark]

A scripted model has each agent run a command that prints 1.6 MB (Codex: 1 MB) with one row that reports an error, and stop without having
written the report that it was asked for. With hooks the model's next request is to be small and to have the row, and the
agent is to be held until the report is there. The agents have dummy keys, homes of their own and the loopback address.
"""

from __future__ import annotations

import argparse
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

from agents import FOLDER, PATIENCE_SECONDS, install_from_npm  # noqa: E402
from installed import installed  # noqa: E402
from scripted_model import ScriptedModel  # noqa: E402

DOCUMENT = REPOSITORY / "bench" / "FIGURES.md"
CANARY = "ERROR row 4711: checksum mismatch in ledger.csv"
FLOOD = f"""\
import sys
for row in range(int(sys.argv[1])):
    if row == int(sys.argv[1]) // 2:
        print("{CANARY}")
    print(f"row {{row:06d}} ok: processed a batch of 100 records, next cursor {{row * 7919 % 1000003}}")
"""
REPORT = "# Report\n\nThe nets were counted twice, and none is missing.\n"
LIMIT = "8000"
TASK = "Run the check and write report.md."


@dataclass(frozen=True)
class Agent:
    """One agent, at an exact version."""

    name: str
    title: str
    package: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    # Its settings, with ORIGIN for the model's address.
    files: tuple[tuple[str, str], ...] = ()
    # The maximum number of characters of a tool result with the hook.
    # The number of rows that the command prints, with 83 bytes each.
    rows: int = 20_000
    # The first lines of its settings after the hooks are installed.
    setting_with_hooks: str = ""

    def install(self) -> Path:
        folder = FOLDER / "hooks" / self.name
        installed(folder, self.package.encode(), lambda place: install_from_npm(place, self.package))
        return folder / "node_modules" / ".bin" / self.name


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
        # The agent itself cuts results above 1 MiB before its hooks, and above this setting, which `docs/hooks.md` recommends.
        rows=12_000, setting_with_hooks="tool_output_token_limit = 400000\n",
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
    """The result of an agent's work."""

    code: int
    output: str
    # How many characters the command added to the next request, and whether that request contains the row.
    growth: int
    has_row: bool
    # Whether the rest of the output can be read with the handle in the request.
    is_read: bool
    report: bool


class Home:
    """An agent in a separate home folder, with a model."""

    def __init__(self, agent: Agent, program: Path, endmark: Path, name: str, model: ScriptedModel):
        self.agent, self.program, self.endmark, self.model = agent, program, endmark, model
        home = FOLDER / "homes" / f"{agent.name}-{name}"
        shutil.rmtree(home, ignore_errors=True)
        self.project = home / "project"
        self.project.mkdir(parents=True)
        (self.project / "check.py").write_text(FLOOD)
        self.environment = {
            "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "CI": "1",
            "NO_PROXY": "127.0.0.1", "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9",
            **{name: value.replace("ORIGIN", model.origin) for name, value in agent.environment},
        }  # fmt: skip
        for path, text in agent.files:
            head = agent.setting_with_hooks if name != "bare" else ""
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(head + text.replace("ORIGIN", model.origin))

    def run(self, *arguments: str) -> str:
        command = [self.endmark, *arguments]
        return subprocess.run(command, env=self.environment, cwd=self.project, capture_output=True, text=True).stdout

    def ask(self, *arguments: str) -> tuple[int, str]:
        started = subprocess.Popen(
            [self.program, *arguments], env=self.environment, cwd=self.project, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = started.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            # Also stop its child processes, which are in the same session.
            os.killpg(started.pid, 9)
            output, _ = started.communicate()
        return started.returncode, output


def work(agent: Agent, program: Path, endmark: Path, name: str) -> Work:
    report = f"printf '{REPORT}' > report.md".replace("\n", "\\n")
    with ScriptedModel(f"python3 check.py {agent.rows}", report) as model:
        home = Home(agent, program, endmark, name, model)
        if name != "bare":
            hooks = ("tool", "stop", "--max-chars", LIMIT, "--artifact", "report.md", "--yes")
            home.run("hook", "install", "--agent", agent.name, *hooks)
        code, output = home.ask(*agent.arguments)
        before, following = (*model.requests, "", "")[:2]
        handle = re.search(r"endmark read (h\w+)", following)
        row = f"row {agent.rows * 2 // 3:06d} ok"
        is_read = bool(handle) and row in home.run("read", handle[1], "--grep", row)
        is_written = (home.project / "report.md").exists()
        return Work(code, output, max(0, len(following) - len(before)), CANARY in following, is_read, is_written)


def remembered(agent: Agent, program: Path, endmark: Path, name: str) -> bool:
    """Whether the model still knows a file name from a command after Claude Code's own compaction, whose summary is "Done."."""
    with ScriptedModel("echo order ord_9f3a is in src/ledger.rs", "") as model:
        home = Home(agent, program, endmark, f"compacted-{name}" if name != "bare" else name, model)
        if name != "bare":
            home.run("hook", "install", "--agent", agent.name, "compact")
        session = "11111111-2222-4333-8444-555555555555"
        home.ask("--print", "Look at it.", "--session-id", session, "--allowedTools", "Bash")
        home.ask("--print", "/compact", "--resume", session)
        before = len(model.requests)
        home.ask("--print", "What now?", "--resume", session)
        return "src/ledger.rs" in (*model.requests[before:], "")[0]


def is_right(agent: Agent, bare: Work, hooked: Work) -> bool:
    first = 0 < hooked.growth < 12_000 and hooked.is_read and hooked.has_row
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
    parser.add_argument("--document", action="store_true", help="write the table into bench/FIGURES.md")
    given = parser.parse_args()
    failed, lines = 0, ["| agent | without hooks: text that reaches the model, and the result | with hooks |", "|---|---|---|"]
    for agent in (agent for agent in AGENTS if given.only in agent.name):
        program = agent.install()
        bare, hooked = (work(agent, program, given.program.resolve(), name) for name in ("bare", "hooked"))
        right = is_right(agent, bare, hooked)
        failed += not right
        lines.append(line(agent, bare, hooked))
        print(f"{'ok  ' if right else 'FAIL'}  {lines[-1]}", flush=True)
        if not right:
            print(bare, hooked, sep="\n")
        if agent.name == "claude":
            known = [remembered(agent, program, given.program.resolve(), name) for name in ("bare", "hooked")]
            failed += known != [False, True]
            print(f"{'ok  ' if known == [False, True] else 'FAIL'}  a file is known after a compaction: {known}", flush=True)
    if given.document:
        marked = re.compile(r"(<!-- hooks: written by tests/agents/test_hooks.py -->\n).*?(<!-- end -->)", re.DOTALL)
        DOCUMENT.write_text(marked.sub(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], DOCUMENT.read_text()))
    print(f"{failed} failed" if failed else "All as expected.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
