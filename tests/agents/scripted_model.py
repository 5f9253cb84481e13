"""A scripted model in three wire formats, which records its requests.

It calls the agent's shell once, says that it is done, and calls it once more if the agent is held to its artifact.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HELD = "is not finished (attempt"


class ScriptedModel:
    """The server of the model, on a free loopback port."""

    def __init__(self, first: str, when_held: str):
        self.commands = (first, when_held)
        self.requests: list[str] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.answer("application/json", b'{"data": [], "models": []}')

            do_HEAD = do_GET

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                body = json.loads(text or "{}")
                for part, reply in (("/messages", messages), ("/responses", responses), ("generateContent", gemini)):
                    if part.lower() in self.path.lower():
                        # Requests without tools concern the conversation, for example its title.
                        if body.get("tools") and "count_tokens" not in self.path:
                            model.requests.append(text)
                        events = reply(body, model.next)
                        if "stream" in self.path or body.get("stream"):
                            return self.answer("text/event-stream", "".join(map(frame, events)).encode())
                        return self.answer("application/json", json.dumps(events[-1]).encode())
                return self.answer("application/json", b'{"input_tokens": 10}')

            def answer(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def next(self, conversation: object, results: int) -> str | None:
        """Returns the next command to run, or None if the model reports that it is done."""
        allowed = 2 if HELD in json.dumps(conversation) else 1
        return self.commands[results] if results < allowed else None

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> ScriptedModel:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def frame(event: dict) -> str:
    """Formats an event without a name, as Gemini does."""
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"


def messages(body: dict, following) -> list[dict]:
    conversation = body.get("messages", [])
    results = json.dumps(conversation).count('"tool_result"')
    has_shell = any(tool.get("name") == "Bash" for tool in body.get("tools", []))
    command = following(conversation, results) if has_shell else None
    if command:
        block = {"type": "tool_use", "id": f"toolu_{results}", "name": "Bash", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": command, "description": "run"})}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"), "stop_reason": None,
               "usage": {"input_tokens": 100, "output_tokens": 1}}  # fmt: skip
    if not body.get("stream"):
        return [{**message, "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}]
    return [
        {"type": "message_start", "message": {**message, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use" if command else "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


def responses(body: dict, following) -> list[dict]:
    conversation = body.get("input", [])
    results = sum(str(item.get("type", "")).endswith("_output") for item in conversation)
    command = following(conversation, results)
    if command:
        # Without this field, Codex passes on only 10,000 tokens, whatever its settings are.
        item = {"type": "function_call", "id": f"fc_{results}", "call_id": f"call_{results}", "name": "exec_command",
                "arguments": json.dumps({"cmd": command, "max_output_tokens": 400_000}), "status": "completed"}  # fmt: skip
    else:
        item = {"type": "message", "id": f"m_{results}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}  # fmt: skip
    usage = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}
    whole = {"id": f"resp_{len(conversation)}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]


def gemini(body: dict, following) -> list[dict]:
    conversation = body.get("contents", [])
    results = json.dumps(conversation).count('"functionResponse"')
    has_shell = "run_shell_command" in json.dumps(body.get("tools", []))
    command = following(conversation, results) if has_shell else None
    call = {"name": "run_shell_command", "args": {"command": command, "description": "run"}}
    part = {"functionCall": call} if command else {"text": "Done."}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}}]
