"""Handles the findings of a team of agents: instructions for prompts, estimates, checks, plans and reports that disclose gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Optional, TypedDict

from ._core import call

__all__ = [
    "CheckedFinding", "CheckedResult", "Expected", "Fitted", "Merged", "Place", "Plan", "Receipt", "Transcript", "check", "estimate", "fit",
    "merge", "plan", "protocol", "report",
]  # fmt: skip


class Receipt(TypedDict):
    """The size of results before and after compression, in tokens."""

    budget_left: int
    limit_tokens: int
    """40 % of `budget_left`."""
    findings_before: int
    estimated_tokens_before: int
    compressed: bool
    findings: int
    estimated_tokens: int
    joined: int
    """The number of findings that were merged with another one of the same weakness and file."""
    dropped: dict[str, int]
    """The parts that the compressions removed: `titles`, `evidence_lines`, `flow_steps`."""
    tokens: Optional[int]
    """The measured tokens of the text; None if there is only an estimate."""
    tokenizer: str
    fits: bool


class Fitted(TypedDict):
    receipt: Receipt
    text: str
    findings: list[dict[str, Any]]


class Place(TypedDict):
    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    byte: int
    """From 0, in UTF-8 bytes."""


class CheckedFinding(TypedDict):
    id: str
    state: Literal["complete", "truncated", "needs_reaudit"]
    originally_truncated: bool
    missing: list[str]
    position: Place
    finding: dict[str, Any]


class Expected(TypedDict):
    findings: int
    basis: Literal["checkpoint", "declared_findings", "highest_id"]
    """What the number is based on."""


class CheckedResult(TypedDict):
    agent_id: Optional[str]
    dimensions: list[str]
    declared_findings: Optional[int]
    cut: Literal["whole", "mild", "severe"]
    truncated: bool
    begins: Optional[Place]
    ends: Place
    complete: int
    truncated_findings: int
    needs_reaudit: int
    discarded: int
    expected: Optional[Expected]
    """The number of findings to expect, or None if nothing states it."""
    lost: int
    findings: list[CheckedFinding]


class Transcript(TypedDict):
    results: list[CheckedResult]
    checkpoints: list[dict[str, Any]]
    remarks: list[dict[str, Any]]
    """Text that was ignored or not understood: `position`, `kind`, `text`, `message`."""
    remarks_omitted: int


class Plan(TypedDict):
    done: bool
    """Whether nothing is left to do."""
    runs: list[dict[str, Any]]
    """The runs to start now: `agent_id`, `kind`, `round`, `dimensions`, `max_turns`, `max_findings`."""
    agents: list[dict[str, Any]]
    not_attributed: list[str]
    """The names of results whose agent is unknown."""


class Merged(TypedDict):
    text: str
    """The findings in the canonical form, with an end marker only if nothing is missing."""
    markdown: str
    report: dict[str, Any]
    """The findings, and the disclosure of everything that was cut, lost or not examined."""


def protocol(
    *, agent_id: str | None = None, dimensions: Sequence[str] = (), form: Literal["text", "jsonl"] = "text",
    budget_left: int | None = None, max_turns: int | None = None, max_findings: int | None = None,
) -> str:  # fmt: skip
    """Returns the instructions for an agent's prompt: markers, estimate, compression and checkpoints. `budget_left` is in tokens."""
    text: str = call(
        "findings_protocol", agent_id=agent_id, dimensions=list(dimensions), form=form, budget_left=budget_left,
        max_turns=max_turns, max_findings=max_findings,
    )  # fmt: skip
    return text


def estimate(findings: int, budget_left: int) -> Receipt:
    """Estimates whether a result fits: 300 tokens per finding and 200 more must be at most 40 % of the remaining budget.

    >>> estimate(12, 9_500)["fits"]
    True
    """
    receipt: Receipt = call("findings_estimate", findings=findings, budget_left=budget_left)
    return receipt


def fit(draft: str | bytes, budget_left: int) -> Fitted:
    """Rewrites a complete result, compressed if it would not fit. Raises `Malformed` for a cut one, which would look complete."""
    fitted: Fitted = call("findings_fit", draft, budget_left=budget_left)
    return fitted


def check(transcript: str | bytes) -> Transcript:
    """Reads an agent's transcript: its results, how complete each finding is, its checkpoints, and the ignored text.

    >>> check("===AGENT_RESULT===\\nagent_id: a\\n")["results"][0]["cut"]
    'mild'
    """
    found: Transcript = call("findings_check", transcript)
    return found


def _team(results: Mapping[str, str | bytes], team: Mapping[str, Any] | None, running: bool) -> dict[str, Any]:
    return {"origins": list(results), "team": None if team is None else dict(team), "running": running}


def plan(
    results: Mapping[str, str | bytes], team: Mapping[str, Any] | None = None, *, running: bool = False
) -> Plan:
    """Plans which agents run again, and with which dimensions. `results` maps names to transcripts; a name may identify the agent.

    A `team` is `{"agents": [{"agent_id", "dimensions", "max_turns"}], "rounds", "emergency"}`. `running` means that agents without a
    result may still be running; otherwise a missing result is a severe cut. Raises `InvalidInput` for an invalid team.
    """
    planned: Plan = call("findings_plan", *results.values(), **_team(results, team, running))
    return planned


def merge(
    results: Mapping[str, str | bytes], team: Mapping[str, Any] | None = None, *, running: bool = False
) -> Merged:
    """Merges the results of all agents and rounds into one list, with its report."""
    merged: Merged = call("findings_merge", *results.values(), **_team(results, team, running))
    return merged


def report(results: Mapping[str, str | bytes], team: Mapping[str, Any] | None = None) -> str:
    """Returns the final report in Markdown. It discloses all cut agents, the gaps that may remain, and the lost findings."""
    return merge(results, team)["markdown"]
