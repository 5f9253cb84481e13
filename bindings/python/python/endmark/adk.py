"""Google ADK: replies come out whole or raise, tool results are capped with a way to read on, and a session's budget holds.

    from endmark.adk import EndmarkLlm, EndmarkPlugin
    plugin = EndmarkPlugin()
    agent = LlmAgent(name="sre", model=EndmarkLlm(wrapped=Gemini(model="gemini-2.5-flash"), meter=meter), tools=[…, plugin.read_tool()])
    runner = InMemoryRunner(agent=agent, plugins=[plugin])

`EndmarkLlm` is a model around another one. Agents and panels that share a `Meter` share its budget. Needs
`pip install "endmark[adk]"`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, cast

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from ._context import Admitted, Meter, Outputs, Tokens, cap, compact, count, read_tool
from ._errors import EndmarkError, NotAdmitted, NotResumed
from ._recovery import MAX_RESUME_ATTEMPTS, AskFailed, Correction, Log, Outcome, Pipeline, Reply

__all__ = ["EndmarkLlm", "EndmarkPlugin"]

CLOSING = "The token budget is used up. Summarise your findings with the data that you have. You cannot use tools any more."
"""What the closing call of a budget asks for."""
EMERGENCY_TRIGGER_TOKENS = 850_000
"""Above this size of a request its older contents are condensed."""
_USAGE = ("prompt_token_count", "cached_content_token_count", "candidates_token_count", "thoughts_token_count", "total_token_count")


class EndmarkLlm(BaseLlm):
    """A model around another one, which resumes its cut texts, brakes its requests, and meters every call.

    A reply that stays cut raises `ResumeExhausted`. A cut reply with calls is disclosed in `custom_metadata["endmark"]`, since calls may
    be missing after the last one. In a stream, partial responses pass as they come, and the last response has the whole text.
    `meter` holds the budget: the call that no longer fits is made without tools and asks for a summary, and later ones raise
    `NotAdmitted`. `brake_tokens` is the size of a request above which its older contents are condensed; 0 is never.
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
        request = self._braked(llm_request)
        last: LlmResponse | None = None
        async for response in self._metered(request, stream, can_close=True):
            if response.partial:
                yield response
            else:
                if last is not None:
                    yield last
                last = response
        if last is not None:
            yield await self._whole(request, last)

    async def _whole(self, request: LlmRequest, response: LlmResponse) -> LlmResponse:
        parts = (response.content.parts if response.content else None) or []
        if response.finish_reason != types.FinishReason.MAX_TOKENS:
            return response
        if any(part.function_call for part in parts):
            disclosed = {"outcome": "cut", "reason": "calls_may_be_missing"}
            return response.model_copy(update={"custom_metadata": {**(response.custom_metadata or {}), "endmark": disclosed}})
        usages = [response.usage_metadata]
        calls: list[types.Part] = []
        text = "".join(part.text or "" for part in parts if not part.thought)
        is_json = request.config.response_mime_type == "application/json" or request.config.response_schema is not None

        async def ask(asked: Any) -> Reply:
            if isinstance(asked, Correction):
                raise AskFailed("no correction is asked for", "final")
            last: LlmResponse | None = None
            try:
                async for continued in self._metered(self._continuation(request, asked), False, can_close=False):
                    last = continued
            except AskFailed:
                raise
            except Exception as error:
                # What was received is in the exception that the recovery ends with.
                raise AskFailed(str(error), "budget" if isinstance(error, NotAdmitted) else "lost") from error
            if last is None or last.content is None:
                raise AskFailed(last.error_message or "the answer is empty" if last else "there is no answer")
            usages.append(last.usage_metadata)
            calls[:] = [part for part in last.content.parts or [] if part.function_call]
            if calls and last.finish_reason == types.FinishReason.MAX_TOKENS:
                raise AskFailed("tool calls may be missing in the answer")
            added = "".join(part.text or "" for part in last.content.parts or [] if not part.thought)
            return Reply(added, last.finish_reason.value if last.finish_reason else "STOP")

        pipeline = Pipeline(
            format="json" if is_json else None, max_attempts=self.max_attempts, max_corrections=0, log=self.log
        )
        turn = sum(content.role == "model" for content in request.contents) + 1
        first = Reply(text, "MAX_TOKENS", reasoned=any(part.thought for part in parts) or not text)
        try:
            outcome = await pipeline.run_async(ask, first, task_id=self.task_id, turn_number=turn)
        except NotResumed:
            return response
        return _made_whole(response, outcome, usages, calls)

    def _continuation(self, request: LlmRequest, asked: Any) -> LlmRequest:
        """The request for the rest. Tools and the schema are withheld, so that the answer is the rest of a text."""
        limit = request.config.max_output_tokens
        limit = max(limit, self.continuation_tokens) if limit else limit
        if asked.wanted != "rest":
            return _changed(request, request.contents, max_output_tokens=limit)
        added = [
            types.Content(role="model", parts=[types.Part(text=asked.shown_text)]),
            types.Content(role="user", parts=[types.Part(text=asked.prompt)]),
        ]
        withheld = {"tools": None, "tool_config": None, "response_schema": None, "response_mime_type": None}
        return _changed(request, [*request.contents, *added], max_output_tokens=limit, **withheld)

    async def _metered(self, request: LlmRequest, stream: bool, *, can_close: bool) -> AsyncGenerator[LlmResponse, None]:
        """One call within the budget, if there is one. A continuation cannot be the closing call: a summary is not the rest."""
        if self.meter is None:
            async for response in self.wrapped.generate_content_async(request, stream):
                yield response
            return
        body = json.dumps(_body(request))
        model = request.model or self.model
        admitted = self.meter.before_call(
            model, prompt_tokens=count(body, model).tokens,
            max_output_tokens=request.config.max_output_tokens or self.assume_output_tokens,
        )  # fmt: skip
        if admitted.is_closing and not can_close:
            self.meter.after_call(admitted)
            raise AskFailed("the budget has no room for a continuation", "budget")
        if admitted.is_closing:
            asked = types.Content(role="user", parts=[types.Part(text=CLOSING)])
            withheld = {"tools": None, "tool_config": None, "max_output_tokens": admitted.max_output_tokens}
            request = _changed(request, [*request.contents, asked], **withheld)
        usage, text = None, None
        try:
            async for response in self.wrapped.generate_content_async(request, stream):
                usage = response.usage_metadata or usage
                parts = (response.content.parts if response.content else None) or []
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

    def _braked(self, request: LlmRequest) -> LlmRequest:
        """The request with its older contents condensed, if it is above the brake."""
        if not self.brake_tokens:
            return request
        body = json.dumps(_body(request))
        # A token has at least one byte.
        if len(body) <= self.brake_tokens:
            return request
        compacted = compact(body, "gemini", mode="emergency", trigger_tokens=self.brake_tokens)
        if not compacted.is_compacted:
            return request
        contents = [types.Content.model_validate(content) for content in compacted.request["contents"]]
        return _changed(request, contents)


class EndmarkPlugin(BasePlugin):
    """Caps the results of tools. Give agents the tool `read_tool()`, by which the model reads what was left out.

    `outputs` keeps the full values, by default in memory; `Outputs("results.db")` shares them between processes.
    """

    def __init__(
        self, name: str = "endmark", *, max_result_chars: int = 20_000, outputs: Outputs | None = None
    ) -> None:
        super().__init__(name)
        self._max_result_chars = max_result_chars
        self._outputs = outputs if outputs is not None else Outputs()

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        """Caps a result that is too long; a shorter one stays as it is."""
        if tool.name == read_tool()["name"]:
            return None
        try:
            written = json.dumps(result, ensure_ascii=False)
        except (TypeError, ValueError):
            return None
        if len(written) <= self._max_result_chars:
            return None
        value = result
        # A tool that returns a text alone has it under this name.
        if isinstance(result, dict) and list(cast("dict[str, Any]", result)) == ["result"]:
            value = cast("dict[str, Any]", result)["result"]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        capped = cap(text, max_chars=self._max_result_chars, outputs=self._outputs)
        return {"result": capped.text} if capped.is_cut else None

    def read_tool(self) -> BaseTool:
        """The tool `endmark_read`."""

        def endmark_read(
            handle: str, page: int | None = None, lines: str | None = None, bytes: str | None = None,
            pointer: str | None = None, grep: str | None = None,
        ) -> dict[str, str]:  # fmt: skip
            wanted = {"handle": handle, "page": page, "lines": lines, "bytes": bytes, "pointer": pointer, "grep": grep}
            wanted = {name: value for name, value in wanted.items() if value is not None}
            try:
                return {"result": self._outputs.read(wanted, max_chars=self._max_result_chars)}
            except EndmarkError as error:
                # The model can correct its call.
                return {"error": str(error)}

        endmark_read.__doc__ = read_tool()["description"]
        return FunctionTool(endmark_read)


def _body(request: LlmRequest) -> dict[str, Any]:
    """The request as Gemini's format has it, as far as it counts."""
    contents = [content.model_dump(mode="json", by_alias=True, exclude_none=True) for content in request.contents]
    config = request.config.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"system_instruction", "tools"}, fallback=str
    )
    return {"contents": contents, **config}


def _changed(request: LlmRequest, contents: list[types.Content], **config: Any) -> LlmRequest:
    return request.model_copy(update={"contents": contents, "config": request.config.model_copy(update=config)})


def _made_whole(
    response: LlmResponse, outcome: Outcome, usages: list[Any], calls: list[types.Part]
) -> LlmResponse:  # fmt: skip
    known = [usage for usage in usages if usage is not None]
    sums = {name: sum(getattr(usage, name) or 0 for usage in known) or None for name in _USAGE}
    usage = known[0].model_copy(update=sums) if known else None
    thoughts = [part for part in (response.content.parts if response.content else None) or [] if part.thought]
    texts = [types.Part(text=outcome.text)] if outcome.text or not calls else []
    done = {"outcome": outcome.result, "attempts": outcome.attempts, "cut": outcome.cut}
    return response.model_copy(
        update={
            "content": types.Content(role="model", parts=[*thoughts, *texts, *calls]),
            "finish_reason": types.FinishReason.STOP,
            "error_code": None,
            "error_message": None,
            "usage_metadata": usage,
            "custom_metadata": {**(response.custom_metadata or {}), "endmark": done},
        }
    )
