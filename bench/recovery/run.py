#!/usr/bin/env python3
"""Measures how a stitcher joins cut replies with their continuations.

examples:
  run.py --command "endmark stitch --batch"                    2,000 cases and the built-in peers
  run.py --command "./mine" --style fence --kind array --show 5  five failing cases of one style
  run.py --cases 12000 --seed 1 --seed 2 --command "./mine" --gate
  run.py --command "./mine" --name mine --page bench/recovery/RESULTS.md  fills the tables of a page
    run.py --recorded --command "./mine"                         continuations recorded from real models
    run.py --write cases.jsonl --cases 500                       write the cases, for another program
    run.py --invented                                            reads no local files: same cases on every machine
    run.py --second --part held --command "./mine"               the second generator, only the held-out half
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import peers
import report
import second_cases
from cases import WEIGHTS, Case, Wanted, cases
from documents import KINDS, LARGEST
from parts import PARTS, part_of
from score import Bars, Mark, Score
from sources import Sources, usual_folders
from stitcher import answers

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Returns 0 on success (with --gate: all bars met), 1 if a bar is missed, 2 if the command line is wrong."""
    options = arguments()
    try:
        found = chosen(options)
        if options.write:
            with open(options.write, "w", encoding="utf-8") as file:
                written = sum(bool(file.write(case.line() + "\n")) for case in found)
            print(f"{written} cases written to {options.write}", file=sys.stderr)
            return 0
        scores, failing = measured(found, options)
        if options.page:
            fill(options.page, written_report(scores, markdown=True, by_from=False))
    except (OSError, ValueError) as wrong:
        print(f"run.py: {wrong}", file=sys.stderr)
        return 2
    print(written_report(scores, options.markdown, options.by_from))
    print("\n".join(failing))
    if not options.gate:
        return 0
    bars = Bars(**json.loads(Path(options.bars).read_text())) if options.bars else Bars()
    missed = bars.missed(scores[0])
    for line in missed:
        print(f"BAR MISSED: {line}", file=sys.stderr)
    for name, ids in (("silently wrong", scores[0].silently_wrong), ("clean, missed", scores[0].clean_missed)):
        if missed and ids:
            print(f"{name}: {' '.join(ids[:200])}", file=sys.stderr)
    return 1 if missed else 0


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\nexamples")[0], epilog="examples" + __doc__.split("\n\nexamples")[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--command", help="the stitcher: reads cases, writes answers, one JSON line each")
    parser.add_argument("--cases", type=int, default=2000, help="how many for each seed (2000)")
    parser.add_argument("--seed", type=int, action="append", help="may be given several times (1)")
    parser.add_argument("--style", action="append", choices=sorted(WEIGHTS), metavar="STYLE", help="only this style")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), metavar="KIND", help="only this kind")
    parser.add_argument("--largest", type=int, default=LARGEST, help="the longest document, in characters or so")
    parser.add_argument("--sources", type=Path, action="append", help="a folder whose files documents are made from,"
                        " instead of this repository and Python's library")  # fmt: skip
    parser.add_argument("--endings", action="store_true", help="prose and Markdown end in an ordinary last sentence")
    parser.add_argument("--invented", action="store_true", help="invented text only, the same on every machine")
    parser.add_argument("--second", action="store_true", help="cases of the second generator, invented text only")
    parser.add_argument("--part", choices=PARTS, help="only this half of the cases, by the hash of their ids")
    parser.add_argument("--recorded", action="store_true", help="score recorded continuations instead")
    parser.add_argument("--read", type=Path, action="append", help="score the cases in this file instead")
    parser.add_argument("--write", type=Path, help="write the cases to this file and stop")
    parser.add_argument("--no-peers", action="store_true", help="measure the command alone")
    parser.add_argument("--by-from", action="store_true", help="one row for each style and where it was asked from")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N failing cases, the worst first")
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    parser.add_argument("--page", type=Path, help="put the tables between the marks of this Markdown page")
    parser.add_argument("--name", help="what to call the command in the tables")
    parser.add_argument("--gate", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--bars", type=Path, help="a JSON file with other bars than the usual ones")
    options = parser.parse_args()
    if options.gate and not options.command:
        parser.error("--gate needs a --command")
    return options


def chosen(options: argparse.Namespace) -> Iterator[Case]:
    """Returns the cases that the command line selects. Raises ValueError if the sources or the recorded cases are missing."""
    return (case for case in all_of(options) if options.part in (None, part_of(case.id)))


def all_of(options: argparse.Namespace) -> Iterator[Case]:
    """Returns the selected cases of both halves."""
    if options.recorded or options.read:
        files = options.read or sorted((HERE / "recorded").glob("*.jsonl"))
        if not files:
            raise ValueError(f"no recorded cases in {HERE / 'recorded'}")
        return read(files)
    if options.second:
        seeds = options.seed or [1]
        return (case for seed in seeds for case in second_cases.cases(seed, options.cases, options.largest))
    folders = options.sources or usual_folders()
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{folder} is not a folder")
    sources = None if options.invented else Sources(folders)
    wanted = Wanted(tuple(options.style or WEIGHTS), tuple(options.kind or KINDS), options.largest, options.endings)
    return (case for seed in options.seed or [1] for case in cases(seed, options.cases, sources, wanted))


def read(files: Iterable[Path]) -> Iterator[Case]:
    """Reads cases from files. Raises ValueError with path and line number if a line is not a case."""
    for path in files:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield Case.from_line(line)
                except (ValueError, KeyError) as wrong:
                    raise ValueError(f"{path}:{number}: not a case: {wrong!r}") from wrong


def measured(found: Iterator[Case], options: argparse.Namespace) -> tuple[list[Score], list[str]]:
    """Returns the scores, the command's first, and the failing cases to show."""
    scores = [Score(options.name or options.command)] if options.command else []
    others = [] if options.no_peers else [(join, Score(name)) for name, join in peers.PEERS.items()]
    shown: dict[Mark, list[str]] = {Mark.WRONG: [], Mark.HONEST: []}
    of_style: Counter[tuple[Mark, str]] = Counter()
    answered = answers(options.command, found) if options.command else ((case, None) for case in found)
    for case, answer in answered:
        if options.command:
            judgement = scores[0].add(case, answer)
            fails = not case.blind and (judgement.mark is Mark.WRONG or (case.decided and case.truth is not None))
            # Held-out cases are counted but never shown.
            may_be_shown = options.read is not None or part_of(case.id) == "fit"
            fails = fails and may_be_shown
            if fails and judgement.mark is not Mark.EXACT and len(shown[judgement.mark]) < options.show:
                # At most a quarter of the shown cases have the same style.
                of_style[judgement.mark, case.style] += 1
                if of_style[judgement.mark, case.style] <= max(1, options.show // 4):
                    shown[judgement.mark].append(report.shown(case, judgement, answer))
        for join, score in others:
            score.add(case, peers.answer(join, case.chunks, case.format))
    return scores + [score for _, score in others], (shown[Mark.WRONG] + shown[Mark.HONEST])[: options.show]


def written_report(scores: list[Score], markdown: bool, by_from: bool) -> str:
    """Returns all tables as text."""
    first = scores[0]
    parts = [
        report.by_stitcher(scores, markdown),
        report.by_style(first, markdown, by_from),
        report.by_asked(first, markdown),
        report.by_kind(first, markdown),
        report.calibration(first, markdown),
    ]
    if first.unanswered:
        parts.append(f"{first.unanswered} cases without an answer")
    return "\n\n".join(part for part in parts if part)


TABLES, END = "<!-- tables -->", "<!-- end of tables -->"


def fill(page: Path, tables: str) -> None:
    """Replaces the tables between the two marks of a page. Raises ValueError if the page lacks the marks."""
    text = page.read_text(encoding="utf-8")
    before, mark, rest = text.partition(TABLES + "\n")
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{page} has no lines {TABLES} and {END}")
    page.write_text(f"{before}{TABLES}\n\n{tables}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
