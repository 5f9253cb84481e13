"""Whether a text is whole, how a cut one is closed, and how its parts are joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ._core import call, unit
from ._errors import Malformed

Format = Literal["json", "jsonl", "markdown", "tags", "text", "marker", "auto"]
"""What a text is supposed to be. `marker` is a text that has to end in the `marker` that is named with it."""
AskedFrom = Literal["cut", "token", "unknown"]
"""Where a model was asked to continue: at the cut (prefill), after the last valid token (prompt), or not known."""


@dataclass(frozen=True)
class Detection:
    """What `detect` found. Offsets index the value that was given: code points of a str, bytes of bytes."""

    verdict: Literal["whole", "truncated", "malformed"]
    truncation_index: int | None
    """Up to here everything is settled: none of it can change, whatever follows."""
    balanced_index: int | None
    """The last offset at which every bracket opened so far is closed, or 0."""
    last_valid_token: str | None
    """The source of the last settled token; of a string its settled part, at most its last 200 characters."""
    open: tuple[str, ...]
    """The signs of what is still open, outermost first."""
    in_token: str | None
    """The kind of token the cut goes through, such as `string` or `number`."""
    index: int | None
    """Of a malformed text, its first invalid place."""
    reason: str | None
    hint: str | None
    """`mid_sentence`: prose that stops in a sentence. `control_characters`: valid only with raw control characters in strings."""
    detected: str | None
    """What `auto` took the text for."""

    @property
    def is_whole(self) -> bool:
        return self.verdict == "whole"

    def __bool__(self) -> bool:
        raise TypeError("a Detection is neither true nor false: use `is_whole`")


def _detection(found: dict[str, Any]) -> Detection:
    found["open"] = tuple(found["open"])
    return Detection(**found)


def detect(
    text: str | bytes, format: Format = "auto", *, marker: str | None = None, strict: bool = False
) -> Detection:
    """Says whether a text is whole, a valid beginning of something longer, or beyond repair.

    >>> detect('{"files": ["a.rs", "b', "json").truncation_index
    21

    `strict` refuses raw control characters in JSON strings, which models write. Raises `InvalidInput` for an unknown format.
    """
    return _detection(call("detect", text, format=format, marker=marker, strict=strict, offsets=unit(text)))


def detect_truncation(text: str | bytes, format: Format = "json", *, marker: str | None = None) -> Detection | None:
    """Says where a text is cut, or None if nothing is missing.

    >>> detect_truncation('[1, 2]') is None
    True

    Raises `Malformed` if no continuation could make the text valid.
    """
    found = detect(text, format, marker=marker)
    if found.verdict == "malformed":
        raise Malformed(f"malformed at {found.index}: {found.reason}", "malformed")
    return None if found.is_whole else found


@dataclass(frozen=True)
class Unfinished:
    """A place in a completed document that is not finished."""

    pointer: str
    """A JSON Pointer; empty for the document itself."""
    kind: str
    left_out: bool
    """The value had hardly begun, and is not in the completed text."""


@dataclass(frozen=True)
class Completed:
    """A cut JSON text that was closed without asking for the rest."""

    text: str
    value: int
    """Which value of the text the unfinished places are in, from 0."""
    unfinished: tuple[Unfinished, ...]
    unfinished_omitted: int
    """How many further places there are between those that are listed."""
    escaped: int
    """How many raw control characters in strings were escaped."""


def complete(text: str | bytes, format: Format = "json", *, marker: str | None = None) -> Completed:
    """Closes a cut JSON text, and says what in it is unfinished.

    >>> complete('{"name": "Tom", "likes": ["fi').text
    '{"name": "Tom", "likes": ["fi"]}'

    Raises `Malformed` if the text is not JSON, or has no value yet.
    """
    found = call("complete", text, format=format, marker=marker, offsets=unit(text))
    found["unfinished"] = tuple(Unfinished(**place) for place in found["unfinished"])
    return Completed(**found)


def build_resume_prompt(
    last_valid_token: str, format: Format = "json", *, marker: str | None = None, template: str | None = None
) -> str:
    """The words that ask a model for the rest of its cut reply.

    >>> build_resume_prompt('"name": ').endswith("Do not repeat any content before the last valid token.")
    True

    A `template` must have the placeholder `{last_valid_token}` and may have `{instruction}`; else it raises `InvalidInput`.
    """
    prompt: str = call("build_resume_prompt", last_valid_token, format=format, marker=marker, template=template)
    return prompt


@dataclass(frozen=True)
class Seam:
    """Where a continuation was joined."""

    at: int
    """Where its part begins in the merged text, in code points."""
    style: str
    """How it was joined, such as `exact`, `overlap`, `fence` or `preamble`."""
    dropped_bytes: int
    """UTF-8 bytes of both sides that are not in the merged text."""
    dropped: str
    """The beginning of those, at most 80 characters."""
    confidence: float
    """The share of the evidence for this seam, 0 to 1."""
    alternatives: int
    """Other plausible seams that give a different value."""


@dataclass(frozen=True)
class Merged:
    """Two parts that were joined to a verified text."""

    text: str
    seam: Seam
    verdict: Detection


def merge_chunks(
    initial: str, continuation: str, format: Format = "json", *, asked_from: AskedFrom = "unknown",
    marker: str | None = None,
) -> Merged:
    """Joins a cut text with its continuation, where that is certain.

    >>> merge_chunks('{"city": "San Fran', '"San Francisco"}', asked_from="token").text
    '{"city": "San Francisco"}'

    Raises `MergeError`, which has everything received, if no seam is certain or the text is still not whole.
    """
    options: dict[str, Any] = {"format": format, "marker": marker, "from": asked_from, "offsets": "code_points"}
    merged = call("merge_chunks", initial, continuation, **options)
    return Merged(merged["text"], Seam(**merged["seam"]), _detection(merged["verdict"]))


@dataclass(frozen=True)
class Stitched:
    """What became of several parts."""

    outcome: Literal["whole", "ambiguous", "error"]
    text: str
    """The whole text, the best candidate, or the longest verified beginning."""
    seams: tuple[Seam, ...]
    error: dict[str, str] | None
    """Why it is not whole: a `code` and a `message`."""


def stitch(
    *parts: str, format: Format = "auto", asked_from: AskedFrom = "unknown", marker: str | None = None
) -> Stitched:
    """Joins a first part and its continuations in order. What one continuation leaves open the next may decide.

    >>> stitch('{"a": [1, 2', ', 3, ', '4]}', format="json", asked_from="cut").text
    '{"a": [1, 2, 3, 4]}'
    """
    options: dict[str, Any] = {"format": format, "marker": marker, "from": asked_from, "offsets": "code_points"}
    found = call("stitch", *parts, **options)
    return Stitched(found["outcome"], found["text"], tuple(Seam(**seam) for seam in found["seams"]), found["error"])
