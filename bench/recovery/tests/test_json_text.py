"""Checks the functions for JSON as text."""

import unittest

from json_text import LAYOUTS, escaped, laid_out, minified, settled, tokens_of, unescaped, value_of, values_of


class Settled(unittest.TestCase):
    def test_the_index_is_after_the_last_final_token(self) -> None:
        for text, index, inside in [
            ('{"a": [1, 2', 10, "number"),
            ('{"a": [1, 2 ', 12, ""),
            ('{"a": tru', 6, "literal"),
            ('{"a": true', 10, ""),
            ('{"a": "x', 8, "string"),
            ('{"a": "x\\', 8, "escape"),
            ('{"a": "x\\\\', 10, "string"),
            ('{"a": "x\\u00e', 8, "escape"),
            ('{"a": "x\\ud83d', 8, "escape"),
            ('{"a": "x\\ud83d\\ude', 8, "escape"),
            ('{"a": "x\\ud83d\\ude00', 20, "string"),
            ('{"a": "x\\\\u00e', 14, "string"),
            ('{"a": -', 6, "number"),
            ('{"a": 1}\n{"b"', 13, ""),
        ]:
            with self.subTest(text):
                found = settled(text)
                self.assertEqual((found.index, found.inside), (index, inside))

    def test_open_brackets_and_strings_are_found(self) -> None:
        found = settled('[{"a": {"b": []}}, {"c": "de')
        self.assertEqual(found.open, [0, 19])
        self.assertEqual(found.string_start, 25)


class Values(unittest.TestCase):
    def test_numbers_are_compared_exactly(self) -> None:
        self.assertEqual(value_of("[1.50, 1e3]"), value_of("[1.5, 1000]"))
        self.assertNotEqual(value_of("0.1"), value_of("0.1000000000000000055511151231257827"))
        self.assertNotEqual(value_of("12345678901234567890123"), value_of("12345678901234567890124"))
        self.assertNotEqual(value_of("1"), value_of('"1"'))

    def test_duplicate_members_are_compared(self) -> None:
        self.assertNotEqual(value_of('{"a": 1, "a": 2}'), value_of('{"a": 2}'))

    def test_only_whole_texts_have_a_value(self) -> None:
        for text in ["", "[1", "[1] x", "NaN", '{"a": "\n"}', "[1] [2]"]:
            with self.subTest(text), self.assertRaises(ValueError):
                value_of(text)
        self.assertEqual(len(values_of("[1]\n[2] [3]")), 3)

    def test_deep_nesting_is_an_error_and_not_a_crash(self) -> None:
        with self.assertRaises(ValueError):
            value_of("[" * 200_000 + "]" * 200_000)


class Layouts(unittest.TestCase):
    TEXT = '{"a": [1, {"b": "x, {y}"}, []], "c": {}}'

    def test_layouts_keep_the_value_and_return_the_new_offsets(self) -> None:
        tokens = [token for _, token in tokens_of(self.TEXT)]
        for layout in LAYOUTS:
            with self.subTest(layout):
                text, starts = laid_out(tokens, layout)
                self.assertEqual(value_of(text), value_of(self.TEXT))
                for start, token in zip(starts, tokens, strict=True):
                    self.assertTrue(text.startswith(token, start))

    def test_minifying_keeps_a_cut_string(self) -> None:
        self.assertEqual(minified('[ 1 , "a b'), '[1,"a b')


class Escapes(unittest.TestCase):
    def test_letters_are_escaped_and_unescaped(self) -> None:
        self.assertEqual(unescaped(r"\u00e9 \ud83d\ude00 \n \\u00e9 \u0007 \ud83d"), r"é 😀 \n \\u00e9 \u0007 \ud83d")
        self.assertEqual(escaped("é 😀 a"), r"\u00e9 \ud83d\ude00 a")
