"""Findings in finished documents: each is printed, to be looked at."""

import argparse
import pathlib
from collections import Counter

from guard import judge

# What is a form to be filled in is not finished.
FORMS = ("_TEMPLATE", ".github")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--command", default="target/release/endmark")
    parser.add_argument("--suffix", action="append", help="what documents end with; .md unless said otherwise")
    arguments = parser.parse_args()
    texts, paths = [], []
    for folder in arguments.folders:
        for path in sorted(folder.expanduser().rglob("*")):
            is_document = path.suffix in (arguments.suffix or [".md"]) and path.is_file()
            if not is_document or any(form in str(path) for form in FORMS):
                continue
            try:
                text = path.read_bytes().decode()
            except UnicodeDecodeError:
                continue
            if text.strip():
                texts.append(text)
                paths.append(path)
    answers = judge(arguments.command, texts, [path.name for path in paths])
    checks = Counter()
    for path, answer in zip(paths, answers):
        for finding in answer["findings"]:
            checks[finding["check"]] += 1
            print(f"{path}:{finding['line']}:{finding['column']}: {finding['check']}: {finding['text']}")
    whole = sum(answer["verdict"] == "whole" for answer in answers)
    print(f"{len(answers)} documents, {whole} whole; findings: {dict(checks)}")


if __name__ == "__main__":
    main()
