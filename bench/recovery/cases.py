"""Cases: a document, its cuts, the received continuations, the intended text, and whether the text alone determines
it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from beginnings import Scene, settled
from chance import Chance
from cuts import cut_of
from documents import KINDS, LARGEST, Document, document, with_last_sentence
from nothing import NOTHING, evidence
from readings import Evidence, Seam, is_whole, judge, value
from sources import Sources
from styles import ASKED, STYLES, Style

SEVERAL = {"several": 9.0, "several-exact": 2.0}
"""Two or three continuations, of which all but the last are cut; in mixed styles, or all clean."""
WEIGHTS = {
    **{name: style.weight for name, style in STYLES.items()},
    **{name: weight for name, (weight, _) in NOTHING.items()},
    **SEVERAL,
}
_TRIES = 60
_SHARED = 60
"""Number of consecutive cases that share the same few documents, since long documents are slow to generate."""


@dataclass(frozen=True)
class Case:
    """One case in the form that README.md describes."""

    id: str
    format: str
    asked: str
    chunks: list[str]
    truth: str | None
    kind: str
    style: str
    decided: bool
    cut: str = ""
    blind: bool = False
    note: str = ""
    seed: str = ""
    accept: list[str] = field(default_factory=list)

    def question(self) -> str:
        """Returns the line that a stitcher receives."""
        asked = {"id": self.id, "format": self.format, "from": self.asked, "chunks": self.chunks}
        return json.dumps(asked, ensure_ascii=True)

    def line(self) -> str:
        """Returns the case as one line of JSON."""
        return json.dumps({
            "id": self.id, "format": self.format, "from": self.asked, "chunks": self.chunks, "truth": self.truth,
            "accept": self.accept, "kind": self.kind, "style": self.style, "cut": self.cut, "decided": self.decided,
            "blind": self.blind, "note": self.note, "seed": self.seed,
        }, ensure_ascii=True)  # fmt: skip

    @classmethod
    def from_line(cls, line: str) -> "Case":
        """Reads a generated or recorded case. Raises ValueError or KeyError if the line does not have this form."""
        found: dict[str, Any] = json.loads(line)
        return cls(
            found["id"], found["format"], found.get("from", "unknown"), found["chunks"], found["truth"],
            found["kind"], found["style"], found["decided"], found.get("cut", ""), found.get("blind", False),
            found.get("note", ""), found.get("seed", ""), found.get("accept", []),
        )  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """Selection of styles and kinds to generate."""

    styles: tuple[str, ...] = tuple(WEIGHTS)
    kinds: tuple[str, ...] = tuple(KINDS)
    largest: int = LARGEST
    endings: bool = False
    """Whether prose and Markdown end in an ordinary last sentence."""


def cases(seed: int, number: int, sources: Sources | None, wanted: Wanted = Wanted()) -> Iterator[Case]:
    """Yields `number` cases, one at a time. Each depends only on the seed, its own number and the sources."""
    shelf = _Shelf(seed, sources, wanted)
    for index in range(number):
        case = _case(seed, index, shelf, wanted)
        if case is not None:
            yield case


class _Shelf:
    """Keeps documents: two of each kind for a range of cases. Small ones are generated on demand."""

    def __init__(self, seed: int, sources: Sources | None, wanted: Wanted):
        self.sources = sources
        self._name = seed
        self._largest = wanted.largest
        self._finish = with_last_sentence if wanted.endings else lambda made: made
        self._run = -1
        self._documents: dict[tuple[str, int], Document] = {}

    def take(self, chance: Chance, kind: str, index: int) -> Document:
        """Returns one of the two documents of a kind that the case with this number may use."""
        if index // _SHARED != self._run:
            self._run = index // _SHARED
            self._documents.clear()
        place = (kind, chance.below(2))
        if place not in self._documents:
            maker = Chance("document", self._name, self._run, *place)
            self._documents[place] = self._finish(document(maker, self.sources, kind, self._largest))
        return self._documents[place]

    def small(self, chance: Chance, kind: str) -> Document:
        """Returns a new, small document."""
        return self._finish(document(chance, self.sources, kind, min(self._largest, 4000)))


def _case(seed: int, index: int, shelf: _Shelf, wanted: Wanted) -> Case | None:
    chance = Chance("case", seed, index)
    style = chance.weighted({name: WEIGHTS[name] for name in wanted.styles})
    allowed = STYLES[style].kinds if style in STYLES else tuple(KINDS)
    weights = {kind: KINDS[kind] for kind in wanted.kinds if kind in allowed}
    if not weights:
        return None
    for attempt in range(_TRIES):
        kind = chance.weighted(weights)
        # If a style does not fit the available documents, generate other documents.
        made = shelf.take(chance, kind, index) if attempt < 3 else shelf.small(chance, kind)
        draft = _draft(chance, shelf, style, made)
        if draft is not None:
            mark = "-ended" if wanted.endings else ""
            return Case(id=f"{seed}-{index}{mark}", seed=f"{seed}/{index}{mark}", **draft)
    return None


def _draft(chance: Chance, shelf: _Shelf, name: str, made: Document) -> dict[str, Any] | None:
    kind = made.kind
    for _ in range(3):
        cut, cut_kind = cut_of(chance, made.text, made.format)
        common = {"format": made.format, "kind": kind, "style": name, "cut": cut_kind}
        if name in NOTHING:
            other = shelf.small(chance, kind).text
            found = _nothing(chance, made.text, cut, made.format, name, other)
        elif name in SEVERAL:
            found = _several(chance, made.text, cut, made.format, kind, name)
        else:
            found = _single(chance, made.text, cut, made.format, kind, STYLES[name])
        if found is not None:
            return {**common, **found}
    return None


def _asked(chance: Chance, group: str, format_: str) -> str:
    """Chooses the requested start. Token starts are well defined in JSON. In plain text, a token start is the cut
    itself.
    """
    asked = chance.weighted(ASKED[group])
    return "unknown" if asked == "token" and format_ in ("markdown", "tags") else asked


def _single(chance: Chance, truth: str, cut: int, format_: str, kind: str, style: Style) -> dict[str, Any] | None:
    asked = _asked(chance, style.group, format_)
    continued = _continuation_with_evidence(chance, truth, cut, len(truth), format_, kind, asked, style)
    if continued is None:
        return None
    text, text_evidence = continued
    return _fields_with_truth(truth, [truth[:cut], text], asked, text_evidence, wrapped=style.wrap.__name__ != "bare", format_=format_)


def _several(chance: Chance, truth: str, cut: int, format_: str, kind: str, name: str) -> dict[str, Any] | None:
    number = chance.between(2, 3)
    places = [cut]
    for _ in range(12):
        place, _ = cut_of(chance, truth, format_)
        if place > places[-1] + 4 and len(places) < number:
            places.append(place)
    if len(places) < number:
        return None
    asked = _asked(chance, "clean" if name == "several-exact" else "wrapped", format_)
    chunks, text_evidence, used = [truth[:cut]], Evidence.DECIDED, []
    for place, end in zip(places, [*places[1:], len(truth)], strict=True):
        # One misleading seam spoils a case with several seams, so misleading styles are rarer here.
        weights = {
            style: style.weight * (0.25 if style.group == "short" else 1.0)
            for style in STYLES.values()
            if kind in style.kinds
        }
        for _ in range(10):
            style = STYLES["exact"] if name == "several-exact" else chance.weighted(weights)
            continued = _continuation_with_evidence(chance, truth, place, end, format_, kind, asked, style)
            if continued is not None:
                break
        else:
            return None
        chunks.append(continued[0])
        text_evidence = text_evidence & continued[1]
        used.append(style.name)
    known = _fields_with_truth(truth, chunks, asked, text_evidence, wrapped=STYLES[used[-1]].wrap.__name__ != "bare", format_=format_)
    return {**known, "note": ", then ".join(used)}


def _continuation_with_evidence(
    chance: Chance, truth: str, cut: int, end: int, format_: str, kind: str, asked: str, style: Style
) -> tuple[str, Evidence] | None:
    """Returns a continuation, and the evidence that its text gives about the join."""
    state = settled(truth[:cut], format_)
    start = state.index if asked == "token" else cut
    if asked == "unknown" and style.group not in ("clean", "unknown") and chance.maybe(0.2):
        start = state.index
    if start >= end or (asked == "token" and start == 0):
        return None
    scene = Scene(truth, cut, end, format_, kind, asked, start, state)
    core = style.core(scene, chance)
    if core is None or not core.text.strip():
        return None
    wrapped = style.wrap(scene, chance, core.text)
    if wrapped is None:
        return None
    after = truth[end:]
    seam = Seam(truth[:cut], core.text + after, format_, asked, state.index, truth, core.alone)
    text_evidence = judge(seam)
    if style.name == "exact" and asked == "cut":
        if text_evidence is not Evidence.DECIDED:
            # A clean continuation that cannot be distinguished from a long repeat.
            return None
        return wrapped.text, text_evidence
    return wrapped.text, text_evidence & _wrapper_evidence(scene, core.text, wrapped.text, wrapped.visible)


def _wrapper_evidence(scene: Scene, core: str, text: str, visible: Evidence) -> Evidence:
    """Returns the evidence that distinguishes the wrapper from the document: the grammar, or otherwise its form and
    position.
    """
    if scene.format in ("text", "markdown") or text == core:
        return visible if scene.format in ("text", "markdown") else Evidence.DECIDED
    as_it_stands = scene.truth[: scene.cut] + text + scene.truth[scene.end :]
    if not is_whole(as_it_stands, scene.format):
        space_matters = scene.format == "tags" and core[:1] in "\r\n"
        return visible if space_matters else Evidence.DECIDED
    if scene.format == "tags":
        return visible
    if value(as_it_stands, scene.format) == value(scene.truth, scene.format):
        return Evidence.DECIDED
    return Evidence.BLIND if scene.asked == "cut" else Evidence.UNDECIDED


def _fields_with_truth(
    truth: str, chunks: list[str], asked: str, text_evidence: Evidence, *, wrapped: bool, format_: str
) -> dict[str, Any]:
    """Returns the fields of a case whose intended text is known. If there is a wrapper, a line break at the end may
    belong to the wrapper.
    """
    accept = []
    if wrapped and format_ in ("text", "markdown", "tags"):
        bare = truth.rstrip("\r\n")
        accept = [text for text in (bare, bare + "\n", bare + "\r\n") if text != truth]
    return {
        "asked": asked, "chunks": chunks, "truth": truth, "accept": list(dict.fromkeys(accept)),
        "decided": text_evidence is Evidence.DECIDED, "blind": text_evidence is Evidence.BLIND,
    }  # fmt: skip


def _nothing(chance: Chance, truth: str, cut: int, format_: str, name: str, other: str) -> dict[str, Any] | None:
    asked = _asked(chance, "nothing", format_)
    before = truth[:cut]
    answer = NOTHING[name][1](chance, before, truth[cut:], format_, asked, other)
    if answer is None:
        return None
    text_evidence = evidence(before, answer, format_, settled(before, format_).index)
    return {
        "asked": asked, "chunks": [before, answer[0]], "truth": None,
        "decided": text_evidence is Evidence.DECIDED, "blind": text_evidence is Evidence.BLIND,
    }  # fmt: skip
