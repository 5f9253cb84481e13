"""The styles of continuations. A style combines a beginning with the text around it, and has a name and a weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import beginnings as begin
import wrappings as wrap
from beginnings import Core, Scene
from chance import Chance
from wrappings import Wrapping

Begin = Callable[[Scene, Chance], Core | None]
ALL = ("tool-call", "array", "jsonl", "markdown", "code", "prose", "tags")
JSON = ("tool-call", "array", "jsonl")
ONE_JSON = ("tool-call", "array")


@dataclass(frozen=True)
class Style:
    """A way in which a model continues."""

    name: str
    weight: float
    begin: tuple[Begin, ...]
    wrap: Wrapping = wrap.bare
    kinds: tuple[str, ...] = ALL
    group: str = "wrapped"
    """Which row of `ASKED` says where it is asked from."""

    def core(self, scene: Scene, chance: Chance) -> Core | None:
        """Returns the part of the document that the model writes."""
        return chance.pick(self.begin)(scene, chance)


def _style(
    name: str, weight: float, begins: Begin | tuple[Begin, ...], wrapping: Wrapping = wrap.bare,
    kinds: tuple[str, ...] = ALL, group: str = "wrapped",
) -> Style:  # fmt: skip
    return Style(name, weight, begins if isinstance(begins, tuple) else (begins,), wrapping, kinds, group)


_RESTARTS = (begin.restart_string, begin.restart_object, begin.restart_document)
_RESTARTS_IN_ANY_FORM = (begin.restart_document, begin.restart_document, begin.restart_formatted, begin.restart_escaped)
_REPEATS = (begin.tail, begin.last_line)

STYLES = {
    style.name: style
    for style in [
        _style("exact", 10, begin.exact, group="clean"),
        _style("token", 3, begin.token, kinds=JSON, group="unknown"),
        _style("repeat-characters", 3, begin.characters, group="short"),
        _style("repeat-word", 3, begin.last_word, group="short"),
        _style("repeat-tail", 3, begin.tail, group="long"),
        _style("repeat-line", 4, begin.last_line, group="long"),
        _style("repeat-paragraph", 3, begin.paragraph, group="long"),
        _style("space-lost", 2, begin.space_lost, group="short"),
        _style("space-added", 1.5, begin.space_added, group="short"),
        _style("line-added", 1.5, begin.line_added, group="short"),
        _style("blank-line-added", 1, begin.blank_line_added, group="short"),
        _style("restart-string", 2.5, begin.restart_string, kinds=JSON, group="long"),
        _style("restart-object", 2.5, begin.restart_object, kinds=ONE_JSON, group="long"),
        _style("restart-line", 1.5, begin.restart_line, kinds=("jsonl", "tags"), group="long"),
        _style("restart-document", 4, begin.restart_document, group="long"),
        _style("restart-block", 1, begin.restart_block, kinds=("markdown",), group="long"),
        _style("restart-formatted", 1.5, begin.restart_formatted, kinds=JSON, group="long"),
        _style("restart-escaped", 1, begin.restart_escaped, kinds=JSON, group="long"),
        _style("escapes-switched", 1.5, begin.escapes_switched, kinds=JSON, group="clean"),
        _style("escapes-forgotten", 0.7, begin.escapes_forgotten, kinds=JSON),
        _style("layout-drift", 1, begin.other_layout, kinds=ONE_JSON, group="clean"),
        _style("fence", 3, begin.exact, wrap.fence),
        _style("fence-longer", 1, begin.exact, wrap.fence_longer),
        _style("fence-opened", 1.5, begin.exact, wrap.fence_opened),
        _style("fence-closed", 1, begin.exact, wrap.fence_closed),
        _style("fence-then-prose", 1.5, begin.exact, wrap.fence_then_prose),
        _style("fence+remark", 1.5, begin.exact, wrap.fence_remark),
        _style("fence+token", 0.7, begin.token, wrap.fence, JSON, "unknown"),
        _style("fence+repeat", 2, _REPEATS, wrap.fence),
        _style("fence+restart", 2, _RESTARTS_IN_ANY_FORM, wrap.fence),
        _style("fence-opened+restart-block", 0.7, begin.restart_block, wrap.fence_opened, ("markdown",)),
        _style("preamble", 4, begin.exact, wrap.preamble),
        _style("preamble-inline", 1.5, begin.exact, wrap.preamble_inline),
        _style("preamble+token", 0.7, begin.token, wrap.preamble, JSON, "unknown"),
        _style("preamble+repeat", 2, _REPEATS, wrap.preamble),
        _style("preamble+restart", 1.5, _RESTARTS, wrap.preamble),
        _style("preamble+remark", 1, begin.exact, wrap.preamble_remark),
        _style("preamble+ellipsis", 0.5, begin.exact, wrap.preamble_ellipsis),
        _style("preamble+fence", 2, begin.exact, wrap.preamble_fence),
        _style("preamble+fence+remark", 1, begin.exact, wrap.preamble_fence_remark),
        _style("preamble+fence+repeat", 2, _REPEATS, wrap.preamble_fence),
        _style("preamble+fence+restart", 1.5, _RESTARTS_IN_ANY_FORM, wrap.preamble_fence),
        _style("remark", 3, begin.exact, wrap.remark),
        _style("remark+repeat", 1, _REPEATS, wrap.remark),
        _style("remark+restart", 1, _RESTARTS, wrap.remark),
        _style("ellipsis", 2, begin.exact, wrap.ellipsis),
        _style("ellipsis+repeat", 0.5, _REPEATS, wrap.ellipsis),
    ]
}
"""Every style whose truth is known, by name."""

ASKED = {
    "clean": {"cut": 0.4, "unknown": 0.4, "token": 0.2},
    "unknown": {"unknown": 1.0},
    "short": {"unknown": 0.7, "cut": 0.2, "token": 0.1},
    "long": {"unknown": 0.5, "token": 0.25, "cut": 0.25},
    "wrapped": {"unknown": 0.5, "token": 0.25, "cut": 0.25},
    "nothing": {"unknown": 0.7, "token": 0.15, "cut": 0.15},
}
"""Where the model was asked to go on, by group of styles."""
CLEAN = ("exact", "several-exact")
"""Styles that are plain continuations: asked for at the cut, each of them has to be exact."""
