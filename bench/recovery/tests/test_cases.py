"""Checks that generated cases have the properties that their styles claim."""

import hashlib
import unittest
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import readings
import wordings
from cases import WEIGHTS, Case, Wanted, cases
from cuts import CUTS
from documents import KINDS
from nothing import NOTHING
from score import is_clean
from sources import Sources

NUMBER = 900
# Hash of the first 200 small invented cases of seed 1. It changes only if the generator is changed on purpose.
HASH = "2c31c18681c532057323e80ebc6f4cce0437de0163db20533b8ac614aad944e3"


def generate(number: int = NUMBER, seed: int = 11, **wanted: object) -> list[Case]:
    return list(cases(seed, number, None, Wanted(**{"largest": 3000, **wanted})))  # type: ignore[arg-type]


class Generated(unittest.TestCase):
    found: list[Case]

    @classmethod
    def setUpClass(cls) -> None:
        cls.found = generate()

    def of(self, *styles: str) -> list[Case]:
        found = [case for case in self.found if case.style in styles]
        self.assertTrue(found, f"no case of {styles}")
        return found

    def test_a_seed_always_gives_the_same_cases(self) -> None:
        lines = "\n".join(case.line() for case in generate(200, 1))
        self.assertEqual(hashlib.sha256(lines.encode()).hexdigest(), HASH)

    def test_a_last_sentence_belongs_to_its_text_and_changes_no_other_case(self) -> None:
        ended = generate(200, 1, endings=True)
        prose = [case for case in ended if case.kind in ("prose", "markdown") and case.truth is not None]
        self.assertTrue(prose)
        for case in prose:
            self.assertIn(case.truth.rstrip().splitlines()[-1], wordings.ENDINGS)  # type: ignore[union-attr]
        for case, usual in zip(ended, generate(200, 1), strict=True):
            if case.kind not in ("prose", "markdown") and case.kind == usual.kind:
                self.assertEqual(case.truth, usual.truth)

    def test_a_case_depends_only_on_seed_and_number(self) -> None:
        again = {case.id: case for case in generate(NUMBER // 2)}
        for case in self.found[: NUMBER // 3]:
            self.assertEqual(again[case.id], case)

    def test_every_style_kind_and_cut_occurs(self) -> None:
        many = generate(4000, 12, largest=1200)
        self.assertEqual({case.style for case in many}, set(WEIGHTS))
        self.assertEqual({case.kind for case in many}, set(KINDS))
        self.assertEqual({case.cut for case in many}, {name for names in CUTS.values() for name in names})
        self.assertEqual({case.asked for case in many}, {"cut", "token", "unknown"})
        self.assertEqual({len(case.chunks) for case in many}, {2, 3, 4})

    def test_most_cases_are_decided(self) -> None:
        known = Counter(case.decided for case in self.found if case.truth is not None)
        self.assertGreater(known[True], 1.5 * known[False])

    def test_cases_can_be_written_and_read_again(self) -> None:
        for case in self.found:
            for chunk in case.chunks:
                chunk.encode("utf-8", "strict")
            self.assertEqual(Case.from_line(case.line()), case)

    def test_every_truth_is_whole_and_begins_with_the_first_chunk(self) -> None:
        for case in self.found:
            self.assertFalse(case.decided and case.blind)
            if case.truth is None:
                self.assertIn(case.style, NOTHING)
                continue
            self.assertTrue(readings.is_whole(case.truth, case.format), case.id)
            self.assertTrue(case.truth.startswith(case.chunks[0]), case.id)
            self.assertLess(len(case.chunks[0]), len(case.truth))

    def test_clean_continuations_join_to_the_truth(self) -> None:
        for case in self.of("exact", "several-exact"):
            if case.asked == "cut":
                self.assertEqual("".join(case.chunks), case.truth)
                self.assertTrue(is_clean(case))
            if case.asked == "unknown" and case.style == "exact":
                self.assertEqual("".join(case.chunks), case.truth)

    def test_repeats_begin_before_the_cut(self) -> None:
        for case in self.of("repeat-characters", "repeat-word", "repeat-tail", "repeat-line", "repeat-paragraph"):
            before, after = case.chunks
            assert case.truth is not None
            start = len(case.truth) - len(after)
            self.assertEqual(case.truth[start:], after)
            self.assertLess(start, len(before))

    def test_restarts_contain_the_whole_document(self) -> None:
        for case in self.of("restart-document"):
            self.assertEqual(case.chunks[1], case.truth)
        for case in self.of("restart-formatted", "restart-escaped"):
            assert case.truth is not None
            self.assertEqual(readings.value(case.chunks[1], case.format), readings.value(case.truth, case.format))
            self.assertFalse(case.chunks[1].startswith(case.chunks[0]))

    def test_only_white_space_is_lost_or_added(self) -> None:
        for case in self.of("space-added", "line-added", "blank-line-added"):
            assert case.truth is not None
            self.assertTrue(case.truth.endswith(case.chunks[1].lstrip(" \n")))
        for case in self.of("space-lost"):
            assert case.truth is not None
            self.assertTrue(case.truth.endswith(case.chunks[1]))
            self.assertNotEqual(case.chunks[0] + case.chunks[1], case.truth)

    def test_wrapped_continuations_contain_the_rest(self) -> None:
        for case in self.of("preamble", "preamble-inline"):
            assert case.truth is not None
            if case.asked == "cut":
                self.assertTrue(case.chunks[1].endswith(case.truth[len(case.chunks[0]) :]))
        for case in self.of("fence", "fence+remark", "fence-then-prose"):
            self.assertRegex(case.chunks[1], r"\A`{3,}\w*\n")
        for case in self.of("remark"):
            assert case.truth is not None
            if case.asked == "cut":
                core = case.truth[len(case.chunks[0]) :].rstrip("\r\n")
                self.assertTrue(case.chunks[1].startswith(core))
                self.assertGreater(len(case.chunks[1]), len(core) + 1)

    def test_other_versions_contradict_the_first_chunk(self) -> None:
        for case in self.of("none-other-version"):
            before, after = case.chunks
            self.assertFalse(after.startswith(before))
            self.assertEqual(after[:20], before[:20])

    def test_only_selected_kinds_and_styles_are_generated(self) -> None:
        made = generate(30, kinds=("array",), styles=("fence", "exact"))
        self.assertEqual({case.kind for case in made}, {"array"})
        self.assertEqual({case.style for case in made}, {"fence", "exact"})

    def test_there_are_many_wordings(self) -> None:
        self.assertGreaterEqual(sum(map(len, wordings.PREAMBLES.values())), 60)
        self.assertGreaterEqual(len(wordings.PREAMBLES), 9)
        self.assertGreaterEqual(len(wordings.REMARKS), 9)
        for bank in (wordings.PREAMBLES, wordings.APOLOGIES, wordings.REMARKS, wordings.REFUSALS, wordings.QUESTIONS):
            self.assertLessEqual(set(bank), set(wordings.LANGUAGES))


class FromFiles(unittest.TestCase):
    def test_given_files_are_used(self) -> None:
        with TemporaryDirectory() as folder:
            lines = "\n".join(f"def only_here_{number}():\n    return {number}" for number in range(200))
            Path(folder, "module.py").write_text(lines)
            made = list(cases(3, 60, Sources([Path(folder)]), Wanted(kinds=("code",), largest=2000)))
            self.assertTrue(any("only_here_" in case.chunks[0] for case in made))
