#!/usr/bin/env python3
"""The Python package: builds its extension module in debug, and runs its tests with the frameworks of others.

    python3 tests/bindings/test_python.py [--types]

`--types` also has mypy and pyright check the package, its examples and those of its pages, strictly.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / "real_model"), str(REPOSITORY / "tests" / "sdk")]

from installed import installed  # noqa: E402
from model_server import SetUpError, new_environment, run  # noqa: E402

BINDINGS = REPOSITORY / "bindings"
PACKAGE = BINDINGS / "python"
FOLDER = REPOSITORY / ".bindings"
PAGES = [REPOSITORY / "docs" / "python.md", PACKAGE / "README.md"]
REQUIREMENTS = PACKAGE / "tests" / "requirements.txt"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", action="store_true")
    arguments = parser.parse_args()
    target = REPOSITORY / "target"
    environment = os.environ | {"CARGO_TARGET_DIR": str(target)}
    build = ["cargo", "build", "--quiet", "--locked", "--package", "endmark-python"]
    subprocess.run(build, cwd=BINDINGS, env=environment, check=True)
    shutil.copy(target / "debug" / "lib_native.so", PACKAGE / "python" / "endmark" / "_native.abi3.so")
    try:
        installed(FOLDER, REQUIREMENTS.read_bytes(), lambda place: run([*new_environment(place / "venv"), "-r", str(REQUIREMENTS)]) and None)
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 2
    programs = FOLDER / "venv" / "bin"
    environment |= {"PYTHONPATH": str(PACKAGE / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    commands = [[str(programs / "python"), "-m", "pytest", "--quiet", "-p", "no:cacheprovider"]]
    commands += [[str(programs / "python"), str(example)] for example in sorted((PACKAGE / "examples").glob("*.py"))]
    if arguments.types:
        shown = examples_of_pages()
        commands += [[str(programs / "mypy")], [str(programs / "mypy"), "--config-file", "pyproject.toml", *shown]]
        commands.append([str(programs / "pyright"), "--pythonpath", str(programs / "python")])
        commands.append([str(programs / "pyright"), "--project", str(FOLDER / "pages"), "--pythonpath", str(programs / "python")])
    failed = [command for command in commands if subprocess.run(command, cwd=PACKAGE, env=environment).returncode != 0]
    for command in failed:
        print(f"failed: {' '.join(command)}", file=sys.stderr)
    return 1 if failed else 0


def examples_of_pages() -> list[str]:
    """Writes each example in Python of the package's pages into a file, with the settings of pyright beside them."""
    folder = FOLDER / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = []
    for page in PAGES:
        for number, example in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE), 1):
            files.append(folder / f"{page.stem.lower()}_{number}.py")
            files[-1].write_text(example, "utf-8")
    # Types of frameworks that are partly unknown are no fault of an example.
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(PACKAGE / "python")], "reportUnknownVariableType": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    return [str(file) for file in files]


if __name__ == "__main__":
    sys.exit(main())
