#!/usr/bin/env python3
"""Tests how scripts/lib/steps.sh reports failed steps.

    python3 tests/documents/test_scripts.py
"""

from __future__ import annotations

import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def script(*lines: str) -> subprocess.CompletedProcess:
    text = "\n".join(["set -euo pipefail", "source scripts/lib/steps.sh", *lines, 'finish "All is well"'])
    return subprocess.run(["bash", "-c", text], cwd=ROOT, capture_output=True, text=True)


class Steps(unittest.TestCase):
    def test_all_steps_run_and_the_end_names_each_failed_one(self):
        done = script('step first false', 'step second echo ran', 'step third sh -c "exit 7"')
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("\nran\n", done.stdout)
        self.assertNotIn("All is well", done.stdout)
        self.assertIn("2 failed after", done.stderr)
        for line in ["  first (exit 1): false", "  third (exit 7): sh -c exit 7"]:
            self.assertIn(line, done.stderr)

    def test_the_last_line_reports_success(self):
        done = script("step only true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("All is well, in 0 s.", done.stdout)

    def test_a_failed_required_step_ends_the_script(self):
        done = script("step first false", "required_step build false", "step never echo ran")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("ran", done.stdout.split("build")[1])
        self.assertIn("first (exit 1)", done.stderr)
        self.assertIn("build (exit 1)", done.stderr)

    def test_a_missing_program_is_named_together_with_earlier_failures(self):
        done = script("step first false", 'need no-such-program "the program (https://example.com)"')
        self.assertEqual(done.returncode, 2)
        self.assertIn("install the program (https://example.com)", done.stderr)
        self.assertIn("first (exit 1)", done.stderr)


if __name__ == "__main__":
    unittest.main()
