"""Recall and precision of omission detectors on Aider's published chat history."""

import argparse
import hashlib
import pathlib
import re
import sys

from guard import judge

HERE = pathlib.Path(__file__).parent
SHA256 = "a9a89dfd830af253103f86ff25dcba55364b22db779664d2fb36a3c2fd058710"
LEAST = 0.90

# Gemini CLI 0.61, tools/omissionPlaceholderDetector: complete comments after `//`, or lines in brackets, with ASCII
# dots.
GEMINI_PHRASES = {
    "rest of method",
    "rest of methods",
    "rest of code",
    "unchanged code",
    "unchanged method",
    "unchanged methods",
    "existing code",
}
# Cline and Roo, integrations/editor/detect-omission: comment lines that contain one of these words.
CLINE_COMMENT = re.compile(r"^\s*(//|#|/\*|\{/\*|<!--|\[)")
CLINE_WORDS = {"remain", "remains", "unchanged", "rest", "previous", "existing", "content", "same", "..."}


def gemini(line):
    match = re.fullmatch(r"\s*(?://\s*)?\(?\s*([a-z ]+?)\s*\.\.\.\s*\)?\s*(?:\.\.\.)?\s*", line.lower())
    return bool(match) and " ".join(match.group(1).split()) in GEMINI_PHRASES


def cline(line):
    return bool(CLINE_COMMENT.match(line)) and bool(CLINE_WORDS & set(re.findall(r"[a-z]+|\.\.\.", line.lower())))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("history", type=pathlib.Path)
    parser.add_argument("--command", default="target/release/endmark")
    parser.add_argument("--show", action="store_true", help="print what is missed, and what is found and not labelled")
    arguments = parser.parse_args()
    raw = arguments.history.read_bytes()
    if hashlib.sha256(raw).hexdigest() != SHA256:
        sys.exit(f"{arguments.history} is not the version that was labelled")
    text = raw.decode()
    lines = text.split("\n")
    labelled = {
        int(line.split("\t")[0])
        for line in (HERE / "omissions.tsv").read_text().splitlines()
        if line and not line.startswith("#")
    }
    [answer] = judge(arguments.command, [text], ["chat-history.md"])
    found = {
        "endmark guard": {finding["line"] for finding in answer["findings"] if finding["check"] == "omission"},
        "Gemini CLI's rule": {number for number, line in enumerate(lines, 1) if gemini(line)},
        "Cline's rule": {number for number, line in enumerate(lines, 1) if cline(line)},
    }
    print(f"{len(labelled)} labelled omissions in {len(lines)} lines")
    for name, numbers in found.items():
        hits = len(numbers & labelled)
        recall, precision = hits / len(labelled), hits / len(numbers) if numbers else 0.0
        print(f"{name:<18} found {len(numbers):>5}  right {hits:>3}  recall {recall:6.1%}  precision {precision:6.1%}")
        if name == "endmark guard":
            is_enough = recall >= LEAST and precision >= LEAST
            if arguments.show:
                for number in sorted(labelled - numbers):
                    print(f"  missed  {number}: {lines[number - 1]}")
                for number in sorted(numbers - labelled):
                    print(f"  wrong   {number}: {lines[number - 1]}")
    sys.exit(0 if is_enough else 1)


if __name__ == "__main__":
    main()
