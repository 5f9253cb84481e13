"""The anthropic library for Python: reads requests as lines, and writes the library's results as lines."""

import json

import anthropic
from lines import Compressing, serve, told


def of(reply) -> dict:
    text = "".join(block.text for block in reply.content if block.type == "text")
    calls = [[block.name, json.dumps(block.input)] for block in reply.content if block.type == "tool_use"]
    return {"text": text, "calls": calls, "finish": reply.stop_reason, "output": reply.usage.output_tokens}


def ask(case: dict) -> dict:
    client = anthropic.Anthropic(
        base_url=case["base_url"], api_key="not-needed", max_retries=0, timeout=case["timeout"],
        http_client=anthropic.DefaultHttpxClient(transport=Compressing()) if case["compressed"] else None,
    )  # fmt: skip
    body = dict(case["body"])
    # The library no longer has a parameter for this, but servers support it.
    extra = {"extra_headers": case["headers"], "extra_body": {"temperature": body.pop("temperature")}}
    if not case["stream"]:
        reply = client.messages.create(**body, **extra)
        return {**of(reply), "whole": told(reply.model_dump(exclude_unset=True))}
    whole, events = [], 0
    with client.messages.stream(**body, **extra) as stream:
        for event in stream:
            events += 1
            if events == case["cancel_after"]:
                return {"text": "", "calls": [], "finish": None, "output": None, "whole": whole}
            whole.append(told(event.model_dump(exclude_unset=True)))
        return {**of(stream.get_final_message()), "whole": whole}


serve(ask, anthropic.AnthropicError)
