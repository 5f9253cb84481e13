"""Checks a complete run: a command is run, its answers are scored, and the gate passes or fails."""

import json
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

import peers
from cases import Case, Wanted, cases
from stitcher import answers

RUN = Path(__file__).resolve().parents[1] / "run.py"
SMALL = ["--invented", "--largest", "800"]


def program(code: str) -> str:
    """Returns the command of a stitcher with this Python code."""
    return f"{sys.executable} -c '{code}'"


class Answers(unittest.TestCase):
    def test_a_command_may_answer_after_reading_all_cases(self) -> None:
        code = "import sys, json; [print(json.dumps({\"id\": json.loads(line)[\"id\"]})) for line in list(sys.stdin)]"
        made = list(cases(1, 80, None, Wanted(largest=20_000)))
        found = list(answers(program(code), made))
        self.assertEqual([case for case, _ in found], made)
        self.assertEqual([answer["id"] for _, answer in found if answer], [case.id for case in made])

    def test_a_command_that_ends_early_leaves_the_rest_unanswered(self) -> None:
        made = list(cases(1, 40, None, Wanted(largest=400)))
        found = list(answers(program("print(\"{}\")"), made))
        self.assertEqual(len(found), 40)
        self.assertEqual([answer for _, answer in found], [{}] + [None] * 39)

    def test_an_invalid_answer_counts_as_missing(self) -> None:
        made = list(cases(1, 3, None, Wanted(largest=400)))
        found = list(answers(program("print(\"nonsense\"); print(\"[1]\"); print(\"{}\")"), made))
        self.assertEqual([answer for _, answer in found], [None, None, {}])


class Run(unittest.TestCase):
    def run_it(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(RUN), *arguments], capture_output=True, text=True, check=False)

    def test_the_gate_passes_a_perfect_stitcher_and_fails_plain_concatenation(self) -> None:
        with TemporaryDirectory() as folder:
            file = Path(folder, "cases.jsonl")
            self.assertEqual(self.run_it("--write", str(file), "--cases", "150", *SMALL).returncode, 0)
            truths = {case.id: case.truth for case in map(Case.from_line, file.read_text().splitlines())}
            self.assertGreater(len(truths), 140)
            Path(folder, "truths.json").write_text(json.dumps(truths))
            knowing = Path(folder, "knowing.py")
            knowing.write_text(
                "import json, sys\n"
                f"truths = json.load(open({str(Path(folder, 'truths.json'))!r}))\n"
                "for line in sys.stdin:\n"
                "    text = truths[json.loads(line)['id']]\n"
                "    print(json.dumps({'outcome': 'error' if text is None else 'whole', 'text': text}))\n"
            )
            passed = self.run_it("--read", str(file), "--gate", "--command", f"{sys.executable} {knowing}")
            self.assertEqual(passed.returncode, 0, passed.stderr)
            blind = Path(folder, "blind.py")
            blind.write_text(
                "import json, sys\n"
                "for line in sys.stdin:\n"
                "    print(json.dumps({'outcome': 'whole', 'text': ''.join(json.loads(line)['chunks'])}))\n"
            )
            failed = self.run_it("--read", str(file), "--gate", "--show", "3", "--command", f"{sys.executable} {blind}")
            self.assertEqual(failed.returncode, 1)
            self.assertIn("silently wrong", failed.stderr)
            self.assertEqual(failed.stdout.count("\n--- "), 3)
            bars = Path(folder, "bars.json")
            bars.write_text('{"silently_wrong": 1.0, "exact": 0.0, "refused": 1.0, "clean_missed": 1.0}')
            low = self.run_it(
                "--read", str(file), "--gate", "--bars", str(bars), "--command", f"{sys.executable} {blind}"
            )
            self.assertEqual(low.returncode, 0, low.stderr)

    def test_tables_can_be_written_into_a_page(self) -> None:
        with TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            page.write_text("before\n<!-- tables -->\nold\n<!-- end of tables -->\nafter\n")
            done = self.run_it("--cases", "20", "--page", str(page), *SMALL)
            self.assertEqual(done.returncode, 0, done.stderr)
            text = page.read_text()
            self.assertIn("| plain concatenation", text)
            self.assertNotIn("old", text)
            self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
            page.write_text("no marks")
            self.assertEqual(self.run_it("--cases", "2", "--page", str(page), *SMALL).returncode, 2)

    def test_tables_can_be_markdown(self) -> None:
        done = self.run_it("--cases", "20", "--markdown", "--by-from", *SMALL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| plain concatenation", done.stdout)

    def test_a_wrong_command_line_is_reported(self) -> None:
        for arguments in (["--gate"], ["--style", "nonsense"], ["--read", "/nowhere.jsonl"], ["--sources", "/nowhere"]):
            with self.subTest(arguments):
                done = self.run_it(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertNotIn("Traceback", done.stderr)

    def test_a_missing_command_is_reported(self) -> None:
        done = self.run_it("--command", "/nowhere/stitcher", "--cases", "3", *SMALL)
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("Traceback", done.stderr)


class Peers(unittest.TestCase):
    def test_each_peer_joins_as_published(self) -> None:
        self.assertEqual(peers.plain("ab", "bc"), "abbc")
        self.assertEqual(peers.new_line("ab", " bc "), "ab\nbc")
        self.assertEqual(peers.trimmed_overlap("ab", "bc"), "abc")
        self.assertEqual(peers.anchored_overlap("ab", "bc"), "abbc")
        self.assertEqual(peers.anchored_overlap("a lantern", "lantern lit"), "a lantern lit")
        self.assertEqual(peers.anchored_overlap("| a | b |\n| c | d |\n| e", "| c | d |\n| e | f |"), "| a | b |\n| c | d |\n| e | f |")

    def test_a_join_that_violates_the_grammar_is_an_error(self) -> None:
        self.assertEqual(peers.answer(peers.plain, ["[1", "x]"], "json")["outcome"], "error")
        self.assertEqual(peers.answer(peers.plain, ["[1", ", 2]"], "json")["outcome"], "whole")
