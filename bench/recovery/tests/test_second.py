"""Checks the second generator, and the split of all sets."""

import hashlib
import unittest
from collections import Counter

import documents
import second_cases
import second_documents
from parts import PARTS, part_of
from readings import is_whole

# Hash of the first 200 cases of seed 1. It changes only if the generator is changed on purpose.
HASH = "c9bc64293a2e666c77fe49da4b380e163dba20b8edd495d6486c8c5dae597dad"


class Second(unittest.TestCase):
    def test_a_seed_always_gives_the_same_cases(self) -> None:
        lines = "\n".join(case.line() for case in second_cases.cases(1, 200))
        self.assertEqual(hashlib.sha256(lines.encode()).hexdigest(), HASH)

    def test_every_kind_beginning_and_useless_reply_occurs(self) -> None:
        found = list(second_cases.cases(2, 2000, 1500))
        self.assertEqual({case.kind for case in found}, set(second_documents.KINDS))
        begun = {name.split("+")[0] for case in found for name in (case.note.split(", then ") if case.note else [case.style])}
        self.assertLessEqual(set(second_cases.BEGINS) | set(second_cases.NOTHING), begun)

    def test_truths_are_whole_and_plain_continuations_join_to_them(self) -> None:
        for case in second_cases.cases(3, 300, 2000):
            with self.subTest(case.id):
                self.assertEqual(case.truth is None, case.style.startswith("none-"))
                if case.truth is not None:
                    self.assertTrue(is_whole(case.truth, case.format))
                if case.style == "goes-on" and case.asked == "cut":
                    self.assertEqual("".join(case.chunks), case.truth)

    def test_both_generators_have_different_kinds(self) -> None:
        self.assertFalse(set(second_documents.KINDS) & set(documents.KINDS))


class Parts(unittest.TestCase):
    def test_a_case_always_belongs_to_the_same_half(self) -> None:
        # These expected values must not change, because a case that was held out has to stay held out.
        self.assertEqual([part_of(f"1-{number}") for number in range(6)], ["held", "held", "held", "fit", "held", "held"])
        counted = Counter(part_of(f"b7-{number}") for number in range(2000))
        self.assertTrue(all(900 < counted[part] < 1100 for part in PARTS), counted)


if __name__ == "__main__":
    unittest.main()
