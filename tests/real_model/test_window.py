#!/usr/bin/env python3
"""Holds a conversation of sixty turns with a real model whose context has room for seven, through Endmark with a small window.

    cargo build --release --package endmark-cli
    python3 tests/real_model/test_window.py

Every request that reaches the model is recorded. Each has to be accepted, to be within the window's budget, and to hold the first
message; how long a demand of the second turn stays is shown. What a provider's cache would hit of them is shown next to sending all of it, and to
clearing old results in place: of each request, the bytes that are the same from its beginning as in the one before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import model_server

FOLDER = model_server.DEFAULT_FOLDER
if __name__ == "__main__":
    model_server.run_in_environment(FOLDER)

from conversation import Question, Speaker, user  # noqa: E402
import gateway  # noqa: E402

TURNS = 60
WINDOW = {"enabled": True, "trigger_tokens": 900, "budget_tokens": 1200, "keep_events": 6}
REPLY_TOKENS = 24
# The number of newest results that are not cleared, as the frameworks of agents do by default.
KEPT_RESULTS = 3
FIRST = "Book these orders one after another. The customer is Quandt-7731, and account 9000 is never touched."
# A demand that the user states only once, in the second turn.
DEMANDED_ONCE = "only from dock-4b19"


class Recorder(ThreadingHTTPServer):
    """Passes requests on to the model's server, and keeps their bodies."""

    def __init__(self, origin: str):
        super().__init__(("127.0.0.1", 0), Passing)
        self.origin = origin
        self.bodies: list[dict] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Passing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(json.loads(body))
        request = urllib.request.Request(self.server.origin + self.path, body, {"content-type": "application/json"})
        try:
            with model_server.DIRECT.open(request, timeout=180) as answer:
                self.answer(answer.status, answer.read())
        except urllib.error.HTTPError as refused:
            self.answer(refused.code, refused.read())

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


def step(number: int) -> list[dict]:
    """Returns the messages before a turn of the model: the user's request, a call, and its result."""
    order = f"ZX-{4400 + number * 7}"
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "get_order", "arguments": json.dumps({"order": order})}}
    found = {"order": order, "amount": number * 17 + 0.5, "shelf": f"sh-{(number * 2654435761) % 65536:04x}", "state": "packed"}
    wish = f"Go on with order {order}{', and send all of them ' + DEMANDED_ONCE if number == 1 else ''}."
    return [
        user(FIRST if number == 0 else wish),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(found) + " " + "Nothing is missing in it. " * 4},
    ]


def cleared(messages: list[dict]) -> list[dict]:
    """Returns the messages with all results cleared except the newest."""
    results = [at for at, message in enumerate(messages) if message["role"] == "tool"]
    old = results[:-KEPT_RESULTS]
    return [{**message, "content": "[cleared]"} if at in old else message for at, message in enumerate(messages)]


def cached(requests: list[list[dict]]) -> tuple[int, int]:
    """Returns the bytes of all requests, and the bytes of the prefixes that each shares with the request before."""
    written = [json.dumps(messages).encode() for messages in requests]
    hits = [len(os.path.commonprefix([before, after])) for before, after in zip(written, written[1:])]
    return sum(map(len, written)), sum(hits)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    arguments = parser.parse_args()
    if arguments.program:
        gateway.program = lambda: arguments.program.resolve()
    with model_server.ModelServer(model_server.install(FOLDER), FOLDER) as server:
        recorder = Recorder(server.origin)
        upstreams = {"model": {"format": "openai", "base_url": recorder.base_url}}
        with gateway.Gateway(FOLDER / "window", upstreams, {"mode": "auto"}, window=WINDOW) as endmark:
            whole, failures = talk(Speaker(endmark.base_url()), recorder, arguments.turns)
            sent = [body["messages"] for body in recorder.bodies]
            sizes = history_tokens(endmark.program, sent)
    failures += [f"turn {turn} has {size} tokens" for turn, size in enumerate(sizes) if size > WINDOW["budget_tokens"]]
    print(f"{len(whole)} turns, {len(sent)} requests; the longest has {max(sizes, default=0)} tokens by Endmark's own count")
    return report(whole, sent, failures)


def history_tokens(program: Path, requests: list[list[dict]]) -> list[int]:
    """Returns the tokens of each history, as `endmark compact` counts them."""
    asked = [{"for": "openai_chat", "trigger_tokens": 1_000_000, "request": messages} for messages in requests]
    done = subprocess.run(
        [str(program), "compact", "--batch"], input="\n".join(map(json.dumps, asked)), stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line)["receipt"]["tokens_before"] for line in done.stdout.splitlines()]


def talk(speaker: Speaker, recorder: Recorder, turns: int) -> tuple[list[list[dict]], list[str]]:
    """Runs all turns. Returns the client's messages before each turn, and the failed checks."""
    messages: list[dict] = []
    whole, failures, demanded_until = [], [], 0
    for number in range(turns):
        messages += step(number)
        whole.append(list(messages))
        reply = speaker.ask(Question(messages), max_tokens=REPLY_TOKENS)
        sent = json.dumps(recorder.bodies[-1])
        if reply.error or reply.finish_reason is None or len(recorder.bodies) != number + 1:
            failures.append(f"turn {number} was not accepted: {reply.error}")
        if FIRST not in sent:
            failures.append(f"turn {number} lacks the first message")
        if DEMANDED_ONCE in sent:
            demanded_until = number
        messages.append({"role": "assistant", "content": reply.text or "Booked."})
    print(f"what was demanded once, in the second turn, stood there up to turn {demanded_until + 1}")
    return whole, failures


def report(whole: list[list[dict]], sent: list[list[dict]], failures: list[str]) -> int:
    print("| policy | bytes of all prompts | a cache would hit | computed again |\n|---|---|---|---|")
    for name, requests in (
        ("all of it", whole),
        ("old results cleared in place", [cleared(messages) for messages in whole]),
        ("Endmark's window", sent),
    ):
        size, hits = cached(requests)
        print(f"| {name} | {size:,} | {hits / size:.1%} | {size - hits:,} |")
    print(*failures, sep="\n")
    return 1 if failures or not sent else 0


if __name__ == "__main__":
    sys.exit(main())
