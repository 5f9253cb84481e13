#!/usr/bin/env python3
"""Runs real headless agents that leave a stub and report success, alone and supervised by `endmark run`.

    cargo build --release --package endmark-cli
    python3 tests/agents/test_runs.py [--all] [--claude PATH] [--document]

The model is a mock by others with scripted replies: first a report with a placeholder and the word that it is done; sent back, the
whole report. The agents have dummy keys, homes of their own, and nothing but the loopback address. Claude Code is not free
software, so it is only run where somebody has it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "real_model"), str(HERE.parent / "graders")]

import gateway  # noqa: E402
import mocks  # noqa: E402
from agents import AGENTS, FOLDER  # noqa: E402
from model_server import SetUpError  # noqa: E402

DOCUMENT = gateway.REPOSITORY / "bench" / "FIGURES.md"
PATIENCE_SECONDS = 200
TASK = "Write the report of the harbour to report.md."
CRITERIA = "required_sections: [Summary]\n"
STUB = "# Report\n\n## Summary\n\nTBD\n"
WHOLE = "# Report\n\n## Summary\n\nThe harbour was quiet.\n"


@dataclass(frozen=True)
class Supervised:
    """An agent with the options that make it print its events."""

    name: str
    agent: str
    words: tuple[str, ...]
    # Files in its home folder, with `{root}` for the server's address.
    files: tuple[tuple[str, str], ...] = ()
    is_large: bool = False
    # Additional calls that the agent does not report, but the ledger records.
    calls_besides: int = 0


CODEX = 'model_provider = "mock"\n[model_providers.mock]\nname = "mock"\nbase_url = "{root}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
OPENCODE = """{"permission": {"bash": "allow"}, "provider": {"mock": {"npm": "@ai-sdk/openai-compatible",
"options": {"baseURL": "{root}/v1", "apiKey": "dummy"}, "models": {"opencode-work": LIMIT, "opencode-never": LIMIT, "opencode-full": LIMIT}}}}""".replace(
    "LIMIT", '{"limit": {"context": 400000, "output": 4096}}'
)
GEMINI = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'

SUPERVISED = [
    Supervised(
        "Codex", "codex",
        ("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", "codex-work", "{prompt}"),
        ((".codex/config.toml", CODEX),),
    ),
    Supervised(
        "Gemini CLI", "gemini",
        ("--skip-trust", "--yolo", "--output-format", "stream-json", "--model", "gemini-work", "--prompt", "{prompt}"),
        ((".gemini/settings.json", GEMINI),), is_large=True,
    ),
    Supervised(
        "opencode", "opencode", ("run", "--format", "json", "--model", "mock/opencode-work", "{prompt}"),
        # The agent also requests a title for the session.
        ((".config/opencode/opencode.json", OPENCODE),), is_large=True, calls_besides=1,
    ),
]  # fmt: skip
CLAUDE = Supervised(
    "Claude Code", "claude",
    ("-p", "{prompt}", "--output-format", "stream-json", "--verbose", "--model", "claude-work", "--allowedTools", "Bash"),
)  # fmt: skip


class WorkingMock(mocks.Process):
    """aimock with the replies for working agents."""

    def __init__(self):
        program = mocks.FOLDER / "node_modules" / ".bin" / "llmock"
        command = [str(program), "--fixtures", str(HERE / "supervised.json"), "--strict", "--chunk-size", "12"]
        super().__init__("aimock-supervised", command, "/v1/models")


def environment(home: Path, root: str) -> dict[str, str]:
    return {
        "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "CI": "1", "NO_PROXY": "127.0.0.1",
        "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9",
        "OPENAI_API_KEY": "dummy", "GEMINI_API_KEY": "dummy", "ANTHROPIC_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{root}/v1", "ANTHROPIC_BASE_URL": root, "GOOGLE_GEMINI_BASE_URL": root, "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }  # fmt: skip


def home_of(agent: Supervised, root: str, kind: str) -> Path:
    home = FOLDER / "homes" / f"{agent.agent}-{kind}"
    shutil.rmtree(home, ignore_errors=True)
    for name, text in agent.files:
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{root}", root))
    project = home / "project"
    project.mkdir(parents=True)
    (project / "criteria.yaml").write_text(CRITERIA)
    return home


def started(command: list[str], home: Path, root: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command, env=environment(home, root), cwd=home / "project", stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip


def tried(agent: Supervised, program: str, endmark: Path, root: str) -> tuple[bool, str]:
    alone = home_of(agent, root, "alone")
    before = started([program, *(word.replace("{prompt}", TASK) for word in agent.words)], alone, root)
    left = (alone / "project" / "report.md").read_text()
    home = home_of(agent, root, "supervised")
    options = ["--template", "criteria.yaml", "--artifact", "report.md", "--prompt", TASK, "--agent", agent.agent]
    after = started([str(endmark), "run", "--json", *options, "--", program, *agent.words], home, root)
    report = (home / "project" / "report.md").read_text()
    run = json.loads(after.stdout)["data"]["agentRun"]
    is_right = left == STUB and before.returncode == 0
    # Each attempt makes two calls with 100 input and 10 output tokens, and none is counted twice.
    is_right &= after.returncode == 0 and report == WHOLE and run["attempt"] == 2 and run["tokenUsage"]["total"] == 440
    if not is_right:
        print(f"{left!r} {report!r}\n{json.dumps(run, indent=1)}\n{before.stdout[-2000:]}\n{after.stderr[-3000:]}")
    line = (
        f"| {agent.name} | leaves the stub and reports success; exit {before.returncode} "
        f"| {run['state']} at attempt {run['attempt']}, {run['tokenUsage']['total']} tokens; exit {after.returncode} |"
    )
    return is_right, line


# The model's behaviour, and the result through the run's own gateway: exit code, state, reason, attempt, calls, tokens per call.
THROUGH = {
    "work": (0, "succeeded", None, 2, 4, 110),
    "never": (1, "released", "CONTEXT_EXHAUSTION", 3, 6, 110),
    "full": (1, "released", "CONTEXT_EXHAUSTION", 1, 2, 180_010),
}


def through(agent: Supervised, program: str, endmark: Path, root: str) -> tuple[bool, str]:
    is_right, cells = True, []
    for kind, (code, state, reason, attempt, calls, tokens) in THROUGH.items():
        expected = (code, state, reason, attempt, (calls + agent.calls_besides) * tokens)
        home = home_of(agent, root, f"through-{kind}")
        words = [word.replace("-work", f"-{kind}") for word in agent.words]
        options = ["--template", "criteria.yaml", "--artifact", "report.md", "--prompt", TASK, "--agent", agent.agent]
        options += ["--through", "--limit-tokens", "200000"]
        ran = started([str(endmark), "run", "--json", *options, "--", program, *words], home, root)
        answer = json.loads(ran.stdout)
        run = (answer["data"] or {}).get("agentRun") or {"tokenUsage": {}}
        found = (ran.returncode, run.get("state"), run.get("reason"), run.get("attempt"), run["tokenUsage"].get("total"))
        # The agent's own report was not counted.
        if found != expected or answer["warnings"]:
            is_right = False
            print(f"{agent.name} {kind}: {found}, expected {expected}\n{json.dumps(answer, indent=1)}\n{ran.stderr[-3000:]}")
        cells.append(f"{found[1]}{f' {found[2]}' if found[2] else ''} at attempt {found[3]}, {found[4]} tokens")
    return is_right, f"| {agent.name} | {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    parser.add_argument("--all", action="store_true", help="also the agents that take minutes or much disk")
    parser.add_argument("--claude", metavar="PATH", help="the Claude Code that is on this machine")
    parser.add_argument("--document", action="store_true", help="write the table into bench/FIGURES.md")
    given = parser.parse_args()
    endmark = given.program.resolve() if given.program else gateway.program()
    failed, lines = 0, ["| agent | without Endmark | `endmark run` |", "|---|---|---|"]
    beside = ["| agent | first a stub | only stubs | a stub and a call over the threshold |", "|---|---|---|---|"]
    try:
        mocks.install()
        chosen = []
        for agent in SUPERVISED:
            if given.all or not agent.is_large:
                known = next(known for known in AGENTS if known.program == agent.agent)
                known.install()
                chosen.append((agent, str(known.executable)))
        if given.claude:
            chosen.append((CLAUDE, given.claude))
        with WorkingMock() as mock:
            for agent, program in chosen:
                begun = time.monotonic()
                is_right, line = tried(agent, program, endmark, mock.origin)
                failed += not is_right
                print(f"{'ok  ' if is_right else 'FAIL'}  {agent.name} ({time.monotonic() - begun:.0f} s)\n      {line}")
                lines.append(line)
                is_right, line = through(agent, program, endmark, mock.origin)
                failed += not is_right
                print(f"{'ok  ' if is_right else 'FAIL'}  {agent.name} through its own gateway\n      {line}")
                beside.append(line)
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 1
    if given.document:
        text = DOCUMENT.read_text()
        for name, table in (("runs", lines), ("through", beside)):
            marked = re.compile(rf"(<!-- {name}: written by tests/agents -->\n).*?(<!-- end -->)", re.DOTALL)
            text = marked.sub(lambda found, table=table: found[1] + "\n".join(table) + "\n" + found[2], text)
        DOCUMENT.write_text(text)
    print(f"{failed} failed" if failed else "All as expected.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
