"""Collects the licence texts of all third-party code and data in the program into one file, which every package
contains.
"""

from __future__ import annotations

import re
from pathlib import Path

NAME = "THIRD-PARTY-NOTICES.txt"
# Names of licence files, with any suffix. C sources have theirs in a separate folder.
LICENCE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)([-_.].*)?$", re.IGNORECASE)
DEEPEST = 3
# Code and data that was copied into this repository or is part of every program. The licence text is next to it, or
# is named here.
COPIED = {
    "vocabulary of the tokenizer for Claude models": "crates/endmark-context/data/claude-LICENSE",
    "vocabularies of the tokenizers for OpenAI models": "crates/endmark-context/data/openai-LICENSE",
}
RUNTIME = """The program also contains the Rust standard library (MIT OR Apache-2.0, The Rust Project Developers) and, where it is
static, the C library musl (MIT, Copyright 2005-2020 Rich Felker and others). SQLite is in the public domain.
"""


def texts(folder: Path) -> list[str]:
    """Returns the distinct licence texts in the sources of a package."""
    files = [path for path in folder.rglob("*") if LICENCE.match(path.name) and path.is_file()]
    near = [path for path in files if len(path.relative_to(folder).parts) <= DEEPEST and path.suffix not in {".rs", ".c", ".h", ".html"}]
    found = (path.read_text(errors="replace").strip() for path in sorted(near))
    return list(dict.fromkeys(text for text in found if text))


def made(root: Path, packages: list[dict]) -> bytes:
    """Returns one text with each licence once. The names of the licensed packages precede it. The same packages give
    the same bytes.
    """
    under: dict[str, list[str]] = {}
    bare = []
    for package in sorted(packages, key=lambda package: (package["name"], package["version"])):
        if package["source"] is None:
            continue
        licence = (package["license"] or "see its text").replace("/", " OR ")
        name = f"{package['name']} {package['version']} ({licence})"
        found = texts(Path(package["manifest_path"]).parent)
        if "GPL" not in licence:
            # zstd can be used under either of two licences, and its package declares the other one.
            found = [text for text in found if "GNU GENERAL PUBLIC LICENSE" not in text[:200]]
        for text in found:
            under.setdefault(text, []).append(name)
        if not found:
            bare.append(f"{name}, {', '.join(package['authors']) or package['repository'] or 'no author named'}")
    for name, path in COPIED.items():
        under.setdefault((root / path).read_text().strip(), []).append(name)
    parts = ["Endmark contains code and data by others, under these licences.\n", RUNTIME]
    for text, names in sorted(under.items(), key=lambda entry: entry[1]):
        parts.append("=" * 80 + "\n" + "\n".join(names) + "\n" + "-" * 80 + f"\n{text}\n")
    if bare:
        parts.append("=" * 80 + "\nPublished without a licence file, under the licence that each declares:\n" + "\n".join(bare) + "\n")
    return "\n".join(parts).encode()
