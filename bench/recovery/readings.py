"""Decides whether the text alone determines what was meant. It asks no stitcher, but enumerates the simple readings.

The rule is described in bench/recovery/METHOD.md. A *reading* is one way to join the first chunk and the part that
the model meant as the continuation: unchanged, without its repeated beginning, or without its leading white space. In
formats with a grammar, only readings that are whole texts count. PC-4 determines which of them are plausible: a short
overlap is ordinary and is not removed if the plain join is whole, but a long overlap that occurs nowhere else is a
repeat.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any
from xml.parsers import expat

import json_text

LONG = 20
"""Characters from which a repeat can be a long one."""
LONG_DIFFERENT = 8
LONG_LETTERS = 10
WORDLIKE = 3
"""Letters and digits from which a repeat can be a repeated word, not an accident."""
MANY_MARKS = 8
"""Characters other than white space from which a repeat of any kind can be one."""
_MOST_OVERLAPS = 24


class Evidence(Enum):
    """What the text reveals about the right join."""

    DECIDED = "decided"
    UNDECIDED = "undecided"
    """The right reading is one of several plausible ones, or none of the simple ones."""
    BLIND = "blind"
    """The plausible readings are others: exactly so would a clean continuation of another text look."""

    def __and__(self, other: "Evidence") -> "Evidence":
        """Returns the weaker of the two."""
        order = [Evidence.DECIDED, Evidence.UNDECIDED, Evidence.BLIND]
        return max(self, other, key=order.index)


def value(text: str, format_: str) -> Any:
    """Returns the value by which two texts are compared. Raises ValueError if the format has a grammar and the text
    is not whole.
    """
    if format_ == "json":
        return json_text.value_of(text)
    if format_ == "jsonl":
        return json_text.values_of(text)
    if format_ == "tags":
        parser = expat.ParserCreate()
        try:
            parser.Parse(text.encode("utf-8", "surrogatepass"), True)
        except expat.ExpatError as wrong:
            raise ValueError(str(wrong)) from wrong
    return text


def is_whole(text: str, format_: str) -> bool:
    """Returns whether the text is whole by the grammar of the format, if it has one."""
    try:
        value(text, format_)
    except ValueError:
        return False
    return True


def overlaps(before: str, after: str) -> Iterator[int]:
    """Returns lengths k > 0 such that `before` ends with the first k characters of `after`: only the longest and
    shortest ones.
    """
    limit = min(len(before), len(after))
    found = [k for k in range(1, min(8, limit) + 1) if before.endswith(after[:k])]
    if limit >= 8:
        beginning = after[:8]
        place = before.find(beginning, len(before) - limit)
        tries = 0
        while place >= 0 and tries < 200:
            if after.startswith(before[place:]):
                found.append(len(before) - place)
            place = before.find(beginning, place + 1)
            tries += 1
    yield from sorted(set(found))[-_MOST_OVERLAPS:]


def is_long(repeat: str, before: str) -> bool:
    """Returns whether a repeat at the end of `before` is certainly a repeat: it is long, varied, and occurs nowhere
    else.
    """
    return (
        len(repeat) >= LONG
        and len(set(repeat)) >= LONG_DIFFERENT
        and sum(letter.isalnum() for letter in repeat) >= LONG_LETTERS
        and before.find(repeat) == len(before) - len(repeat)
    )


def is_wordlike(repeat: str) -> bool:
    """Returns whether a repeat of a word or of many marks could be intended, and is not an accident or indentation."""
    return sum(map(str.isalnum, repeat)) >= WORDLIKE or len(repeat) - sum(map(str.isspace, repeat)) >= MANY_MARKS


@dataclass(frozen=True)
class Seam:
    """A seam to be judged. `core` is the continuation without the text that the model added around it."""

    before: str
    core: str
    format: str
    asked: str
    settled: int
    """Up to where `before` is settled."""
    truth: str
    alone: bool = False
    """The core is a whole document by itself that says all that `before` says, in other words."""


def judge(seam: Seam) -> Evidence:
    """Returns the evidence that the core of the continuation gives."""
    truth = value(seam.truth, seam.format)
    return verdict(plausible(seam), truth)


def verdict(readings: list[Any], truth: Any) -> Evidence:
    """Returns that the text decides if there is one plausible reading and it is the intended one."""
    if not readings:
        return Evidence.UNDECIDED
    if truth not in readings:
        return Evidence.BLIND
    return Evidence.DECIDED if len(readings) == 1 else Evidence.UNDECIDED


def plausible(seam: Seam) -> list[Any]:
    """Returns the distinct values of the plausible readings."""
    starts = _starts(seam)
    longest = max(
        (k for start in starts for k in overlaps(start, seam.core) if is_long(seam.core[:k], start)), default=0
    )
    if longest:
        # In a text that repeats itself, a long repeat contains shorter repeats that are just as plausible.
        lengths = {k for start in starts for k in overlaps(start, seam.core) if k >= LONG}
        readings = [
            start + seam.core[k:] for start in starts for k in lengths if start.endswith(seam.core[:k])
        ]  # fmt: skip
        if found := _different(readings, seam.format):
            return found
    raw = _different((start + seam.core for start in starts), seam.format)
    alone = _different([seam.core] if seam.alone else [], seam.format)
    if seam.asked != "unknown" and raw:
        return _merged(alone, raw) if alone else raw
    wanted: Callable[[str], bool] = is_wordlike if raw else bool
    repeated = _different(
        (start + seam.core[k:] for start in starts for k in overlaps(start, seam.core) if wanted(seam.core[:k])),
        seam.format,
    )
    readings = _merged(_merged(raw, repeated), alone)
    return readings or _different(_other_space(seam, starts), seam.format)


def _starts(seam: Seam) -> list[str]:
    """Returns the texts that the continuation may have been meant to follow."""
    token = seam.before[: seam.settled]
    if seam.asked == "token":
        return [token]
    if seam.asked == "cut" or token == seam.before:
        return [seam.before]
    return [seam.before, token]


def _other_space(seam: Seam, starts: list[str]) -> Iterator[str]:
    """Returns the readings without the white space at the beginning. Between two words of a string, also a reading
    with the white space escaped.
    """
    bare = seam.core.lstrip()
    if bare == seam.core:
        return
    for start in starts:
        yield start + bare
        if start and bare and start[-1].isalnum() and bare[0].isalnum():
            space = seam.core[: len(seam.core) - len(bare)]
            yield start + json.dumps(space)[1:-1] + bare


def _different(texts: Any, format_: str) -> list[Any]:
    found: list[Any] = []
    for text in texts:
        try:
            read = value(text, format_)
        except ValueError:
            continue
        if read not in found:
            found.append(read)
    return found


def _merged(first: list[Any], second: list[Any]) -> list[Any]:
    return first + [read for read in second if read not in first]
