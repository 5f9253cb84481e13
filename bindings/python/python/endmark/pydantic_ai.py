"""Pydantic AI: returns complete replies, structured outputs and tool calls or raises, and caps tool results.

    from endmark.pydantic_ai import EndmarkCapability
    agent = Agent("openai:gpt-5", capabilities=[EndmarkCapability()])

The capability wraps the model in an `EndmarkModel`. In streams, a continuation appears as further deltas of the same part.
Needs `pip install "endmark[pydantic-ai]"`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import Tool, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RequestUsage

from ._context import Admitted, Meter, Outputs, Tokens, compact, read_tool
from ._errors import NotResumed
from ._frameworks import CLOSING, READ_TOOL, Budget, Call, Continuation, ReceivedReply, RecoveredReply, ToolResults, recover_async
from ._recovery import MAX_RESUME_ATTEMPTS, Log

__all__ = ["EndmarkCapability", "EndmarkModel"]

_PLACE_KEY = "endmark_place"


@dataclass
class EndmarkCapability(AbstractCapability[Any]):
    """Completes cut replies of an agent, caps its tool results, and enforces its budget.

    `outputs` keeps the full values of capped results, by default in memory; the model reads them with the tool `endmark_read`.
    `meter` is a budget: the first call that no longer fits is made without tools and asks for a summary, and later ones raise
    `NotAdmitted`. `window_tokens` is the size of the history above which its older part is condensed; 0 means never. A reply that stays
    cut raises `ResumeExhausted`, and its tool calls are not executed.
    """

    max_attempts: int = MAX_RESUME_ATTEMPTS
    max_result_chars: int = 20_000
    outputs: Outputs | None = None
    meter: Meter | None = None
    window_tokens: int = 0
    continuation_tokens: int = 4_096
    assume_output_tokens: int = 4_096
    log: Log | None = None
    task_id: str = ""

    def __post_init__(self) -> None:
        self._results = ToolResults(self.max_result_chars, self.outputs)
        # A copy of the capability must share the outputs.
        self.outputs = self._results.outputs

    def get_wrapper_model(self, model: Model) -> Model | None:
        return EndmarkModel(
            model, max_attempts=self.max_attempts, meter=self.meter, window_tokens=self.window_tokens,
            continuation_tokens=self.continuation_tokens, assume_output_tokens=self.assume_output_tokens, log=self.log,
            task_id=self.task_id,
        )  # fmt: skip

    def get_toolset(self) -> FunctionToolset[Any]:
        tool = read_tool()

        def endmark_read(**arguments: Any) -> str:
            return self._results.read(arguments)

        made: Tool[Any] = Tool.from_schema(endmark_read, tool["name"], tool["description"], tool["schema"])
        return FunctionToolset[Any]([made])

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, result: Any
    ) -> Any:
        """Caps a result that is too long. A shorter one stays unchanged."""
        return result if call.tool_name == READ_TOOL else self._results.shorten_value(result)


class EndmarkModel(WrapperModel):
    """Wraps a model: resumes cut replies and meters every call."""

    def __init__(
        self,
        wrapped: Model | str,
        *,
        max_attempts: int = MAX_RESUME_ATTEMPTS,
        meter: Meter | None = None,
        window_tokens: int = 0,
        continuation_tokens: int = 4_096,
        assume_output_tokens: int = 4_096,
        log: Log | None = None,
        task_id: str = "",
    ) -> None:
        super().__init__(wrapped)
        self.max_attempts = max_attempts
        self.window_tokens = window_tokens
        self.continuation_tokens = continuation_tokens
        self.log = log
        self.task_id = task_id
        self._budget = Budget(meter, assume_output_tokens)

    async def request(
        self, messages: list[ModelMessage], model_settings: ModelSettings | None, model_request_parameters: ModelRequestParameters
    ) -> ModelResponse:
        call = _ModelCall(_condense(messages, self.window_tokens), model_settings, model_request_parameters)
        response = await self._call_metered(call, is_continuation=False)
        recovered = await self.recovered(call, response, is_sent=False)
        return response if recovered is None else _completed_response(response, recovered)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        call = _ModelCall(_condense(messages, self.window_tokens), model_settings, model_request_parameters)
        admitted, asked = self._admit(call, is_continuation=False)
        stream: _Stream | None = None
        try:
            async with self.wrapped.request_stream(asked.messages, asked.settings, asked.parameters, run_context) as inner:
                stream = _Stream(model_request_parameters=model_request_parameters, inner=inner, model=self, call=call)
                yield stream
        finally:
            self._settle(admitted, stream.inner.get() if stream is not None else None)

    async def recovered(self, call: _ModelCall, response: ModelResponse, *, is_sent: bool) -> RecoveredReply | None:
        """Recovers a cut reply. Returns None if nothing in it is cut. `is_sent` means that the reply can only be extended."""
        if response.state == "suspended":
            # The provider paused the reply, and Pydantic AI itself continues it.
            return None
        first = _to_received_reply(response)
        # Text before other parts cannot be changed.
        is_sent = is_sent or sum(isinstance(part, TextPart) for part in response.parts) > 1
        is_json = call.parameters.output_mode == "native"

        async def ask(asked: Continuation) -> ReceivedReply:
            return _to_received_reply(await self._call_metered(call.continuation(asked, self.continuation_tokens), is_continuation=True))

        number = sum(isinstance(message, ModelResponse) for message in call.messages) + 1
        try:
            return await recover_async(first, ask, self, is_json=is_json, turn_number=number, is_sent=is_sent)
        except NotResumed:
            # Pydantic AI raises its own error for these refusals, but not for a call with cut arguments.
            if response.finish_reason in ("content_filter", "error") and not first.calls:
                return None
            raise

    async def _call_metered(self, call: _ModelCall, *, is_continuation: bool) -> ModelResponse:
        admitted, asked = self._admit(call, is_continuation=is_continuation)
        try:
            response = await self.wrapped.request(asked.messages, asked.settings, asked.parameters)
        except BaseException:
            self._settle(admitted, None)
            raise
        self._settle(admitted, response)
        return response

    def _admit(self, call: _ModelCall, *, is_continuation: bool) -> tuple[Admitted | None, _ModelCall]:
        """Holds the call in the budget, if there is one. Also returns the request to make."""
        if self._budget.meter is None:
            # Without a budget, skip the conversion of the history.
            return None, call
        parameters = call.parameters
        tools = [[tool.name, tool.description, tool.parameters_json_schema] for tool in parameters.function_tools]
        body = [_to_chat(call.messages), [part.content for part in parameters.instruction_parts or []], tools]
        limit = (call.settings or {}).get("max_tokens")
        admitted = self._budget.admit(self.wrapped.model_name, body, limit, is_continuation=is_continuation)
        return admitted, call.closing(admitted) if admitted is not None and admitted.is_closing else call

    def _settle(self, admitted: Admitted | None, response: ModelResponse | None) -> None:
        if admitted is None:
            return
        if response is None:
            self._budget.settle(admitted, None)
            return
        usage = response.usage
        if not usage.has_values():
            self._budget.settle(admitted, None, json.dumps(_to_chat([response])))
            return
        tokens = Tokens(
            prompt=usage.input_tokens, cached=usage.cache_read_tokens, cache_write=usage.cache_write_tokens,
            completion=usage.output_tokens, reasoning=usage.details.get("reasoning_tokens", 0),
        )  # fmt: skip
        self._budget.settle(admitted, tokens)


@dataclass(frozen=True)
class _ModelCall:
    messages: list[ModelMessage]
    settings: ModelSettings | None
    parameters: ModelRequestParameters

    def continuation(self, asked: Continuation, least: int) -> _ModelCall:
        """Returns the continuation request. It has no tools and no schema, so that the answer continues the text."""
        settings: ModelSettings = {**(self.settings or {})}
        limit = settings.get("max_tokens")
        if limit is not None:
            settings["max_tokens"] = max(limit, least)
        if not asked.is_rest:
            return _ModelCall(self.messages, settings, self.parameters)
        settings.pop("tool_choice", None)
        shown = ModelResponse([TextPart(asked.shown_text)])
        messages = [*self.messages, shown, ModelRequest([UserPromptPart(asked.prompt)])]
        return _ModelCall(messages, settings, _without_tools(self.parameters))

    def closing(self, admitted: Admitted) -> _ModelCall:
        settings: ModelSettings = {**(self.settings or {}), "max_tokens": admitted.max_output_tokens}
        settings.pop("tool_choice", None)
        messages: list[ModelMessage] = [*self.messages, ModelRequest([UserPromptPart(CLOSING)])]
        return _ModelCall(messages, settings, _without_tools(self.parameters))


def _without_tools(parameters: ModelRequestParameters) -> ModelRequestParameters:
    return replace(
        parameters, function_tools=[], native_tools=[], output_tools=[], output_mode="text", output_object=None, allow_text_output=True
    )


@dataclass
class _Stream(StreamedResponse):
    """A stream that adds the rest of its reply at the end if the reply is cut."""

    inner: StreamedResponse
    model: EndmarkModel
    call: _ModelCall
    whole: ModelResponse | None = None

    def __aiter__(self) -> AsyncIterator[ModelResponseStreamEvent]:
        # The inner stream already reports the ends of parts and the final result.
        if self._event_iterator is None:
            self._event_iterator = self._get_event_iterator()
        return self._event_iterator

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        end: PartEndEvent | None = None
        async for event in self.inner:
            if end is not None:
                yield end
            end = event if isinstance(event, PartEndEvent) else None
            if end is None:
                yield event
        self.final_result_event = self.inner.final_result_event
        response = self.inner.get()
        if not self.inner.cancelled:
            recovered = await self.model.recovered(self.call, response, is_sent=True)
            if recovered is not None:
                self.whole = _completed_response(response, recovered)
                for change in _rest_events(response, self.whole):
                    yield change
                if end is not None:
                    end = replace(end, part=self.whole.parts[end.index])
        if end is not None:
            yield end

    def get(self) -> ModelResponse:
        return self.whole if self.whole is not None else self.inner.get()

    @property
    def usage(self) -> RequestUsage:
        return self.whole.usage if self.whole is not None else self.inner.usage

    async def cancel(self) -> None:
        await self.inner.cancel()

    async def close_stream(self) -> None:
        await self.inner.close_stream()

    @property
    def cancelled(self) -> bool:
        return self.inner.cancelled

    @property
    def model_name(self) -> str:
        return self.inner.model_name

    @property
    def provider_name(self) -> str | None:
        return self.inner.provider_name

    @property
    def provider_url(self) -> str | None:
        return self.inner.provider_url

    @property
    def timestamp(self) -> datetime:
        return self.inner.timestamp


def _rest_events(cut: ModelResponse, whole: ModelResponse) -> list[ModelResponseStreamEvent]:
    """Returns the events after a cut reply: the rest of its last part, and added parts."""
    events: list[ModelResponseStreamEvent] = []
    for index, (before, after) in enumerate(zip(cut.parts, whole.parts)):
        if isinstance(before, TextPart) and isinstance(after, TextPart) and before.content != after.content:
            events.append(PartDeltaEvent(index=index, delta=TextPartDelta(after.content[len(before.content) :])))
        if isinstance(before, ToolCallPart) and isinstance(after, ToolCallPart) and before.args != after.args:
            rest = after.args_as_json_str()[len(_args(before)) :]
            events.append(PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=rest, tool_call_id=after.tool_call_id)))
    for index in range(len(cut.parts), len(whole.parts)):
        events.append(PartStartEvent(index=index, part=whole.parts[index]))
    return events


def _to_received_reply(response: ModelResponse) -> ReceivedReply:
    calls = tuple(Call(part.tool_name, _args(part)) for part in response.parts if isinstance(part, ToolCallPart))
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    raw = (response.provider_details or {}).get("finish_reason")
    stop = str(raw) if raw else response.finish_reason
    if response.state == "incomplete" or response.state == "interrupted":
        stop = None
    return ReceivedReply(text, calls, stop, response.usage.output_tokens or None, response)


def _args(part: ToolCallPart) -> str:
    return part.args if isinstance(part.args, str) else json.dumps(part.args, ensure_ascii=False) if part.args else ""


def _completed_response(response: ModelResponse, recovered: RecoveredReply) -> ModelResponse:
    """Returns the reply with the whole text or call, a normal finish reason, and the usage of all calls."""
    parts: list[ModelResponsePart] = list(response.parts)
    added: list[ModelResponsePart] = []
    if recovered.args is not None:
        last = max(index for index, part in enumerate(parts) if isinstance(part, ToolCallPart))
        parts[last] = replace(cast(ToolCallPart, parts[last]), args=recovered.args)
    else:
        texts = [index for index, part in enumerate(parts) if isinstance(part, TextPart)]
        rest = recovered.outcome.text
        for index in texts[:-1]:
            rest = rest.removeprefix(cast(TextPart, parts[index]).content)
        if texts:
            parts[texts[-1]] = replace(cast(TextPart, parts[texts[-1]]), content=rest)
        elif rest:
            parts.append(TextPart(rest))
        last_answer: ModelResponse = recovered.last.raw
        added = [part for part in last_answer.parts if not isinstance(part, TextPart)]
    usage = response.usage
    for answer in recovered.answers:
        usage = usage + cast(ModelResponse, answer.raw).usage
    details = {**(response.provider_details or {})}
    if "finish_reason" in details:
        details["finish_reason"] = recovered.last.stop
    has_calls = recovered.args is not None or any(isinstance(part, ToolCallPart) for part in added)
    return replace(
        response, parts=[*parts, *added], usage=usage, finish_reason="tool_call" if has_calls else "stop",
        provider_details=details or None, metadata={**(response.metadata or {}), "endmark": recovered.disclosure()}, state="complete",
    )  # fmt: skip


def _to_chat(messages: list[ModelMessage]) -> list[dict[str, Any]]:
    """Converts messages to the format of Chat Completions, each with the indexes of its message and part."""
    chat: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            received = _to_received_reply(message)
            made = [part for part in message.parts if isinstance(part, ToolCallPart)]
            calls = [
                {"id": part.tool_call_id, "type": "function", "function": {"name": part.tool_name, "arguments": _args(part) or "{}"}}
                for part in made
            ]
            said = {"role": "assistant", "content": received.text or None, **({"tool_calls": calls} if calls else {})}
            chat.append({**said, _PLACE_KEY: [number, 0]})
            continue
        for at, part in enumerate(message.parts):
            chat.append({**_part_to_chat(part), _PLACE_KEY: [number, at]})
    return chat


def _part_to_chat(part: ModelRequestPart) -> dict[str, Any]:
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, UserPromptPart):
        contents = [part.content] if isinstance(part.content, str) else part.content
        return {"role": "user", "content": "\n".join(text if isinstance(text, str) else str(text) for text in contents)}
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    other: Any = part
    content: str = other.model_response() if hasattr(other, "model_response") else str(part)
    # A retry prompt answers a tool call, or is a message of the user.
    if getattr(other, "tool_name", None):
        return {"role": "tool", "tool_call_id": other.tool_call_id, "content": content}
    return {"role": "user", "content": content}


def _condense(messages: list[ModelMessage], tokens: int) -> list[ModelMessage]:
    """Condenses the older part of the messages if they exceed the limit. Kept messages stay the same objects."""
    if not tokens:
        return messages
    chat = _to_chat(messages)
    condensed = compact({"messages": chat}, "openai_chat", trigger_tokens=tokens, budget_tokens=tokens)
    if not condensed.is_compacted:
        return messages
    kept: list[ModelMessage] = []
    parts: dict[int, list[ModelRequestPart]] = {}
    before: dict[tuple[int, int], Any] = {(message[_PLACE_KEY][0], message[_PLACE_KEY][1]): message["content"] for message in chat}
    for message in cast("list[dict[str, Any]]", condensed.request["messages"]):
        if _PLACE_KEY not in message:
            kept.append(ModelRequest([UserPromptPart(message["content"])]))
            continue
        number, at = cast("tuple[int, int]", message[_PLACE_KEY])
        original = messages[number]
        if isinstance(original, ModelResponse):
            kept.append(original)
            continue
        part: Any = original.parts[at]
        if message["content"] != before[number, at] and hasattr(part, "content"):
            part = replace(part, content=message["content"])
        if number not in parts:
            parts[number] = []
            kept.append(replace(original, parts=parts[number]))
        parts[number].append(part)
    return kept
