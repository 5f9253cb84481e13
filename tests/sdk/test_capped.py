#!/usr/bin/env python3
"""Sends a tool result of 2 MB with one error row through `endmark serve`, with the official libraries.

    cargo build --release --package endmark-cli
    python3 tests/sdk/test_capped.py [--program target/debug/endmark]

What arrives upstream is small and holds the row. The model then reads a row that was left out by the tool that it is offered,
within the turn: the library sees the reply after that alone. A request without results arrives byte for byte as it was sent.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import sdks
from servers import Gateway, gateway

ROWS = 13_000
ERROR_ROW, LEFT_OUT_ROW = 6_500, 3_000
ERROR = "payment 4711 was not booked"
# The tool result must shrink to at most a tenth: 200,000 characters of 2 MB.
MOST_BYTES = 300_000
TOOL = "list_payments"


def result() -> str:
    rows = [
        {
            "id": number,
            "status": "failed" if number == ERROR_ROW else "ok",
            "message": f"{ERROR}: the ledger is locked" if number == ERROR_ROW else f"payment {number:06} was booked",
            "digest": f"{number * 2_654_435_761 % 2**32:08x}" * 10,
        }
        for number in range(ROWS)
    ]
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def said(path: str, text: str | None, arguments: str) -> dict:
    """Returns a reply in the format of the path: a text, or a call of the reading tool."""
    if path.endswith("/chat/completions"):
        function = {"name": "endmark_read", "arguments": arguments}
        calls = {"tool_calls": [{"id": "r1", "type": "function", "function": function}]}
        message = {"role": "assistant", "content": text, **({} if text else calls)}
        choice = {"index": 0, "message": message, "finish_reason": "stop" if text else "tool_calls"}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    if path.endswith("/responses"):
        content = [{"type": "output_text", "text": text, "annotations": []}]
        item = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": content}
        call = {"id": "f1", "type": "function_call", "call_id": "r1", "name": "endmark_read", "arguments": arguments}
        return {
            "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "output": [item if text else call], "tools": [], "tool_choice": "auto", "parallel_tool_calls": True,
        }  # fmt: skip
    if path.endswith("/messages"):
        call = {"type": "tool_use", "id": "r1", "name": "endmark_read", "input": json.loads(arguments)}
        return {
            "id": "m", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": text} if text else call], "stop_sequence": None,
            "stop_reason": "end_turn" if text else "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
    call = {"functionCall": {"name": "endmark_read", "args": json.loads(arguments)}}
    content = {"role": "model", "parts": [{"text": text} if text else call]}
    return {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], "modelVersion": "m"}


class Model(BaseHTTPRequestHandler):
    """Reads the omitted row with the handle in a marker, and replies with the row."""

    bodies: list[bytes] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        Model.bodies.append(body)
        handle = re.search(rb"\b(h[0-9a-f]{32})\b", body)
        row = re.search(rf"payment {LEFT_OUT_ROW:06} was booked".encode(), body)
        text = row[0].decode() if row else None if handle else "Nothing to look for."
        arguments = json.dumps({"handle": handle[1].decode() if handle else "", "grep": f"payment {LEFT_OUT_ROW:06}"})
        answer = json.dumps(said(self.path.partition("?")[0], text, arguments)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_) -> None:
        pass


def chat(base: str, flood: str | None) -> str:
    from openai import OpenAI

    tool = {"type": "function", "function": {"name": TOOL, "parameters": {"type": "object", "properties": {}}}}
    messages = [{"role": "user", "content": "Which payments failed?"}]
    if flood:
        call = {"id": "c1", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": "c1", "content": flood}]
    client = OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0)
    reply = client.chat.completions.create(model="m", messages=messages, tools=[tool])
    assert not reply.choices[0].message.tool_calls
    return reply.choices[0].message.content


def responses(base: str, flood: str | None) -> str:
    from openai import OpenAI

    tool = {"type": "function", "name": TOOL, "parameters": {"type": "object", "properties": {}}}
    items = [{"role": "user", "content": "Which payments failed?"}]
    if flood:
        items += [{"type": "function_call", "call_id": "c1", "name": TOOL, "arguments": "{}"}]
        items += [{"type": "function_call_output", "call_id": "c1", "output": flood}]
    client = OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0)
    reply = client.responses.create(model="m", input=items, tools=[tool])
    assert [item.type for item in reply.output] == ["message"]
    return reply.output_text


def messages(base: str, flood: str | None) -> str:
    from anthropic import Anthropic

    tool = {"name": TOOL, "input_schema": {"type": "object", "properties": {}}}
    turns = [{"role": "user", "content": "Which payments failed?"}]
    if flood:
        turns += [{"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": TOOL, "input": {}}]}]
        result = {"type": "tool_result", "tool_use_id": "c1", "content": flood}
        turns += [{"role": "user", "content": [result]}]
    client = Anthropic(base_url=base, api_key="k", max_retries=0)
    reply = client.messages.create(model="m", max_tokens=500, messages=turns, tools=[tool])
    assert [block.type for block in reply.content] == ["text"]
    return reply.content[0].text


def gemini(base: str, flood: str | None) -> str:
    from google import genai
    from google.genai import types

    declared = types.Tool(function_declarations=[types.FunctionDeclaration(name=TOOL)])
    off = types.AutomaticFunctionCallingConfig(disable=True)
    contents = [types.Content(role="user", parts=[types.Part(text="Which payments failed?")])]
    if flood:
        call = types.Part(function_call=types.FunctionCall(name=TOOL, args={}))
        contents += [types.Content(role="model", parts=[call])]
        response = types.Part.from_function_response(name=TOOL, response={"output": flood})
        contents += [types.Content(role="user", parts=[response])]
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=base))
    config = types.GenerateContentConfig(tools=[declared], automatic_function_calling=off)
    reply = client.models.generate_content(model="m", contents=contents, config=config)
    assert not reply.function_calls
    return reply.text


LIBRARIES = {
    "openai, Chat Completions": ("openai", chat),
    "openai, Responses": ("openai", responses),
    "anthropic": ("anthropic", messages),
    "google-genai": ("gemini", gemini),
}


def failures(ask, direct: str, served: str, flood: str) -> list[str]:
    """Returns the failures of one library's requests through the gateway."""
    wrong = []
    Model.bodies.clear()
    ask(direct, None), ask(served, None)
    if Model.bodies[0] != Model.bodies[1]:
        wrong.append("a request without results is not the same bytes")
    Model.bodies.clear()
    text = ask(served, flood)
    first, *further = Model.bodies
    if len(first) > MOST_BYTES or ERROR.encode() not in first:
        wrong.append(f"upstream came {len(first):,} bytes, {'with' if ERROR.encode() in first else 'without'} the row")
    found = f"payment {LEFT_OUT_ROW:06} was booked"
    if found.encode() in first or len(further) != 1 or text != found:
        wrong.append(f"the row that was left out was not read once: {len(further)} further calls, {text!r}")
    print(f"   {len(flood):,} characters became a request of {len(first):,} bytes")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    given = parser.parse_args()
    sdks.install([])
    if Path(sys.prefix).resolve() != (sdks.FOLDER / "venv").resolve():
        os.execv(sdks.PYTHON, [str(sdks.PYTHON), *sys.argv])
    if given.program:
        gateway.program = lambda: given.program.resolve()
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    direct, flood, wrong = f"http://127.0.0.1:{model.server_port}", result(), []
    base = {"openai": "v1", "anthropic": "v1", "gemini": "v1beta"}
    upstreams = {
        name: {"base_url": f"{direct}/{path}", "format": name} for name, path in base.items()
    }
    with tempfile.TemporaryDirectory() as folder, Gateway(Path(folder), upstreams, cap={"tool": True}) as served:
        for name, (upstream, ask) in LIBRARIES.items():
            found = failures(ask, direct, f"{served.origin}/u/{upstream}", flood)
            print(f"{'ok' if not found else 'FAILED'}  {name}" + "".join(f"\n     {why}" for why in found))
            wrong += found
    model.shutdown()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
