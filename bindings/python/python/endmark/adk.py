"""Google ADK: returns complete replies or raises, caps tool results, and enforces the budget of a session.

    from endmark.adk import EndmarkLlm, EndmarkPlugin
    plugin = EndmarkPlugin()
    agent = LlmAgent(name="sre", model=EndmarkLlm(wrapped=Gemini(model="gemini-2.5-flash"), meter=meter), tools=[…, plugin.read_tool()])
    runner = InMemoryRunner(agent=agent, plugins=[plugin])

`EndmarkLlm` wraps another model. Agents that share a `Meter` share its budget. Needs
`pip install "endmark[adk]"`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

import pydantic_core
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from ._context import Admitted, Meter, Outputs, Tokens, compact, count, read_tool
from ._core import dumps
from ._errors import InvalidReply, NotResumed, ResumeExhausted
from ._frameworks import CLOSING, READ_TOOL, ToolResults, convert_error, disclosure
from ._recovery import MAX_RESUME_ATTEMPTS, Ask, AskFailed, Log, Outcome, Reply, resume_if_truncated_async, stop_meaning

__all__ = ["EndmarkLlm", "EndmarkPlugin"]

EMERGENCY_TRIGGER_TOKENS = 850_000
"""The default size of a request above which its older contents are condensed."""
_USAGE = ("prompt_token_count", "cached_content_token_count", "candidates_token_count", "thoughts_token_count", "total_token_count")


class EndmarkLlm(BaseLlm):
    """Wraps a model: resumes cut texts, condenses oversized requests, and meters every call.

    A reply that stays cut raises `ResumeExhausted`. A reply without a finish reason counts as cut. If a cut reply ends with a tool call,
    the call may be incomplete: the reply is generated again, and the cut call never runs. Errors such as status 401 are raised unchanged.
    In a stream, partial responses pass unchanged, and the last response has the whole text.
    `meter` is a budget: the first call that no longer fits is made without tools and asks for a summary, and later ones raise
    `NotAdmitted`. `brake_tokens` is the size of a request above which its older contents are condensed; 0 means never.
    """

    model: str = ""
    wrapped: BaseLlm
    meter: Meter | None = None
    max_attempts: int = MAX_RESUME_ATTEMPTS
    continuation_tokens: int = 4_096
    assume_output_tokens: int = 4_096
    brake_tokens: int = EMERGENCY_TRIGGER_TOKENS
    log: Log | None = None
    task_id: str = ""

    def model_post_init(self, context: Any, /) -> None:
        self.model = self.model or self.wrapped.model

    @property
    def capabilities(self) -> Any:
        return self.wrapped.capabilities

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        request = self._condense_if_large(llm_request)
        last: LlmResponse | None = None
        async for response in self._call_metered(request, stream, is_continuation=False):
            if response.partial:
                yield response
            else:
                if last is not None:
                    yield last
                last = response
        if last is not None:
            yield await self._recover(request, last)

    async def _recover(self, request: LlmRequest, response: LlmResponse) -> LlmResponse:
        parts = _parts(response)
        meaning = stop_meaning(_stop(response))
        is_cut = meaning in ("limit", "not_ended")
        is_error = response.error_code is not None and meaning != "limit"
        if is_error or (not is_cut and (not parts or _has_call(parts))) or (not parts and meaning == "not_ended"):
            return response
        reply = _PartialReply(parts)
        usages = [response.usage_metadata]
        refused: list[Exception] = []
        is_json = request.config.response_mime_type == "application/json" or request.config.response_schema is not None

        async def ask(asked: Ask) -> Reply:
            try:
                answer = await self._request_rest(_continuation(request, asked, reply.before, self.continuation_tokens))
            except Exception as error:
                # The exception of the recovery contains the received part.
                failure = convert_error(error)
                if failure.kind == "final":
                    refused.append(error)
                raise failure from error
            usages.append(answer.usage_metadata)
            stop, parts = _stop(answer), _parts(answer)
            if asked.wanted != "rest":
                reply.begin(parts)
                return Reply(reply.text, stop, reasoned=not reply.text)
            if _has_call(parts) and stop_meaning(stop) in ("limit", "not_ended"):
                raise AskFailed("tool calls may be missing in the answer")
            return Reply(reply.extend(parts), stop)

        turn = sum(content.role == "model" for content in request.contents) + 1
        first = Reply(reply.text, _stop(response), reasoned=not reply.text)
        try:
            outcome = await resume_if_truncated_async(
                ask, first, "json" if is_json and not _has_call(parts) else None, max_attempts=self.max_attempts, log=self.log,
                task_id=self.task_id, turn_number=turn,
            )  # fmt: skip
        except NotResumed as passed:
            return _with_disclosure(response, {"outcome": "passed", "reason": passed.code})
        except InvalidReply:
            # The reply is not cut. Checking it is the task of ADK.
            return response
        except ResumeExhausted as exhausted:
            if refused:
                raise refused[0] from exhausted
            raise
        return response if outcome.result == "whole" and not is_cut else _completed_response(response, outcome, usages, reply)

    async def _request_rest(self, request: LlmRequest) -> LlmResponse:
        """Returns the answer to a continuation request, with all its responses in one."""
        parts: list[types.Part] = []
        last: LlmResponse | None = None
        usage = None
        async for last in self._call_metered(request, False, is_continuation=True):
            if not last.partial:
                parts += _parts(last)
            usage = last.usage_metadata or usage
        if last is None or not (parts or last.finish_reason):
            raise AskFailed((last and last.error_message) or "the answer is empty")
        content = types.Content(role="model", parts=parts)
        return last.model_copy(update={"content": content, "usage_metadata": usage})

    async def _call_metered(self, request: LlmRequest, stream: bool, *, is_continuation: bool) -> AsyncGenerator[LlmResponse, None]:
        """Makes one call within the budget, if there is one."""
        if self.meter is None:
            async for response in self.wrapped.generate_content_async(request, stream):
                yield response
            return
        body = dumps(_body(request))
        model = request.model or self.model
        admitted = self.meter.before_call(
            model, prompt_tokens=count(body, model).tokens,
            max_output_tokens=request.config.max_output_tokens or self.assume_output_tokens, is_continuation=is_continuation,
        )  # fmt: skip
        if admitted.is_closing:
            asked = types.Content(role="user", parts=[types.Part(text=CLOSING)])
            withheld = {"tools": None, "tool_config": None, "max_output_tokens": admitted.max_output_tokens}
            request = _with_contents(request, [*request.contents, asked], **withheld)
        usage, text = None, None
        try:
            async for response in self.wrapped.generate_content_async(request, stream):
                usage = response.usage_metadata or usage
                parts = _parts(response)
                if response.partial or text is None:
                    text = (text or "") + "".join(part.text or "" for part in parts)
                yield response
        finally:
            self._settle(admitted, usage, text)

    def _settle(
        self, admitted: Admitted, usage: types.GenerateContentResponseUsageMetadata | None, text: str | None
    ) -> None:
        assert self.meter is not None
        if usage is None:
            self.meter.after_call(admitted, text=text)
            return
        reasoning = usage.thoughts_token_count or 0
        completion = (usage.candidates_token_count or 0) + reasoning
        cached = usage.cached_content_token_count or 0
        prompt = usage.prompt_token_count or 0
        self.meter.after_call(admitted, Tokens(prompt=prompt, cached=cached, completion=completion, reasoning=reasoning))

    def _condense_if_large(self, request: LlmRequest) -> LlmRequest:
        """Returns the request, with its older contents condensed if it exceeds `brake_tokens`."""
        if not self.brake_tokens:
            return request
        body = dumps(_body(request))
        # A token has at least one byte.
        if len(body) <= self.brake_tokens:
            return request
        compacted = compact(body, "gemini", mode="emergency", trigger_tokens=self.brake_tokens)
        if not compacted.is_compacted:
            return request
        contents = [types.Content.model_validate(content) for content in compacted.request["contents"]]
        return _with_contents(request, contents)


class EndmarkPlugin(BasePlugin):
    """Caps tool results. Give agents the tool `read_tool()`, with which the model reads omitted parts.

    `outputs` keeps the full values, by default in memory; `Outputs("results.db")` shares them between processes.
    """

    def __init__(
        self, name: str = "endmark", *, max_result_chars: int = 20_000, outputs: Outputs | None = None
    ) -> None:
        super().__init__(name)
        self._results = ToolResults(max_result_chars, outputs)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        """Caps a result that is too long. Returns None for a shorter one, which stays unchanged."""
        if tool.name == READ_TOOL:
            return None
        value = result
        # ADK puts the text of a tool that returns only a text under this name.
        if isinstance(result, dict) and list(cast("dict[str, Any]", result)) == ["result"]:
            value = cast("dict[str, Any]", result)["result"]
        text = value if isinstance(value, str) else _to_json(value)
        return {"result": self._results.shorten(text)} if len(text) > self._results.max_chars else None

    def read_tool(self) -> BaseTool:
        """Returns the tool `endmark_read`."""

        def endmark_read(
            handle: str, page: int | None = None, lines: str | None = None, bytes: str | None = None,
            pointer: str | None = None, grep: str | None = None,
        ) -> dict[str, str]:  # fmt: skip
            wanted = {"handle": handle, "page": page, "lines": lines, "bytes": bytes, "pointer": pointer, "grep": grep}
            text, is_read = self._results.read_part(wanted)
            return {"result" if is_read else "error": text}

        endmark_read.__doc__ = read_tool()["description"]
        return FunctionTool(endmark_read)


def _body(request: LlmRequest) -> dict[str, Any]:
    """Returns the parts of the request that count as tokens, in Gemini's format."""
    contents = [content.model_dump(mode="json", by_alias=True, exclude_none=True) for content in request.contents]
    config = request.config.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"system_instruction", "tools"}, fallback=str
    )
    return {"contents": contents, **config}


def _with_contents(request: LlmRequest, contents: list[types.Content], **config: Any) -> LlmRequest:
    return request.model_copy(update={"contents": contents, "config": request.config.model_copy(update=config)})


class _PartialReply:
    """The received part of a reply: its complete parts, its last text, which may be cut, and the parts that an answer adds."""

    def __init__(self, parts: list[types.Part]) -> None:
        self.begin(parts)

    def begin(self, parts: list[types.Part]) -> None:
        """Sets the parts of a reply, at first or after it was generated again."""
        others = [index for index, part in enumerate(parts) if not _is_text(part) and not part.thought]
        end = others[-1] + 1 if others else 0
        # Thoughts never belong to the text.
        self.before = [*parts[:end], *(part for part in parts[end:] if part.thought)]
        self.text = "".join(part.text or "" for part in parts[end:] if not part.thought)
        self._added: list[types.Part] = []

    def extend(self, parts: list[types.Part]) -> str:
        """Adds the rest and returns its text. Other parts follow the text. Thoughts about the rest are dropped."""
        self._added = [part for part in parts if not _is_text(part) and not part.thought]
        return "".join(part.text or "" for part in parts if _is_text(part))

    def whole(self, text: str) -> list[types.Part]:
        return [*self.before, *([types.Part(text=text)] if text else []), *self._added]


def _continuation(request: LlmRequest, asked: Ask, before: list[types.Part], least_tokens: int) -> LlmRequest:
    """Returns the continuation request. It has no tools and no schema, so that the answer continues the text."""
    limit = request.config.max_output_tokens
    limit = max(limit, least_tokens) if limit else limit
    if asked.wanted != "rest":
        return _with_contents(request, request.contents, max_output_tokens=limit)
    shown = [part for part in before if not part.thought and not part.function_call]
    added = [
        types.Content(role="model", parts=[*shown, types.Part(text=asked.shown_text)]),
        types.Content(role="user", parts=[types.Part(text=asked.prompt)]),
    ]
    withheld = {"tools": None, "tool_config": None, "response_schema": None, "response_mime_type": None}
    return _with_contents(request, [*request.contents, *added], max_output_tokens=limit, **withheld)


def _to_json(value: Any) -> str:
    """Writes a result as JSON. Dates, bytes and models become texts, as in ADK's requests."""
    try:
        return pydantic_core.to_json(value, fallback=str, bytes_mode="base64").decode()
    except ValueError:
        # The value contains itself.
        return str(value)


def _parts(response: LlmResponse) -> list[types.Part]:
    return (response.content.parts if response.content else None) or []


def _is_text(part: types.Part) -> bool:
    return part.text is not None and not part.thought


def _has_call(parts: list[types.Part]) -> bool:
    return any(part.function_call for part in parts)


def _stop(response: LlmResponse) -> str | None:
    return response.finish_reason.value if response.finish_reason else None


def _with_disclosure(response: LlmResponse, found: dict[str, Any]) -> LlmResponse:
    return response.model_copy(update={"custom_metadata": {**(response.custom_metadata or {}), "endmark": found}})


def _completed_response(response: LlmResponse, outcome: Outcome, usages: list[Any], reply: _PartialReply) -> LlmResponse:
    known = [usage for usage in usages if usage is not None]
    sums = {name: sum(getattr(usage, name) or 0 for usage in known) or None for name in _USAGE}
    usage = known[0].model_copy(update=sums) if known else None
    whole = response.model_copy(
        update={
            "content": types.Content(role="model", parts=reply.whole(outcome.text)),
            "finish_reason": types.FinishReason.STOP,
            "error_code": None,
            "error_message": None,
            "usage_metadata": usage,
        }
    )
    return _with_disclosure(whole, disclosure(outcome))
