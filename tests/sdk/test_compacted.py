#!/usr/bin/env python3
"""Checks with the types of the official libraries that compacted messages stay valid messages of the provider.

    cargo build --package endmark-wire --example histories
    python3 tests/sdk/test_compacted.py --program target/debug/endmark --histories target/debug/examples/histories

The conversations are generated, with crashed tools, parallel calls, thinking, images and parts that nobody knows; the last
are wrong before, and are left out of what is asked. A message is known as wrong by the library's own types.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import os
import subprocess
import sys
import typing
from pathlib import Path

import sdks

FIELDS = {"openai_chat": "messages", "openai_responses": "input", "anthropic_messages": "messages", "gemini": "contents"}
# Small enough that most conversations are compacted, each in a different way.
POLICIES = (
    {"mode": "window", "trigger_tokens": 400, "budget_tokens": 600, "keep": 6},
    {"mode": "emergency", "trigger_tokens": 400, "budget_tokens": 250},
    {"keep_share": 0.3},
)
# One conversation for each property that compaction must keep: the call of a result, a role, the kind of a part.
BROKEN = {
    "openai_chat": [
        {"role": "tool", "content": "no call"},
        {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "no id", "arguments": "{}"}}]},
        {"role": "user", "content": [{"type": "text"}]},
    ],
    "openai_responses": [
        {"type": "function_call_output", "call_id": "c"},
        {"type": "function_call", "name": "no call_id", "arguments": "{}"},
        {"role": "user", "content": [{"type": "input_text"}]},
    ],
    "anthropic_messages": [
        {"role": "user", "content": [{"type": "tool_result", "content": "no call"}]},
        {"role": "tool", "content": "no such role"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "no signature"}]},
    ],
    "gemini": [
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": "no object"}}]},
        {"role": "user", "parts": {"text": "no list"}},
        {"role": "user", "content": "no parts"},
    ],
}


def kinds() -> dict[str, typing.Callable[[dict], object]]:
    """Returns for each format a function that parses a message with the library's own types, or raises."""
    # pydantic validates a list at once, but an Iterable only when it is iterated.
    typing.Iterable = typing.List
    from anthropic.types import MessageParam
    from google.genai.types import Content
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputItemParam
    from pydantic import TypeAdapter

    types = {
        "openai_chat": ChatCompletionMessageParam, "openai_responses": ResponseInputItemParam,
        "anthropic_messages": MessageParam, "gemini": Content,
    }  # fmt: skip
    return {format: TypeAdapter(kind).validate_python for format, kind in types.items()}


def wrong(read: typing.Callable[[dict], object], messages: list[dict]) -> list[str]:
    """Returns the messages that the types reject."""
    from pydantic import ValidationError

    found = []
    for message in messages:
        try:
            read(message)
        except ValidationError:
            found.append(json.dumps(message))
    return found


def compacted(program: Path, lines: list[dict]) -> list[dict]:
    asked = "\n".join(json.dumps(line) for line in lines)
    done = subprocess.run([program, "compact", "--batch"], input=asked, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the endmark to test")
    parser.add_argument("--histories", type=Path, required=True, help="the example that generates conversations")
    parser.add_argument("--count", type=int, default=60, help="conversations of each format, each compacted in three ways")
    given = parser.parse_args()
    sdks.install([])
    if Path(sys.prefix).resolve() != (sdks.FOLDER / "venv").resolve():
        os.execv(sdks.PYTHON, [str(sdks.PYTHON), *sys.argv])
    readers = kinds()
    failed = 0
    for format, messages in BROKEN.items():
        for message in messages:
            if not wrong(readers[format], [message]):
                print(f"FAILED  {format}: the types take {message}")
                failed += 1
    written = subprocess.run([given.histories, str(given.count)], capture_output=True, text=True, check=True)
    histories = [json.loads(line) for line in written.stdout.splitlines()]
    lines = [line | policy for line, policy in itertools.product(histories, POLICIES)]
    made, whole, new = collections.Counter(), collections.Counter(), collections.Counter()
    for line, answer in zip(lines, compacted(given.program, lines), strict=True):
        format, field = line["for"], FIELDS[line["for"]]
        if not answer["compacted"]:
            continue
        before, after = line["request"][field], answer["request"][field]
        wrong_before = wrong(readers[format], before)
        made[format] += 1
        whole[format] += not wrong_before
        new[format] += sum(message not in before for message in after)
        # Messages that were already invalid before may stay so.
        broken = [message for message in wrong(readers[format], after) if message not in wrong_before]
        failed += len(broken)
        for message in broken:
            print(f"FAILED  {format}: {message}")
    for format in FIELDS:
        print(f"{format}: {made[format]} compacted, {whole[format]} of them right before, {new[format]} new messages")
        if made[format] < given.count or whole[format] < given.count // 4:
            print(f"FAILED  {format}: too few to prove anything")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
