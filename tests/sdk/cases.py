"""The table of cases: the request, the fault, and the required result."""

from __future__ import annotations

import json
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

REAL_MODEL = Path(__file__).resolve().parent.parent / "real_model"
sys.path.insert(0, str(REAL_MODEL))

from model_server import SetUpError  # noqa: E402

PROMPTS = json.loads((REAL_MODEL / "prompts.json").read_text())
# Each reply ends by itself after 30 to 60 tokens, so that a lower limit always cuts it.
TEXT = "Who was Marie Curie? Answer in one sentence."
DOCUMENT = PROMPTS["documents"][0]
CALLS = PROMPTS["calls"]
# Limits a model that does not stop, so that it takes seconds instead of minutes.
MOST_TOKENS = 120
# The token limit of a cut call, which cuts its arguments.
CUT_CALL_TOKENS = 50


@dataclass(frozen=True)
class Case:
    """One row. `trouble` is a fault of trouble.py, without the name of the request."""

    name: str
    # The requested reply: `text`, `document` or `call`.
    kind: str
    # The required result through Endmark: the `same` as directly, `whole`, `cut`, an `error`, or `gone` (the connection).
    outcome: str
    trouble: str = ""
    max_tokens: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    streams: tuple[bool, ...] = (False, True)
    # The required result without Endmark, which is the reason for the case.
    direct: str | None = None
    cancel_after: int | None = None
    timeout: float = 60
    # The status that the library must report.
    status: int | None = None
    tls: bool = False
    # Whether the library compresses its request.
    compressed: bool = False


ALWAYS = {"x-endmark-resume": "on"}
STREAM, WHOLE = (True,), (False,)

CASES = [
    Case("text", "text", "same"),
    Case("a JSON schema", "document", "same"),
    Case("a tool call", "call", "same"),
    Case("text, cut by its limit", "text", "whole", max_tokens=12, headers=ALWAYS, direct="cut"),
    Case("text, cut by a deliberate limit", "text", "cut", max_tokens=12, direct="cut"),
    Case("a JSON schema, cut by its limit", "document", "whole", max_tokens=14, direct="cut"),
    Case("a tool call, cut by its limit", "call", "whole", max_tokens=CUT_CALL_TOKENS, direct="cut"),
    Case("a connection that drops", "text", "whole", "drop:9", streams=STREAM, direct="broken"),
    Case("a tool call in a connection that drops", "call", "whole", "drop:25", streams=STREAM, direct="broken"),
    Case("a stream that just ends", "text", "whole", "end:9", streams=STREAM, direct="broken"),
    Case("a stream that stalls", "text", "whole", "stall:12", streams=STREAM),
    Case("a stream that cannot be finished", "text", "error", "dead:9", streams=STREAM, direct="broken"),
    Case("a reply that is lost", "text", "whole", "drop:80", streams=WHOLE, direct="broken"),
    Case("cancelled by the client", "text", "gone", "slow:60", streams=STREAM, cancel_after=5),
    Case("refused with 400", "text", "error", "status:400", direct="error", status=400),
    Case("refused with 401", "text", "error", "status:401", direct="error", status=401),
    Case("refused with 429", "text", "error", "status:429", direct="error", status=429),
    Case("refused with 503", "text", "error", "status:503", direct="error", status=503),
    Case("compressed both ways, cut by its limit", "text", "whole", "gzip:", max_tokens=12, headers=ALWAYS, compressed=True),
    Case("over TLS, cut by its limit", "text", "whole", max_tokens=12, headers=ALWAYS, tls=True),
]


# The request for a call that works best with this model on this machine: see `choose_call`.
chosen_call: list[str] = []


def call_prompt() -> str:
    return chosen_call[0] if chosen_call else CALLS["prompts"][0]


def choose_call(origin: str, model: str) -> None:
    """Chooses the request that the model answers with the shortest call that ends by itself.

    A small model may call no tool, or write without end; which request causes this depends on the machine.
    """
    calls = {}
    for prompt in CALLS["prompts"]:
        chosen_call[:] = [prompt]
        data = json.dumps(chat("call", model, MOST_TOKENS)).encode()
        asked = urllib.request.Request(f"{origin}/v1/chat/completions", data, {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=120) as answer:
            reply = json.load(answer)
        tokens, finish = reply["usage"]["completion_tokens"], reply["choices"][0]["finish_reason"]
        if finish == "tool_calls" and tokens > CUT_CALL_TOKENS + 5:
            calls[prompt] = tokens
    if not calls:
        raise SetUpError("the model makes no call that ends by itself: nothing can be compared")
    chosen_call[:] = [min(calls, key=calls.get)]


def user(content: str) -> dict:
    return {"role": "user", "content": content}


def chat(kind: str, model: str, max_tokens: int | None) -> dict:
    """Returns the body of a request in Chat Completions."""
    body: dict = {"model": model, "temperature": 0, "max_tokens": max_tokens or MOST_TOKENS}
    if kind == "text":
        return {**body, "messages": [user(TEXT)]}
    if kind == "document":
        schema = {"name": "answer", "strict": True, "schema": DOCUMENT["schema"]}
        form = {"type": "json_schema", "json_schema": schema}
        return {**body, "messages": [user(DOCUMENT["prompt"])], "response_format": form}
    messages = []
    for number, example in enumerate(CALLS["shown_first"], 1):
        function = {"name": CALLS["tool"]["name"], "arguments": json.dumps(example["arguments"])}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages += [
            user(example["prompt"]),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"},
            {"role": "assistant", "content": "Done."},
        ]
    tools = [{"type": "function", "function": CALLS["tool"]}]
    return {**body, "messages": [*messages, user(call_prompt())], "tools": tools}


def responses(kind: str, model: str, max_tokens: int | None) -> dict:
    """Returns the body of a request in Responses."""
    body: dict = {"model": model, "temperature": 0, "max_output_tokens": max_tokens or MOST_TOKENS}
    if kind == "text":
        return {**body, "input": [user(TEXT)]}
    if kind == "document":
        form = {"type": "json_schema", "name": "answer", "strict": True, "schema": DOCUMENT["schema"]}
        return {**body, "input": [user(DOCUMENT["prompt"])], "text": {"format": form}}
    items = []
    for number, example in enumerate(CALLS["shown_first"], 1):
        arguments = json.dumps(example["arguments"])
        name = f"call_{number}"
        items += [
            user(example["prompt"]),
            {"type": "function_call", "call_id": name, "name": CALLS["tool"]["name"], "arguments": arguments},
            {"type": "function_call_output", "call_id": name, "output": "ok"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        ]
    return {**body, "input": [*items, user(call_prompt())], "tools": [{"type": "function", **CALLS["tool"]}]}


def messages(kind: str, model: str, max_tokens: int | None) -> dict:
    """Returns the body of a request in Messages."""
    body: dict = {"model": model, "temperature": 0, "max_tokens": max_tokens or MOST_TOKENS}
    if kind == "text":
        return {**body, "messages": [user(TEXT)]}
    if kind == "document":
        form = {"type": "json_schema", "schema": DOCUMENT["schema"]}
        return {**body, "messages": [user(DOCUMENT["prompt"])], "output_config": {"format": form}}
    turns = []
    for number, example in enumerate(CALLS["shown_first"], 1):
        name = f"toolu_{number}"
        use = {"type": "tool_use", "id": name, "name": CALLS["tool"]["name"], "input": example["arguments"]}
        turns += [
            user(example["prompt"]),
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "ok"}]},
            {"role": "assistant", "content": "Done."},
        ]
    tool = {key: value for key, value in CALLS["tool"].items() if key != "parameters"}
    tools = [{**tool, "input_schema": CALLS["tool"]["parameters"]}]
    return {**body, "messages": [*turns, user(call_prompt())], "tools": tools}


def gemini(kind: str, model: str, max_tokens: int | None) -> dict:
    """Returns the arguments of a request for Google's libraries."""
    config: dict = {"temperature": 0, "maxOutputTokens": max_tokens or MOST_TOKENS}
    if kind == "document":
        config |= {"responseMimeType": "application/json", "responseJsonSchema": DOCUMENT["schema"]}
    if kind == "call":
        tool = {key: value for key, value in CALLS["tool"].items() if key != "parameters"}
        config["tools"] = [{"functionDeclarations": [{**tool, "parametersJsonSchema": CALLS["tool"]["parameters"]}]}]
    text = DOCUMENT["prompt"] if kind == "document" else call_prompt() if kind == "call" else TEXT
    return {"model": model, "contents": [{"role": "user", "parts": [{"text": text}]}], "config": config}


BODIES = {
    "openai_chat": chat, "openai_responses": responses, "anthropic_messages": messages, "gemini": gemini,
}  # fmt: skip
# The path after the address of the server.
VERSIONS = {"openai_chat": "/v1", "openai_responses": "/v1", "anthropic_messages": "", "gemini": ""}
# Gemini sends calls whole or not at all.
WITHOUT = {"gemini": {"a tool call, cut by its limit", "a tool call in a connection that drops"}}


def is_mocked(format: str, kind: str) -> bool:
    """Whether a mock must answer. The real model server does not support Gemini, and supports schemas only in chat."""
    return format == "gemini" or kind == "document" and format != "openai_chat"


def body(format: str, case: Case, model: str) -> dict:
    """Returns the body to send. A mock chooses its reply by the model."""
    if is_mocked(format, case.kind):
        model = f"{case.kind}-{'cut' if case.max_tokens else 'whole'}"
    return BODIES[format](case.kind, model, case.max_tokens)


def cases_for(format: str, without: tuple[str, ...] = ()) -> list[Case]:
    """Returns the rows that make sense in a format, except those that a library cannot do."""
    left_out = WITHOUT.get(format, set()).union(without)
    return [case for case in CASES if case.name not in left_out]
