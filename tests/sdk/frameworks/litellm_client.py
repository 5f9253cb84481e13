"""LiteLLM as a library, with Chat Completions or Messages upstream. The application itself runs the tools."""

import json
import sys

import litellm
from documents import Document
from lines import serve

PROVIDER = sys.argv[1]
litellm.suppress_debug_info = True
litellm.telemetry = False


PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}, "required": ["path", "text"]}
TOOL = {"type": "function", "function": {"name": "save_note", "description": "Saves a note.", "parameters": PARAMETERS}}


def complete(case: dict, messages: list):
    options = {"tools": [TOOL]} if case["kind"] in ("call", "calls", "long") else {}
    if case["kind"] == "document":
        options["response_format"] = Document
    base = case["base_url"] if PROVIDER == "openai" else case["base_url"].removesuffix("/v1")
    answer = litellm.completion(
        model=f"{PROVIDER}/{case['model']}", messages=messages, api_base=base, api_key="not-needed", num_retries=0, max_retries=0,
        stream=case["stream"], timeout=case["timeout"], **options,
    )  # fmt: skip
    return litellm.stream_chunk_builder(list(answer), messages=messages) if case["stream"] else answer


def ask(case: dict) -> dict:
    messages, calls = [{"role": "user", "content": case["prompt"]}], []
    for _ in range(case["steps"]):
        message = complete(case, messages).choices[0].message
        if not message.tool_calls:
            break
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            calls.append([call.function.name, arguments])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"{arguments['path']} {case['result']}"})
    text = message.content or ""
    if case["kind"] == "document":
        return {"text": "", "calls": [], "value": json.loads(text)}
    return {"text": text, "calls": calls}


serve(ask, Exception)
