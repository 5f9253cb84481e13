#!/usr/bin/env python3
"""Tests the Python package: builds a debug extension module, and runs the tests with third-party frameworks.

    python3 tests/bindings/test_python.py [--types]

LangChain and Google ADK are always tested. `--types` adds the other frameworks, and has mypy and pyright check the package, its
examples and those of its pages, strictly. Tests of frameworks that are not installed are skipped.
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
# The folder of each environment, and its packages.
SOME = (REPOSITORY / ".bindings", ["requirements.txt"])
ALL = (REPOSITORY / ".bindings-all", ["requirements-frameworks.txt", "requirements.txt"])
# The other examples need a model, so other tests run them.
EXAMPLES = ["resume.py"]
PAGES = [REPOSITORY / "docs" / "python.md", PACKAGE / "README.md"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", action="store_true")
    arguments = parser.parse_args()
    target = REPOSITORY / "target"
    environment = os.environ | {"CARGO_TARGET_DIR": str(target)}
    build = ["cargo", "build", "--quiet", "--locked", "--package", "endmark-python"]
    subprocess.run(build, cwd=BINDINGS, env=environment, check=True)
    shutil.copy(target / "debug" / "lib_native.so", PACKAGE / "python" / "endmark" / "_native.abi3.so")
    folder, files = ALL if arguments.types else SOME
    requirements = [PACKAGE / "tests" / name for name in files]
    wanted = b"".join(file.read_bytes() for file in requirements)
    try:
        installed(folder, wanted, lambda place: run([*new_environment(place / "venv"), "-r", str(requirements[0])]) and None)
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 2
    programs = folder / "venv" / "bin"
    environment |= {"PYTHONPATH": str(PACKAGE / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    commands = [[str(programs / "python"), "-m", "pytest", "--quiet", "-p", "no:cacheprovider"]]
    commands += [[str(programs / "python"), str(PACKAGE / "examples" / example)] for example in EXAMPLES]
    if arguments.types:
        shown = examples_of_pages(folder / "pages")
        commands += [[str(programs / "mypy")], [str(programs / "mypy"), "--config-file", "pyproject.toml", *shown]]
        commands.append([str(programs / "pyright"), "--pythonpath", str(programs / "python")])
        commands.append([str(programs / "pyright"), "--project", str(folder / "pages"), "--pythonpath", str(programs / "python")])
    failed = [command for command in commands if subprocess.run(command, cwd=PACKAGE, env=environment).returncode != 0]
    for command in failed:
        print(f"failed: {' '.join(command)}", file=sys.stderr)
    return 1 if failed else 0


def examples_of_pages(folder: Path) -> list[str]:
    """Writes each Python example of the package's pages into a file, with the settings of pyright next to them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = []
    for page in PAGES:
        for number, example in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE), 1):
            files.append(folder / f"{page.stem.lower()}_{number}.py")
            files[-1].write_text(example, "utf-8")
    # An example may use framework types that are partly unknown.
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(PACKAGE / "python")], "reportUnknownVariableType": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    return [str(file) for file in files]


if __name__ == "__main__":
    sys.exit(main())
