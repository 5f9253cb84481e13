"""Google ADK: condenses long conversations without a model. The condensed part stays the same, so that prompt caching works.

    from endmark.adk_window import EndmarkSummarizer, EndmarkWindow
    app = App(name="sre", root_agent=agent, plugins=[EndmarkWindow(trigger_tokens=200_000)])

`EndmarkWindow` keeps the condensed contents in the session's state, which a session service with a database restores after a restart.
`EndmarkSummarizer` replaces the model in ADK's own compaction of events. Needs `pip install "endmark[adk]"`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from google.adk.agents.callback_context import CallbackContext
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from ._context import compact

__all__ = ["EndmarkSummarizer", "EndmarkWindow"]

_CREDENTIAL_CALL = "adk_request_credential"
_END = "The conversation continues."


class EndmarkWindow(BasePlugin):
    """Condenses the older contents of a request above `trigger_tokens`, to at most `budget_tokens`.

    The system instruction, the user's task and the newest `keep` contents stay, and each tool call keeps its result. Later requests of
    the same agent begin with the same condensed contents, until they exceed the trigger again.
    """

    def __init__(
        self, name: str = "endmark_window", *, trigger_tokens: int = 200_000, budget_tokens: int | None = None, keep: int | None = None
    ) -> None:
        super().__init__(name)
        self._options: dict[str, Any] = {
            "trigger_tokens": trigger_tokens, "budget_tokens": budget_tokens if budget_tokens is not None else max(1, trigger_tokens // 2),
            "keep": keep,
        }  # fmt: skip

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse | None:
        contents = [_plain(content) for content in llm_request.contents]
        key = f"endmark:window:{callback_context.agent_name}"
        stored: dict[str, Any] | None = callback_context.state.get(key)
        condensed, is_known = contents, False
        if stored is not None and stored["count"] <= len(contents) and stored["digest"] == _digest(contents[: stored["count"]]):
            condensed, is_known = [*stored["contents"], *contents[stored["count"] :]], True
        found = compact({"contents": condensed}, "gemini", **self._options)
        if found.is_compacted:
            condensed = found.request["contents"]
            callback_context.state[key] = {"count": len(contents), "digest": _digest(contents), "contents": condensed}
        if found.is_compacted or is_known:
            # Contents that were not condensed stay the same objects, because JSON does not contain all their fields.
            known = {json.dumps(plain): content for plain, content in zip(contents, llm_request.contents)}
            llm_request.contents = [known.get(json.dumps(plain)) or types.Content.model_validate(plain) for plain in condensed]
        return None


class EndmarkSummarizer(BaseEventsSummarizer):
    """A summarizer for `EventsCompactionConfig` without a model. A summary contains the calls, their shortened results and the findings.

    It has at most `max_tokens`. Shorter events are not summarised. Requests for credentials are left out.
    """

    def __init__(self, *, max_tokens: int = 8_000) -> None:
        self._max_tokens = max_tokens

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        contents = [_plain(content) for event in events if (content := _content(event)) is not None]
        if not contents:
            return None
        ended = [*contents, {"role": "user", "parts": [{"text": _END}]}]
        # The newest message is never condensed, so add one after all events.
        found = compact({"contents": ended}, "gemini", trigger_tokens=self._max_tokens, budget_tokens=self._max_tokens, keep=1)
        if not found.is_compacted:
            return None
        text = "\n\n".join(_text(part) for content in found.request["contents"][:-1] for part in content["parts"])
        summary = types.Content(role="model", parts=[types.Part(text=text)])
        compaction = EventCompaction(
            start_timestamp=events[0].timestamp, end_timestamp=events[-1].timestamp, compacted_content=summary
        )
        return Event(author="user", actions=EventActions(compaction=compaction), invocation_id=Event.new_id())


def _content(event: Event) -> types.Content | None:
    """Returns the content of an event, or the summary of an earlier compaction. None for requests for credentials."""
    compaction = event.actions.compaction
    content = compaction.compacted_content if compaction is not None else event.content
    for part in (content.parts if content is not None else None) or []:
        called = part.function_call or part.function_response
        if called is not None and called.name == _CREDENTIAL_CALL:
            return None
    return content if content is not None and content.parts else None


def _plain(content: types.Content) -> dict[str, Any]:
    return content.model_dump(mode="json", by_alias=True, exclude_none=True)


def _digest(contents: list[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def _text(part: dict[str, Any]) -> str:
    if isinstance(part.get("text"), str):
        return cast(str, part["text"])
    return json.dumps(part, ensure_ascii=False)
