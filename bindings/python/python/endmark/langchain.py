"""LangChain: returns complete replies, structured outputs and tool calls or raises, and caps tool results.

    from endmark.langchain import EndmarkMiddleware
    agent = create_agent(model, tools, middleware=[EndmarkMiddleware()])

It works with `invoke`, `ainvoke` and their streams. In a stream, a continuation appears as tokens of a further call, and the agent's
state contains the whole message. Needs `pip install "endmark[langchain]"`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain.agents.structured_output import (
    AutoStrategy,
    OutputToolBinding,
    ProviderStrategy,
    ProviderStrategyBinding,
    StructuredOutputValidationError,
    ToolStrategy,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage, convert_to_openai_messages, message_chunk_to_message
from langchain_core.messages.ai import add_usage
from langchain_core.messages.tool import ToolCall, invalid_tool_call, tool_call
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from ._context import Admitted, Meter, Outputs, Tokens, count, read_tool
from ._core import dumps
from ._errors import EndmarkError, InvalidReply, NotResumed, ResumeExhausted
from ._frameworks import CLOSING, READ_TOOL, REPEATED_CALL, ToolResults, convert_error, disclosure, is_cut_stop, shown_arguments
from ._recovery import MAX_RESUME_ATTEMPTS, Ask, AskFailed, Log, Outcome, Pipeline, Reply

__all__ = ["EndmarkMiddleware"]

_LIMIT_NAMES = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")

_NORMAL_ENDS = {
    "finish_reason": "stop", "stop_reason": "end_turn", "stopReason": "end_turn", "done_reason": "stop", "status": "completed",
    "incomplete_details": None,
}  # fmt: skip
"""The fields in which providers report a stop reason, with their values for a normal end."""
_THOUGHT_TYPES = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")
_CALL_TYPES = ("tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "input_json_delta")
_MEDIA_TYPES = ("image", "image_url", "audio", "input_audio", "video", "file", "document", "media")
"""Blocks that are not text. They are never shortened."""

_Response = ModelResponse[Any]
_CallGenerator = Generator[ModelRequest[Any], _Response, _Response]


@dataclass(frozen=True)
class _CutPart:
    """The cut part of a reply: its text, or the arguments of its last tool call."""

    message: AIMessage
    first: Reply
    format: Literal["json"] | None
    call: dict[str, Any] | None
    content: _Content


class _Content:
    """The content of a message: its complete blocks, its last text, which may be cut, and the blocks that an answer adds."""

    def __init__(self, message: AIMessage) -> None:
        self.begin(message)

    def begin(self, message: AIMessage) -> None:
        """Sets the content to that of a message, whose last text may be cut."""
        blocks = _blocks(message)
        others = [index for index, block in enumerate(blocks) if _text(block) is None and _type(block) not in _THOUGHT_TYPES]
        end = others[-1] + 1 if others else 0
        self._before = [*blocks[:end], *(block for block in blocks[end:] if _text(block) is None)]
        self._texts = [block for block in blocks[end:] if _text(block) is not None]
        self._added: list[Any] = []
        self.text = "".join(_text(block) or "" for block in self._texts)

    def extend(self, message: AIMessage) -> None:
        """Adds the blocks of a continuation, without thoughts and without calls, which are stored separately."""
        self._added = [block for block in _blocks(message) if _text(block) is None and _type(block) not in (*_THOUGHT_TYPES, *_CALL_TYPES)]

    def shown(self, text: str) -> str | list[str | dict[Any, Any]]:
        """Returns the content to show to the model, without blocks that a request cannot contain."""
        before = [block for block in self._before if _text(block) is not None]
        return [*before, {"type": "text", "text": text}] if before else text

    def whole(self, text: str) -> str | list[str | dict[Any, Any]]:
        if not self._before and not self._added and not any(isinstance(block, dict) for block in self._texts):
            return text
        kept: list[Any] = []
        rest = text
        for block in self._texts[:-1]:
            if not rest.startswith(_text(block) or ""):
                kept, rest = [], text
                break
            kept.append(block)
            rest = rest[len(_text(block) or "") :]
        last: Any = self._texts[-1] if self._texts else ""
        last = {"type": "text"} if isinstance(last, str) else last
        return [*self._before, *kept, *([{**last, "text": rest}] if rest else []), *self._added]


class EndmarkMiddleware(AgentMiddleware[Any, Any, Any]):
    """Resumes cut replies, caps tool results, and holds a session's budget.

    `outputs` keeps the full values of capped results, by default in memory; the model reads them with the tool `endmark_read`.
    `meter` is a budget: the first call that no longer fits is made without tools and asks for a summary, and later ones raise
    `NotAdmitted`. `continuation_tokens` is the minimum output limit of a continuation, if the first call has a limit. A reply that stays
    cut raises `ResumeExhausted`, and its tool calls are not executed.
    """

    def __init__(
        self,
        *,
        max_attempts: int = MAX_RESUME_ATTEMPTS,
        max_result_chars: int = 20_000,
        outputs: Outputs | None = None,
        meter: Meter | None = None,
        continuation_tokens: int = 4_096,
        assume_output_tokens: int = 4_096,
        log: Log | None = None,
        task_id: str = "",
    ) -> None:
        super().__init__()
        self._results = ToolResults(max_result_chars, outputs)
        self._meter = meter
        self._max_attempts = max_attempts
        self._continuation_tokens = continuation_tokens
        self._assume_output_tokens = assume_output_tokens
        self._log = log
        self._task_id = task_id
        self.tools = [self._read_tool()]

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], _Response]) -> _Response:
        turn = self._model_turn(request)
        try:
            asked = next(turn)
            while True:
                try:
                    response = handler(asked)
                except Exception as error:
                    asked = turn.throw(error)
                else:
                    asked = turn.send(response)
        except StopIteration as done:
            return cast(_Response, done.value)
        finally:
            turn.close()

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[_Response]]
    ) -> _Response:
        turn = self._model_turn(request)
        try:
            asked = next(turn)
            while True:
                try:
                    response = await handler(asked)
                except Exception as error:
                    asked = turn.throw(error)
                else:
                    asked = turn.send(response)
        except StopIteration as done:
            return cast(_Response, done.value)
        finally:
            turn.close()

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        return cast("ToolMessage | Command[Any]", self._cap_tool_result(request, handler(request)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        return cast("ToolMessage | Command[Any]", self._cap_tool_result(request, await handler(request)))

    def _model_turn(self, request: ModelRequest[Any]) -> _CallGenerator:
        """Yields the request and its continuations, and receives the responses."""
        response, unparsed = yield from self._call_model(request, is_continuation=False)
        is_native = unparsed is not None or response.structured_response is not None
        if isinstance(request.response_format, AutoStrategy) and is_native:
            request = request.override(response_format=ProviderStrategy(request.response_format.schema))
        cut = _find_cut_part(response, request)
        if cut is None:
            return response
        usage = cut.message.usage_metadata
        added: list[ToolCall] = []
        refused: Exception | None = None
        pipeline = Pipeline(format=cut.format, max_attempts=self._max_attempts, max_corrections=0, restart="off", log=self._log)
        number = sum(isinstance(message, AIMessage) for message in request.messages) + 1
        steps = pipeline.steps(cut.first, task_id=self._task_id, turn_number=number)
        try:
            step = next(steps)
            while not isinstance(step, Outcome):
                # The pipeline requests no corrections.
                asked = cast(Ask, step)
                answer: Reply | AskFailed
                try:
                    continued, _ = yield from self._call_model(self._continuation(cut, request, asked), is_continuation=True)
                    message = _invalidate_guessed_call(_message(continued))
                    usage = add_usage(usage, message.usage_metadata)
                    answer = _to_reply(cut, asked, message)
                    added = [] if cut.call else message.tool_calls
                except GraphBubbleUp:
                    raise
                except Exception as error:
                    # The exception of the recovery contains the received part.
                    answer = convert_error(error)
                    refused = error if answer.kind == "final" else None
                step = steps.send(answer)
        except ResumeExhausted as exhausted:
            if refused is not None:
                raise refused from exhausted
            raise
        except (NotResumed, InvalidReply) as passed:
            # The reply is not cut, or the provider ended it. Checking it is the task of LangChain.
            if isinstance(passed, NotResumed):
                _message(response).response_metadata["endmark"] = {"outcome": "passed", "reason": passed.code}
            if cut.call is not None and len(cut.message.tool_calls) < len(_message(response).tool_calls):
                raise
            if unparsed is not None:
                raise unparsed from None
            return response
        finally:
            steps.close()
        if step.result == "whole" and cut.call is None:
            if unparsed is not None:
                raise unparsed
            return response
        return _completed_response(cut, step, request, usage, added)

    def _call_model(
        self, request: ModelRequest[Any], *, is_continuation: bool
    ) -> Generator[ModelRequest[Any], _Response, tuple[_Response, Exception | None]]:
        """Returns the response of one call. Also returns the error if its structured output could not be parsed, because it may be cut."""
        try:
            return (yield from self._call_metered(request, is_continuation)), None
        except Exception as error:
            if (message := _message_of(error)) is None:
                raise
            return ModelResponse(result=[message]), error

    def _continuation(self, cut: _CutPart, request: ModelRequest[Any], asked: Ask) -> ModelRequest[Any]:
        """Returns the continuation request. It has no tools, so that the answer is text."""
        settings = {
            name: max(value, self._continuation_tokens) if name in _LIMIT_NAMES and isinstance(value, int) else value
            for name, value in request.model_settings.items()
        }
        if asked.wanted != "rest":
            return request.override(model_settings=settings)
        shown = asked.shown_text
        content = cut.content.shown(shown) if cut.call is None else shown_arguments(cut.call["name"], shown)
        added: list[AnyMessage] = [AIMessage(content), HumanMessage(asked.prompt)]
        messages = [*request.messages, *added]
        return request.override(messages=messages, tools=[], tool_choice=None, response_format=None, model_settings=settings)

    def _call_metered(self, request: ModelRequest[Any], is_continuation: bool) -> _CallGenerator:
        """Makes one call within the budget, if there is one."""
        if self._meter is None:
            return (yield request)
        model = str(getattr(request.model, "model_name", None) or getattr(request.model, "model", ""))
        messages = [request.system_message, *request.messages] if request.system_message else list(request.messages)
        body = {"model": model, "messages": convert_to_openai_messages(messages)}
        limits = [request.model_settings.get(name) or getattr(request.model, name, None) for name in _LIMIT_NAMES]
        limit = next((limit for limit in limits if isinstance(limit, int) and limit > 0), self._assume_output_tokens)
        admitted = self._meter.before_call(
            model, prompt_tokens=count(body, model, format="openai_chat").tokens, max_output_tokens=limit,
            is_continuation=is_continuation,
        )  # fmt: skip
        try:
            response = yield self._closing_request(request, admitted) if admitted.is_closing else request
        except BaseException as error:
            message = _message_of(error)
            if message is None:
                self._meter.after_call(admitted)
            else:
                self._settle(admitted, message)
            raise
        self._settle(admitted, _message(response))
        return response

    def _settle(self, admitted: Admitted, message: AIMessage) -> None:
        assert self._meter is not None
        usage = message.usage_metadata
        if usage is None:
            self._meter.after_call(admitted, text=message.text)
            return
        details, cached = usage.get("output_token_details", {}), usage.get("input_token_details", {})
        tokens = Tokens(
            prompt=usage["input_tokens"], completion=usage["output_tokens"], reasoning=details.get("reasoning") or 0,
            cached=cached.get("cache_read") or 0, cache_write=cached.get("cache_creation") or 0,
        )  # fmt: skip
        self._meter.after_call(admitted, tokens)

    def _closing_request(self, request: ModelRequest[Any], admitted: Admitted) -> ModelRequest[Any]:
        settings = {name: value for name, value in request.model_settings.items() if name not in _LIMIT_NAMES}
        settings["max_tokens"] = admitted.max_output_tokens
        messages = [*request.messages, HumanMessage(CLOSING)]
        return request.override(messages=messages, tools=[], tool_choice=None, model_settings=settings)

    def _cap_tool_result(self, request: ToolCallRequest, result: Any) -> Any:
        return result if request.tool_call["name"] == READ_TOOL else self._cap_result(result)

    def _cap_result(self, result: Any) -> Any:
        """Caps all messages of a tool's result, including those in the state update of a `Command`."""
        # An untyped alias, because the generic type of `Command` is unknown.
        command = result
        update: Any = getattr(result, "update", None)
        named: Any = update
        if not isinstance(result, Command):
            return self._cap_messages(result)
        if isinstance(update, dict):
            return replace(command, update={name: self._cap_messages(value) for name, value in named.items()})
        if isinstance(update, list):
            # The items are messages, or pairs of a name and a value.
            items: list[Any] = [(item[0], self._cap_messages(item[1])) if type(item) is tuple else self._cap_messages(item) for item in named]
            return replace(command, update=items)
        return command

    def _cap_messages(self, value: Any) -> Any:
        """Caps a message or a list of messages. Returns any other value unchanged."""
        values = value
        if isinstance(value, list):
            return [self._cap_messages(message) for message in values] if any(isinstance(one, ToolMessage) for one in values) else values
        if not isinstance(value, ToolMessage):
            return value
        content = cast(Any, value.content)
        capped = self._results.shorten(content) if isinstance(content, str) else self._cap_blocks(content)
        return value.model_copy(update={"content": capped})

    def _cap_blocks(self, blocks: list[Any]) -> list[Any]:
        """Caps blocks: if they exceed the limit together, all except media are joined to one shortened text."""
        shown = [(block, None if _is_media(block) else _block_text(block)) for block in blocks]
        texts = [text for _, text in shown if text is not None]
        if sum(map(len, texts)) <= self._results.max_chars:
            return blocks
        media = [block for block, text in shown if text is None]
        return [{"type": "text", "text": self._results.shorten("\n".join(texts))}, *media]

    def _read_tool(self) -> BaseTool:
        tool = read_tool()

        def endmark_read(**arguments: Any) -> str:
            return self._results.read(arguments)

        return StructuredTool(
            name=tool["name"], description=tool["description"], args_schema=tool["schema"], func=endmark_read
        )


def _message(response: _Response) -> AIMessage:
    for message in response.result:
        if isinstance(message, AIMessage):
            return message
    raise AskFailed("the answer has no message of the model")


def _message_of(error: BaseException) -> AIMessage | None:
    """Returns the reply that an error about a structured output contains: an error of LangChain, or of OpenAI's library for a reply that
    reached its limit."""
    if isinstance(error, StructuredOutputValidationError):
        return error.ai_message
    completion: Any = getattr(error, "completion", None)
    if not getattr(completion, "choices", None):
        return None
    choice, usage = completion.choices[0], completion.usage
    counted: Any = None
    if usage is not None:
        counted = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens, "total_tokens": usage.total_tokens}
    metadata = {"finish_reason": choice.finish_reason, "model_name": completion.model}
    return AIMessage(choice.message.content or "", response_metadata=metadata, usage_metadata=counted)


def _blocks(message: AIMessage) -> list[Any]:
    content = cast(Any, message.content)
    return ([content] if content else []) if isinstance(content, str) else content


def _type(block: Any) -> str:
    return str(cast("dict[str, Any]", block).get("type")) if isinstance(block, dict) else "text"


def _text(block: Any) -> str | None:
    """Returns the text of a text block, or None for other blocks."""
    if isinstance(block, str):
        return block
    return str(cast("dict[str, Any]", block).get("text", "")) if _type(block) == "text" else None


def _is_media(block: Any) -> bool:
    source: Any = cast("dict[str, Any]", block).get("source") if isinstance(block, dict) else None
    is_text = isinstance(source, dict) and cast("dict[str, Any]", source).get("type") == "text"
    return _type(block) in _MEDIA_TYPES and not is_text


def _block_text(block: Any) -> str:
    """Returns a block of a tool's result as text."""
    return text if (text := _text(block)) is not None else dumps(block, "a block of a tool's result")


def _stop(message: AIMessage) -> str | None:
    """Returns the provider's stop reason."""
    reported = cast("dict[str, Any]", message.response_metadata)
    details: dict[str, Any] = reported.get("incomplete_details") or {}
    # The status of a response is the least precise field, so it comes last.
    names = [name for name in _NORMAL_ENDS if name not in ("status", "incomplete_details")]
    words = [*(reported.get(name) for name in names), details.get("reason"), reported.get("status")]
    stop: Any = next((word for word in words if word), None)
    return str(stop) if stop else None


def _invalidate_guessed_call(message: AIMessage) -> AIMessage:
    """Marks the last tool call of a message as invalid, unless its arguments are certainly complete.

    LangChain closes the JSON of cut arguments in streams without marking them as cut.
    """
    if message.invalid_tool_calls or not message.tool_calls:
        return message
    *others, last = message.tool_calls
    reached = is_cut_stop(_stop(message))
    known: Any = getattr(message, "tool_call_chunks", None) or message.additional_kwargs.get("tool_calls")
    if known:
        raw: dict[str, Any] = known[-1]
        args: str = raw.get("args") or cast("dict[str, Any]", raw.get("function") or {}).get("arguments") or ""
        try:
            json.loads(args or ("" if reached else "{}"), strict=False)
            return message
        except ValueError:
            pass
    elif reached:
        args = _without_closers(last["args"])
    else:
        return message
    invalid = invalid_tool_call(name=last["name"], args=args, id=last["id"], error=None)
    return cast(AIMessage, message_chunk_to_message(message)).model_copy(
        update={"tool_calls": others, "invalid_tool_calls": [invalid]}
    )


def _without_closers(args: dict[str, Any]) -> str:
    """Writes arguments as JSON without the closing characters, because the last value may continue. Returns '' without arguments."""
    value: Any = args
    closing = 0
    while value and isinstance(value, (dict, list)):
        closing += 1
        values: list[Any] = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else cast(Any, value)
        value = values[-1]
    closing += isinstance(value, (dict, list, str))
    return json.dumps(args, ensure_ascii=False)[:-closing] if args else ""


def _find_cut_part(response: _Response, request: ModelRequest[Any]) -> _CutPart | None:
    message = _invalidate_guessed_call(_message(response))
    stop, content = _stop(message), _Content(message)
    if message.invalid_tool_calls:
        # Only the last call of a reply can be cut.
        call = cast("dict[str, Any]", message.invalid_tool_calls[-1])
        return _CutPart(message, Reply(call["args"] or "", stop or "length", reasoned=not call["args"]), "json", call, content)
    if message.tool_calls or stop is None:
        return None
    output = message.usage_metadata["output_tokens"] if message.usage_metadata else None
    is_json = isinstance(request.response_format, ProviderStrategy)
    reply = Reply(content.text, stop, output_tokens=output, reasoned=not content.text)
    return _CutPart(message, reply, "json" if is_json else None, None, content)


def _to_reply(cut: _CutPart, asked: Ask, message: AIMessage) -> Reply:
    """Returns the text of a continuation. In a repeated reply, that is the arguments of the last call."""
    text = str(message.text)
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    if cut.call is None:
        if message.invalid_tool_calls:
            raise AskFailed("a tool call in the answer is cut")
        if asked.wanted == "rest":
            cut.content.extend(message)
        else:
            cut.content.begin(message)
            text = cut.content.text
    elif asked.wanted == "rest":
        if calls:
            raise AskFailed(REPEATED_CALL)
    else:
        if [call["name"] for call in calls] != [call["name"] for call in [*cut.message.tool_calls, cut.call]]:
            raise AskFailed("the answer does not make the same tool calls again")
        args = calls[-1]["args"]
        text = args if isinstance(args, str) else json.dumps(args)
    return Reply(text, _stop(message))


def _output_tool(strategy: Any, name: str | None) -> OutputToolBinding[Any] | None:
    """Returns the tool for the structured output, if it has this name."""
    tools: Any = ToolStrategy(cast(Any, strategy).schema) if isinstance(strategy, AutoStrategy) else strategy
    specs: list[Any] = tools.schema_specs if isinstance(tools, ToolStrategy) else []
    binding: Any = OutputToolBinding
    return next((binding.from_schema_spec(spec) for spec in specs if spec.name == name), None)


def _completed_response(cut: _CutPart, outcome: Outcome, request: ModelRequest[Any], usage: Any, added: list[ToolCall]) -> _Response:
    """Returns the reply with the whole text or call, a normal stop reason, the usage of all calls, and the last answer's tool calls."""
    metadata = {**cast("dict[str, Any]", cut.message.response_metadata)}
    metadata |= {name: normal for name, normal in _NORMAL_ENDS.items() if name in metadata}
    metadata["endmark"] = disclosure(outcome)
    changed: dict[str, Any] = {"response_metadata": metadata, "usage_metadata": usage}
    if cut.call is None:
        changed |= {"content": cut.content.whole(outcome.text), "tool_calls": [*cut.message.tool_calls, *added]}
    else:
        args = outcome.json()
        if not isinstance(args, dict):
            raise EndmarkError(f"the arguments of `{cut.call['name']}` are not an object", "invalid")
        whole = tool_call(name=cut.call["name"] or "", args=cast("dict[str, Any]", args), id=cut.call["id"])
        changed |= {"tool_calls": [*cut.message.tool_calls, whole], "invalid_tool_calls": cut.message.invalid_tool_calls[:-1]}
    message = cut.message.model_copy(update=changed)
    structured: Any = None
    if cut.call is not None and (binding := _output_tool(request.response_format, cut.call["name"])):
        # LangChain parsed the structured output before the call was complete, so parse it here. The call needs a result to end the agent.
        try:
            structured = binding.parse(outcome.json())
        except Exception as error:
            raise StructuredOutputValidationError(binding.tool.name, error, message) from error
        result = ToolMessage("The structured output is complete.", tool_call_id=cut.call["id"] or "", name=binding.tool.name)
        return ModelResponse(result=[message, result], structured_response=structured)
    if isinstance(request.response_format, ProviderStrategy) and cut.call is None:
        native: Any = ProviderStrategyBinding
        structured = native.from_schema_spec(request.response_format.schema_spec).parse(message)
    return ModelResponse(result=[message], structured_response=structured)
