"""Reimplements how other tools join parts, from their published descriptions, to measure them in the same run.

They always join and never report doubt. If the format has a grammar, it is checked afterwards, as their callers would
do: a join that cannot be parsed counts as an honest error, and not as silently wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from readings import is_whole

Join = Callable[[str, str], str]


def plain(before: str, after: str) -> str:
    """Plain concatenation."""
    return before + after


def new_line(before: str, after: str) -> str:
    """Joins the stripped texts with a line break, as many applications do."""
    return before + "\n" + after.strip()


def trimmed_overlap(before: str, after: str) -> str:
    """OmniRoute's stream recovery (pull request 4147). Drops the longest repeat of at most 512 characters."""
    for length in range(min(len(before), len(after), 512), 0, -1):
        if before.endswith(after[:length]):
            return before + after[length:]
    return before + after


_SCAN = 4000
_ANCHOR = re.compile(r"(?:#{1,6} |\||`{3,}|[-*] |\d+\. )")


def anchored_overlap(before: str, after: str) -> str:
    """qwen-code's recovery (pull request 3966).

    Drops the longest repeat within the last 4,000 characters if it has at least 6 bytes and 4 characters, or at least
    4 bytes and Markdown marks. Otherwise drops whole lines that begin with a heading, a table row, a list item or a
    fence, if they occur anywhere in those 4,000 characters.
    """
    recent = before[-_SCAN:]
    for length in range(min(len(recent), len(after)), 3, -1):
        repeat = after[:length]
        if not recent.endswith(repeat):
            continue
        least = 4 if re.search(r"[#|`\n]", repeat) else 6
        if len(repeat.encode("utf-8", "surrogatepass")) >= least:
            return before + after[length:]
    if _ANCHOR.match(after):
        for found in reversed(list(re.finditer("\n", after[:_SCAN]))):
            if after[: found.end()] in recent:
                return before + after[found.end() :]
    return before + after


PEERS: dict[str, Join] = {
    "plain concatenation": plain,
    "new line, stripped": new_line,
    "OmniRoute, re-stated": trimmed_overlap,
    "qwen-code, re-stated": anchored_overlap,
}
"""Every built-in peer by name."""


def answer(join: Join, chunks: list[str], format_: str) -> dict[str, Any]:
    """Returns the answer of a peer to a case."""
    text = chunks[0]
    for chunk in chunks[1:]:
        text = join(text, chunk)
    whole = any(chunk.strip() for chunk in chunks[1:]) and (
        format_ in ("text", "markdown") or is_whole(text, format_)
    )
    return {"outcome": "whole" if whole else "error", "text": text}
