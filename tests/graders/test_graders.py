#!/usr/bin/env python3
"""Tests Endmark with the official client and third-party mocks.

    cargo build --release --package endmark-cli
    python3 tests/graders/test_graders.py

llmock grades the client it serves: the official one alone, and Endmark in its place. aimock only answers what it is
told; there the text is looked at.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

import mocks

if __name__ == "__main__" and Path(sys.prefix).resolve() != mocks.PYTHON.parent.parent.resolve():
    # The client is installed in the environment that the set-up creates.
    try:
        mocks.install()
    except Exception as problem:  # noqa: BLE001
        sys.exit(str(problem))
    os.execv(mocks.PYTHON, [str(mocks.PYTHON), *sys.argv])

import gateway  # noqa: E402
import openai  # noqa: E402

ANSWER = "The harbour was quiet that morning, and the gulls had not yet found the boats. Mira counted the nets twice."
SAYS = {"type": "reply", "text": ANSWER, "times": None}


def fault(kind: str, after: int, times: int = 1, **more: object) -> dict:
    return {"type": "stream_fault", "kind": kind, "after_chunks": after, "times": times, **more}


# The fault, the grade of the official client alone, and its grade through Endmark. The grader recognises a retry only by
# identical bytes, and a continuation is a different request. It therefore counts a stream that was cut after its first
# words as accepted, whatever follows. In these cases only the text counts.
CASES = [
    ("a stream cut before its first word", [fault("truncate", 1)], ["error truncated_stream_accepted"], []),
    (
        "a stream cut behind its first words",
        [fault("truncate", 6)],
        ["error truncated_stream_accepted"],
        ["error truncated_stream_accepted"],
    ),
    ("a connection lost before the first word", [fault("disconnect", 1)], ["warning gave_up"], []),
    ("a connection lost in mid-stream", [fault("disconnect", 6)], ["warning gave_up"], ["warning gave_up"]),
    ("a rate limit with Retry-After", [{"type": "fail", "status": 429, "retry_after": 1}], ["warning gave_up"], []),
    ("two errors in a row", [{"type": "fail", "status": 503, "times": 2}], ["warning gave_up"], []),
]


class Application:
    """Does what most applications do: joins the parts of a stream, and treats its end as the end of the answer."""

    def __init__(self, base_url: str, tries: int = 1, **headers: str):
        # The client's own retries are off, so that each grade has one cause.
        self.client = openai.OpenAI(
            base_url=base_url, api_key="key", max_retries=0, timeout=30, default_headers=headers or None
        )
        self.tries = tries

    def ask(self, model: str = "gpt-4o", **more: object) -> tuple[str, str, str | None]:
        """Returns the text, the arguments of a call, and the finish reason; an error if the client raises one."""
        for left in reversed(range(self.tries)):
            try:
                return self.ask_once(model, **more)
            # During a stream, the client also raises errors of its transport.
            except Exception as error:  # noqa: BLE001
                if left == 0:
                    return "", "", type(error).__name__

    def ask_once(self, model: str, **more: object) -> tuple[str, str, str | None]:
        text, arguments, finish = "", "", None
        messages = [{"role": "user", "content": "Tell me of the harbour."}]
        for chunk in self.client.chat.completions.create(model=model, messages=messages, stream=True, **more):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    arguments += call.function.arguments or ""
                finish = choice.finish_reason or finish
        return text, arguments, finish


class Report:
    def __init__(self):
        self.failed: list[str] = []

    def says(self, name: str, found: object, wanted: object) -> None:
        is_so = found == wanted
        print(f"{'ok  ' if is_so else 'FAIL'}  {name}: {found}" + ("" if is_so else f", and not {wanted}"))
        if not is_so:
            self.failed.append(name)


def graded(report: Report, grader: mocks.Grader, base_url: str) -> None:
    for name, behaviours, alone, through in CASES:
        grader.told([*behaviours, SAYS])
        Application(grader.base_url).ask()
        report.says(f"{name}, the client alone", grader.findings(), alone)
        grader.told([*behaviours, SAYS])
        text, _, finish = Application(base_url).ask()
        report.says(f"{name}, through Endmark", grader.findings(), through)
        report.says(f"{name}, the text", (text, finish), (ANSWER, "stop"))

    # An application that retries failures only needs to see the cut as an error.
    for headers, base, wanted in (({}, grader.base_url, ["error truncated_stream_accepted"]),
                                  ({"x-endmark-resume": "warn"}, base_url, [])):  # fmt: skip
        grader.told([fault("truncate", 6), SAYS])
        text, _, _ = Application(base, tries=2, **headers).ask()
        report.says(f"an application that tries again, {headers or 'alone'}", grader.findings(), wanted)
        report.says("what it has in the end is whole", text == ANSWER, not wanted)


def mocked(report: Report, base_url: str) -> None:
    application = Application(base_url, **{"x-endmark-resume": "on"})
    report.says("cut by its length", application.ask("cut-by-length"), (ANSWER, "", "stop"))
    tools = [{"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}]
    _, arguments, finish = application.ask("cut-call", tools=tools)
    whole = '{"path": "sea.txt", "content": "The harbour was quiet."}'
    report.says("a call cut in its arguments", (arguments, finish), (whole, "tool_calls"))
    text = "The harbour was quiet that morning, and the gulls had not yet found the boats."
    report.says("dropped in mid-stream", application.ask("dropped"), (text, "", "stop"))
    # The model repeats the same reply, so the correct result is the cut text.
    text, _, finish = application.ask("never-whole")
    report.says("the same cut again", (text, finish), ("The harbour was quiet that", "length"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    given = parser.parse_args()
    if given.program:
        gateway.program = lambda: given.program.resolve()
    report = Report()
    folder = mocks.FOLDER / "gateway"
    with mocks.Grader() as grader, mocks.Mock() as mock:
        upstreams = {"llmock": {"base_url": grader.base_url}, "aimock": {"base_url": mock.base_url}}
        with gateway.Gateway(folder, upstreams, {"mode": "auto"}) as endmark:
            graded(report, grader, endmark.base_url("llmock"))
            mocked(report, endmark.base_url("aimock"))
    shutil.rmtree(folder)
    print(f"{len(report.failed)} failed" if report.failed else "All as expected.")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
