"""Formats two texts side by side for a terminal, or one below the other if it is narrow."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap

SEAM, CUT = "∎", "[cut]"
COLOURS = {SEAM: "\033[1;32m", CUT: "\033[1;31m"}
NARROW = 96
GAP = "  │  "


def side_by_side(left: tuple[str, str], right: tuple[str, str]) -> str:
    """Formats two sides, each with a heading and a text."""
    width = min(shutil.get_terminal_size((120, 40)).columns, 160)
    if width < NARROW:
        return "\n\n".join("\n".join(_block(*side, width)) for side in (left, right))
    column = (width - len(GAP)) // 2
    blocks = [_block(*side, column) for side in (left, right)]
    height = max(map(len, blocks))
    rows = zip(*(block + [""] * (height - len(block)) for block in blocks))
    return "\n".join(_padded(one, column) + GAP + other for one, other in rows)


def _block(heading: str, text: str, width: int) -> list[str]:
    lines = [heading, "─" * width]
    for line in text.split("\n"):
        # Keep blanks, because code and JSON contain indentation.
        lines += textwrap.wrap(line, width, drop_whitespace=False, replace_whitespace=False) or [""]
    return [_coloured(line) for line in lines]


def _padded(line: str, width: int) -> str:
    visible = line
    for code in [*COLOURS.values(), "\033[0m"]:
        visible = visible.replace(code, "")
    return line + " " * (width - len(visible))


def _coloured(line: str) -> str:
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return line
    for mark, code in COLOURS.items():
        line = line.replace(mark, f"{code}{mark}\033[0m")
    return line
