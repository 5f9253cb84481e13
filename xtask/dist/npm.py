"""Builds the npm packages. `endmark` starts the program in the package for its machine, or loads the addon from it.
Installing runs no scripts.
"""

from __future__ import annotations

import json
from pathlib import Path

from archive import Entry, compressed, tar

SOURCES = Path(__file__).resolve().parents[2] / "bindings" / "node"
# The fields of the manifest that concern users.
MANIFEST = ["type", "engines", "main", "types", "exports", "peerDependencies", "peerDependenciesMeta"]

FRONT = b'''#!/usr/bin/env node
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `@endmark/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/endmark`);
} catch {
  console.error(`endmark: the package ${name} is not installed: there is none for this machine, or npm was told to leave optional dependencies out`);
  process.exit(2);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal signals the child itself; a signal to this process alone is meant for the child.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => signal === "SIGINT" && process.stdin.isTTY || child.kill(signal));
child.on("error", (error) => { console.error(`endmark: ${error.message}`); process.exit(2); });
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
'''


def packed(release, manifest: dict, files: list[Entry]) -> bytes:
    manifest = {
        "name": manifest.pop("name"),
        "version": release.version,
        "description": release.summary,
        "license": "MIT OR Apache-2.0",
        **manifest,
    }
    files = [
        *files,
        Entry("package.json", (json.dumps(manifest, indent=2) + "\n").encode()),
        *(Entry(name, text) for name, text in release.licences.items()),
    ]
    entries = [Entry(f"package/{file.path}", file.content, file.mode) for file in files]
    return compressed(tar(entries, release.epoch))


def package(machine) -> str:
    return f"@endmark/linux-{machine.node}"


def pack_program(release, machine, program: bytes, addon: bytes | None) -> tuple[str, bytes]:
    # `preferUnplugged`: these have to be files on the disk.
    manifest = {"name": package(machine), "os": ["linux"], "cpu": [machine.node], "preferUnplugged": True}
    files = [Entry("endmark", program, 0o755)]
    if addon:
        files.append(Entry("endmark.node", addon))
    return f"endmark-linux-{machine.node}-{release.version}.tgz", packed(release, manifest, files)


def pack_front(release, machines: list, *, has_addons: bool) -> tuple[str, bytes]:
    manifest = {
        "name": "endmark",
        "bin": {"endmark": "endmark.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": {package(machine): release.version for machine in machines},
    }
    files = [Entry("endmark.js", FRONT, 0o755), Entry("README.md", release.readme.encode())]
    if has_addons:
        own = json.loads((SOURCES / "package.json").read_text())
        manifest |= {name: own[name] for name in MANIFEST}
        folders = ["dist", "migrations", "templates"]
        paths = sorted(path for folder in folders for path in (SOURCES / folder).rglob("*") if path.is_file())
        files += [Entry(str(path.relative_to(SOURCES)), path.read_bytes()) for path in paths]
    return f"endmark-{release.version}.tgz", packed(release, manifest, files)
