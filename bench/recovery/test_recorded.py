#!/usr/bin/env python3
"""Checks the form of the recorded cases. Needs only Python: python3 bench/recovery/test_recorded.py"""

from __future__ import annotations

import json
import unittest
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "recorded"
FORMATS = {"json", "jsonl", "markdown", "text"}
FIELDS = {
    "id", "format", "from", "chunks", "truth", "accept", "kind", "style", "decided", "note", "recorded", "labelled",
}  # fmt: skip
ORIGIN = {"model", "server", "asked", "prompt", "cut_tokens", "temperature", "finish"}
LEAST, LEAST_OF_EACH, MOST_BYTES = 200, 30, 1_000_000


def parses(text: str, form: str) -> bool:
    documents = [text] if form == "json" else [line for line in text.split("\n") if line.strip()]
    try:
        return all(json.loads(document) is not None for document in documents)
    except ValueError:
        return False


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        files = sorted(FOLDER.glob("*.jsonl"))
        cls.bytes = sum(file.stat().st_size for file in files)
        cls.cases = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]

    def test_every_line_has_the_required_fields(self) -> None:
        for case in self.cases:
            with self.subTest(case["id"]):
                self.assertEqual(set(case), FIELDS)
                self.assertIn(case["format"], FORMATS)
                self.assertIn(case["from"], {"cut", "token", "unknown"})
                self.assertGreaterEqual(len(case["chunks"]), 2)
                self.assertTrue(all(isinstance(text, str) for text in [*case["chunks"], *case["accept"]]))
                self.assertTrue(case["truth"] is None or isinstance(case["truth"], str))
                self.assertIsInstance(case["decided"], bool)
                self.assertLessEqual(ORIGIN, set(case["recorded"]))
                self.assertIn(case["recorded"]["asked"], {"prefill", "user-turn"})
                self.assertEqual(len(case["recorded"]["finish"]), len(case["chunks"]) - 1)

    def test_every_label_was_made_by_hand_with_a_reason(self) -> None:
        for case in self.cases:
            with self.subTest(case["id"]):
                self.assertTrue(case["note"].startswith("read: "))
                self.assertTrue(case["labelled"].startswith("by hand: "))

    def test_no_text_is_accepted_without_an_intended_text(self) -> None:
        self.assertFalse([case["id"] for case in self.cases if case["truth"] is None and case["accept"]])

    def test_accepted_texts_are_whole_by_their_grammar(self) -> None:
        for case in self.cases:
            if case["format"] in ("json", "jsonl") and case["truth"] is not None:
                with self.subTest(case["id"]):
                    self.assertTrue(all(parses(text, case["format"]) for text in [case["truth"], *case["accept"]]))

    def test_a_prefill_continues_exactly_at_the_cut(self) -> None:
        for case in self.cases:
            if case["from"] == "cut" and case["truth"] is not None:
                joined = "".join(case["chunks"])
                with self.subTest(case["id"]):
                    if case["style"] == "remark":
                        self.assertTrue(joined.startswith(case["truth"]) and case["truth"] != joined)
                    else:
                        self.assertEqual(case["truth"], joined)

    def test_both_ways_and_all_kinds_occur(self) -> None:
        ways = Counter(case["recorded"]["asked"] for case in self.cases)
        kinds = Counter(case["kind"] for case in self.cases)
        self.assertGreaterEqual(len(self.cases), LEAST)
        for count in (ways["prefill"], ways["user-turn"], kinds["json"], kinds["code"], kinds["prose"]):
            self.assertGreaterEqual(count, LEAST_OF_EACH)

    def test_ids_are_unique_and_files_are_small(self) -> None:
        self.assertEqual([], [name for name, count in Counter(case["id"] for case in self.cases).items() if count > 1])
        self.assertLess(self.bytes, MOST_BYTES)


if __name__ == "__main__":
    unittest.main()
