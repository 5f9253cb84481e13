#!/usr/bin/env python3
"""Tests the npm package: builds a debug addon, installs the package next to third-party frameworks, and runs its tests.

    python3 tests/bindings/test_node.py [--all]

`--all` also tries every framework and version. The newest need Node 22, which npm installs as a package.
"""

from __future__ import annotations

import argparse
import json
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
PACKED = ["dist", "migrations", "templates", "package.json", "endmark.node"]


def manifest(*, everything: bool) -> bytes:
    wanted = json.loads((TESTS / "package.json").read_text())
    if everything:
        wanted["dependencies"] |= json.loads((TESTS / "all.json").read_text())["dependencies"]
    return json.dumps(wanted, indent=2).encode()


def fill(place: Path, wanted: bytes) -> None:
    (place / "package.json").write_bytes(wanted)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=place, check=True)


def build(folder: Path) -> Path:
    """Builds the package as npm would unpack it, with an addon that is not optimised."""
    target = REPOSITORY / "target"
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "--package", "endmark-node"],
        cwd=BINDINGS, env=os.environ | {"CARGO_TARGET_DIR": str(target)}, check=True,
    )  # fmt: skip
    compiler = BINDINGS / "node" / "node_modules"
    if compiler.is_symlink() or not compiler.exists():
        compiler.unlink(missing_ok=True)
        compiler.symlink_to(folder / "node_modules")
    subprocess.run(["node", "build.mjs", "--addon", str(target / "debug" / "libendmark_node.so")], cwd=BINDINGS / "node", check=True)
    # The tests find this `endmark` before any installed one, so it need not be installed.
    suite = folder / "suite"
    shutil.rmtree(suite, ignore_errors=True)
    shutil.copytree(TESTS, suite, ignore=shutil.ignore_patterns("package.json", "node_modules"))
    package = suite / "node_modules" / "endmark"
    package.mkdir(parents=True)
    for name in PACKED:
        source = BINDINGS / "node" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, package / name)
    return suite


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    folder = REPOSITORY / ".bindings" / ("node-all" if arguments.all else "node")
    wanted = manifest(everything=arguments.all)
    installed(folder, wanted, lambda place: fill(place, wanted))
    suite = build(folder)
    programs = folder / "node_modules" / ".bin"
    environment = os.environ | {"ENDMARK_CASES": str(BINDINGS / "cases.json")}
    types = "tsconfig.all.json" if arguments.all else "tsconfig.json"
    commands = [[str(programs / "jest"), "--config", json.dumps({"rootDir": str(suite), "testTimeout": 60_000})], [str(programs / "tsc"), "--project", str(suite / types)]]
    node, node_22 = ["node"], [str(programs / "node")]
    frameworks = [("ai-sdk.mjs", "5", node)]
    if arguments.all:
        frameworks += [("ai-sdk.mjs", "6", node), ("ai-sdk.mjs", "7", node_22), ("langchain.mjs", "", node), ("mastra.mjs", "", node_22), ("openai-agents.mjs", "", node_22)]
    for file, version, program in frameworks:
        commands.append(["env", f"ENDMARK_AI_SDK={version}", *program, "--test", "--test-reporter=dot", str(suite / file)])
    failed = [command for command in commands if subprocess.run(command, cwd=suite, env=environment).returncode != 0]
    for command in failed:
        print(f"failed: {' '.join(command)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
