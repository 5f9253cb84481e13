#!/usr/bin/env python3
"""Builds Endmark, installs a small real model, and shows cut replies with and without Endmark.

Needs a Rust toolchain with a C compiler, and Python 3.10 or newer with pip, on Linux (x86-64). It needs no account and
no key. The model, its server and all that is written stay in one folder, .real-model, which can be deleted.

    scripts/quickstart              # build, show; the page stays open until Ctrl-C
    scripts/quickstart --keep       # leave the model and Endmark running in the background
    NO_COLOR=1 scripts/quickstart   # plain text

Without a terminal it stops everything at the end, unless --keep is given. Ends with 0 when every reply through Endmark was
whole and began with what the cut one had, with 1 when one was not, and with 2 when something is missing on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from model_server import DEFAULT_FOLDER, HERE, SetUpError, install

REPOSITORY = HERE.parent.parent
BEGUN = time.monotonic()
PROFILE = "quick"
# The interval of progress lines if the output is not a terminal, in seconds.
LINE_EVERY_SECONDS = 30


def say(words: str) -> None:
    print(f"[{time.monotonic() - BEGUN:4.0f} s] {words}", flush=True)


class Installing(threading.Thread):
    """Downloads the model while the compiler runs."""

    def __init__(self):
        super().__init__(daemon=True)
        self.installation = None
        self.problem: SetUpError | None = None

    def run(self) -> None:
        try:
            self.installation = install(DEFAULT_FOLDER)
        except SetUpError as problem:
            self.problem = problem


class Progress:
    """Shows the progress of the build in one line, which a terminal overwrites. Other outputs get a line now and then."""

    def __init__(self):
        self.shown_at = time.monotonic()
        self.is_open = False

    def show(self, words: str) -> None:
        now = time.monotonic()
        line = f"[{now - BEGUN:4.0f} s] {words}"
        if sys.stdout.isatty():
            print(f"\r{line}\033[K", end="", flush=True)
            self.is_open = True
        elif now - self.shown_at >= LINE_EVERY_SECONDS:
            self.shown_at = now
            print(line, flush=True)

    def end(self) -> None:
        if self.is_open:
            print()
            self.is_open = False


def build() -> bool:
    """Builds the command and shows cargo's count of crates."""
    # Request cargo's progress bar, which it omits if its output is not a terminal.
    environment = os.environ | {"CARGO_TERM_PROGRESS_WHEN": "always", "CARGO_TERM_PROGRESS_WIDTH": "80"}
    cargo = ["cargo", "build", "--locked", "--profile", PROFILE, "--package", "endmark-cli", "--bin", "endmark"]
    process = subprocess.Popen(cargo, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, bufsize=0)
    progress, said, rest = Progress(), [], b""
    while part := process.stderr.read(4096):
        *lines, rest = re.split(rb"[\r\n]", rest + part)
        for line in lines:
            counted = re.search(rb"(\d+)/(\d+)", line) if b"[" in line else None
            if counted:
                done, all_of_them = (number.decode() for number in counted.groups())
                progress.show(f"compiling Endmark: {done} of {all_of_them} crates")
            else:
                said.append(re.sub(rb"\x1b\[[0-9;]*[mK]", b"", line).decode(errors="replace"))
    progress.end()
    if process.wait() != 0:
        print("\n".join(line for line in said if line and " Compiling " not in line)[-8000:], file=sys.stderr)
    return process.returncode == 0


def program() -> Path:
    """Returns the path of the program in cargo's target folder."""
    described = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=REPOSITORY, stdout=subprocess.PIPE, check=True
    )
    return Path(json.loads(described.stdout)["target_directory"]) / PROFILE / "endmark"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/quickstart", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="leave the model and Endmark running in the background")
    arguments = parser.parse_args()
    say("the first time, this takes about 4 minutes on two processors; later about 15 seconds")
    say(f"downloading a small model and its server (170 MB) into {DEFAULT_FOLDER}, while Endmark is compiled")
    installing = Installing()
    installing.start()
    if not build():
        return 2
    say("Endmark is compiled" + ("; waiting for the model" if installing.is_alive() else ""))
    installing.join()
    if installing.problem:
        print(installing.problem, file=sys.stderr)
        return 2
    say("the model is there: starting it, and Endmark before it; then five requests, each twice (about 10 seconds)")
    # The rest runs in the model's environment, which contains the client library.
    python = str(installing.installation.python)
    show = [python, str(HERE / "side_by_side.py"), "--program", str(program()), *(["--keep"] if arguments.keep else [])]
    sys.stdout.flush()
    os.execv(python, [*show, "--begun", str(BEGUN)])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
