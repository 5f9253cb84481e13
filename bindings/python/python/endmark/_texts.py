"""Detects cut texts, closes cut JSON, and joins the parts of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ._core import call, offset_unit
from ._errors import Malformed

Format = Literal["json", "jsonl", "markdown", "tags", "text", "marker", "auto"]
"""The required format of a text. `marker` is a text that must end with the given `marker`."""
AskedFrom = Literal["cut", "token", "unknown"]
"""Where a model was asked to continue: at the cut (prefill), after the last valid token (prompt), or unknown."""


@dataclass(frozen=True)
class Detection:
    """The result of `detect`. Offsets index the value that was passed: code points of a str, or bytes."""

    verdict: Literal["whole", "truncated", "malformed"]
    truncation_index: int | None
    """The offset up to which no further text can change the parsed content."""
    balanced_index: int | None
    """The last offset at which every bracket opened so far is closed, or 0."""
    last_valid_token: str | None
    """The source text of the last token that is certain. For a string: its certain part, at most the last 200 characters."""
    open: tuple[str, ...]
    """The opening characters of everything that is still open, outermost first."""
    in_token: str | None
    """The kind of the token that is cut, such as `string` or `number`."""
    index: int | None
    """The offset of the first invalid character in a malformed text."""
    reason: str | None
    hint: str | None
    """`mid_sentence`: prose ends inside a sentence. `control_characters`: strings contain raw control characters."""
    detected: str | None
    """The format that `auto` detected."""

    @property
    def is_whole(self) -> bool:
        return self.verdict == "whole"

    def __bool__(self) -> bool:
        raise TypeError("a Detection is neither true nor false: use `is_whole`")


def _to_detection(found: dict[str, Any]) -> Detection:
    found["open"] = tuple(found["open"])
    return Detection(**found)


def detect(
    text: str | bytes, format: Format = "auto", *, marker: str | None = None, strict: bool = False
) -> Detection:
    """Detects whether a text is whole, truncated or malformed.

    >>> detect('{"files": ["a.rs", "b', "json").truncation_index
    21

    `strict` rejects raw control characters in JSON strings, which models often write. Raises `InvalidInput` for an unknown format.
    """
    return _to_detection(call("detect", text, format=format, marker=marker, strict=strict, offsets=offset_unit(text)))


def detect_truncation(text: str | bytes, format: Format = "json", *, marker: str | None = None) -> Detection | None:
    """Returns where a text is cut, or None if nothing is missing.

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
    """An unfinished value in a completed document."""

    pointer: str
    """A JSON Pointer; empty for the document itself."""
    kind: str
    left_out: bool
    """Whether the completed text does not contain the value, because it had hardly begun."""


@dataclass(frozen=True)
class Completed:
    """A cut JSON text that was closed without asking for the rest."""

    text: str
    value: int
    """The number of the top-level value that contains the unfinished ones, from 0."""
    unfinished: tuple[Unfinished, ...]
    unfinished_omitted: int
    """The number of further unfinished values that are not listed."""
    escaped: int
    """The number of raw control characters in strings that were escaped."""


def complete(text: str | bytes, format: Format = "json", *, marker: str | None = None) -> Completed:
    """Closes a cut JSON text, and lists its unfinished values.

    >>> complete('{"name": "Tom", "likes": ["fi').text
    '{"name": "Tom", "likes": ["fi"]}'

    Raises `Malformed` if the text is not JSON, or has no value yet.
    """
    found = call("complete", text, format=format, marker=marker, offsets=offset_unit(text))
    found["unfinished"] = tuple(Unfinished(**place) for place in found["unfinished"])
    return Completed(**found)


def build_resume_prompt(
    last_valid_token: str, format: Format = "json", *, marker: str | None = None, template: str | None = None
) -> str:
    """Returns the prompt that asks a model for the rest of its cut reply.

    >>> build_resume_prompt('"name": ').endswith("Do not repeat any content before the last valid token.")
    True

    A `template` must contain the placeholder `{last_valid_token}` and may contain `{instruction}`. Otherwise raises `InvalidInput`.
    """
    prompt: str = call("build_resume_prompt", last_valid_token, format=format, marker=marker, template=template)
    return prompt


@dataclass(frozen=True)
class Seam:
    """Where a continuation was joined."""

    at: int
    """The offset in the merged text at which the continuation begins, in code points."""
    style: str
    """How it was joined, such as `exact`, `overlap`, `fence` or `preamble`."""
    dropped_bytes: int
    """The number of UTF-8 bytes of both parts that are not in the merged text."""
    dropped: str
    """The beginning of the dropped text, at most 80 characters."""
    confidence: float
    """The share of the evidence that supports this seam, from 0 to 1."""
    alternatives: int
    """The number of other plausible seams that yield a different value."""


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
    """Joins a cut text with its continuation, if the seam is certain.

    >>> merge_chunks('{"city": "San Fran', '"San Francisco"}', asked_from="token").text
    '{"city": "San Francisco"}'

    Raises `MergeError`, which contains everything received, if no seam is certain or the text is still cut.
    """
    options: dict[str, Any] = {"format": format, "marker": marker, "from": asked_from, "offsets": "code_points"}
    merged = call("merge_chunks", initial, continuation, **options)
    return Merged(merged["text"], Seam(**merged["seam"]), _to_detection(merged["verdict"]))


@dataclass(frozen=True)
class Stitched:
    """The result of joining several parts."""

    outcome: Literal["whole", "ambiguous", "error"]
    text: str
    """The whole text, the best candidate, or the longest verified beginning."""
    seams: tuple[Seam, ...]
    error: dict[str, str] | None
    """Why the text is not whole: a `code` and a `message`."""


def stitch(
    *parts: str, format: Format = "auto", asked_from: AskedFrom = "unknown", marker: str | None = None
) -> Stitched:
    """Joins a first part and its continuations in order. A later continuation may resolve an ambiguous seam.

    >>> stitch('{"a": [1, 2', ', 3, ', '4]}', format="json", asked_from="cut").text
    '{"a": [1, 2, 3, 4]}'
    """
    options: dict[str, Any] = {"format": format, "marker": marker, "from": asked_from, "offsets": "code_points"}
    found = call("stitch", *parts, **options)
    return Stitched(found["outcome"], found["text"], tuple(Seam(**seam) for seam in found["seams"]), found["error"])
