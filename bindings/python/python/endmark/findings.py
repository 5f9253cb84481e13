"""What a team of agents hands over: instructions for a prompt, estimates, checks, plans, and reports that disclose every gap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Optional, TypedDict

from ._core import call

__all__ = [
    "CheckedFinding", "CheckedResult", "Expected", "Fitted", "Merged", "Place", "Plan", "Receipt", "Transcript", "check", "estimate", "fit",
    "merge", "plan", "protocol", "report",
]  # fmt: skip


class Receipt(TypedDict):
    """An estimate before a result is written, and what became of it."""

    budget_left: int
    limit_tokens: int
    """40 % of what is left."""
    findings_before: int
    estimated_tokens_before: int
    compressed: bool
    findings: int
    estimated_tokens: int
    joined: int
    """Findings joined with another one of the same weakness and file."""
    dropped: dict[str, int]
    """What the compressions left out: `titles`, `evidence_lines`, `flow_steps`."""
    tokens: Optional[int]
    """Of the text, counted; None for an estimate alone."""
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
    """How the number is known."""


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
    """How many findings there must have been."""
    lost: int
    findings: list[CheckedFinding]


class Transcript(TypedDict):
    results: list[CheckedResult]
    checkpoints: list[dict[str, Any]]
    remarks: list[dict[str, Any]]
    """What was ignored or not understood: `position`, `kind`, `text`, `message`."""
    remarks_omitted: int


class Plan(TypedDict):
    done: bool
    """Nothing is left to do."""
    runs: list[dict[str, Any]]
    """What is to be done now: `agent_id`, `kind`, `round`, `dimensions`, `max_turns`, `max_findings`."""
    agents: list[dict[str, Any]]
    not_attributed: list[str]
    """Results that do not say whose they are."""


class Merged(TypedDict):
    text: str
    """The findings in the canonical form, with an end marker only if nothing is missing."""
    markdown: str
    report: dict[str, Any]
    """The findings, and the disclosure of what was cut, lost and not looked into."""


def protocol(
    *, agent_id: str | None = None, dimensions: Sequence[str] = (), form: Literal["text", "jsonl"] = "text",
    budget_left: int | None = None, max_turns: int | None = None, max_findings: int | None = None,
) -> str:  # fmt: skip
    """The instructions for an agent's prompt: markers, estimate, compression and checkpoints. `budget_left` is in tokens."""
    text: str = call(
        "findings_protocol", agent_id=agent_id, dimensions=list(dimensions), form=form, budget_left=budget_left,
        max_turns=max_turns, max_findings=max_findings,
    )  # fmt: skip
    return text


def estimate(findings: int, budget_left: int) -> Receipt:
    """Estimates a result before it is written: 300 tokens a finding and 200 more, against 40 % of what is left.

    >>> estimate(12, 9_500)["fits"]
    True
    """
    receipt: Receipt = call("findings_estimate", findings=findings, budget_left=budget_left)
    return receipt


def fit(draft: str | bytes, budget_left: int) -> Fitted:
    """Writes a whole result again, compressed if it would not fit. Raises `Malformed` for a cut one: it would look whole."""
    fitted: Fitted = call("findings_fit", draft, budget_left=budget_left)
    return fitted


def check(transcript: str | bytes) -> Transcript:
    """Reads an agent's transcript: its results, which findings are complete, its checkpoints, and what had to be ignored.

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
    """Says who does what again. `results` are transcripts by name; an agent is recognised by its own name in it, too.

    A `team` is `{"agents": [{"agent_id", "dimensions", "max_turns"}], "rounds", "emergency"}`. `running`: agents that have handed
    over nothing may still be at work; otherwise that is a severe cut. Raises `InvalidInput` for a team that cannot be read.
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
    """The final report in Markdown. After a cut it always lists who was cut, the gaps that may remain, and what was lost."""
    return merge(results, team)["markdown"]
