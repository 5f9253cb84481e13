"""Sends requests with the official client, and returns replies in one form, streamed or not."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

# Two processes of this machine must not use a configured proxy.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"

import openai  # noqa: E402

from model_server import MODEL_NAME  # noqa: E402

PROMPTS = json.loads((Path(__file__).parent / "prompts.json").read_text(encoding="utf-8"))


@dataclass
class Reply:
    text: str = ""
    arguments: str = ""
    finish_reason: str | None = None
    usage: dict = field(default_factory=dict)
    outcome: str | None = None
    attempts: int = 0
    request: str | None = None
    # Endmark's note about the required schema, if there is one.
    schema: str | None = None
    error: str | None = None

    @property
    def body(self) -> str:
        """Returns the part that can be cut: the arguments of the tool call if there is one, otherwise the text."""
        return self.arguments or self.text

    @property
    def tokens(self) -> int:
        return self.usage.get("completion_tokens", 0)


@dataclass(frozen=True)
class Question:
    messages: list[dict]
    options: dict = field(default_factory=dict)

    def then(self, message: dict) -> Question:
        return Question([*self.messages, message], self.options)


class Speaker:
    """A client for one base URL: the model server itself, or Endmark in front of it."""

    def __init__(self, base_url: str):
        # Without retries of the client, so that a test sees each error.
        self.client = openai.OpenAI(base_url=base_url, api_key="not-needed", max_retries=0, timeout=180)

    def ask(
        self,
        question: Question,
        *,
        stream: bool = False,
        resume: str | None = None,
        on_text: Callable[[Reply], None] | None = None,
        **options,
    ) -> Reply:
        """Sends a request at temperature 0. A broken connection is not raised, but becomes the `error` of the reply."""
        headers = {"x-endmark-resume": resume} if resume else {}
        request = {
            "model": MODEL_NAME, "messages": question.messages, "temperature": 0,
            "extra_headers": headers, **question.options, **options,
        }  # fmt: skip
        reply = Reply()
        try:
            if stream:
                self._stream(request, reply, on_text)
            else:
                self._whole(request, reply)
        except openai.OpenAIError as problem:
            reply.error = f"{type(problem).__name__}: {problem}"
        return reply

    def _whole(self, request: dict, reply: Reply) -> None:
        raw = self.client.chat.completions.with_raw_response.create(**request)
        self._read_headers(raw.headers, reply)
        answer = raw.parse()
        choice = answer.choices[0]
        reply.text = choice.message.content or ""
        reply.arguments = "".join(call.function.arguments for call in choice.message.tool_calls or [])
        reply.finish_reason = choice.finish_reason
        reply.usage = answer.usage.model_dump()

    def _stream(self, request: dict, reply: Reply, on_text: Callable[[Reply], None] | None) -> None:
        raw = self.client.chat.completions.with_raw_response.create(
            stream=True, stream_options={"include_usage": True}, **request
        )
        self._read_headers(raw.headers, reply)
        for chunk in raw.parse():
            if chunk.usage:
                reply.usage = chunk.usage.model_dump()
            disclosed = (chunk.model_extra or {}).get("endmark")
            if disclosed:
                reply.outcome = disclosed.get("outcome")
                reply.attempts = disclosed.get("attempts", 0)
                reply.request = disclosed.get("request", reply.request)
                reply.schema = disclosed.get("schema")
            for choice in chunk.choices:
                reply.text += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    reply.arguments += (call.function and call.function.arguments) or ""
                reply.finish_reason = choice.finish_reason or reply.finish_reason
                if on_text:
                    on_text(reply)

    @staticmethod
    def _read_headers(headers, reply: Reply) -> None:
        reply.outcome = headers.get("x-endmark-outcome")
        reply.attempts = int(headers.get("x-endmark-attempts", 0))
        reply.request = headers.get("x-endmark-request")
        reply.schema = headers.get("x-endmark-schema")

    def warm(self, question: Question) -> None:
        """Fills the server's cache with the prompt.

        The same prompt computed cold and from the cache can differ in the last bits, and with them a whole word; from
        here on every call starts from the same numbers.
        """
        self.ask(question, max_tokens=1)


def user(content: str) -> dict:
    return {"role": "user", "content": content}


def text_questions() -> list[Question]:
    return [Question([user(prompt)]) for prompt in PROMPTS["texts"]]


def document_questions() -> list[Question]:
    def demanded(schema: dict) -> dict:
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}

    return [
        Question([user(case["prompt"])], {"response_format": demanded(case["schema"])}) for case in PROMPTS["documents"]
    ]


def call_questions() -> list[Question]:
    """Returns questions with two examples, because a model this small calls a tool only after examples."""
    calls = PROMPTS["calls"]
    shown: list[dict] = []
    for number, example in enumerate(calls["shown_first"], 1):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": calls["tool"]["name"], "arguments": json.dumps(example["arguments"])},
        }
        shown += [
            user(example["prompt"]),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"},
            {"role": "assistant", "content": "Done."},
        ]
    tools = {"tools": [{"type": "function", "function": calls["tool"]}]}
    return [Question([*shown, user(prompt)], tools) for prompt in calls["prompts"]]
