"""Handles JSON as text: its tokens, its value, and the settled part of a cut text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

_TOKEN = re.compile(r'[ \t\r\n]+|[{}\[\]:,]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}\[\]:,"]+', re.DOTALL)
# What is settled regardless of the text after it: white space, commas, colons, closed strings, and scalars before a
# delimiter.
_FLAT = re.compile(
    r'(?:[ \t\r\n,:]+|"[^"\\]*(?:\\.[^"\\]*)*"|(?:true|false|null|-?[0-9][0-9.eE+-]*)(?=[ \t\r\n,\]}]))+', re.DOTALL
)
_UNFINISHED_ESCAPE = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?|\\(?:u[0-9a-fA-F]{0,3})?)\Z"
)
_LITERALS = ("true", "false", "null")


class Number:
    """A number as it is written. Two numbers are equal only if they are exactly the same amount. A float could hide a
    difference.
    """

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Number):
            return False
        if self.text == other.text:
            return True
        try:
            return Decimal(self.text) == Decimal(other.text)
        except InvalidOperation:
            return False

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self.text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _pairs(pairs: list[tuple[str, Any]]) -> tuple[str, list[tuple[str, Any]]]:
    """Returns an object with every member in order, also if a key occurs twice."""
    return ("object", pairs)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=Number, parse_int=Number, parse_constant=_no_constant
)
_NOT_SPACE = re.compile(r"[^ \t\r\n]")


def value_of(text: str) -> Any:
    """Returns the value of a whole JSON text. Raises ValueError for any other text."""
    values = values_of(text)
    if len(values) != 1:
        raise ValueError(f"{len(values)} values")
    return values[0]


def values_of(text: str) -> list[Any]:
    """Returns the values of a whole JSON Lines text. Raises ValueError for any other text."""
    values: list[Any] = []
    position = 0
    while found := _NOT_SPACE.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, found.start())
        except RecursionError as deep:
            raise ValueError("nested too deeply to be compared") from deep
        values.append(value)
    if not values:
        raise ValueError("nothing there")
    return values


@dataclass
class Settled:
    """The part of a cut text that can no longer change, and what the cut interrupts. Offsets are in characters."""

    index: int
    inside: str
    """`string`, `escape`, `number`, `literal`, or nothing."""
    string_start: int | None = None
    """Where the open string begins, at its quote."""
    open: list[int] = field(default_factory=list)
    """Where each open bracket stands, outermost first."""


def settled(text: str) -> Settled:
    """Returns what PC-1 calls the truncation index, for a proper prefix of a valid text."""
    brackets: list[int] = []
    position = 0
    last = (0, "")
    while position < len(text):
        if flat := _FLAT.match(text, position):
            position = flat.end()
            last = (position, "")
            continue
        found = _TOKEN.match(text, position)
        if found is None:
            unfinished = _UNFINISHED_ESCAPE.search(text, position + 1)
            # A backslash that is itself escaped does not begin an escape.
            if unfinished and _escaped(text, unfinished.start()):
                unfinished = _UNFINISHED_ESCAPE.search(text, unfinished.start() + 1)
            if unfinished:
                return Settled(unfinished.start(), "escape", position, brackets)
            return Settled(len(text), "string", position, brackets)
        token = found.group()
        last = (position, token)
        if token in ("{", "["):
            brackets.append(position)
        elif token in ("}", "]") and brackets:
            brackets.pop()
        position = found.end()
    start, token = last
    if token and (token[0].isdigit() or token[0] == "-"):
        return Settled(start, "number", None, brackets)
    if token and token[0].isalpha() and token not in _LITERALS:
        return Settled(start, "literal", None, brackets)
    return Settled(len(text), "", None, brackets)


def _escaped(text: str, position: int) -> bool:
    """Returns whether an odd number of backslashes precedes `position`."""
    count = 0
    while position > 0 and text[position - 1] == "\\":
        position -= 1
        count += 1
    return count % 2 == 1


def tokens_of(text: str) -> list[tuple[int, str]]:
    """Returns the tokens of a whole text without its white space, each with its offset."""
    return [(found.start(), found.group()) for found in _TOKEN.finditer(text) if not found.group().isspace()]


def minified(text: str) -> str:
    """Returns a whole or cut text without the white space between its tokens."""
    parts: list[str] = []
    position = 0
    while found := _TOKEN.match(text, position):
        if not found.group().isspace():
            parts.append(found.group())
        position = found.end()
    return "".join(parts) + text[position:]


LAYOUTS = ("minified", "spaced", "indent-2", "indent-4", "indent-tab")


def laid_out(tokens: list[str], layout: str) -> tuple[str, list[int]]:
    """Returns the same tokens with other white space, and the new offset of each token."""
    unit = {"indent-2": "  ", "indent-4": "    ", "indent-tab": "\t"}.get(layout)
    space = "" if layout == "minified" else " "
    parts: list[str] = []
    starts: list[int] = []
    length = depth = 0

    def write(part: str) -> None:
        nonlocal length
        parts.append(part)
        length += len(part)

    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else ""
        if token in ("}", "]"):
            depth -= 1
            if unit and before not in ("{", "["):
                write("\n" + unit * depth)
        elif before in ("{", "[") and unit:
            write("\n" + unit * depth)
        elif before == ",":
            write("\n" + unit * depth if unit else space)
        elif before == ":":
            write(space)
        starts.append(length)
        write(token)
        if token in ("{", "["):
            depth += 1
    return "".join(parts), starts


_ESCAPED = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\.", re.DOTALL)


def unescaped(fragment: str) -> str:
    """Returns the same text with raw non-ASCII letters instead of `\\u` escapes."""

    def letter(found: re.Match[str]) -> str:
        high, low, single = found.groups()
        if high:
            return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
        code = int(single, 16) if single else 0
        return chr(code) if code > 0x9F and not 0xD800 <= code <= 0xDFFF else found.group()

    return _ESCAPED.sub(letter, fragment)


def escaped(fragment: str) -> str:
    """Returns the same text with a `\\u` escape for every non-ASCII letter."""
    return re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found.group())[1:-1], fragment)
