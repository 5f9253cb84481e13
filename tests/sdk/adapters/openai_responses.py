"""The openai library for Python, Responses: reads requests as lines, and writes the library's results as lines."""

import openai
from lines import Compressing, serve, told


def of(reply) -> dict:
    calls = [[item.name, item.arguments] for item in reply.output if item.type == "function_call"]
    reason = reply.incomplete_details.reason if reply.incomplete_details else None
    return {
        "text": reply.output_text, "calls": calls, "finish": reason or reply.status,
        "output": reply.usage.output_tokens if reply.usage else None,
    }  # fmt: skip


def ask(case: dict) -> dict:
    client = openai.OpenAI(
        base_url=case["base_url"], api_key="not-needed", max_retries=0, timeout=case["timeout"],
        http_client=openai.DefaultHttpxClient(transport=Compressing()) if case["compressed"] else None,
    )  # fmt: skip
    if not case["stream"]:
        reply = client.responses.create(**case["body"], extra_headers=case["headers"])
        return {**of(reply), "whole": told(reply.model_dump(exclude_unset=True))}
    answer = {"text": "", "calls": [], "finish": None, "output": None, "whole": []}
    events = 0
    for event in client.responses.create(**case["body"], stream=True, extra_headers=case["headers"]):
        events += 1
        if events == case["cancel_after"]:
            break
        answer["whole"].append(told(event.model_dump(exclude_unset=True)))
        if event.type == "response.output_text.delta":
            answer["text"] += event.delta
        if event.type == "response.output_item.done" and event.item.type == "function_call":
            answer["calls"].append([event.item.name, event.item.arguments])
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            answer = {**answer, **of(event.response)}
    client.close()
    return answer


serve(ask, openai.OpenAIError)
