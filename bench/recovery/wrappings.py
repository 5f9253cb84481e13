"""Adds the text that a model puts around its part of the document: announcements, fences, remarks, ellipses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import invented
from beginnings import Scene, open_fence
from chance import Chance
from readings import Evidence
from wordings import APOLOGIES, EXPLANATIONS, PREAMBLES, REMARKS, wording_for, spoken


@dataclass(frozen=True)
class Wrapped:
    """A continuation as received, and whether its wrapper can be distinguished from the document without a grammar."""

    text: str
    visible: Evidence = Evidence.DECIDED


Wrapping = Callable[[Scene, Chance, str], Wrapped | None]


def _doubtful(scene: Scene) -> Evidence:
    """Returns the evidence for a beginning that could belong to the document. If the continuation was requested from
    the cut, it has to be read as part of the document.
    """
    return Evidence.BLIND if scene.asked == "cut" else Evidence.UNDECIDED


def bare(scene: Scene, _chance: Chance, core: str) -> Wrapped:
    """Adds no wrapper. A fence or an ellipsis of the document could still be mistaken for one."""
    wrapper_like = core.lstrip().startswith(("```", "...", "…"))
    return Wrapped(core, Evidence.UNDECIDED if wrapper_like and scene.asked != "cut" else Evidence.DECIDED)


def _announced(scene: Scene, chance: Chance, language: str) -> str:
    words = wording_for(chance, APOLOGIES if chance.maybe(0.2) else PREAMBLES, scene.format, language)
    form = chance.unit()
    if form < 0.08:
        words = f"**{words}**"
    elif form < 0.12:
        words = f"*{words}*"
    elif form < 0.15:
        words = f"### {words}"
    elif form < 0.22 and language == "English":
        words = chance.pick(["Sorry about that!", "My apologies.", "Apologies for the cut-off."]) + " " + words
    return words


def preamble(scene: Scene, chance: Chance, core: str) -> Wrapped:
    """Adds an announcement on a line of its own."""
    gap = chance.pick(["\n", "\n\n", "\n\n", "\n\n"])
    # Further line breaks could belong to the gap or to the document.
    visible = Evidence.UNDECIDED if core[:1] in "\r\n" else Evidence.DECIDED
    return Wrapped(_announced(scene, chance, spoken(chance)) + gap + core, visible)


def preamble_inline(scene: Scene, chance: Chance, core: str) -> Wrapped:
    """Adds an announcement on the same line."""
    return Wrapped(wording_for(chance, PREAMBLES, scene.format, spoken(chance)) + " " + core, _doubtful(scene))


def ellipsis(scene: Scene, chance: Chance, core: str) -> Wrapped:
    """Adds an ellipsis in front."""
    dots = chance.pick(["...", "...", "…"])
    return Wrapped(dots + chance.pick(["", "", " ", "\n"]) + core, _doubtful(scene))


def remark(scene: Scene, chance: Chance, core: str, language: str = "") -> Wrapped | None:
    """Adds a closing remark after the end. Without a grammar, such a remark could also be the end of the document."""
    if not scene.last:
        return None
    gap = chance.pick(["\n\n", "\n\n", "\n"])
    words = wording_for(chance, REMARKS, scene.format, language or spoken(chance))
    visible = Evidence.DECIDED if scene.format == "tags" else Evidence.UNDECIDED
    return Wrapped(core.rstrip("\r\n") + gap + words, visible)


_INFO = {
    "json": ["json", "json", "json", "", "JSON", "javascript"], "jsonl": ["jsonl", "json", "", "ndjson"],
    "markdown": ["markdown", "md", "", "python", "text"], "text": ["python", "rust", "", "text", "javascript"],
    "tags": ["xml", "xml", "html", ""],
}  # fmt: skip


def _fence_mark(chance: Chance, core: str, longer: bool) -> str:
    runs = [len(run) for run in re.findall(r"`{3,}", core)]
    return "`" * (max([3, *runs]) + (1 if longer and (runs or chance.maybe(0.5)) else 0))


def _fence_visible(scene: Scene, core: str, mark: str, info: str, closed: bool) -> Evidence:
    """Returns whether a fence is recognisable as a wrapper. In a text without grammar, it is recognisable only where
    the document could not contain one.
    """
    before = scene.truth[: scene.start]
    in_middle = not before.endswith("\n") and bool(before.strip())
    if scene.format == "tags":
        clear = closed and mark not in core and in_middle
    elif scene.format == "text":
        clear = closed and mark not in core
    elif open_fence(before) is not None:
        # The block's own end is in the core, so no closing fence is left for the wrapper.
        clear = not closed and (in_middle or bool(info))
    else:
        clear = closed and in_middle and mark not in core
    return Evidence.DECIDED if clear and core[:1] not in "\r\n" else _doubtful(scene)


def _fenced(scene: Scene, chance: Chance, core: str, *, close: bool, longer: bool = False) -> Wrapped:
    info = chance.pick(_INFO[scene.format])
    mark = _fence_mark(chance, core, longer)
    close = close and scene.last
    text = f"{mark}{info}\n{core}"
    if close:
        text += ("" if core.endswith("\n") else "\n") + mark
        text += chance.pick(["", "\n"])
    return Wrapped(text, _fence_visible(scene, core, mark, info, close))


def fence(scene: Scene, chance: Chance, core: str) -> Wrapped:
    return _fenced(scene, chance, core, close=True)


def fence_longer(scene: Scene, chance: Chance, core: str) -> Wrapped:
    """Adds a fence longer than any in the text."""
    return _fenced(scene, chance, core, close=True, longer=True)


def fence_opened(scene: Scene, chance: Chance, core: str) -> Wrapped:
    """Adds an opening fence that only the document can close."""
    return _fenced(scene, chance, core, close=False)


def fence_closed(scene: Scene, chance: Chance, core: str) -> Wrapped | None:
    """Adds a closing fence without an opening one."""
    if not scene.last:
        return None
    return Wrapped(core.rstrip("\r\n") + "\n```" + chance.pick(["", "\n"]), Evidence.UNDECIDED)


def fence_then_prose(scene: Scene, chance: Chance, core: str) -> Wrapped | None:
    """Adds a closed fence followed by explanations."""
    if not scene.last:
        return None
    wrapped = fence(scene, chance, core)
    prose = wording_for(chance, EXPLANATIONS, scene.format, spoken(chance))
    if chance.maybe(0.4):
        prose += "\n\n" + invented.paragraph(chance, "ascii")
    return Wrapped(wrapped.text.rstrip("\n") + "\n\n" + prose, wrapped.visible)


def fence_remark(scene: Scene, chance: Chance, core: str, language: str = "") -> Wrapped | None:
    if not scene.last:
        return None
    wrapped = fence(scene, chance, core)
    words = wording_for(chance, REMARKS, scene.format, language or spoken(chance))
    return Wrapped(wrapped.text.rstrip("\n") + "\n\n" + words, wrapped.visible)


def preamble_fence(scene: Scene, chance: Chance, core: str) -> Wrapped:
    wrapped = fence(scene, chance, core)
    words = _announced(scene, chance, spoken(chance))
    return Wrapped(words + "\n\n" + wrapped.text, _announced_fence(scene, core, wrapped))


def preamble_fence_remark(scene: Scene, chance: Chance, core: str) -> Wrapped | None:
    language = spoken(chance)
    wrapped = fence_remark(scene, chance, core, language)
    if wrapped is None:
        return None
    words = _announced(scene, chance, language)
    return Wrapped(words + "\n\n" + wrapped.text, _announced_fence(scene, core, wrapped))


def preamble_remark(scene: Scene, chance: Chance, core: str) -> Wrapped | None:
    language = spoken(chance)
    wrapped = remark(scene, chance, core, language)
    if wrapped is None:
        return None
    visible = Evidence.UNDECIDED if core[:1] in "\r\n" else wrapped.visible
    return Wrapped(_announced(scene, chance, language) + "\n\n" + wrapped.text, visible)


def preamble_ellipsis(scene: Scene, chance: Chance, core: str) -> Wrapped:
    wrapped = ellipsis(scene, chance, core)
    return Wrapped(_announced(scene, chance, spoken(chance)) + "\n\n" + wrapped.text, wrapped.visible)


def _announced_fence(scene: Scene, core: str, wrapped: Wrapped) -> Evidence:
    """An announced fence is a wrapper even at the beginning of a line, unless the text itself contains fences."""
    if scene.format in ("text", "tags", "markdown") and "```" not in core and core[:1] not in ("\r", "\n"):
        if scene.last and open_fence(scene.truth[: scene.start]) is None:
            return Evidence.DECIDED
    return wrapped.visible
