"""A Python wheel whose script is the program itself: `pip install endmark`, `uvx endmark demo`."""

from __future__ import annotations

from archive import Entry, wheel

# A static program runs with every C library, old or new.
TAGS = ["manylinux_2_17", "manylinux2014", "musllinux_1_1"]

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
    platforms = [f"{tag}_{machine.name}" for tag in TAGS]
    information = f"endmark-{release.version}.dist-info"
    metadata = [
        "Metadata-Version: 2.4",
        "Name: endmark",
        f"Version: {release.version}",
        f"Summary: {release.summary}",
        "License-Expression: MIT OR Apache-2.0",
        *(f"License-File: {name}" for name in release.licences),
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
        "",
        release.readme,
    ]
    about = ["Wheel-Version: 1.0", "Generator: endmark", "Root-Is-Purelib: false"]
    about += [f"Tag: py3-none-{platform}" for platform in platforms]
    entries = [
        Entry(f"endmark-{release.version}.data/scripts/endmark", program, 0o755),
        Entry("endmark/__init__.py", b'"""Endmark is a program; `python -m endmark` runs it."""\n'),
        Entry("endmark/__main__.py", MAIN),
        Entry(f"{information}/METADATA", "\n".join(metadata).encode()),
        Entry(f"{information}/WHEEL", ("\n".join(about) + "\n").encode()),
        *(Entry(f"{information}/licenses/{name}", text) for name, text in release.licences.items()),
    ]
    name = f"endmark-{release.version}-py3-none-{'.'.join(platforms)}.whl"
    return name, wheel(entries, information, release.epoch)
