#!/usr/bin/env python3
"""Builds Endmark, sets a small real model up, and shows cut replies with and without Endmark.

Needs a Rust toolchain with a C compiler, and Python 3.10 or newer with pip, on Linux (x86-64). It needs no account and
no key. The model, its server and all that is written stay in one folder, .real-model, which can be deleted.

    scripts/quickstart              # build, show, stop everything again
    scripts/quickstart --keep       # leave the model and Endmark running, and say how to use them
    NO_COLOR=1 scripts/quickstart   # plain text

Ends with 0 when every reply through Endmark was whole and began with what the cut one had, with 1 when one was not,
and with 2 when something is missing on this machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from model_server import DEFAULT_FOLDER, HERE, SetUpError, install

REPOSITORY = HERE.parent.parent
BEGUN = time.monotonic()


def say(words: str) -> None:
    print(f"[{time.monotonic() - BEGUN:4.0f} s] {words}", flush=True)


def missing() -> list[str]:
    """What this machine lacks, each with the way to get it."""
    lacks = []
    if not shutil.which("cargo"):
        lacks.append("a Rust toolchain (cargo): https://rustup.rs")
    if not shutil.which("cc"):
        lacks.append("a C compiler (cc): apt install gcc libc6-dev, or your system's equivalent")
    has = lambda module: importlib.util.find_spec(module) is not None  # noqa: E731
    if not has("venv") or not (has("ensurepip") or has("pip")):
        lacks.append("Python's venv and pip: apt install python3-venv python3-pip, or your system's equivalent")
    return lacks


class Installing(threading.Thread):
    """The download of the model, while the compiler is at work."""

    def __init__(self):
        super().__init__(daemon=True)
        self.installation = None
        self.problem: SetUpError | None = None

    def run(self) -> None:
        try:
            self.installation = install(DEFAULT_FOLDER)
        except SetUpError as problem:
            self.problem = problem


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/quickstart", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", action="store_true", help="leave the model and Endmark running")
    arguments = parser.parse_args()
    lacks = missing()
    if lacks:
        print("The quick start needs:\n" + "\n".join(f"  - {lack}" for lack in lacks), file=sys.stderr)
        return 2
    say(f"setting the model up in {DEFAULT_FOLDER} (about 170 MB, the first time only)")
    installing = Installing()
    installing.start()
    say("building endmark (some minutes, the first time only)")
    built = subprocess.run(["cargo", "build", "--release", "--locked", "--package", "endmark"], cwd=REPOSITORY)
    if built.returncode != 0:
        return 2
    say("endmark is built")
    installing.join()
    if installing.problem:
        print(installing.problem, file=sys.stderr)
        return 2
    say("the model is set up")
    # The client library is in the model's environment, so the rest runs there.
    python = str(installing.installation.python)
    show = [python, str(HERE / "side_by_side.py"), *(["--keep"] if arguments.keep else [])]
    sys.stdout.flush()
    os.execv(python, [*show, "--begun", str(BEGUN)])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
