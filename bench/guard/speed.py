"""Measures how many seconds of one core `endmark guard --batch` needs for 10,000 documents of 20 kB."""

import argparse
import json
import pathlib
import resource
import subprocess
import tempfile

DOCUMENTS, BYTES = 10_000, 20_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--command", default="target/release/endmark")
    arguments = parser.parse_args()
    text = arguments.text.read_text()
    pieces = [text[at : at + BYTES] for at in range(0, len(text) - BYTES, BYTES)]
    with tempfile.TemporaryFile() as batch:
        for number in range(DOCUMENTS):
            batch.write(json.dumps({"id": number, "text": pieces[number % len(pieces)]}).encode() + b"\n")
        batch.seek(0)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([arguments.command, "guard", "--batch"], stdin=batch, stdout=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{DOCUMENTS} documents of {BYTES} characters: {seconds:.2f} s of one core, {DOCUMENTS * BYTES / seconds / 1e6:.0f} MB/s")


if __name__ == "__main__":
    main()
