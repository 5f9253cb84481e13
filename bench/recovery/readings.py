"""Whether the text alone decides what was meant. No stitcher is asked: the simple readings are enumerated.

The rule, in words, is in bench/recovery/METHOD.md. A *reading* is one way to join the first chunk and what the model meant as
the continuation: as it stands, without its repeated beginning, without its leading white space. In formats with a
grammar only readings that are whole texts count. Which of them are plausible is said by PC-4: a short overlap is
ordinary and not removed where the raw join is whole; a long one that is found nowhere else is.
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
    """What the text tells about the right joining."""

    DECIDED = "decided"
    UNDECIDED = "undecided"
    """The right reading is one of several plausible ones, or none of the simple ones."""
    BLIND = "blind"
    """The plausible readings are others: exactly so would a clean continuation of another text look."""

    def __and__(self, other: "Evidence") -> "Evidence":
        """The weaker of the two."""
        order = [Evidence.DECIDED, Evidence.UNDECIDED, Evidence.BLIND]
        return max(self, other, key=order.index)


def value(text: str, format_: str) -> Any:
    """What two texts are compared by. Raises ValueError where the format has a grammar and the text is not whole."""
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
    """Whether the grammar, if there is one, calls it whole."""
    try:
        value(text, format_)
    except ValueError:
        return False
    return True


def overlaps(before: str, after: str) -> Iterator[int]:
    """Lengths k > 0 such that `before` ends with the first k characters of `after`; the longest and shortest ones."""
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
    """Whether a repeat at the end of `before` says by itself that it is one: long, varied, and nowhere else."""
    return (
        len(repeat) >= LONG
        and len(set(repeat)) >= LONG_DIFFERENT
        and sum(letter.isalnum() for letter in repeat) >= LONG_LETTERS
        and before.find(repeat) == len(before) - len(repeat)
    )


def is_wordlike(repeat: str) -> bool:
    """Whether a repeat could be one, of a word or of many marks, and not an accident or indentation."""
    return sum(map(str.isalnum, repeat)) >= WORDLIKE or len(repeat) - sum(map(str.isspace, repeat)) >= MANY_MARKS


@dataclass(frozen=True)
class Seam:
    """A seam to be judged. `core` is what is left of the continuation without what the model said around it."""

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
    """What the core of the continuation tells."""
    truth = value(seam.truth, seam.format)
    return verdict(plausible(seam), truth)


def verdict(readings: list[Any], truth: Any) -> Evidence:
    """Decided if there is one plausible reading and it is the truth."""
    if not readings:
        return Evidence.UNDECIDED
    if truth not in readings:
        return Evidence.BLIND
    return Evidence.DECIDED if len(readings) == 1 else Evidence.UNDECIDED


def plausible(seam: Seam) -> list[Any]:
    """The different values of the plausible readings."""
    starts = _starts(seam)
    longest = max(
        (k for start in starts for k in overlaps(start, seam.core) if is_long(seam.core[:k], start)), default=0
    )
    if longest:
        # In a text that repeats itself the long repeat has others within it, which are as plausible.
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
    """The texts that the continuation may have been meant to follow."""
    token = seam.before[: seam.settled]
    if seam.asked == "token":
        return [token]
    if seam.asked == "cut" or token == seam.before:
        return [seam.before]
    return [seam.before, token]


def _other_space(seam: Seam, starts: list[str]) -> Iterator[str]:
    """The readings without the white space at the beginning; and, between two words of a string, with it escaped."""
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
