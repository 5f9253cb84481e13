#!/usr/bin/env python3
"""Counts the instructions that the gateway executes for six kinds of requests, from the client's connection to the
committed and summed row.

    python3 bench/gateway/instructions.py [--program target/release/endmark]    prints Markdown
    python3 bench/gateway/instructions.py --gate      exit 1 if a kind needs over 3 % more than in instructions.json
    python3 bench/gateway/instructions.py --write     writes instructions.json

Needs valgrind. Requests are sent one after another, and each request waits for the row of the previous one. Otherwise
the number of rows in a transaction would depend on the load of the machine. Each figure therefore includes one
transaction per request, but in a busy gateway hundreds of requests share a transaction.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from run import PROJECT
from servers import built

FIGURES = Path(__file__).with_name("instructions.json")
MAX_GROWTH = 1.03
WARM_UP, COUNTED = 6, 24
TEXT = "The harbour was quiet. "
# A reply that is cut inside the second number, and its rest.
CUT, REST = '{"boats": [' + "12, " * 100 + "1", "4, 15]}"


def chat(content: str, **more: object) -> dict:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": content}], **more}


def with_tool_result(number: int) -> dict:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    result = "\n".join(f"{number} line {line} of a log that is too long" for line in range(400))
    request = chat("What does the log contain?")
    request["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    ]
    return request


def with_history(number: int) -> dict:
    request = chat(f"Tell me of harbour {number}.")
    for turn in range(20):
        request["messages"] += [
            {"role": "assistant", "content": f"In turn {turn}: " + TEXT * 10},
            {"role": "user", "content": f"And what of src/harbour_{turn}.rs?"},
        ]
    return request


# For each kind: the settings of the gateway, its request by number, and a response header that proves the kind.
KINDS = {
    "whole": ("", lambda _: chat("Tell me of the harbour."), None),
    "streamed": ("", lambda _: chat("Tell me of the harbour.", stream=True), None),
    "budget": ("[budget]\nsession_tokens = 1000000000000\n", lambda _: chat("Tell me of the harbour."), "x-endmark-budget-remaining"),
    "capped": ("[cap]\nmax_chars = 2000\n", with_tool_result, "x-endmark-capped"),
    "compacted": (
        "[compact]\nwindow = { enabled = true, trigger_tokens = 600, budget_tokens = 600, keep_events = 4 }\n",
        with_history,
        "x-endmark-compacted",
    ),
    "resumed": ("", lambda _: chat("List the boats.", response_format={"type": "json_object"}), "x-endmark-attempts"),
}


class Upstream(BaseHTTPRequestHandler):
    """Answers by the kind of the request: with a text, a stream of 50 chunks, or a cut reply and its rest."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: N802
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content, stop = TEXT * 8, "stop"
        if "response_format" in request or len(request["messages"]) > 1 and CUT[:12] in json.dumps(request["messages"]).replace("\\", ""):
            content, stop = (CUT, "length") if len(request["messages"]) == 1 else (REST, "stop")
        whole = {"id": "c", "created": 1, "model": "gpt-4o-mini", "usage": {"prompt_tokens": 20, "completion_tokens": 40, "total_tokens": 60}}
        self.send_response(200)
        if request.get("stream"):
            deltas = [({"content": "quiet "}, None)] * 50 + [({}, "stop")]
            events = [{**whole, "object": "chat.completion.chunk", "usage": None, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
            events.append({**whole, "object": "chat.completion.chunk", "choices": []})
            lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            # Send everything in one write, because the amount that one read returns must not depend on the machine's
            # load.
            body = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines) + b"0\r\n\r\n"
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": stop}
            body = json.dumps({**whole, "object": "chat.completion", "choices": [choice]}).encode()
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Gateway:
    """Runs the gateway under callgrind until the block ends."""

    def __init__(self, program: Path, folder: Path, settings: str, upstream: int) -> None:
        folder.mkdir()
        self.store, self.counts = folder / "endmark.db", folder / "counts"
        configuration = folder / "endmark.toml"
        configuration.write_text(
            f'listen = "127.0.0.1:0"\nstore = "sqlite:{self.store}"\n{settings}\n'
            f'[upstreams.scripted]\nformat = "openai"\nbase_url = "http://127.0.0.1:{upstream}/v1"\n'
        )
        self.command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.counts}", str(program), "serve", "--config", str(configuration)]

    def __enter__(self) -> Gateway:
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True)
        log_lines = []
        for line in self.process.stderr:
            log_lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.client = http.client.HTTPConnection("127.0.0.1", int(found.group(1)), timeout=120)
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return self
        raise SystemExit("the gateway did not start:\n" + "".join(log_lines))

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def ask(self, request: dict, header: str | None) -> None:
        headers = {"content-type": "application/json", "authorization": "Bearer sk-bench"}
        self.client.request("POST", "/v1/chat/completions", json.dumps(request), headers)
        answer = self.client.getresponse()
        text = answer.read()
        if answer.status != 200 or (header and not answer.getheader(header)):
            raise SystemExit(f"HTTP {answer.status}, {header}: {answer.getheader(header or '')}: {text[:500]!r}")

    def wait(self, sql: str) -> None:
        store = sqlite3.connect(self.store)
        while not store.execute(sql).fetchone()[0]:
            time.sleep(0.01)
        store.close()

    def control(self, argument: str) -> None:
        subprocess.run(["callgrind_control", argument, str(self.process.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def instructions(self, request: object, header: str | None) -> int:
        """Returns the mean number of instructions of one request."""
        for number in range(WARM_UP + COUNTED):
            if number == WARM_UP:
                self.wait("SELECT count(*) = 0 FROM usage WHERE is_summed = 0")
                self.control("-z")
            before = self.rows()
            self.ask(request(number), header)
            self.wait(f"SELECT count(*) > {before} FROM usage")
        # Rows are summed every few seconds, so wait for that.
        self.wait("SELECT count(*) = 0 FROM usage WHERE is_summed = 0")
        self.control("-d")
        dump = self.counts.with_name("counts.1").read_text()
        return int(re.search(r"^totals: (\d+)", dump, re.MULTILINE).group(1)) // COUNTED

    def rows(self) -> int:
        store = sqlite3.connect(self.store)
        rows = store.execute("SELECT count(*) FROM usage").fetchone()[0]
        store.close()
        return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, help="this Endmark, instead of the release build")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--gate", action="store_true", help="exit 1 where a kind costs over 3 %% more than the committed figure")
    parser.add_argument("--write", action="store_true", help="write the committed figures")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        parser.error("valgrind is missing: apt-get install valgrind")
    program = (options.program or built("endmark", PROJECT, "endmark-cli")).resolve()
    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    committed = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    measured, grown = {}, []
    print("| request | instructions | committed | |\n|---|--:|--:|---|")
    with tempfile.TemporaryDirectory(prefix="endmark-instructions-") as folder:
        for kind in options.kinds:
            settings, request, header = KINDS[kind]
            with Gateway(program, Path(folder) / kind, settings, upstream.server_address[1]) as gateway:
                measured[kind] = gateway.instructions(request, header)
            known = committed.get(kind)
            ratio = measured[kind] / known if known else None
            if ratio is None or ratio > MAX_GROWTH:
                grown.append(kind)
            print(f"| {kind} | {measured[kind]:,} | {known or 0:,} | {f'{ratio:.3f}' if ratio else 'new'} |", flush=True)
    if options.write:
        FIGURES.write_text(json.dumps({**committed, **measured}, indent=2) + "\n")
    elif options.gate and grown:
        print(f"\nmore than {MAX_GROWTH} times the committed instructions: {', '.join(grown)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
