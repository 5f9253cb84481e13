"""Formats scores as text for a terminal or as Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterable

from cases import Case
from score import BINS, CLASSES, Calibration, Judgement, Mark, Score, Tally


def table(head: list[str], rows: Iterable[list[str]], markdown: bool) -> str:
    """Returns a table. The first column is aligned to the left and all others to the right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def written(line: list[str]) -> str:
        cells = [cell.ljust(width) if place == 0 else cell.rjust(width)
                 for place, (cell, width) in enumerate(zip(line, widths, strict=True))]  # fmt: skip
        return "| " + " | ".join(cells) + " |" if markdown else "  ".join(cells).rstrip()

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])] if markdown else ["-" * w for w in widths]
    return "\n".join([written(head), written(rule), *(written(line) for line in lines[1:])])


def _share(tally: Tally, mark: Mark) -> str:
    return f"{100 * tally.share(mark):.1f}" if tally.total else ""


def _count(number: int, of: Tally) -> str:
    return str(number) if of.total else ""


def by_stitcher(scores: list[Score], markdown: bool) -> str:
    """Returns a table with one row for each stitcher, over all styles."""
    head = ["", "decided", "exact %", "refused %", "silently wrong", "clean %",
            "undecided", "exact %", "silently wrong", "nothing there", "silently wrong"]  # fmt: skip
    rows = []
    for score in scores:
        decided, undecided, nothing = (score.sum(name) for name in ("decided", "undecided", "nothing"))
        rows.append([
            score.name, str(decided.total), _share(decided, Mark.EXACT), _share(decided, Mark.HONEST),
            _count(decided.marks[Mark.WRONG], decided), _share(score.clean(), Mark.EXACT),
            str(undecided.total), _share(undecided, Mark.EXACT), _count(undecided.marks[Mark.WRONG], undecided),
            str(nothing.total), _count(nothing.marks[Mark.WRONG], nothing),
        ])  # fmt: skip
    return table(head, rows, markdown)


def by_style(score: Score, markdown: bool, asked: bool = False) -> str:
    """Returns a table with one row for each style, or for each style and requested start."""
    keys = sorted({(style, where if asked else "") for _, style, where in score.cells})
    head = ["style", *(["from"] if asked else []), "decided", "exact", "honest", "wrong",
            "undecided", "exact", "honest", "best right", "wrong", "blind", "exact", "honest", "wrong"]  # fmt: skip
    rows = []
    for style, where in keys:
        decided = _joined(score, ("decided", "nothing"), style, where)
        undecided = _joined(score, ("undecided",), style, where)
        blind = _joined(score, ("blind", "nothing, blind"), style, where)
        row = [style, *([where] if asked else []), _count(decided.total, decided)]
        row += [_count(decided.marks[mark], decided) for mark in Mark]
        row += [_count(undecided.total, undecided), *(_count(undecided.marks[mark], undecided) for mark in Mark)]
        row.insert(len(row) - 1, f"{undecided.best_right}/{undecided.ambiguous}" if undecided.total else "")
        row += [_count(blind.total, blind), *(_count(blind.marks[mark], blind) for mark in Mark)]
        rows.append(row)
    return table(head, rows, markdown)


def by_asked(score: Score, markdown: bool) -> str:
    """Returns a table with one row for each requested start."""
    head = ["from", "decided", "exact %", "refused %", "silently wrong", "undecided", "exact %", "silently wrong"]
    rows = []
    for asked in ("cut", "token", "unknown"):
        decided, undecided = score.sum("decided", None, asked), score.sum("undecided", None, asked)
        rows.append([
            asked, str(decided.total), _share(decided, Mark.EXACT), _share(decided, Mark.HONEST),
            _count(decided.marks[Mark.WRONG], decided), str(undecided.total), _share(undecided, Mark.EXACT),
            _count(undecided.marks[Mark.WRONG], undecided),
        ])  # fmt: skip
    return table(head, rows, markdown)


def by_kind(score: Score, markdown: bool) -> str:
    """Returns a table with one row for each kind of document and class of case."""
    head = ["kind", "class", "cases", "exact", "honest", "wrong"]
    rows = [
        [kind, of_class, str(tally.total), *(str(tally.marks[mark]) for mark in Mark)]
        for (of_class, kind), tally in sorted(score.kinds.items(), key=lambda item: (item[0][1], CLASSES.index(item[0][0])))
    ]
    return table(head, rows, markdown)


def _joined(score: Score, classes: tuple[str, ...], style: str, where: str) -> Tally:
    found = Tally()
    for of_class in classes:
        tally = score.sum(of_class, style, where or None)
        found.marks.update(tally.marks)
        found.best_right += tally.best_right
        found.ambiguous += tally.ambiguous
    return found


def calibration(score: Score, markdown: bool) -> str:
    """Returns a table that shows how often an answer with a stated confidence was right."""
    parts = []
    for name, bins in (("whole answers", score.whole), ("best candidates of ambiguous answers", score.best)):
        if sum(bins.count):
            parts.append(f"{name}: expected calibration error {bins.error():.4f}\n\n" + _bins(bins, markdown))
    return "\n\n".join(parts)


def _bins(bins: Calibration, markdown: bool) -> str:
    rows = [
        [f"{place / BINS:.1f}-{(place + 1) / BINS:.1f}", str(bins.count[place]),
         f"{bins.stated[place] / bins.count[place]:.3f}", f"{bins.right[place] / bins.count[place]:.3f}"]
        for place in range(BINS) if bins.count[place]
    ]  # fmt: skip
    return table(["confidence", "answers", "stated", "right"], rows, markdown)


_SHOWN = 160


def shown(case: Case, judgement: Judgement, answer: dict | None) -> str:
    """Formats a failing case for a person: both sides of the seam, the intended text and the answer."""
    lines = [
        f"--- {case.id}: {judgement.mark.value}, {case.format}, {case.style}"
        + (f" ({case.note})" if case.note else "")
        + f", cut {case.cut or '?'}, from {case.asked}, "
        + ("decided" if case.decided else "blind" if case.blind else "undecided")
    ]
    for before, after in zip(case.chunks, case.chunks[1:]):
        lines.append(f"    seam      {before[-_SHOWN // 2:]!r} ⟂ {after[:_SHOWN]!r}")
    lines.append(f"    last end  {case.chunks[-1][-_SHOWN // 2:]!r}")
    text = (answer or {}).get("text")
    if case.truth is None:
        lines.append(f"    expected  nothing; got {text[-_SHOWN:]!r}" if isinstance(text, str) else "    expected  nothing")
    elif isinstance(text, str):
        place = next((n for n, (a, b) in enumerate(zip(case.truth, text)) if a != b), min(len(case.truth), len(text)))
        start = max(0, place - _SHOWN // 4)
        lines.append(f"    expected  at {place}: {case.truth[start : place + _SHOWN // 2]!r}")
        lines.append(f"    got       at {place}: {text[start : place + _SHOWN // 2]!r}")
    if error := (answer or {}).get("error"):
        lines.append(f"    error     {error}")
    return "\n".join(lines)
