"""Prints each finding in finished documents for review. With `--cuts`, prints the share of cuts inside a word that
are detected.
"""

import argparse
import hashlib
import pathlib
import random
from collections import Counter

from guard import judge

# Forms that people fill in are not finished documents.
FORMS = ("_TEMPLATE", ".github", "template")


def half_of(text):
    """Returns the half to which a document belongs. Rules are developed on one half and measured on the other."""
    return "held" if hashlib.sha256(text.encode()).digest()[0] & 1 else "looked"


def documents(folders, suffixes, half, least):
    """Returns each distinct document with its path. The order does not depend on the documents' location."""
    found = {}
    for folder in folders:
        for path in folder.expanduser().rglob("*"):
            is_document = path.suffix in suffixes and path.is_file()
            if not is_document or any(form in str(path) for form in FORMS):
                continue
            try:
                text = path.read_bytes().decode()
            except UnicodeDecodeError:
                continue
            if len(text.strip()) >= least and half in ("all", half_of(text)):
                found.setdefault(text, path)
    return sorted(found.items(), key=lambda one: hashlib.sha256(one[0].encode()).digest())


def cut(text, seed):
    """Returns the text up to the middle of a word, or nothing if no word has at least four letters."""
    chosen = random.Random(seed)
    for _ in range(200):
        at = chosen.randrange(len(text) // 5, len(text))
        if text[at - 2 : at + 2].isalpha():
            return text[:at]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--command", default="target/release/endmark")
    parser.add_argument("--suffix", action="append", help="what documents end with; .md unless said otherwise")
    parser.add_argument("--half", choices=("looked", "held", "all"), default="all")
    parser.add_argument("--least", type=int, default=1, help="characters that a document has at least")
    parser.add_argument("--most", type=int, help="documents")
    parser.add_argument("--cuts", action="store_true", help="cut each in the middle of a word, and print what is not seen")
    arguments = parser.parse_args()
    found = documents(arguments.folders, arguments.suffix or [".md"], arguments.half, arguments.least)
    found = found[: arguments.most]
    if arguments.cuts:
        found = [(cut(text, seed), path) for seed, (text, path) in enumerate(found)]
        found = [(text, path) for text, path in found if text]
    answers = judge(arguments.command, [text for text, _ in found], [path.name for _, path in found])
    checks = Counter()
    for (text, path), answer in zip(found, answers):
        if arguments.cuts:
            if answer["verdict"] != "truncated":
                print(f"{path}: {answer['verdict']}: {text[-70:]!r}")
            continue
        for finding in answer["findings"]:
            checks[finding["check"]] += 1
            print(f"{path}:{finding['line']}:{finding['column']}: {finding['check']}: {finding['text']}")
    verdicts = Counter(answer["verdict"] for answer in answers)
    flagged = len(answers) - verdicts["whole"]
    print(f"{len(answers)} documents, {flagged} flagged ({flagged / len(answers):.1%}); {dict(verdicts)}; findings: {dict(checks)}")


if __name__ == "__main__":
    main()
