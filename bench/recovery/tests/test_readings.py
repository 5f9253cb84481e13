"""Checks each rule of bench/recovery/METHOD.md about whether a text decides, with an example."""

import unittest

import json_text
from readings import Evidence, Seam, is_long, judge, overlaps

DECIDED, UNDECIDED, BLIND = Evidence.DECIDED, Evidence.UNDECIDED, Evidence.BLIND


def evidence_of(before: str, after: str, truth: str, asked: str, format_: str = "json") -> Evidence:
    settled = json_text.settled(before).index if format_ in ("json", "jsonl") else len(before)
    return judge(Seam(before, after, format_, asked, settled, truth))


class OneNumber(unittest.TestCase):
    """The example of the requirement: `[1, 2` and `3]`."""

    def test_is_undecided_if_the_requested_start_is_unknown(self) -> None:
        self.assertIs(evidence_of("[1, 2", "3]", "[1, 23]", "unknown"), UNDECIDED)
        self.assertIs(evidence_of("[1, 2", "3]", "[1, 3]", "unknown"), UNDECIDED)

    def test_is_decided_if_the_requested_start_is_known(self) -> None:
        self.assertIs(evidence_of("[1, 2", "3]", "[1, 23]", "cut"), DECIDED)
        self.assertIs(evidence_of("[1, 2", "3]", "[1, 3]", "token"), DECIDED)

    def test_misleads_if_the_model_began_elsewhere(self) -> None:
        self.assertIs(evidence_of("[1, 2", "3]", "[1, 3]", "cut"), BLIND)


class Repeats(unittest.TestCase):
    LONG = "and every lantern in the harbour was lit"

    def test_a_long_repeat_is_removed_for_any_requested_start(self) -> None:
        for asked in ("cut", "unknown"):
            self.assertIs(evidence_of(f"At six, {self.LONG}", f"{self.LONG} by hand.", f"At six, {self.LONG} by hand.", asked, "text"), DECIDED)

    def test_a_long_overlap_in_a_repetitive_text_is_undecided(self) -> None:
        rows = "| lantern | 0 | harbour |\n"
        self.assertIs(evidence_of(rows * 4, rows * 3, rows * 6, "unknown", "text"), UNDECIDED)
        self.assertIs(evidence_of(rows * 4, rows * 3, rows * 6, "cut", "text"), BLIND)

    def test_a_restart_of_a_repetitive_text_is_undecided(self) -> None:
        row = '{"harbour": "lantern", "morning": 0}\n'
        self.assertIs(evidence_of(row + row[:9], row * 6, row * 6, "cut", "jsonl"), DECIDED)
        self.assertIs(evidence_of(row * 3 + row[:30], row * 6, row * 6, "cut", "jsonl"), UNDECIDED)

    def test_indentation_is_an_accident_but_many_marks_are_not(self) -> None:
        self.assertIs(evidence_of("}\n" + " " * 30, " " * 10 + "x", "}\n" + " " * 40 + "x", "unknown", "text"), DECIDED)
        self.assertIs(evidence_of("-" * 30, "-" * 20 + "x", "-" * 50 + "x", "unknown", "text"), UNDECIDED)

    def test_a_repeated_word_is_undecided_unless_the_cut_was_requested(self) -> None:
        self.assertIs(evidence_of("the harbour", "harbour was", "the harbour was", "unknown", "text"), UNDECIDED)
        self.assertIs(evidence_of("the harbour", "harbour was", "the harbour was", "cut", "text"), BLIND)

    def test_a_repeated_letter_is_an_accident(self) -> None:
        self.assertIs(evidence_of("the har", "rbour", "the harrbour", "unknown", "text"), DECIDED)
        self.assertIs(evidence_of("the har", "rbour", "the harbour", "unknown", "text"), BLIND)

    def test_the_grammar_decides_if_only_one_reading_is_whole(self) -> None:
        self.assertIs(evidence_of('{"a":', '":1}', '{"a":1}', "unknown"), DECIDED)

    def test_two_whole_readings_do_not_decide(self) -> None:
        self.assertIs(evidence_of('["harbour', 'harbour"]', '["harbour"]', "unknown"), UNDECIDED)

    def test_two_readings_with_the_same_value_decide(self) -> None:
        self.assertIs(evidence_of("[1, ", " 2]", "[1, 2]", "unknown"), DECIDED)


class Space(unittest.TestCase):
    def test_white_space_between_tokens_does_not_matter(self) -> None:
        self.assertIs(evidence_of('{"a":', "\n\n1}", '{"a": 1}', "unknown"), DECIDED)

    def test_lost_white_space_in_a_string_misleads(self) -> None:
        self.assertIs(evidence_of('["the', 'harbour"]', '["the harbour"]', "unknown"), BLIND)

    def test_a_raw_line_break_in_a_string_is_dropped(self) -> None:
        self.assertIs(evidence_of('["the ', '\nharbour"]', '["the harbour"]', "unknown"), DECIDED)

    def test_a_raw_line_break_between_two_words_is_undecided(self) -> None:
        self.assertIs(evidence_of('["the', '\nharbour"]', '["theharbour"]', "unknown"), UNDECIDED)


class Other(unittest.TestCase):
    def test_a_text_without_a_whole_reading_is_undecided(self) -> None:
        self.assertIs(evidence_of('["a', 'b\nc"]', '["ab\\nc"]', "unknown"), UNDECIDED)

    def test_the_weaker_evidence_wins(self) -> None:
        self.assertIs(DECIDED & UNDECIDED, UNDECIDED)
        self.assertIs(BLIND & UNDECIDED, BLIND)

    def test_all_overlaps_are_found(self) -> None:
        self.assertEqual(list(overlaps("abcabc", "abcabcx")), [3, 6])
        self.assertEqual(list(overlaps("0123456789", "456789!")), [6])
        self.assertEqual(list(overlaps("a lantern in the harbour", "lantern in the harbour was")), [22])
        self.assertEqual(list(overlaps("abc", "xyz")), [])

    def test_a_long_repeat_is_varied_and_unique(self) -> None:
        self.assertTrue(is_long("every lantern was lit", "At six every lantern was lit"))
        self.assertFalse(is_long("every lantern was", "At six every lantern was"))
        self.assertFalse(is_long("0, " * 10, "[" + "0, " * 10))
        self.assertFalse(is_long("every lantern was lit", "every lantern was lit; every lantern was lit"))
