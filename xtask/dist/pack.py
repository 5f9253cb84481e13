#!/usr/bin/env python3
"""Packs a built `endmark` for each way in which people install programs.

    pack.py --out FOLDER --target TRIPLE=PROGRAM… [--module TRIPLE=MODULE…] [--addon TRIPLE=ADDON…]

`cargo xtask dist` builds the programs and calls this script. The same programs and the same SOURCE_DATE_EPOCH give
the same bytes. The program for this machine prints the manual and the completions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import debian
import image
import notices
import npm
import sbom
import wheel
from archive import Entry, compressed, tar, with_folders

ROOT = Path(__file__).resolve().parents[2]
SHELLS = {"bash": "endmark.bash", "zsh": "_endmark", "fish": "endmark.fish"}
# The program has 27 MB. Precomputed tables of tokenizers once increased that to 77 MB.
LARGEST_PROGRAM_BYTES = 29_000_000


@dataclass(frozen=True)
class Machine:
    """A kind of machine, with its name in each packager."""

    triple: str
    name: str
    debian: str
    oci: str
    node: str


MACHINES = {
    machine.triple: machine
    for machine in [
        Machine("x86_64-unknown-linux-musl", "x86_64", "amd64", "amd64", "x64"),
        Machine("aarch64-unknown-linux-musl", "aarch64", "arm64", "arm64", "arm64"),
    ]
}


@dataclass(frozen=True)
class Release:
    """The data that all packages share."""

    version: str
    epoch: int
    summary: str
    readme: str
    licences: dict[str, bytes]
    """Of Endmark and of everything that its program contains."""
    manual: dict[str, bytes]
    completions: dict[str, bytes]


def answer(program: Path, *arguments: str) -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, env=environment).stdout


def commands(program: Path) -> list[str]:
    """Returns the names of the commands in the program's own help."""
    listed = answer(program, "--help").decode().partition("\nOptions:\n")[0]
    names = [name for name in re.findall(r"^  ([a-z-]+) +\S", listed, re.MULTILINE) if name != "help"]
    if not names:
        sys.exit("the help of the program lists no commands: the packages would lack their manual pages")
    return names


def release(program: Path, packages: list[dict]) -> Release:
    version = answer(program, "--version").decode().split()[-1]
    manual = {"endmark.1": answer(program, "man")}
    manual |= {f"endmark-{name}.1": answer(program, "man", name) for name in commands(program)}
    return Release(
        version=version,
        epoch=int(os.environ["SOURCE_DATE_EPOCH"]),
        summary="Keeps the work of language-model agents whole",
        readme=(ROOT / "README.md").read_text(),
        licences={name: (ROOT / name).read_bytes() for name in ["LICENSE-APACHE", "LICENSE-MIT"]}
        | {notices.NAME: notices.made(ROOT, packages)},
        manual=manual,
        completions={file: answer(program, "completions", shell) for shell, file in SHELLS.items()},
    )


def tarball(release: Release, machine: Machine, program: bytes) -> tuple[str, bytes]:
    folder = f"endmark-{release.version}-{machine.name}-linux"
    files = {"README.md": release.readme.encode(), "endmark.service": debian.UNIT.read_bytes()}
    files |= release.licences
    files |= {f"man/{name}": page for name, page in release.manual.items()}
    files |= {f"completions/{name}": script for name, script in release.completions.items()}
    entries = [Entry(f"{folder}/{name}", content) for name, content in files.items()]
    entries.append(Entry(f"{folder}/endmark", program, 0o755))
    return f"{folder}.tar.gz", compressed(tar(with_folders(entries), release.epoch))


def by_machine(named: list[str]) -> dict[Machine, Path]:
    return {MACHINES[triple]: Path(file) for triple, _, file in (name.partition("=") for name in named)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--target", action="append", required=True, metavar="TRIPLE=PROGRAM")
    parser.add_argument("--module", action="append", default=[], metavar="TRIPLE=MODULE")
    parser.add_argument("--addon", action="append", default=[], metavar="TRIPLE=ADDON")
    arguments = parser.parse_args()
    # Use the triple of the machine's program. These files are linked to another C library.
    modules, addons = by_machine(arguments.module), by_machine(arguments.addon)
    programs = by_machine(arguments.target)
    own = next((path for machine, path in programs.items() if machine.name == platform.machine()), None)
    if own is None:
        print(f"no program for {platform.machine()}, which would print the manual", file=sys.stderr)
        return 2
    # Use one text for all kinds of machines, so that the same program always has the same packages.
    packages = {machine: sbom.packages(ROOT, machine) for machine in MACHINES.values()}
    every = {package["id"]: package for listed in packages.values() for package in listed}
    of_libraries = [package for machine in MACHINES.values() for package in sbom.library_packages(ROOT, machine)]
    # A dependency that several programs have comes from one registry, with one name and version.
    known = {(package["name"], package["version"]) for package in every.values()}
    every |= {package["id"]: package for package in of_libraries if (package["name"], package["version"]) not in known}
    made = release(own, list(every.values()))
    files: dict[str, bytes] = {}
    for machine, path in programs.items():
        program = path.read_bytes()
        if len(program) > LARGEST_PROGRAM_BYTES:
            print(f"{path} has {len(program)} bytes, at most {LARGEST_PROGRAM_BYTES}", file=sys.stderr)
            return 1
        addon = addons[machine].read_bytes() if machine in addons else None
        name, content = npm.pack_program(made, machine, program, addon)
        files[name] = content
        for pack in [wheel.pack, debian.pack, image.pack, tarball]:
            name, content = pack(made, machine, program)
            files[name] = content
        if module := modules.get(machine):
            name, content = wheel.pack_module(made, machine, program, module.read_bytes())
            files[name] = content
        name = f"endmark-{made.version}-{machine.name}-linux.cdx.json"
        files[name] = json.dumps(sbom.made(ROOT, packages[machine], made, program), indent=1).encode()
    name, content = npm.pack_front(made, list(programs), has_addons=bool(addons))
    files[name] = content
    sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items())]
    files["SHA256SUMS"] = "".join(sums).encode()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(files.items()):
        (arguments.out / name).write_bytes(content)
        print(f"{len(content):>12,}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
