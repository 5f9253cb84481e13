"""LangChain: replies, structured outputs and tool calls come out whole or raise, and tool results are capped with a way to read on.

    from endmark.langchain import EndmarkMiddleware
    agent = create_agent(model, tools, middleware=[EndmarkMiddleware()])

It works with `invoke`, `ainvoke` and their streams: a continuation reaches the stream as tokens of a further call, and the message in
the agent's state is the whole one. Needs `pip install "endmark[langchain]"`.
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
from ._frameworks import CLOSING, READ_TOOL, REPEATED_CALL, Results, ask_failed, disclosed, is_cut_stop, shown_arguments
from ._recovery import MAX_RESUME_ATTEMPTS, Ask, AskFailed, Log, Outcome, Pipeline, Reply

__all__ = ["EndmarkMiddleware"]

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")

_NORMAL = {
    "finish_reason": "stop", "stop_reason": "end_turn", "stopReason": "end_turn", "done_reason": "stop", "status": "completed",
    "incomplete_details": None,
}  # fmt: skip
"""By what names providers report why a model stopped, with their words for a normal end."""
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")
_CALLS = ("tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "input_json_delta")
_MEDIA = ("image", "image_url", "audio", "input_audio", "video", "file", "document", "media")
"""Blocks whose size is not that of a text. They are never shortened."""

_Response = ModelResponse[Any]
_Calls = Generator[ModelRequest[Any], _Response, _Response]


@dataclass(frozen=True)
class _Cut:
    """The part of a reply that is cut: its text, or the arguments of its last tool call."""

    message: AIMessage
    first: Reply
    format: Literal["json"] | None
    call: dict[str, Any] | None
    content: _Content


class _Content:
    """The content of a message: what is complete in it, its last text, which may be cut, and what an answer adds."""

    def __init__(self, message: AIMessage) -> None:
        self.begin(message)

    def begin(self, message: AIMessage) -> None:
        """Takes a message, of which its last text may be cut."""
        blocks = _blocks(message)
        others = [index for index, block in enumerate(blocks) if _text(block) is None and _type(block) not in _THOUGHTS]
        end = others[-1] + 1 if others else 0
        self._before = [*blocks[:end], *(block for block in blocks[end:] if _text(block) is None)]
        self._texts = [block for block in blocks[end:] if _text(block) is not None]
        self._added: list[Any] = []
        self.text = "".join(_text(block) or "" for block in self._texts)

    def extend(self, message: AIMessage) -> None:
        """Takes the rest. Thoughts about the rest are no part of the reply, and calls are beside the content."""
        self._added = [block for block in _blocks(message) if _text(block) is None and _type(block) not in (*_THOUGHTS, *_CALLS)]

    def shown(self, text: str) -> str | list[str | dict[Any, Any]]:
        """As the model is shown it, without what no request can show."""
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
    `meter` is a budget: the call that no longer fits is made without tools and asks for a summary, and later ones raise `NotAdmitted`.
    `continuation_tokens` is the output limit of a continuation whose first call had a lower one. A reply that stays cut raises
    `ResumeExhausted`; its calls of tools are then not made.
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
        self._results = Results(max_result_chars, outputs)
        self._meter = meter
        self._max_attempts = max_attempts
        self._continuation_tokens = continuation_tokens
        self._assume_output_tokens = assume_output_tokens
        self._log = log
        self._task_id = task_id
        self.tools = [self._read_tool()]

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], _Response]) -> _Response:
        turn = self._turn(request)
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
        turn = self._turn(request)
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
        return cast("ToolMessage | Command[Any]", self._capped(request, handler(request)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        return cast("ToolMessage | Command[Any]", self._capped(request, await handler(request)))

    def _turn(self, request: ModelRequest[Any]) -> _Calls:
        """The calls that one call of the model becomes; it is sent the responses."""
        response, unparsed = yield from self._answered(request, is_continuation=False)
        is_native = unparsed is not None or response.structured_response is not None
        if isinstance(request.response_format, AutoStrategy) and is_native:
            request = request.override(response_format=ProviderStrategy(request.response_format.schema))
        cut = _cut_part(response, request)
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
                # No correction is asked for.
                asked = cast(Ask, step)
                answer: Reply | AskFailed
                try:
                    continued, _ = yield from self._answered(self._continuation(cut, request, asked), is_continuation=True)
                    message = _without_guessed_call(_message(continued))
                    usage = add_usage(usage, message.usage_metadata)
                    answer = _answer(cut, asked, message)
                    added = [] if cut.call else message.tool_calls
                except GraphBubbleUp:
                    raise
                except Exception as error:
                    # The recovery's exception has the received part.
                    answer = ask_failed(error)
                    refused = error if answer.kind == "final" else None
                step = steps.send(answer)
        except ResumeExhausted as exhausted:
            if refused is not None:
                raise refused from exhausted
            raise
        except (NotResumed, InvalidReply) as passed:
            # Nothing is missing from it, or the provider ended it: it is not Endmark's to judge.
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
        return _whole(cut, step, request, usage, added)

    def _answered(
        self, request: ModelRequest[Any], *, is_continuation: bool
    ) -> Generator[ModelRequest[Any], _Response, tuple[_Response, Exception | None]]:
        """The response of one call, and the error if its structured output was not parsed: it can be completed."""
        try:
            return (yield from self._metered(request, is_continuation)), None
        except Exception as error:
            if (message := _message_of(error)) is None:
                raise
            return ModelResponse(result=[message]), error

    def _continuation(self, cut: _Cut, request: ModelRequest[Any], asked: Ask) -> ModelRequest[Any]:
        """The request for the rest. Tools are withheld, so that the answer is a text."""
        settings = {
            name: max(value, self._continuation_tokens) if name in _LIMITS and isinstance(value, int) else value
            for name, value in request.model_settings.items()
        }
        if asked.wanted != "rest":
            return request.override(model_settings=settings)
        shown = asked.shown_text
        content = cut.content.shown(shown) if cut.call is None else shown_arguments(cut.call["name"], shown)
        added: list[AnyMessage] = [AIMessage(content), HumanMessage(asked.prompt)]
        messages = [*request.messages, *added]
        return request.override(messages=messages, tools=[], tool_choice=None, response_format=None, model_settings=settings)

    def _metered(self, request: ModelRequest[Any], is_continuation: bool) -> _Calls:
        """One call within the budget, if there is one."""
        if self._meter is None:
            return (yield request)
        model = str(getattr(request.model, "model_name", None) or getattr(request.model, "model", ""))
        messages = [request.system_message, *request.messages] if request.system_message else list(request.messages)
        body = {"model": model, "messages": convert_to_openai_messages(messages)}
        limits = [request.model_settings.get(name) or getattr(request.model, name, None) for name in _LIMITS]
        limit = next((limit for limit in limits if isinstance(limit, int) and limit > 0), self._assume_output_tokens)
        admitted = self._meter.before_call(
            model, prompt_tokens=count(body, model, format="openai_chat").tokens, max_output_tokens=limit,
            is_continuation=is_continuation,
        )  # fmt: skip
        try:
            response = yield self._closing(request, admitted) if admitted.is_closing else request
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

    def _closing(self, request: ModelRequest[Any], admitted: Admitted) -> ModelRequest[Any]:
        settings = {name: value for name, value in request.model_settings.items() if name not in _LIMITS}
        settings["max_tokens"] = admitted.max_output_tokens
        messages = [*request.messages, HumanMessage(CLOSING)]
        return request.override(messages=messages, tools=[], tool_choice=None, model_settings=settings)

    def _capped(self, request: ToolCallRequest, result: Any) -> Any:
        return result if request.tool_call["name"] == READ_TOOL else self._capped_result(result)

    def _capped_result(self, result: Any) -> Any:
        """The result of a tool with all its messages capped, also those by which a `Command` changes the agent's state."""
        # Checked by type, and read without one.
        command = result
        update: Any = getattr(result, "update", None)
        named: Any = update
        if not isinstance(result, Command):
            return self._capped_messages(result)
        if isinstance(update, dict):
            return replace(command, update={name: self._capped_messages(value) for name, value in named.items()})
        if isinstance(update, list):
            # Pairs of a name and a value, or messages.
            items: list[Any] = [(item[0], self._capped_messages(item[1])) if type(item) is tuple else self._capped_messages(item) for item in named]
            return replace(command, update=items)
        return command

    def _capped_messages(self, value: Any) -> Any:
        """A message or a list of messages, capped; any other value as it is."""
        values = value
        if isinstance(value, list):
            return [self._capped_messages(message) for message in values] if any(isinstance(one, ToolMessage) for one in values) else values
        if not isinstance(value, ToolMessage):
            return value
        content = cast(Any, value.content)
        capped = self._results.shortened(content) if isinstance(content, str) else self._capped_blocks(content)
        return value.model_copy(update={"content": capped})

    def _capped_blocks(self, blocks: list[Any]) -> list[Any]:
        """The blocks within the limit: all that are not media become one text where they are above it."""
        shown = [(block, None if _is_media(block) else _shown(block)) for block in blocks]
        texts = [text for _, text in shown if text is not None]
        if sum(map(len, texts)) <= self._results.max_chars:
            return blocks
        media = [block for block, text in shown if text is None]
        return [{"type": "text", "text": self._results.shortened("\n".join(texts))}, *media]

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
    """The reply that an error about a structured output carries: LangChain's own error, or that of OpenAI's library for a reply that
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
    """The text of a block that is one."""
    if isinstance(block, str):
        return block
    return str(cast("dict[str, Any]", block).get("text", "")) if _type(block) == "text" else None


def _is_media(block: Any) -> bool:
    source: Any = cast("dict[str, Any]", block).get("source") if isinstance(block, dict) else None
    is_text = isinstance(source, dict) and cast("dict[str, Any]", source).get("type") == "text"
    return _type(block) in _MEDIA and not is_text


def _shown(block: Any) -> str:
    """A block of a tool's result as text."""
    return text if (text := _text(block)) is not None else dumps(block, "a block of a tool's result")


def _stop(message: AIMessage) -> str | None:
    """Why the model stopped, in its provider's word."""
    reported = cast("dict[str, Any]", message.response_metadata)
    details: dict[str, Any] = reported.get("incomplete_details") or {}
    # The status of a response is the least precise.
    names = [name for name in _NORMAL if name not in ("status", "incomplete_details")]
    words = [*(reported.get(name) for name in names), details.get("reason"), reported.get("status")]
    stop: Any = next((word for word in words if word), None)
    return str(stop) if stop else None


def _without_guessed_call(message: AIMessage) -> AIMessage:
    """The message with its last tool call as an invalid one, unless its arguments are certain to be whole.

    LangChain closes the JSON of streamed arguments where they are cut, and does not mark them.
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
        args = _opened(last["args"])
    else:
        return message
    invalid = invalid_tool_call(name=last["name"], args=args, id=last["id"], error=None)
    return cast(AIMessage, message_chunk_to_message(message)).model_copy(
        update={"tool_calls": others, "invalid_tool_calls": [invalid]}
    )


def _opened(args: dict[str, Any]) -> str:
    """The arguments as JSON without its closing characters, since the last value may go on. Without arguments, the empty text."""
    value: Any = args
    closing = 0
    while value and isinstance(value, (dict, list)):
        closing += 1
        values: list[Any] = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else cast(Any, value)
        value = values[-1]
    closing += isinstance(value, (dict, list, str))
    return json.dumps(args, ensure_ascii=False)[:-closing] if args else ""


def _cut_part(response: _Response, request: ModelRequest[Any]) -> _Cut | None:
    message = _without_guessed_call(_message(response))
    stop, content = _stop(message), _Content(message)
    if message.invalid_tool_calls:
        # Only the last call of a reply can be cut.
        call = cast("dict[str, Any]", message.invalid_tool_calls[-1])
        return _Cut(message, Reply(call["args"] or "", stop or "length", reasoned=not call["args"]), "json", call, content)
    if message.tool_calls or stop is None:
        return None
    output = message.usage_metadata["output_tokens"] if message.usage_metadata else None
    is_json = isinstance(request.response_format, ProviderStrategy)
    reply = Reply(content.text, stop, output_tokens=output, reasoned=not content.text)
    return _Cut(message, reply, "json" if is_json else None, None, content)


def _answer(cut: _Cut, asked: Ask, message: AIMessage) -> Reply:
    """What a continuation brought; of a reply that was generated again, its last call."""
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
    """The tool by which the model gives its structured output, if this is its name."""
    tools: Any = ToolStrategy(cast(Any, strategy).schema) if isinstance(strategy, AutoStrategy) else strategy
    specs: list[Any] = tools.schema_specs if isinstance(tools, ToolStrategy) else []
    binding: Any = OutputToolBinding
    return next((binding.from_schema_spec(spec) for spec in specs if spec.name == name), None)


def _whole(cut: _Cut, outcome: Outcome, request: ModelRequest[Any], usage: Any, added: list[ToolCall]) -> _Response:
    """The reply with the whole text or call, a normal stop reason, the usage of all calls, and the tool calls of the last answer."""
    metadata = {**cast("dict[str, Any]", cut.message.response_metadata)}
    metadata |= {name: normal for name, normal in _NORMAL.items() if name in metadata}
    metadata["endmark"] = disclosed(outcome)
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
        # LangChain reads the structured output before the call is whole. It ends the agent here, so that the call needs its result.
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
