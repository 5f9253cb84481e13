"""Determines where a continuation begins: exactly at the requested start, before it, or at the beginning of the
document.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import json_text
from chance import Chance


@dataclass(frozen=True)
class Scene:
    """One seam of a document, before the model continues."""

    truth: str
    cut: int
    """Where the text received so far stops."""
    end: int
    """Where this continuation stops: at the document's end, or at its own cut."""
    format: str
    kind: str
    asked: str
    start: int
    """Where the model assumed it should continue."""
    settled: json_text.Settled = field(repr=False)

    @property
    def last(self) -> bool:
        """Whether this continuation reaches the end of the document."""
        return self.end == len(self.truth)

    @property
    def has_tokens(self) -> bool:
        return self.format in ("json", "jsonl")


@dataclass(frozen=True)
class Core:
    """The model's part of the document itself, without the text around it."""

    text: str
    alone: bool = False
    """The text restarts the whole document, in another form than before."""


def settled(text: str, format_: str) -> json_text.Settled:
    """Returns the settled part of a cut text. In a format without tokens, the whole text is settled."""
    return json_text.settled(text) if format_ in ("json", "jsonl") else json_text.Settled(len(text), "")


def from_place(scene: Scene, place: int) -> Core | None:
    """Continues from an earlier place in the document."""
    return Core(scene.truth[place : scene.end]) if 0 <= place < scene.start else None


def exact(scene: Scene, _chance: Chance) -> Core | None:
    return Core(scene.truth[scene.start : scene.end])


def token(scene: Scene, _chance: Chance) -> Core | None:
    """Continues from the last settled token, although the cut is later."""
    return Core(scene.truth[scene.settled.index : scene.end]) if scene.settled.index < scene.cut else None


def _outside_escape(scene: Scene, place: int) -> int:
    """Returns the position, moved so that it does not split an escape."""
    while scene.has_tokens and place > 0 and scene.truth[place - 1] == "\\":
        place -= 1
    return place


def characters(scene: Scene, chance: Chance) -> Core | None:
    return from_place(scene, _outside_escape(scene, scene.start - chance.between(1, 5)))


def last_word(scene: Scene, chance: Chance) -> Core | None:
    words = re.search(r"\w+\W{0,3}\Z", scene.truth[max(0, scene.start - 60) : scene.start])
    if not words:
        return None
    place = max(0, scene.start - 60) + words.start()
    return from_place(scene, _outside_escape(scene, place))


def tail(scene: Scene, chance: Chance) -> Core | None:
    return from_place(scene, _outside_escape(scene, scene.start - chance.between(20, 60)))


def last_line(scene: Scene, _chance: Chance) -> Core | None:
    """Continues from the beginning of the line (also a line within a JSON string) or of the row."""
    before = scene.truth[: scene.start]
    places = [before.rfind("\n") + 1]
    if scene.has_tokens and scene.settled.string_start is not None:
        places.append(before.rfind("\\n", scene.settled.string_start) + 2)
    place = max(places)
    if place >= scene.start - 1:
        place = before.rfind("\n", 0, max(0, scene.start - 1)) + 1
    return from_place(scene, place) if scene.start - place <= 400 else None


def paragraph(scene: Scene, chance: Chance) -> Core | None:
    place = scene.start - chance.between(150, 900)
    if place < 0:
        return None
    if chance.maybe(0.7):
        found = re.compile(r"\s\b|\\n").search(scene.truth, place, scene.start - 100)
        place = found.end() if found else place
    return from_place(scene, _outside_escape(scene, place))


def restart_string(scene: Scene, chance: Chance) -> Core | None:
    start = scene.settled.string_start
    if start is None:
        return None
    return from_place(scene, start if chance.maybe(0.65) else start + 1)


def restart_object(scene: Scene, _chance: Chance) -> Core | None:
    """Continues from the innermost open bracket that is not the whole document."""
    return from_place(scene, scene.settled.open[-1]) if len(scene.settled.open) > 1 else None


def restart_line(scene: Scene, _chance: Chance) -> Core | None:
    """Continues from the beginning of the record in JSON Lines, or of the element in tags."""
    place = scene.truth.rfind("\n", 0, scene.start) + 1
    if scene.format == "tags":
        place = scene.truth.rfind("<record", 0, scene.start)
    return from_place(scene, place) if place > 0 else None


def restart_document(scene: Scene, _chance: Chance) -> Core | None:
    return from_place(scene, 0)


def restart_block(scene: Scene, _chance: Chance) -> Core | None:
    """Continues from the fence of the open code block of a Markdown text."""
    fence = open_fence(scene.truth[: scene.start])
    return from_place(scene, fence) if fence is not None else None


def restart_formatted(scene: Scene, chance: Chance) -> Core | None:
    """Restarts the whole document with other white space."""
    if not scene.last:
        return None
    if scene.format == "jsonl":
        layout = chance.pick(["minified", "spaced"])
        lines = [_formatted(line, layout) for line in scene.truth.split("\n") if line.strip()]
        text = "\n".join(lines)
    else:
        text = _formatted(scene.truth, chance.pick(json_text.LAYOUTS))
    return Core(text, alone=True) if not text.startswith(scene.truth[: scene.cut]) else None


def _formatted(text: str, layout: str) -> str:
    return json_text.laid_out([part for _, part in json_text.tokens_of(text)], layout)[0]


def _other_escapes(text: str) -> str:
    """Replaces escapes by letters, or letters by escapes if there are no escapes."""
    raw = json_text.unescaped(text)
    return raw if raw != text else json_text.escaped(text)


def restart_escaped(scene: Scene, _chance: Chance) -> Core | None:
    """Restarts the whole document, and writes non-ASCII letters the other way (raw or escaped)."""
    text = _other_escapes(scene.truth)
    if not scene.last or text.startswith(scene.truth[: scene.cut]):
        return None
    return Core(text, alone=True)


def escapes_switched(scene: Scene, _chance: Chance) -> Core | None:
    """Continues exactly from the start, but writes non-ASCII letters the other way (raw or escaped)."""
    if scene.start != scene.settled.index:
        return None
    rest = scene.truth[scene.start : scene.end]
    text = _other_escapes(rest)
    return Core(text) if text != rest else None


def escapes_forgotten(scene: Scene, _chance: Chance) -> Core | None:
    """Continues the open string with real line breaks and tabs instead of escapes."""
    if scene.settled.string_start is None or scene.start != scene.settled.index:
        return None
    rest = scene.truth[scene.start : scene.end]
    close = re.match(r'[^"\\]*(?:\\.[^"\\]*)*', rest, re.DOTALL)
    string = close.group() if close else ""
    plain = re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[0]), string)
    return Core(plain + rest[len(string) :]) if plain != string else None


def other_layout(scene: Scene, chance: Chance) -> Core | None:
    """Continues exactly from the start, but with another layout after the next token."""
    if scene.format != "json" or not scene.last or scene.start != scene.cut:
        return None
    tokens = json_text.tokens_of(scene.truth)
    text, starts = json_text.laid_out([part for _, part in tokens], chance.pick(json_text.LAYOUTS))
    for number, (place, part) in enumerate(tokens):
        if place + len(part) > scene.cut:
            inside = max(0, scene.cut - place)
            core = text[starts[number] + inside :]
            return Core(core) if core != scene.truth[scene.cut :].rstrip() else None
    return None


def space_lost(scene: Scene, _chance: Chance) -> Core | None:
    rest = scene.truth[scene.start : scene.end]
    bare = rest.lstrip()
    if bare == rest:
        # In a JSON string, line breaks are escapes.
        found = re.match(r"(?:\\n|\\t| )+", rest) if scene.settled.inside == "string" else None
        bare = rest[found.end() :] if found else rest
    return Core(bare) if bare not in (rest, "") else None


def _added(space: str) -> Callable[[Scene, Chance], Core | None]:
    def begin(scene: Scene, _chance: Chance) -> Core | None:
        return Core(space + scene.truth[scene.start : scene.end])

    return begin


space_added = _added(" ")
line_added = _added("\n")
blank_line_added = _added("\n\n")

_FENCE = re.compile(r"^(`{3,})([^\n`]*)$", re.MULTILINE)


def open_fence(text: str) -> int | None:
    """Returns the start of the Markdown code block that is open at the end of the text, if there is one."""
    opened: tuple[int, int] | None = None
    for found in _FENCE.finditer(text.replace("\r\n", " \n")):
        if opened is None:
            opened = (found.start(), len(found[1]))
        elif len(found[1]) >= opened[1] and not found[2].strip():
            opened = None
    return opened[0] if opened else None
