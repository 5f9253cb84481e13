"""Checks whether an artifact is finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ._core import call


@dataclass(frozen=True)
class GuardFinding:
    check: str
    """The check, such as `section_missing`, `placeholder` or `mid_sentence`."""
    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    text: str
    why: str
    fix: str


@dataclass(frozen=True)
class GuardReport:
    verdict: Literal["whole", "wrapped_up", "truncated"]
    findings: tuple[GuardFinding, ...]
    """In the order of the text, at most 1,000."""
    unlisted: int

    @property
    def is_whole(self) -> bool:
        return self.verdict == "whole"


def guard(
    artifact: str, *, name: str | None = None, template: tuple[str, str] | None = None, min_lines: int | None = None,
    required_sections: Sequence[str] = (), forbidden_phrases: Sequence[str] = (), forbidden_phrases_only: bool = False,
) -> GuardReport:  # fmt: skip
    """Checks an artifact for placeholders, missing or empty sections, postponed parts, omitted code and text that breaks off.

    >>> guard("# Plan\\n\\nWe ship on Friday.\\n\\n## Risks\\n\\nTBD\\n").findings[0].check
    'placeholder'

    `name` is the artifact's file name, which shows whether it is code. `template` is the name and the text of a Markdown, YAML, TOML or
    JSON file with the criteria. With `forbidden_phrases_only`, only the given phrases are forbidden, and not the built-in ones. Raises
    `InvalidInput` for invalid criteria.
    """
    named = None if template is None else {"name": template[0], "text": template[1]}
    found = call(
        "guard", artifact, name=name, template=named, min_lines=min_lines, required_sections=list(required_sections),
        forbidden_phrases=list(forbidden_phrases), forbidden_phrases_only=forbidden_phrases_only,
    )  # fmt: skip
    return GuardReport(found["verdict"], tuple(GuardFinding(**finding) for finding in found["findings"]), found["unlisted"])
