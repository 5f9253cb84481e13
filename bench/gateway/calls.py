#!/usr/bin/env python3
"""Measures the gateway's memory and time for replies with many tool calls, in each format, streamed and not.

    python3 bench/gateway/calls.py [--program target/release/endmark] [--gate]    exit 1 if calls cost more in larger replies

Prints Markdown. Each reply is requested from a separate gateway process, so that the measured peak belongs only to
this reply.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from run import PROJECT
from servers import Server, built, endmark, free_port

COUNTS = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
FORMATS = {
    "chat": ("/v1/chat/completions", "/v1/chat/completions"),
    "responses": ("/v1/responses", "/v1/responses"),
    "messages": ("/v1/messages", "/v1/messages"),
    "gemini": ("/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse"),
}
ARGUMENTS = {"path": "sea.txt"}
# Maximum ratio of the cost per call between the largest and the smallest reply.
BAR = 2.0


def reply(name: str, count: int, stream: bool) -> list[dict]:
    """Returns the reply, or its events if it is streamed."""
    text = json.dumps(ARGUMENTS)
    if name == "chat":
        def chat(key: str, calls: list, end: str | None) -> dict:
            return {"id": "c", "object": "c", "created": 1, "model": "m", "choices": [{"index": 0, key: {"role": "assistant", "tool_calls": calls}, "finish_reason": end}]}

        calls = [{"index": n, "id": f"call_{n}", "type": "function", "function": {"name": "read", "arguments": text}} for n in range(count)]
        return [*(chat("delta", [call], None) for call in calls), chat("delta", [], "tool_calls")] if stream else [chat("message", calls, "tool_calls")]
    if name == "responses":
        items = [{"id": f"fc_{n}", "type": "function_call", "status": "completed", "call_id": f"call_{n}", "name": "read", "arguments": text} for n in range(count)]
        whole = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": items}
        if not stream:
            return [whole]
        events = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
        for n, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": n, "item": {**item, "arguments": ""}})
            events.append({"type": "response.function_call_arguments.delta", "output_index": n, "item_id": item["id"], "delta": text})
            events.append({"type": "response.output_item.done", "output_index": n, "item": item})
        return [*events, {"type": "response.completed", "response": whole}]
    if name == "messages":
        blocks = [{"type": "tool_use", "id": f"call_{n}", "name": "read", "input": ARGUMENTS} for n in range(count)]
        whole = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": blocks, "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}
        if not stream:
            return [whole]
        events = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
        for n, block in enumerate(blocks):
            events.append({"type": "content_block_start", "index": n, "content_block": {**block, "input": {}}})
            events.append({"type": "content_block_delta", "index": n, "delta": {"type": "input_json_delta", "partial_json": text}})
            events.append({"type": "content_block_stop", "index": n})
        end = {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 1}}
        return [*events, end, {"type": "message_stop"}]

    def gemini(parts: list, end: str | None) -> dict:
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, **({"finishReason": end} if end else {})}
        return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}

    parts = [{"functionCall": {"name": "read", "args": ARGUMENTS}}] * count
    return [gemini([part], "STOP" if n + 1 == count else None) for n, part in enumerate(parts)] if stream else [gemini(parts, "STOP")]


def body_of(name: str, count: int, stream: bool) -> bytes:
    events = reply(name, count, stream)
    if not stream:
        return json.dumps(events[0]).encode()
    named = name in ("responses", "messages")
    lines = ((f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events)
    return ("".join(lines) + "data: [DONE]\n\n" * (name == "chat")).encode()


class Upstream(ThreadingHTTPServer):
    """Answers every request with one reply."""

    daemon_threads = True
    answer = ("application/json", b"{}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        kind, body = self.server.answer
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def peak_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def measured(program: Path, upstream: Upstream, folder: Path, name: str, stream: bool, count: int) -> tuple[int, float, float]:
    """Returns the bytes of a reply, the CPU time of the gateway in milliseconds, and its peak memory in MB."""
    port = upstream.server_address[1]
    others = "".join(f'[upstreams.{other}]\nformat = "{other}"\nbase_url = "http://127.0.0.1:{port}"\n' for other in ("anthropic", "gemini"))
    server = endmark("Endmark", program, folder / f"{name}-{stream}-{count}", port, others)
    server.answers = lambda: server.process is not None and ready(server.port)
    server.start()
    try:
        body = body_of(name, count, stream)
        upstream.answer = ("text/event-stream" if stream else "application/json", body)
        request = {"model": "m", "stream": stream, "max_tokens": 100_000, "messages": [{"role": "user", "content": "Go."}], "input": "Go.", "contents": [{"role": "user", "parts": [{"text": "Go."}]}]}
        wanted = {"chat": ["messages"], "responses": ["input"], "messages": ["messages", "max_tokens"], "gemini": ["contents"]}[name]
        request = {key: value for key, value in request.items() if key in wanted or (key in ("model", "stream") and name != "gemini")}
        before, spent = peak_bytes(server), server.cpu_seconds()
        url = f"http://127.0.0.1:{server.port}{FORMATS[name][stream]}"
        headers = {"content-type": "application/json", "x-api-key": "k", "authorization": "Bearer k"}
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(request).encode(), headers), timeout=600) as answer:
            if answer.read() != body:
                raise RuntimeError(f"{name}, {count} calls: the reply is another one")
        return len(body), (server.cpu_seconds() - spent) * 1000, (peak_bytes(server) - before) / 1e6
    finally:
        server.stop()


def ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/endmark/healthz", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--gate", action="store_true", help="exit 1 where a call costs more the more there are")
    options = parser.parse_args()
    program = (options.program or built("endmark", PROJECT, "endmark-cli")).resolve()
    upstream = Upstream(("127.0.0.1", 0), Handler)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    print("| | calls | reply, MB | peak, MB | KB a call | its CPU, ms | µs a call |\n|---|--:|--:|--:|--:|--:|--:|")
    held = True
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            for stream in (False, True):
                first = None
                for count in COUNTS:
                    size, millis, peak = measured(program, upstream, Path(folder), name, stream, count)
                    per_call = (peak * 1000 / count, millis * 1000 / count)
                    # The baseline memory of the process hides the cost of the first thousand calls, so comparison begins at 4,000.
                    first = first or (per_call if count >= 4_000 else None)
                    kind = f"{name}, {'stream' if stream else 'whole'}"
                    print(f"| {kind} | {count:,} | {size / 1e6:.2f} | {peak:.1f} | {per_call[0]:.2f} | {millis:.0f} | {per_call[1]:.1f} |", flush=True)
                    held &= first is None or all(now <= BAR * max(then, 0.5) for now, then in zip(per_call, first, strict=True))
    upstream.shutdown()
    print("\nA call of many costs what one of few does." if held else "\nA call costs more the more there are.")
    return 0 if held or not options.gate else 1


if __name__ == "__main__":
    sys.exit(main())
