"""The google-genai library for Python: reads requests as lines, and writes the library's results as lines."""

import json

from google import genai
from google.genai import errors, types
from lines import Compressing, serve, told


def parts(reply) -> tuple[str, list]:
    text, calls = "", []
    for candidate in (reply.candidates or [])[:1]:
        for part in (candidate.content and candidate.content.parts) or []:
            text += part.text or ""
            if part.function_call:
                calls.append([part.function_call.name, json.dumps(part.function_call.args)])
    return text, calls


def finish(reply) -> str | None:
    reason = reply.candidates[0].finish_reason if reply.candidates else None
    return reason.value if reason else None


def seen(reply) -> dict:
    return told(reply.model_dump(mode="json", exclude_unset=True, exclude={"sdk_http_response"}))


def ask(case: dict) -> dict:
    options = types.HttpOptions(
        base_url=case["base_url"], headers=case["headers"], timeout=int(case["timeout"] * 1000),
        retry_options=types.HttpRetryOptions(attempts=1),
        client_args={"transport": Compressing()} if case["compressed"] else None,
    )  # fmt: skip
    client = genai.Client(api_key="not-needed", http_options=options)
    body = case["body"]
    config = types.GenerateContentConfig(**body["config"])
    asked = {"model": body["model"], "contents": body["contents"], "config": config}
    if not case["stream"]:
        reply = client.models.generate_content(**asked)
        text, calls = parts(reply)
        usage = reply.usage_metadata
        output = usage.candidates_token_count if usage else None
        return {"text": text, "calls": calls, "finish": finish(reply), "output": output, "whole": seen(reply)}
    answer = {"text": "", "calls": [], "finish": None, "output": None, "whole": []}
    events = 0
    for chunk in client.models.generate_content_stream(**asked):
        events += 1
        if events == case["cancel_after"]:
            break
        text, calls = parts(chunk)
        answer["text"] += text
        answer["calls"] += calls
        answer["finish"] = finish(chunk) or answer["finish"]
        answer["whole"].append(seen(chunk))
        if chunk.usage_metadata:
            answer["output"] = chunk.usage_metadata.candidates_token_count
    client.close()
    return answer


serve(ask, errors.APIError)
