"""The openai library for Python, Chat Completions: reads requests as lines, and writes the library's results as lines."""

import openai
from lines import Compressing, serve, told


def ask(case: dict) -> dict:
    client = openai.OpenAI(
        base_url=case["base_url"], api_key="not-needed", max_retries=0, timeout=case["timeout"],
        http_client=openai.DefaultHttpxClient(transport=Compressing()) if case["compressed"] else None,
    )  # fmt: skip
    create = client.chat.completions.create
    if not case["stream"]:
        reply = create(**case["body"], extra_headers=case["headers"])
        choice = reply.choices[0]
        calls = [[call.function.name, call.function.arguments] for call in choice.message.tool_calls or []]
        return {
            "text": choice.message.content or "", "calls": calls, "finish": choice.finish_reason,
            "output": reply.usage.completion_tokens, "whole": told(reply.model_dump(exclude_unset=True)),
        }  # fmt: skip
    answer = {"text": "", "calls": [], "finish": None, "output": None, "whole": []}
    options = {"stream": True, "stream_options": {"include_usage": True}}
    events = 0
    for chunk in create(**case["body"], **options, extra_headers=case["headers"]):
        events += 1
        if events == case["cancel_after"]:
            break
        answer["whole"].append(told(chunk.model_dump(exclude_unset=True)))
        if chunk.usage:
            answer["output"] = chunk.usage.completion_tokens
        for choice in chunk.choices:
            answer["text"] += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                if call.index == len(answer["calls"]):
                    answer["calls"].append([call.function.name, ""])
                answer["calls"][call.index][1] += (call.function and call.function.arguments) or ""
            answer["finish"] = choice.finish_reason or answer["finish"]
    # If the application stops reading, the connection is closed with the client.
    client.close()
    return answer


serve(ask, openai.OpenAIError)
