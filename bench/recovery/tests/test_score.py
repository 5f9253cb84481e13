"""Checks that the scorer can fail and can pass."""

import unittest

from cases import Case
from score import Bars, Calibration, Mark, Score, class_of, judged


def case(truth: str | None = "[1, 2]", format_: str = "json", **fields: object) -> Case:
    given = {"id": "1", "asked": "cut", "chunks": ["[1", ", 2]"], "kind": "array", "style": "exact", "decided": True}
    return Case(format=format_, truth=truth, **{**given, **fields})  # type: ignore[arg-type]


def whole(text: str, confidence: float = 1.0) -> dict:
    return {"outcome": "whole", "text": text, "seams": [{"confidence": confidence}]}


class Judged(unittest.TestCase):
    def mark(self, a_case: Case, answer: object) -> Mark:
        return judged(a_case, answer).mark  # type: ignore[arg-type]

    def test_a_right_whole_answer_is_exact(self) -> None:
        self.assertIs(self.mark(case(), whole("[1, 2]")), Mark.EXACT)

    def test_json_is_compared_by_value(self) -> None:
        self.assertIs(self.mark(case(), whole("[ 1,\n2.0 ]")), Mark.EXACT)
        self.assertIs(self.mark(case(), whole("[1, 3]")), Mark.WRONG)
        self.assertIs(self.mark(case(), whole("[1, 2")), Mark.WRONG)

    def test_text_is_compared_by_character(self) -> None:
        self.assertIs(self.mark(case("a b", "text"), whole("a b")), Mark.EXACT)
        self.assertIs(self.mark(case("a b", "text"), whole("a  b")), Mark.WRONG)
        self.assertIs(self.mark(case("a b\n", "text", accept=["a b"]), whole("a b")), Mark.EXACT)

    def test_a_whole_answer_without_an_intended_text_is_wrong(self) -> None:
        self.assertIs(self.mark(case(None), whole("[1, 2]")), Mark.WRONG)

    def test_an_ambiguous_answer_is_honest(self) -> None:
        for answer in ({"outcome": "ambiguous", "text": "[1, 2]"}, {"outcome": "error"}, None, {}, {"outcome": 7}):
            self.assertIs(self.mark(case(), answer), Mark.HONEST)
        self.assertTrue(judged(case(), {"outcome": "ambiguous", "text": "[1, 2]"}).best_right)

    def test_invalid_answers_are_handled(self) -> None:
        for answer in ({"outcome": "whole"}, {"outcome": "whole", "text": 5, "seams": "x"}):
            self.assertIs(self.mark(case(), answer), Mark.WRONG)


class Summed(unittest.TestCase):
    def test_bars_can_be_missed_and_met(self) -> None:
        good = Score("good")
        for _ in range(100):
            good.add(case(), whole("[1, 2]"))
        self.assertEqual(Bars().missed(good), [])
        for answer, said in (
            (whole("[9]"), "silently wrong"), ({"outcome": "error"}, "from the cut not exact"),
        ):  # fmt: skip
            bad = Score("bad")
            for _ in range(99):
                bad.add(case(), whole("[1, 2]"))
            bad.add(case(), answer)
            self.assertTrue(any(said in line for line in Bars().missed(bad)), said)
        refusing = Score("refusing")
        for _ in range(3):
            refusing.add(case(asked="unknown"), {"outcome": "error"})
        self.assertEqual(len(Bars().missed(refusing)), 2)

    def test_misleading_cases_do_not_count_for_the_gate(self) -> None:
        score = Score("any")
        score.add(case(decided=False, blind=True), whole("[9]"))
        self.assertEqual(Bars().missed(score), [])
        self.assertEqual(score.sum("blind").marks[Mark.WRONG], 1)

    def test_undecided_cases_and_cases_without_a_truth_count(self) -> None:
        for wrong in (case(decided=False), case(None)):
            score = Score("any")
            score.add(wrong, whole("[9]"))
            self.assertEqual(len(score.silently_wrong), 1)

    def test_classes(self) -> None:
        self.assertEqual(class_of(case()), "decided")
        self.assertEqual(class_of(case(decided=False)), "undecided")
        self.assertEqual(class_of(case(None, decided=False, blind=True)), "nothing, blind")


class Calibrated(unittest.TestCase):
    def test_the_calibration_error_is_the_average_gap(self) -> None:
        bins = Calibration()
        for right in (True, True, True, False):
            bins.add(0.95, right)
        bins.add(0.15, False)
        self.assertAlmostEqual(bins.error(), (abs(3.8 - 3) + 0.15) / 5)

    def test_no_stated_confidence_is_no_error(self) -> None:
        self.assertEqual(Calibration().error(), 0.0)
