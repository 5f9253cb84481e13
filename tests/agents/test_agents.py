#!/usr/bin/env python3
"""Gives real headless agents a task whose reply is cut, once directly and once through Endmark.

    cargo build --release --package endmark-cli
    python3 tests/agents/test_agents.py [--all] [--document]

The server is a mock by others that cuts every reply it is not asked to finish. The agents have dummy keys, homes of their
own, and nothing but the loopback address.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "real_model"), str(HERE.parent / "graders")]

import gateway  # noqa: E402
import mocks  # noqa: E402
from agents import AGENTS, FOLDER, REPORT, TEXT, Agent, Work  # noqa: E402
from model_server import SetUpError  # noqa: E402

DOCUMENT = gateway.REPOSITORY / "docs" / "compatibility.md"


class CuttingMock(mocks.Process):
    """aimock with the replies for the agents."""

    def __init__(self):
        program = mocks.FOLDER / "node_modules" / ".bin" / "llmock"
        command = [str(program), "--fixtures", str(HERE / "fixtures.json"), "--strict", "--chunk-size", "12"]
        super().__init__("aimock-agents", command, "/v1/models")


def is_whole(agent: Agent, work: Work) -> bool:
    if agent.ends_in == "call":
        return work.report == REPORT
    # Ignore line breaks, because terminals wrap lines.
    return " ".join(TEXT.split()) in " ".join(work.output.split())


def shown(agent: Agent, work: Work) -> str:
    """Describes the visible result in a few words."""
    if is_whole(agent, work):
        what = "writes the whole file" if agent.ends_in == "call" else "prints the whole answer"
    elif agent.ends_in == "call":
        what = f"writes no file, `{work.status}`" if work.status else "writes no file"
    elif "and the gulls" in work.output:
        what = "prints the cut answer as the final one"
    else:
        what = "prints no answer"
    return f"{what}; exit {work.code}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    parser.add_argument("--all", action="store_true", help="also the agents that take minutes or much disk")
    parser.add_argument("--only", default="", metavar="NAME", help="only agents whose name has this in it")
    parser.add_argument("--document", action="store_true", help="write the table into docs/compatibility.md")
    given = parser.parse_args()
    if given.program:
        gateway.program = lambda: given.program.resolve()
    chosen = [agent for agent in AGENTS if given.only in agent.name and (given.all or not agent.is_large)]
    failed, lines = 0, ["| agent | format | the reply is cut, directly | through Endmark |", "|---|---|---|---|"]
    try:
        mocks.install()
        for agent in chosen:
            agent.install()
        with CuttingMock() as mock:
            upstreams = {
                "mock": {"base_url": mock.base_url, "prefill": "never"},
                "gemini": {"format": "gemini", "base_url": f"{mock.origin}/v1beta", "prefill": "never"},
            }
            # Agents need whole replies, even if they send an output limit.
            with gateway.Gateway(FOLDER / "gateway", upstreams, {"mode": "on"}) as endmark:
                for agent in chosen:
                    begun = time.monotonic()
                    before, after = tried(agent, mock.origin, endmark)
                    is_right = is_whole(agent, after) and not is_whole(agent, before)
                    is_right = is_right and before.is_undone and after.is_undone
                    failed += not is_right
                    print(f"{'ok  ' if is_right else 'FAIL'}  {agent.name} ({time.monotonic() - begun:.0f} s)")
                    print(f"      directly: {shown(agent, before)}\n      through Endmark: {shown(agent, after)}")
                    if not is_right:
                        print(f"      what was set up is taken back: {before.is_undone}, {after.is_undone}")
                        for work in (before, after):
                            print(f"---\n{work.output[-3000:]}\n---\n{work.errors[-3000:]}")
                    lines.append(
                        f"| {agent.name} {agent.version} | `{agent.format}` | {shown(agent, before)} | {shown(agent, after)} |"
                    )
        shutil.rmtree(FOLDER / "gateway")
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 1
    if given.document:
        document("\n".join(lines))
    print(f"{failed} failed" if failed else "All as expected.")
    return 1 if failed else 0


def tried(agent: Agent, mock: str, endmark: gateway.Gateway) -> tuple[Work, Work]:
    works = []
    for name, root in (("directly", mock), ("through", endmark.origin)):
        home = FOLDER / "homes" / f"{agent.name}-{name}"
        shutil.rmtree(home, ignore_errors=True)
        works.append(agent.work(home, root, endmark.program))
    return works[0], works[1]


def document(table: str) -> None:
    text = DOCUMENT.read_text()
    marked = re.compile(r"(<!-- agents: written by tests/agents -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marked.search(text):
        raise SetUpError(f"{DOCUMENT} has no place for the table of agents")
    DOCUMENT.write_text(marked.sub(lambda found: found[1] + table + "\n" + found[2], text))


if __name__ == "__main__":
    sys.exit(main())
