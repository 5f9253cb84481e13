"""Judges answers and sums up the results."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from cases import Case
from readings import value
from styles import CLEAN


class Mark(Enum):
    """Verdict on an answer."""

    EXACT = "exact"
    HONEST = "honest"
    WRONG = "silently wrong"


@dataclass(frozen=True)
class Judgement:
    """Verdict on one answer."""

    mark: Mark
    outcome: str
    best_right: bool
    """Whether the text is right, regardless of the reported outcome."""
    confidence: float | None


def is_right(case: Case, text: str) -> bool:
    """Returns whether the text is correct: JSON is compared by value, other formats character by character."""
    if case.truth is None:
        return False
    if case.format in ("json", "jsonl"):
        if text in (case.truth, *case.accept):
            return True
        try:
            found = value(text, case.format)
        except ValueError:
            return False
        return any(found == value(right, case.format) for right in (case.truth, *case.accept))
    return text in (case.truth, *case.accept)


def judged(case: Case, answer: dict[str, Any] | None) -> Judgement:
    """Judges an answer. A missing answer, or an outcome other than whole or ambiguous, counts as an error."""
    answer = answer or {}
    outcome = answer.get("outcome")
    outcome = outcome if outcome in ("whole", "ambiguous") else "error"
    text = answer.get("text")
    right = isinstance(text, str) and is_right(case, text)
    if outcome == "whole":
        mark = Mark.EXACT if right else Mark.WRONG
    else:
        mark = Mark.HONEST
    seams = answer.get("seams")
    stated = [seam.get("confidence") for seam in seams if isinstance(seam, dict)] if isinstance(seams, list) else []
    numbers = [number for number in stated if isinstance(number, (int, float))]
    return Judgement(mark, outcome, right, float(min(numbers)) if numbers else None)


CLASSES = ("decided", "undecided", "blind", "nothing", "nothing, blind")
"""Classes of cases: the text decides the join, leaves it open or misleads, and there is or is not a correct text."""


def class_of(case: Case) -> str:
    """Returns the class of a case."""
    if case.truth is None:
        return "nothing, blind" if case.blind else "nothing"
    return "decided" if case.decided else "blind" if case.blind else "undecided"


@dataclass
class Tally:
    """Counts of the answers of one class."""

    marks: Counter[Mark] = field(default_factory=Counter)
    best_right: int = 0
    """Ambiguous answers whose best candidate is right."""
    ambiguous: int = 0

    @property
    def total(self) -> int:
        return sum(self.marks.values())

    def add(self, judgement: Judgement) -> None:
        self.marks[judgement.mark] += 1
        if judgement.outcome == "ambiguous":
            self.ambiguous += 1
            self.best_right += judgement.best_right

    def share(self, mark: Mark) -> float:
        """Returns the share of answers with this mark, 0 to 1; 0 if there are no answers."""
        return self.marks[mark] / self.total if self.total else 0.0


BINS = 10


@dataclass
class Calibration:
    """Stated confidence and how often the answer was right, in ten bins of width 0.1."""

    count: list[int] = field(default_factory=lambda: [0] * BINS)
    right: list[int] = field(default_factory=lambda: [0] * BINS)
    stated: list[float] = field(default_factory=lambda: [0.0] * BINS)

    def add(self, confidence: float, right: bool) -> None:
        place = min(BINS - 1, max(0, int(confidence * BINS)))
        self.count[place] += 1
        self.right[place] += right
        self.stated[place] += confidence

    def error(self) -> float:
        """Returns the expected calibration error: the mean gap between stated confidence and observed accuracy."""
        total = sum(self.count)
        gaps = (abs(self.stated[place] - self.right[place]) for place in range(BINS))
        return sum(gaps) / total if total else 0.0


@dataclass
class Score:
    """Results of one stitcher. Memory depends on the number of styles, not of cases."""

    name: str
    cells: dict[tuple[str, str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    """Keyed by class, style and requested start."""
    kinds: dict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    """Keyed by class and kind of document."""
    whole: Calibration = field(default_factory=Calibration)
    best: Calibration = field(default_factory=Calibration)
    """Calibration of the best candidates of ambiguous answers."""
    unanswered: int = 0
    clean_missed: list[str] = field(default_factory=list)
    silently_wrong: list[str] = field(default_factory=list)

    def add(self, case: Case, answer: dict[str, Any] | None) -> Judgement:
        judgement = judged(case, answer)
        kind_of_case = class_of(case)
        self.cells[kind_of_case, case.style, case.asked].add(judgement)
        self.kinds[kind_of_case, case.kind].add(judgement)
        self.unanswered += answer is None
        if judgement.mark is Mark.WRONG and not case.blind:
            self.silently_wrong.append(case.id)
        if is_clean(case) and judgement.mark is not Mark.EXACT:
            self.clean_missed.append(case.id)
        # If the text misleads, no confidence can be right.
        if judgement.confidence is not None and not case.blind and judgement.outcome != "error":
            (self.whole if judgement.outcome == "whole" else self.best).add(judgement.confidence, judgement.best_right)
        return judgement

    def sum(self, kind_of_case: str, style: str | None = None, asked: str | None = None) -> Tally:
        """Returns the tally of a class, optionally of one style and one requested start."""
        found = Tally()
        for (of_class, of_style, of_asked), tally in self.cells.items():
            if of_class == kind_of_case and style in (None, of_style) and asked in (None, of_asked):
                _add(found, tally)
        return found

    def clean(self) -> Tally:
        """Returns the tally of plain continuations that were requested from the cut."""
        found = Tally()
        for style in CLEAN:
            _add(found, self.sum("decided", style, "cut"))
        return found


def is_clean(case: Case) -> bool:
    """Returns whether the case is a decided plain continuation that was requested from the cut."""
    return case.style in CLEAN and case.asked == "cut" and case.truth is not None and case.decided


def _add(to: Tally, other: Tally) -> None:
    to.marks.update(other.marks)
    to.best_right += other.best_right
    to.ambiguous += other.ambiguous


@dataclass(frozen=True)
class Bars:
    """Thresholds that a stitcher has to meet. All are shares, 0 to 1."""

    silently_wrong: float = 0.0
    """Maximum share of all cases except blind ones."""
    exact: float = 0.98
    """Minimum share of the decided cases."""
    refused: float = 0.02
    """Maximum share of the decided cases."""
    clean_missed: float = 0.0
    """Maximum share of plain continuations from the cut that are not exact."""

    def missed(self, score: Score) -> list[str]:
        """Describes every threshold that was missed."""
        seen = sum(score.sum(name).total for name in ("decided", "undecided", "nothing"))
        decided, clean = score.sum("decided"), score.clean()
        missed = []
        if len(score.silently_wrong) > self.silently_wrong * seen:
            missed.append(f"{len(score.silently_wrong)} of {seen} silently wrong, at most {self.silently_wrong:.2%} allowed")
        if decided.total and decided.share(Mark.EXACT) < self.exact:
            missed.append(f"{decided.share(Mark.EXACT):.2%} of the decided exact, at least {self.exact:.2%} wanted")
        if decided.total and decided.share(Mark.HONEST) > self.refused:
            missed.append(f"{decided.share(Mark.HONEST):.2%} of the decided refused, at most {self.refused:.2%} allowed")
        if len(score.clean_missed) > self.clean_missed * clean.total:
            missed.append(f"{len(score.clean_missed)} of {clean.total} clean continuations from the cut not exact")
        return missed
