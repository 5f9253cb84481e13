#!/usr/bin/env python3
"""The npm package: builds its addon in debug, installs it beside frameworks of others, and runs its tests with them.

    python3 tests/bindings/test_node.py [--all]

`--all` also tries every framework and version. The newest need Node 22, which npm installs as a package.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / "real_model")]

from installed import installed  # noqa: E402

BINDINGS = REPOSITORY / "bindings"
TESTS = REPOSITORY / "tests" / "node"
FOLDER = REPOSITORY / ".bindings" / "node"
PACKED = ["dist", "migrations", "templates", "package.json", "endmark.node"]
# What the modules of the suite find without installing anything: `endmark` is nearer to them than the frameworks.
SUITE = FOLDER / "suite"


def fill(place: Path) -> None:
    shutil.copy(TESTS / "package.json", place)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=place, check=True)


def build() -> None:
    """The package as npm would unpack it, with an addon that is not optimised."""
    target = REPOSITORY / "target"
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "--package", "endmark-node"],
        cwd=BINDINGS, env=os.environ | {"CARGO_TARGET_DIR": str(target)}, check=True,
    )  # fmt: skip
    compiler = BINDINGS / "node" / "node_modules"
    if compiler.is_symlink() or not compiler.exists():
        compiler.unlink(missing_ok=True)
        compiler.symlink_to(FOLDER / "node_modules")
    subprocess.run(["node", "build.mjs", "--addon", str(target / "debug" / "libendmark_node.so")], cwd=BINDINGS / "node", check=True)
    shutil.rmtree(SUITE, ignore_errors=True)
    shutil.copytree(TESTS, SUITE, ignore=shutil.ignore_patterns("package.json", "node_modules"))
    package = SUITE / "node_modules" / "endmark"
    package.mkdir(parents=True)
    for name in PACKED:
        source = BINDINGS / "node" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, package / name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    installed(FOLDER, (TESTS / "package.json").read_bytes(), fill)
    build()
    programs = FOLDER / "node_modules" / ".bin"
    environment = os.environ | {"ENDMARK_CASES": str(BINDINGS / "cases.json")}
    commands = [[str(programs / "jest"), "--rootDir", str(SUITE)], [str(programs / "tsc"), "--project", str(SUITE)]]
    versions = {"5": "node", "6": "node", "7": str(programs / "node")}
    for version, node in versions.items() if arguments.all else [("5", "node")]:
        commands.append(["env", f"ENDMARK_AI_SDK={version}", node, "--test", "--test-reporter=dot", str(SUITE / "ai-sdk.mjs")])
    if arguments.all:
        commands.append(["node", "--test", "--test-reporter=dot", str(SUITE / "langchain.mjs")])
        commands.append([versions["7"], "--test", "--test-reporter=dot", str(SUITE / "mastra.mjs")])
    failed = [command for command in commands if subprocess.run(command, cwd=SUITE, env=environment).returncode != 0]
    for command in failed:
        print(f"failed: {' '.join(command)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
