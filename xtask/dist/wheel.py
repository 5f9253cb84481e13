"""Builds Python wheels whose script is the program itself: `pip install endmark`, `uvx endmark demo`.

One wheel works with every C library and contains only the program. The other one is for glibc and also contains the
module `endmark`. pip prefers it if both can be installed.
"""

from __future__ import annotations

from pathlib import Path

from archive import Entry, wheel

# A static program runs with every C library, old or new.
ANY_LIBC = ["manylinux_2_17", "manylinux2014", "musllinux_1_1"]
# The module is linked to glibc 2.17.
GLIBC = ["manylinux_2_17", "manylinux2014"]
SOURCES = Path(__file__).resolve().parents[2] / "bindings" / "python" / "python" / "endmark"
# The same as in bindings/python/pyproject.toml.
EXTRAS = {"langchain": "langchain>=1.0", "adk": "google-adk>=2.0"}

MAIN = b'''"""`python -m endmark`: the program that was installed beside this module."""

import os
import sys
import sysconfig


def main() -> None:
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    places = [os.path.join(sysconfig.get_path("scripts", scheme), "endmark") for scheme in schemes]
    program = next((place for place in places if os.path.isfile(place)), None)
    if program is None:
        sys.exit("endmark: the program is in none of: " + ", ".join(places))
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
'''


def pack(release, machine, program: bytes) -> tuple[str, bytes]:
    """Returns the wheel that contains only the program."""
    init = b'"""Endmark is a program; `python -m endmark` runs it."""\n'
    return packed(release, machine, program, "py3-none", ANY_LIBC, {"endmark/__init__.py": init}, ["Requires-Python: >=3.8"])


def pack_module(release, machine, program: bytes, module: bytes) -> tuple[str, bytes]:
    """Returns the wheel that contains the program and the module."""
    files = {
        f"endmark/{path.name}": path.read_bytes()
        for path in sorted(SOURCES.iterdir())
        if path.suffix in (".py", ".pyi", ".typed") or path.name == "py.typed"
    }
    files["endmark/_native.abi3.so"] = module
    about = ["Requires-Python: >=3.10"]
    for extra, needed in EXTRAS.items():
        about += [f"Provides-Extra: {extra}", f'Requires-Dist: {needed}; extra == "{extra}"']
    return packed(release, machine, program, "cp310-abi3", GLIBC, files, about)


def packed(release, machine, program: bytes, python: str, libc: list[str], files: dict[str, bytes], more: list[str]) -> tuple[str, bytes]:
    platforms = [f"{tag}_{machine.name}" for tag in libc]
    information = f"endmark-{release.version}.dist-info"
    metadata = [
        "Metadata-Version: 2.4",
        "Name: endmark",
        f"Version: {release.version}",
        f"Summary: {release.summary}",
        "License-Expression: MIT OR Apache-2.0",
        *(f"License-File: {name}" for name in release.licences),
        *more,
        "Description-Content-Type: text/markdown",
        "",
        release.readme,
    ]
    about = ["Wheel-Version: 1.0", "Generator: endmark", "Root-Is-Purelib: false"]
    about += [f"Tag: {python}-{platform}" for platform in platforms]
    entries = [
        Entry(f"endmark-{release.version}.data/scripts/endmark", program, 0o755),
        *(Entry(name, content) for name, content in files.items()),
        Entry("endmark/__main__.py", MAIN),
        Entry(f"{information}/METADATA", "\n".join(metadata).encode()),
        Entry(f"{information}/WHEEL", ("\n".join(about) + "\n").encode()),
        *(Entry(f"{information}/licenses/{name}", text) for name, text in release.licences.items()),
    ]
    name = f"endmark-{release.version}-{python}-{'.'.join(platforms)}.whl"
    return name, wheel(entries, information, release.epoch)
