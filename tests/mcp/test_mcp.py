#!/usr/bin/env python3
"""Sends requests of the official client to a published MCP server, directly and through `endmark mcp wrap`.

    cargo build --release --package endmark-cli
    python3 tests/mcp/test_mcp.py [--program target/debug/endmark]

The server is mcp-server-git over a repository with 4,000 commits, of which one speaks of an error. Alone its log fills a
context; wrapped it is small, has that commit, and the rest is read by the tool `endmark_read`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import new_environment, run  # noqa: E402

FOLDER = ROOT / ".mcp"
PYTHON = FOLDER / "venv" / "bin" / "python"
COMMITS = 4_000
ERROR = "ERROR: the disk was full"


def install() -> None:
    """Installs server and client in one folder, unless they are installed already. The folder can be deleted at any time."""
    requirements = HERE / "requirements.txt"
    fill = lambda place: run([*new_environment(place / "venv"), "-r", str(requirements)])  # noqa: E731
    installed(FOLDER, requirements.read_bytes(), fill)
    if Path(sys.prefix).resolve() != (FOLDER / "venv").resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])


def repository() -> Path:
    """Creates a repository with many commits."""
    folder = FOLDER / "repository"
    if not (folder / ".git").exists():
        run(["git", "init", "--quiet", "--initial-branch=main", str(folder)])
        stream = []
        for number in range(COMMITS):
            message = f"Commit {number}: {ERROR if number == COMMITS // 2 else 'all is well'}\n"
            who = f"A <a@example.com> {1_700_000_000 + number} +0000"
            stream.append(f"commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {len(message)}\n{message}\n")
        subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input="".join(stream), text=True, check=True)
    return folder


async def asked(command: str, arguments: list[str], home: Path, work) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    parameters = StdioServerParameters(command=command, args=arguments, env=environment)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await work(session)


def text_of(result) -> str:
    return "\n".join(part.text for part in result.content)


class Trial:
    """Collects failed expectations."""

    def __init__(self, folder: Path):
        self.folder, self.failures, self.alone = folder, 0, ""

    def expect(self, what: str, is_so: bool, seen: object) -> None:
        self.failures += not is_so
        print(f"{'ok   ' if is_so else 'FAILED'} {what}: {str(seen)[:160]!r}")

    async def bare(self, session) -> None:
        self.names = [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool("git_log", {"repo_path": str(self.folder), "max_count": COMMITS})
        self.alone = text_of(result)
        self.status = text_of(await session.call_tool("git_status", {"repo_path": str(self.folder)}))
        self.expect("alone the log is long", len(self.alone) > 400_000, len(self.alone))

    async def wrapped(self, session) -> None:
        names = [tool.name for tool in (await session.list_tools()).tools]
        self.expect("one tool more", names == [*self.names, "endmark_read"], names[-2:])
        status = text_of(await session.call_tool("git_status", {"repo_path": str(self.folder)}))
        self.expect("a short result is the same", status == self.status, status)
        result = await session.call_tool("git_log", {"repo_path": str(self.folder), "max_count": COMMITS})
        text = text_of(result)
        self.expect("wrapped the log is small", len(text) <= 60_000, len(text))
        self.expect("and has the error", ERROR in text, ERROR in text)
        found = re.search(r"endmark_read (\S+)", text)
        self.expect("and names the rest", found is not None, found and found.group(0))
        if found:
            handle = found.group(1)
            read = await session.call_tool("endmark_read", {"handle": handle, "grep": "Commit 1234:"})
            self.expect("which is read by pattern", "Commit 1234: all is well" in text_of(read), text_of(read))
            pages, number = [], 1
            while True:
                page = text_of(await session.call_tool("endmark_read", {"handle": handle, "page": number}))
                body, _, last = page.rpartition("\n[page ")
                pages.append(body)
                number += 1
                if last == f"{number - 1} of {number - 1}]":
                    break
            self.expect("and by pages, whole", "".join(pages) == self.alone, f"{len(pages)} pages")
        refused = await session.call_tool("endmark_read", {"handle": "none"})
        self.expect("an unknown handle is refused", bool(refused.is_error), text_of(refused))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "endmark")
    given = parser.parse_args()
    if not given.program.exists():
        sys.exit(f"{given.program} is missing: `cargo build --release --package endmark-cli` makes it")
    install()
    trial = Trial(repository())
    server = [str(PYTHON), "-m", "mcp_server_git", "--repository", str(trial.folder)]
    asyncio.run(asked(server[0], server[1:], FOLDER, trial.bare))
    asyncio.run(asked(str(given.program.resolve()), ["mcp", "wrap", "--", *server], FOLDER, trial.wrapped))
    print("All as expected." if not trial.failures else f"{trial.failures} failed")
    return 1 if trial.failures else 0


if __name__ == "__main__":
    sys.exit(main())
