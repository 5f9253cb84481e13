"""OpenAI Agents SDK: returns complete replies and tool calls or raises, and caps tool results.

    from endmark.openai_agents import EndmarkProvider, EndmarkResults, window
    results = EndmarkResults()
    agent = Agent(name="sre", model="gpt-5", tools=results.capped([read_log, search]))
    config = RunConfig(model_provider=EndmarkProvider(AsyncOpenAI()), call_model_input_filter=window(200_000))
    result = await Runner.run(agent, "Why is the disk full?", run_config=config)

It works with the Responses and the Chat Completions API, and with streams. Needs `pip install "endmark[openai-agents]"`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, cast

from agents import (
    FunctionTool,
    Handoff,
    Model,
    ModelBehaviorError,
    ModelProvider,
    ModelResponse,
    ModelSettings,
    ModelTracing,
    Tool,
    ToolGuardrailFunctionOutput,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
    Usage,
)
from agents.agent_output import AgentOutputSchemaBase
from agents.items import TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from agents.models.openai_provider import OpenAIProvider
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
from agents.run_config import CallModelData, ModelInputData
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from openai.types.responses.response_prompt_param import ResponsePromptParam

from ._context import Admitted, Meter, Outputs, Tokens, compact, read_tool
from ._errors import NotResumed
from ._frameworks import CLOSING, Budget, Call, Continuation, ReceivedReply, RecoveredReply, ToolResults, is_cut_stop, recover_async
from ._recovery import MAX_RESUME_ATTEMPTS, Log

__all__ = ["EndmarkProvider", "EndmarkResults", "window"]


class EndmarkProvider(ModelProvider):
    """Provides models of an OpenAI client, with recovery of cut replies and a budget for all calls.

    `meter` is a budget: the first call that no longer fits is made without tools and asks for a summary, and later ones raise
    `NotAdmitted`. A reply that stays cut raises `ResumeExhausted`, and its tool calls are not executed.
    """

    def __init__(
        self,
        client: AsyncOpenAI | None = None,
        *,
        use_responses: bool = True,
        max_attempts: int = MAX_RESUME_ATTEMPTS,
        meter: Meter | None = None,
        continuation_tokens: int = 4_096,
        assume_output_tokens: int = 4_096,
        log: Log | None = None,
        task_id: str = "",
    ) -> None:
        self._models = OpenAIProvider(openai_client=_recording_client(client or AsyncOpenAI()), use_responses=use_responses)
        self.max_attempts = max_attempts
        self.continuation_tokens = continuation_tokens
        self.log = log
        self.task_id = task_id
        self.budget = Budget(meter, assume_output_tokens)

    def get_model(self, model_name: str | None) -> Model:
        return _Model(self._models.get_model(model_name), self, model_name or "")

    async def aclose(self) -> None:
        await self._models.aclose()


class EndmarkResults:
    """Caps the results of function tools. The model reads omitted parts with the tool `endmark_read`.

    `outputs` keeps the full values, by default in memory; `Outputs("results.db")` shares them between processes. `guardrail` caps the
    tools of an MCP server: `MCPServerStdio(…, tool_output_guardrails=[results.guardrail])`.
    """

    def __init__(self, *, max_result_chars: int = 20_000, outputs: Outputs | None = None) -> None:
        self._results = ToolResults(max_result_chars, outputs)
        self.guardrail: ToolOutputGuardrail[Any] = ToolOutputGuardrail(self._cap, name="endmark")

    def capped(self, tools: list[Tool]) -> list[Tool]:
        """Returns the tools with capped results, and `endmark_read`. Hosted tools are unchanged, because their results are not local."""
        made: list[Tool] = []
        for tool in tools:
            if isinstance(tool, FunctionTool):
                tool = replace(tool, tool_output_guardrails=[*(tool.tool_output_guardrails or []), self.guardrail])
            made.append(tool)
        return [*made, self.read_tool()]

    def read_tool(self) -> Tool:
        tool = read_tool()

        async def endmark_read(_: Any, arguments: str) -> str:
            return self._results.read(arguments)

        return FunctionTool(tool["name"], tool["description"], tool["schema"], endmark_read, strict_json_schema=False)

    async def _cap(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        capped = self._results.shorten_value(data.output)
        if capped is data.output or capped == data.output:
            return ToolGuardrailFunctionOutput.allow()
        return ToolGuardrailFunctionOutput.reject_content(capped)


def window(tokens: int) -> Callable[[CallModelData[Any]], ModelInputData]:
    """Returns a `call_model_input_filter` that condenses the older part of a conversation above this size."""

    def condensed(data: CallModelData[Any]) -> ModelInputData:
        request = {"input": data.model_data.input, "instructions": data.model_data.instructions or ""}
        found = compact(request, "openai_responses", trigger_tokens=tokens, budget_tokens=tokens)
        if not found.is_compacted:
            return data.model_data
        return ModelInputData(input=found.request["input"], instructions=data.model_data.instructions)

    return condensed


@dataclass
class _RecordedReply:
    """The parts of a reply that the SDK does not pass on: its stop reason, and the response if it is cut."""

    is_chat: bool = False
    stop: str | None = None
    response: Response | None = None


_CURRENT_REPLY: ContextVar[_RecordedReply | None] = ContextVar("endmark_seen", default=None)


def _recording_client(client: AsyncOpenAI) -> AsyncOpenAI:
    """Returns a copy of the client that records the answer of each call."""
    kind: Any = type(client)

    async def post(self: Any, path: str, **options: Any) -> Any:
        answer: Any = await kind.post(self, path, **options)
        seen = _CURRENT_REPLY.get()
        if seen is None:
            return answer
        if isinstance(answer, ChatCompletion):
            seen.is_chat = True
            seen.stop = answer.choices[0].finish_reason if answer.choices else None
        elif isinstance(answer, Response):
            seen.response = answer
        elif isinstance(answer, AsyncStream) and path.endswith("/chat/completions"):
            seen.is_chat = True
            return _RecordedStream(cast(Any, answer), seen)
        return cast(Any, answer)

    copied = client.copy()
    copied.__class__ = type(kind.__name__, (kind,), {"post": post})
    return copied


class _RecordedStream:
    def __init__(self, stream: AsyncStream[Any], seen: _RecordedReply) -> None:
        self._stream = stream
        self._recorded = seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for chunk in self._stream:
            for choice in chunk.choices[:1]:
                self._recorded.stop = choice.finish_reason or self._recorded.stop
            yield chunk


@dataclass(frozen=True)
class _Request:
    system_instructions: str | None
    input: str | list[TResponseInputItem]
    model_settings: ModelSettings
    tools: list[Tool]
    output_schema: AgentOutputSchemaBase | None
    handoffs: list[Handoff[Any, Any]]
    tracing: ModelTracing
    previous_response_id: str | None
    conversation_id: str | None
    prompt: ResponsePromptParam | None

    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _Request.__dataclass_fields__}

    def items(self) -> list[TResponseInputItem]:
        return [{"role": "user", "content": self.input}] if isinstance(self.input, str) else list(self.input)

    def continuation(self, asked: Continuation, least: int) -> _Request:
        """Returns the continuation request. It has no tools and no schema, so that the answer continues the text."""
        limit = self.model_settings.max_tokens
        settings = replace(self.model_settings, max_tokens=max(limit, least) if limit else limit)
        if not asked.is_rest:
            return replace(self, model_settings=settings)
        settings = replace(settings, tool_choice=None, parallel_tool_calls=None)
        added: list[TResponseInputItem] = [{"role": "assistant", "content": asked.shown_text}, {"role": "user", "content": asked.prompt}]
        return replace(self, input=[*self.items(), *added], model_settings=settings, tools=[], handoffs=[], output_schema=None)

    def closing(self, admitted: Admitted) -> _Request:
        limits: dict[str, Any] = {"max_tokens": admitted.max_output_tokens, "tool_choice": None, "parallel_tool_calls": None}
        asked: TResponseInputItem = {"role": "user", "content": CLOSING}
        return replace(self, input=[*self.items(), asked], tools=[], handoffs=[], model_settings=replace(self.model_settings, **limits))


class _Model(Model):
    def __init__(self, inner: Model, provider: EndmarkProvider, name: str) -> None:
        self._inner = inner
        self._provider = provider
        self._name = name

    async def close(self) -> None:
        await self._inner.close()

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        return self._inner.get_retry_advice(request)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: ResponsePromptParam | None = None,
    ) -> ModelResponse:
        request = _Request(
            system_instructions, input, model_settings, tools, output_schema, handoffs, tracing, previous_response_id,
            conversation_id, prompt,
        )  # fmt: skip
        received = await self._call_metered(request, is_continuation=False)
        recovered = await self._recover(request, received, is_sent=False)
        return cast(ModelResponse, received.raw) if recovered is None else _completed_response(received.raw, recovered)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: ResponsePromptParam | None = None,
    ) -> AsyncIterator[TResponseStreamEvent]:
        request = _Request(
            system_instructions, input, model_settings, tools, output_schema, handoffs, tracing, previous_response_id,
            conversation_id, prompt,
        )  # fmt: skip
        admitted, asked = self._admit(request, is_continuation=False)
        seen = _RecordedReply()
        # The events that end an item. They are held back, because a cut item continues.
        ends: list[Any] = []
        terminal: Response | None = None
        number = 0
        # The received text, in case the stream breaks off.
        arrived: list[str] = []
        try:
            async for event in _events(self._inner, asked, seen):
                number = event.sequence_number + 1
                if isinstance(event, (ResponseCompletedEvent, ResponseIncompleteEvent)):
                    terminal = event.response
                    break
                if event.type.endswith(".delta") and isinstance(event.delta, str):
                    arrived.append(event.delta)
                if event.type.endswith(".done"):
                    ends.append(event)
                    continue
                for end in ends:
                    yield end
                ends.clear()
                yield event
        finally:
            tokens = _tokens(terminal.usage) if terminal is not None and terminal.usage else None
            self._provider.budget.settle(admitted, tokens, "".join(arrived) if arrived or terminal is not None else None)
        if terminal is None:
            for end in ends:
                yield end
            return
        usage = _usage(terminal.usage)
        received = _to_received_reply(ModelResponse(terminal.output, usage, terminal.id), seen.stop if seen.is_chat else _stop(terminal))
        recovered = await self._recover(request, received, is_sent=True)
        if recovered is None:
            for end in ends:
                yield end
            yield ResponseCompletedEvent(type="response.completed", response=terminal, sequence_number=number)
            return
        whole = _completed_response(received.raw, recovered)
        for event in _rest_events(terminal.output, whole.output, ends, number):
            number = event.sequence_number + 1
            yield event
        done = terminal.model_copy(
            update={"output": whole.output, "status": "completed", "incomplete_details": None, "usage": _response_usage(whole.usage),
                    "id": whole.response_id or terminal.id}
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=done, sequence_number=number)

    async def _recover(self, request: _Request, received: ReceivedReply, *, is_sent: bool) -> RecoveredReply | None:
        response: ModelResponse = received.raw
        last = response.output[-1] if response.output else None
        if is_cut_stop(received.stop) and not isinstance(last, (ResponseOutputMessage, ResponseFunctionToolCall, ResponseReasoningItem, type(None))):
            raise ModelBehaviorError(f"The reply reached its limit of tokens in an item `{last.type}`, which cannot be continued.")

        async def ask(asked: Continuation) -> ReceivedReply:
            return await self._call_metered(request.continuation(asked, self._provider.continuation_tokens), is_continuation=True)

        # Text before other items cannot be changed.
        is_sent = is_sent or sum(isinstance(part, ResponseOutputText) for part in _parts(response.output)) > 1
        is_json = request.output_schema is not None and not request.output_schema.is_plain_text()
        turn = sum(cast("dict[str, Any]", item).get("role") == "assistant" for item in request.items()) + 1
        try:
            return await recover_async(received, ask, self._provider, is_json=is_json, turn_number=turn, is_sent=is_sent)
        except NotResumed:
            # The SDK handles refusals itself.
            if any(isinstance(part, ResponseOutputRefusal) for part in _parts(response.output)) and not received.calls:
                return None
            raise

    async def _call_metered(self, request: _Request, *, is_continuation: bool) -> ReceivedReply:
        admitted, asked = self._admit(request, is_continuation=is_continuation)
        seen = _RecordedReply()
        token = _CURRENT_REPLY.set(seen)
        try:
            response = await self._inner.get_response(**asked.arguments())
        except ModelBehaviorError:
            # The SDK rejects a cut reply without passing on the received part.
            cut = seen.response
            if cut is not None and cut.status == "incomplete":
                response = ModelResponse(cut.output, _usage(cut.usage), cut.id)
            elif seen.is_chat and is_cut_stop(seen.stop):
                response = ModelResponse([], Usage(requests=1), None)
            else:
                self._provider.budget.settle(admitted, None)
                raise
        except BaseException:
            self._provider.budget.settle(admitted, None)
            raise
        finally:
            _CURRENT_REPLY.reset(token)
        # If the transport recorded no answer, the SDK itself rejects incomplete replies.
        stop = seen.stop if seen.is_chat else _stop(seen.response) if seen.response is not None else "completed"
        received = _to_received_reply(response, stop)
        self._provider.budget.settle(admitted, _tokens(response.usage) if response.usage.total_tokens else None, received.written_text())
        return received

    def _admit(self, request: _Request, *, is_continuation: bool) -> tuple[Admitted | None, _Request]:
        """Holds the call in the budget, if there is one. Also returns the request to make."""
        tools = [[tool.name, getattr(tool, "description", ""), getattr(tool, "params_json_schema", None)] for tool in request.tools]
        body = [request.system_instructions, request.items(), tools]
        limit = request.model_settings.max_tokens
        admitted = self._provider.budget.admit(self._name, body, limit, is_continuation=is_continuation)
        return admitted, request.closing(admitted) if admitted is not None and admitted.is_closing else request


async def _events(inner: Model, request: _Request, seen: _RecordedReply) -> AsyncIterator[Any]:
    """Yields the events of a stream. A cut reply ends with `response.incomplete`, and not with the error of the SDK that follows."""
    stream = cast(Any, inner.stream_response(**request.arguments()))
    try:
        while True:
            token = _CURRENT_REPLY.set(seen)
            try:
                event = await anext(stream)
            except StopAsyncIteration:
                return
            except ModelBehaviorError:
                if not (seen.is_chat and is_cut_stop(seen.stop)):
                    raise
                # The SDK rejects a reply that reached its limit without any text.
                base: dict[str, Any] = {"id": "", "created_at": 0.0, "model": "", "object": "response", "parallel_tool_calls": True, "tools": []}
                empty = Response.model_validate({**base, "output": [], "tool_choice": "auto", "status": "incomplete"})
                event = ResponseIncompleteEvent(type="response.incomplete", response=empty, sequence_number=0)
                yield event
                return
            finally:
                _CURRENT_REPLY.reset(token)
            yield event
    finally:
        await stream.aclose()


def _stop(response: Response) -> str | None:
    """Returns the provider's stop reason."""
    details = response.incomplete_details
    return (details.reason if details is not None else None) or response.status


def _parts(output: list[TResponseOutputItem]) -> list[ResponseOutputText | ResponseOutputRefusal]:
    return [part for item in output if isinstance(item, ResponseOutputMessage) for part in item.content]


def _to_received_reply(response: ModelResponse, stop: str | None) -> ReceivedReply:
    text = "".join(part.text or "" for part in _parts(response.output) if isinstance(part, ResponseOutputText))
    calls = tuple(Call(item.name, item.arguments or "") for item in response.output if isinstance(item, ResponseFunctionToolCall))
    return ReceivedReply(text, calls, stop, response.usage.output_tokens or None, response)


def _completed_response(response: ModelResponse, recovered: RecoveredReply) -> ModelResponse:
    """Returns the reply with the whole text or call, and the usage of all calls."""
    output: list[TResponseOutputItem] = [
        item.model_copy(update={"status": "completed"}) if getattr(item, "status", None) == "incomplete" else item for item in response.output
    ]
    answer: ModelResponse = recovered.last.raw
    response_id = answer.response_id
    if recovered.args is not None:
        last = max(index for index, item in enumerate(output) if isinstance(item, ResponseFunctionToolCall))
        output[last] = output[last].model_copy(update={"arguments": recovered.args})
        response_id = response.response_id
    else:
        _set_text(output, recovered.outcome.text, answer)
        output += [item for item in answer.output if not isinstance(item, ResponseOutputMessage)]
    usage = Usage()
    usage.add(response.usage)
    for part in recovered.answers:
        usage.add(cast(ModelResponse, part.raw).usage)
    return replace(response, output=output, usage=usage, response_id=response_id)


def _set_text(output: list[TResponseOutputItem], text: str, answer: ModelResponse) -> None:
    """Sets the last text part, so that all text parts together contain the text."""
    places = [
        (number, at) for number, item in enumerate(output) if isinstance(item, ResponseOutputMessage)
        for at, part in enumerate(item.content) if isinstance(part, ResponseOutputText)
    ]  # fmt: skip
    if not places:
        output += [item for item in answer.output if isinstance(item, ResponseOutputMessage)]
        return
    for number, at in places[:-1]:
        text = text.removeprefix(cast(Any, output[number]).content[at].text)
    number, at = places[-1]
    item = cast(ResponseOutputMessage, output[number])
    content = [part.model_copy(update={"text": text}) if place == at else part for place, part in enumerate(item.content)]
    output[number] = item.model_copy(update={"content": content})


def _rest_events(cut: list[TResponseOutputItem], whole: list[TResponseOutputItem], ends: list[Any], number: int) -> list[Any]:
    """Returns the events after a cut reply: the rest of its last item, and added items."""
    events: list[Any] = []
    changed: set[int] = set()
    for index, item in enumerate(whole):
        before: Any = cut[index] if index < len(cut) else None
        place: dict[str, Any] = {"output_index": index, "item_id": getattr(item, "id", None) or ""}
        if isinstance(item, ResponseFunctionToolCall) and before is not None and item.arguments != before.arguments:
            delta = item.arguments[len(before.arguments) :]
            events.append(ResponseFunctionCallArgumentsDeltaEvent(
                type="response.function_call_arguments.delta", delta=delta, sequence_number=0, **place
            ))  # fmt: skip
        elif isinstance(item, ResponseOutputMessage):
            for at, part in enumerate(item.content):
                known = before.content[at].text if before is not None and isinstance(before.content[at], ResponseOutputText) else ""
                if isinstance(part, ResponseOutputText) and part.text != known:
                    events.append(ResponseTextDeltaEvent(
                        type="response.output_text.delta", content_index=at, delta=part.text[len(known) :], logprobs=[], sequence_number=0,
                        **place,
                    ))  # fmt: skip
        if before is None or item != before:
            changed.add(index)
    kept = [event for event in ends if getattr(event, "output_index", None) not in changed]
    events += [
        ResponseOutputItemDoneEvent(type="response.output_item.done", item=whole[index], output_index=index, sequence_number=0)
        for index in sorted(changed)
    ]
    return [event.model_copy(update={"sequence_number": number + at}) for at, event in enumerate([*kept, *events])]


def _tokens(usage: Usage | ResponseUsage) -> Tokens:
    details: Any = usage.input_tokens_details
    return Tokens(
        prompt=usage.input_tokens, cached=getattr(details, "cached_tokens", 0) or 0,
        cache_write=getattr(details, "cache_write_tokens", 0) or 0, completion=usage.output_tokens,
        reasoning=usage.output_tokens_details.reasoning_tokens or 0,
    )  # fmt: skip


def _usage(usage: ResponseUsage | None) -> Usage:
    if usage is None:
        return Usage(requests=1)
    return Usage(
        requests=1, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.total_tokens,
        input_tokens_details=usage.input_tokens_details, output_tokens_details=usage.output_tokens_details,
    )  # fmt: skip


def _response_usage(usage: Usage) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.total_tokens,
        input_tokens_details=usage.input_tokens_details, output_tokens_details=usage.output_tokens_details,
    )  # fmt: skip
