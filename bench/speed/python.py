#!/usr/bin/env python3
"""Measures how long `detect` takes in Python and in Rust, how long the import takes, and how large the extension
module is.

    python3 bench/speed/python.py [--python PROGRAM] [--wheel FILE]

Each time is the shortest of many, so that other work on the machine has little effect. `--wheel` measures the package
that users install. Without it, this program builds the module for release.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "bindings" / "python" / "python" / "endmark"
CALLS = 200
ROUNDS = 5
MEGABYTE = 1_000_000

MEASURED = f"""
import sys, time
import endmark
raw = open(sys.argv[1], "rb").read()
text = raw if sys.argv[2] == "bytes" else raw.decode()
clock, shortest = time.perf_counter_ns, 1 << 62
for _ in range({CALLS}):
    begun = clock()
    endmark.detect(text, "json")
    shortest = min(shortest, clock() - begun)
print(shortest)
"""


def document(kind: str) -> bytes:
    """A cut JSON text of 1 MB."""
    item = {"code": '"fn main() {{ println!(\\"{n}\\"); }}", ', "objects": '{{"id": {n}, "ok": true, "tags": ["a", "b"]}}, ', "accents": '"Überprüfung № {n}, 東京", '}[kind]
    lines, size = ["["], 1
    while size < MEGABYTE:
        lines.append(item.format(n=len(lines)))
        size += len(lines[-1].encode())
    return "".join(lines).encode()[:MEGABYTE].decode("utf-8", "ignore").encode()


def build() -> Path:
    """Builds the module and the program with which it is compared. Returns the folder of both."""
    target = REPOSITORY / "target" / "bindings-speed"
    # Build both together, so that they have the same features and each crate is compiled only once.
    what = ["--package", "endmark-python", "--package", "endmark-bindings", "--lib", "--example", "detect_speed"]
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target-dir", str(target), *what]
    subprocess.run(command, cwd=REPOSITORY / "bindings", check=True)
    return target / "release"


def shortest(command: list[str], environment: dict[str, str]) -> int:
    return int(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def imported(python: str, environment: dict[str, str], statement: str) -> dict[str, int]:
    """Returns the modules that a statement imports, each with its microseconds as reported by `-X importtime`."""
    command = [python, "-X", "importtime", "-c", statement]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stderr
    rows = [line.removeprefix("import time:").split("|") for line in found.splitlines()]
    return {name.strip(): int(own) for own, _, name in rows if own.strip().isdigit()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--wheel", type=Path)
    arguments = parser.parse_args()
    built = build()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.wheel:
            zipfile.ZipFile(arguments.wheel).extractall(folder)
            print(f"wheel: {arguments.wheel.stat().st_size / MEGABYTE:.1f} MB")
        else:
            package = Path(folder) / "endmark"
            package.mkdir()
            for file in PACKAGE.glob("*.py"):
                (package / file.name).write_bytes(file.read_bytes())
            (package / "_native.abi3.so").write_bytes((built / "lib_native.so").read_bytes())
        module = Path(folder) / "endmark" / "_native.abi3.so"
        print(f"extension module: {module.stat().st_size / MEGABYTE:.1f} MB")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"PYTHONPATH": folder}
        bare = imported(arguments.python, environment, "").keys()
        for statement in ("import endmark", "from endmark import detect", "from endmark import Pipeline, Meter, cap, detect"):
            runs = [imported(arguments.python, environment, statement) for _ in range(15)]
            took = min(sum(own for name, own in run.items() if name not in bare) for run in runs)
            print(f"{statement}: {took / 1000:.1f} ms")
        print("\n| 1 MB of | Rust, ms | Python bytes, ms | ratio | Python str, ms | ratio |\n|---|---|---|---|---|---|")
        for kind in ("code", "objects", "accents"):
            file = Path(folder) / "document.json"
            file.write_bytes(document(kind))
            times: dict[str, int] = {}
            for _ in range(ROUNDS):
                commands = {"rust": [str(built / "examples" / "detect_speed"), str(file)]}
                commands |= {given: [arguments.python, "-c", MEASURED, str(file), given] for given in ("bytes", "str")}
                for name, command in commands.items():
                    times[name] = min(times.get(name, 1 << 62), shortest(command, environment))
            rust = times["rust"]
            cells = [f"{rust / 1e6:.2f}", *(cell for given in ("bytes", "str") for cell in (f"{times[given] / 1e6:.2f}", f"{times[given] / rust:.2f}"))]
            print(f"| {kind} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
