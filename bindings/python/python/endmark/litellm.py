"""LiteLLM: `completion` and `acompletion` that return complete replies and tool calls or raise, within a budget.

    from endmark.litellm import EndmarkLiteLLM
    llm = EndmarkLiteLLM()
    response = llm.completion("openai/gpt-5", messages, tools=[*tools, llm.read_tool()])
    messages += [llm.tool_message(call, run(call)) for call in response.choices[0].message.tool_calls]

LiteLLM does not run tools, so `tool_message` caps their results, and answers calls of `endmark_read` itself. Needs
`pip install "endmark[litellm]"`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import litellm
from pydantic import BaseModel

from ._context import Admitted, Meter, Outputs, Tokens, compact, read_tool
from ._errors import InvalidInput, NotResumed
from ._frameworks import CLOSING, READ_TOOL, Budget, Call, Continuation, ReceivedReply, RecoveredReply, ToolResults, recover, recover_async
from ._recovery import MAX_RESUME_ATTEMPTS, Log

__all__ = ["EndmarkLiteLLM"]

_LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
_TOOL_OPTIONS = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")


class EndmarkLiteLLM:
    """LiteLLM's functions with recovery of cut replies and a budget for all calls.

    Arguments and return values are those of LiteLLM. A reply that stays cut raises `ResumeExhausted`. `meter` is a budget: the first call
    that no longer fits is made without tools and asks for a summary, and later ones raise `NotAdmitted`. `window_tokens` is the size of
    the history above which its older part is condensed; 0 means never. `functions` may be a router, which replaces the module `litellm`.
    """

    def __init__(
        self,
        *,
        max_attempts: int = MAX_RESUME_ATTEMPTS,
        max_result_chars: int = 20_000,
        outputs: Outputs | None = None,
        meter: Meter | None = None,
        window_tokens: int = 0,
        continuation_tokens: int = 4_096,
        assume_output_tokens: int = 4_096,
        log: Log | None = None,
        task_id: str = "",
        functions: Any = litellm,
    ) -> None:
        self.max_attempts = max_attempts
        self.log = log
        self.task_id = task_id
        self._window_tokens = window_tokens
        self._continuation_tokens = continuation_tokens
        self._results = ToolResults(max_result_chars, outputs)
        self._budget = Budget(meter, assume_output_tokens)
        self._functions = functions

    def completion(self, model: str, messages: list[Any], *, stream: bool = False, **options: Any) -> Any:
        """Calls `litellm.completion`. With `stream`, further chunks contain the rest of a cut reply."""
        request = self._request(model, messages, options)
        if stream:
            return self._stream(request)
        first = self._call(request, is_continuation=False)
        recovered = self._recover(request, first)
        return first.raw if recovered is None else _completed_response(first.raw, recovered)

    async def acompletion(self, model: str, messages: list[Any], *, stream: bool = False, **options: Any) -> Any:
        """Calls `litellm.acompletion`. With `stream`, further chunks contain the rest of a cut reply."""
        request = self._request(model, messages, options)
        if stream:
            return self._astream(request)
        first = await self._acall(request, is_continuation=False)
        recovered = await self._arecover(request, first)
        return first.raw if recovered is None else _completed_response(first.raw, recovered)

    def read_tool(self) -> dict[str, Any]:
        """Returns the tool `endmark_read`, with which the model reads omitted parts of a result."""
        tool = read_tool()
        return {"type": "function", "function": {"name": tool["name"], "description": tool["description"], "parameters": tool["schema"]}}

    def tool_message(self, call: Any, result: Any = None) -> dict[str, Any]:
        """Returns the message with the capped result of a tool call. A call of `endmark_read` needs no `result`."""
        if call.function.name == READ_TOOL:
            content = self._results.read(call.function.arguments or "")
        else:
            short = self._results.shorten_value(result)
            content = short if isinstance(short, str) else json.dumps(short, ensure_ascii=False, default=str)
        return {"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": content}

    def _request(self, model: str, messages: list[Any], options: dict[str, Any]) -> dict[str, Any]:
        if (options.get("n") or 1) > 1:
            raise InvalidInput("several choices (`n`) cannot be continued: ask for one", "several_choices")
        if self._window_tokens:
            plain = [message.model_dump(exclude_none=True) if isinstance(message, BaseModel) else message for message in messages]
            found = compact(
                {"model": model, "messages": plain}, "openai_chat", trigger_tokens=self._window_tokens, budget_tokens=self._window_tokens
            )
            messages = found.request["messages"] if found.is_compacted else messages
        return {**options, "model": model, "messages": messages}

    def _call(self, request: dict[str, Any], *, is_continuation: bool) -> ReceivedReply:
        admitted, asked = self._admit(request, is_continuation=is_continuation)
        try:
            response = self._functions.completion(**asked)
        except BaseException:
            self._budget.settle(admitted, None)
            raise
        return self._settle(admitted, response)

    async def _acall(self, request: dict[str, Any], *, is_continuation: bool) -> ReceivedReply:
        admitted, asked = self._admit(request, is_continuation=is_continuation)
        try:
            response = await self._functions.acompletion(**asked)
        except BaseException:
            self._budget.settle(admitted, None)
            raise
        return self._settle(admitted, response)

    def _recover(self, request: dict[str, Any], first: ReceivedReply, *, is_sent: bool = False) -> RecoveredReply | None:
        def ask(asked: Continuation) -> ReceivedReply:
            return self._call(self._continuation_request(request, asked), is_continuation=True)

        try:
            return recover(first, ask, self, is_sent=is_sent, **_recovery_options(request))
        except NotResumed:
            if _is_refusal(first):
                return None
            raise

    async def _arecover(self, request: dict[str, Any], first: ReceivedReply, *, is_sent: bool = False) -> RecoveredReply | None:
        async def ask(asked: Continuation) -> ReceivedReply:
            return await self._acall(self._continuation_request(request, asked), is_continuation=True)

        try:
            return await recover_async(first, ask, self, is_sent=is_sent, **_recovery_options(request))
        except NotResumed:
            if _is_refusal(first):
                return None
            raise

    def _stream(self, request: dict[str, Any]) -> Iterator[Any]:
        admitted, asked = self._admit(request, is_continuation=False)
        read = _StreamReader()
        try:
            stream = self._functions.completion(**asked, stream=True)
            for chunk in stream:
                yield from read.passed(chunk)
        finally:
            self._settle_stream(admitted, read)
        first = read.received(stream, request)
        yield from read.ending(first, self._recover(request, first, is_sent=True))

    async def _astream(self, request: dict[str, Any]) -> AsyncIterator[Any]:
        admitted, asked = self._admit(request, is_continuation=False)
        read = _StreamReader()
        try:
            stream = await self._functions.acompletion(**asked, stream=True)
            async for chunk in stream:
                for passed in read.passed(chunk):
                    yield passed
        finally:
            self._settle_stream(admitted, read)
        first = read.received(stream, request)
        for chunk in read.ending(first, await self._arecover(request, first, is_sent=True)):
            yield chunk

    def _continuation_request(self, request: dict[str, Any], asked: Continuation) -> dict[str, Any]:
        """Returns the continuation request. It has no tools and no schema, so that the answer continues the text."""
        least = self._continuation_tokens
        limits = {name: max(request[name], least) for name in _LIMIT_NAMES if request.get(name)}
        # A continuation is not a stream.
        withheld = ("stream_options", *(("response_format", *_TOOL_OPTIONS) if asked.is_rest else ()))
        request = {name: value for name, value in {**request, **limits}.items() if name not in withheld}
        if asked.is_rest:
            added = [{"role": "assistant", "content": asked.shown_text}, {"role": "user", "content": asked.prompt}]
            request["messages"] = [*request["messages"], *added]
        return request

    def _admit(self, request: dict[str, Any], *, is_continuation: bool) -> tuple[Admitted | None, dict[str, Any]]:
        """Holds the call in the budget, if there is one. Also returns the request to make."""
        limit = next((request[name] for name in _LIMIT_NAMES if request.get(name)), None)
        body = [request["messages"], request.get("tools")]
        admitted = self._budget.admit(str(request["model"]).rpartition("/")[2], body, limit, is_continuation=is_continuation)
        if admitted is None or not admitted.is_closing:
            return admitted, request
        closing = {name: value for name, value in request.items() if name not in (*_TOOL_OPTIONS, *_LIMIT_NAMES)}
        limit_name = next((name for name in _LIMIT_NAMES if request.get(name)), "max_tokens")
        closing[limit_name] = admitted.max_output_tokens
        closing["messages"] = [*request["messages"], {"role": "user", "content": CLOSING}]
        return admitted, closing

    def _settle(self, admitted: Admitted | None, response: Any) -> ReceivedReply:
        received = _to_received_reply(response)
        self._budget.settle(admitted, _tokens(getattr(response, "usage", None)), received.written_text())
        return received

    def _settle_stream(self, admitted: Admitted | None, read: _StreamReader) -> None:
        self._budget.settle(admitted, _tokens(read.usage), "".join(read.arrived) if read.chunks else None)


class _StreamReader:
    """Passes on the chunks of a stream, except those that end it."""

    def __init__(self) -> None:
        self.chunks: list[Any] = []
        self.arrived: list[str] = []
        self.usage: Any = None
        self._ends: list[Any] = []

    def passed(self, chunk: Any) -> list[Any]:
        self.chunks.append(chunk)
        self.usage = getattr(chunk, "usage", None) or self.usage
        choice = chunk.choices[0] if chunk.choices else None
        if choice is not None:
            calls: list[Any] = choice.delta.tool_calls or []
            self.arrived += [choice.delta.content or "", *(call.function.arguments or "" for call in calls)]
        if self._ends or choice is None or choice.finish_reason:
            self._ends.append(chunk)
            return []
        return [chunk]

    def received(self, stream: Any, request: dict[str, Any]) -> ReceivedReply:
        if not self.chunks:
            return ReceivedReply("", (), None, None, litellm.ModelResponse(choices=[]))
        built = cast(Any, litellm).stream_chunk_builder(self.chunks, messages=request["messages"])
        received = _to_received_reply(built)
        # LiteLLM writes `stop` if the provider sent no stop reason.
        stop: Any = getattr(stream, "received_finish_reason", received.stop)
        return ReceivedReply(received.text, received.calls, stop, received.output_tokens, built)

    def ending(self, first: ReceivedReply, recovered: RecoveredReply | None) -> list[Any]:
        """Returns the last chunks: the rest of a cut reply, and the end with the usage of all calls."""
        if recovered is None or not self.chunks:
            return self._ends
        whole = _completed_response(first.raw, recovered)
        message = whole.choices[0].message
        delta: dict[str, Any] = {}
        if recovered.args is not None:
            rest = recovered.args[len(first.calls[-1].args) :]
            delta["tool_calls"] = [{"index": len(first.calls) - 1, "id": None, "type": "function", "function": {"arguments": rest}}]
        else:
            delta["content"] = recovered.outcome.text[len(first.text) :]
            delta["tool_calls"] = [
                {"index": at, **call.model_dump()} for at, call in enumerate(message.tool_calls or [])
            ] or None  # fmt: skip
        kinds: Any = litellm
        head = {"id": self.chunks[0].id, "created": self.chunks[0].created, "model": self.chunks[0].model}
        made: list[Any] = [{"index": 0, "delta": delta, "finish_reason": None}]
        ended: list[Any] = [{"index": 0, "delta": {}, "finish_reason": whole.choices[0].finish_reason}]
        added = [kinds.ModelResponseStream(**head, choices=made), kinds.ModelResponseStream(**head, choices=ended)]
        if self.usage is not None:
            added.append(kinds.ModelResponseStream(**head, choices=[], usage=whole.usage))
        return added


def _recovery_options(request: dict[str, Any]) -> dict[str, Any]:
    wanted = request.get("response_format")
    is_json = wanted is not None and not (isinstance(wanted, dict) and cast("dict[str, Any]", wanted).get("type") == "text")
    messages: list[Any] = request["messages"]
    turns = sum(cast(Any, message["role"] if isinstance(message, dict) else message.role) == "assistant" for message in messages)
    return {"is_json": is_json, "turn_number": turns + 1}


def _is_refusal(first: ReceivedReply) -> bool:
    """Whether the reply itself shows the caller that it was refused. A call with cut arguments does not."""
    return first.stop is not None and first.raw.choices[0].finish_reason == "content_filter" and not first.calls


def _to_received_reply(response: Any) -> ReceivedReply:
    choice = response.choices[0]
    made: list[Any] = choice.message.tool_calls or []
    calls = tuple(Call(call.function.name or "", call.function.arguments or "") for call in made)
    # LiteLLM maps unknown stop reasons to `stop`, and keeps the provider's own one here.
    kept: dict[str, Any] = getattr(choice, "provider_specific_fields", None) or {}
    own: Any = kept.get("native_finish_reason")
    usage = getattr(response, "usage", None)
    return ReceivedReply(choice.message.content or "", calls, own or choice.finish_reason, usage.completion_tokens if usage else None, response)


def _completed_response(response: Any, recovered: RecoveredReply) -> Any:
    """Returns the reply with the whole text or call, a normal finish reason, and the usage of all calls."""
    whole = response.model_copy(deep=True)
    choice = whole.choices[0]
    if recovered.args is not None:
        choice.message.tool_calls[-1].function.arguments = recovered.args
    else:
        choice.message.content = recovered.outcome.text
        added: list[Any] = recovered.last.raw.choices[0].message.tool_calls or []
        if added:
            choice.message.tool_calls = added
    choice.finish_reason = "tool_calls" if choice.message.tool_calls else "stop"
    kept: dict[str, Any] = getattr(choice, "provider_specific_fields", None) or {}
    choice.provider_specific_fields = {**kept, "native_finish_reason": None, "endmark": recovered.disclosure()}
    usages = [getattr(received, "usage", None) for received in [response, *(answer.raw for answer in recovered.answers)]]
    known: list[Any] = [usage.model_dump() for usage in usages if usage is not None]
    if known:
        whole.usage = litellm.Usage(**_sum_usages(known))
    return whole


def _sum_usages(usages: list[dict[str, Any]]) -> dict[str, Any]:
    """Adds up all numbers of the usages, including nested ones."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for usage in usages for name in usage):
        values = [usage[name] for usage in usages if usage.get(name) is not None]
        nested = [cast("dict[str, Any]", value) for value in values if isinstance(value, dict)]
        numbers = [value for value in values if isinstance(value, (int, float))]
        found[name] = _sum_usages(nested) if nested else sum(numbers) if numbers else values[0] if values else None
    return found


def _tokens(usage: Any) -> Tokens | None:
    if usage is None:
        return None
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return Tokens(
        prompt=usage.prompt_tokens, cached=getattr(prompt, "cached_tokens", None) or 0,
        cache_write=getattr(prompt, "cache_creation_tokens", None) or 0, completion=usage.completion_tokens,
        reasoning=getattr(completion, "reasoning_tokens", None) or 0,
    )  # fmt: skip
