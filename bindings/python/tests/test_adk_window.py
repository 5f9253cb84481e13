"""Tests the window and the summarizer in Google ADK, with a model that records its requests."""

import asyncio
import json

import pytest

pytest.importorskip("google.adk")

from endmark.adk_window import EndmarkSummarizer, EndmarkWindow  # noqa: E402
from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.apps.app import App, EventsCompactionConfig  # noqa: E402
from google.adk.events.event import Event  # noqa: E402
from google.adk.models.base_llm import BaseLlm  # noqa: E402
from google.adk.models.llm_response import LlmResponse  # noqa: E402
from google.adk.runners import InMemoryRunner, Runner  # noqa: E402
from google.adk.sessions.sqlite_session_service import SqliteSessionService  # noqa: E402
from google.genai import types  # noqa: E402


class Scripted(BaseLlm):
    """Calls the tool `run` several times per turn, and records the contents of each request."""

    model: str = "gemini-2.5-flash"
    calls: int = 20
    requests: list = []

    async def generate_content_async(self, request, stream=False):
        self.requests.append([content.model_dump(mode="json", exclude_none=True) for content in request.contents])
        done = request.contents[-2].parts[0].function_call.args["step"] if request.contents[-1].parts[0].function_response else 0
        call = types.FunctionCall(name="run", args={"command": f"df {done}", "step": done + 1})
        part = types.Part(function_call=call) if done < self.calls else types.Part(text="The log is too large.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]), finish_reason=types.FinishReason.STOP)


def agent(model):
    def run(command: str, step: int) -> dict:
        """Runs a command."""
        return {"step": step, "result": f"{command}\n" + "used 97 %\n" * 100}

    return LlmAgent(name="sre", model=model, tools=[run])


def ask(runner, session, text):
    async def run():
        asked = types.Content(role="user", parts=[types.Part(text=text)])
        return [event async for event in runner.run_async(user_id="u", session_id=session, new_message=asked)]

    return run()


def common(first, second):
    return next((at for at, (one, other) in enumerate(zip(first, second)) if one != other), min(len(first), len(second)))


def test_sixty_turns_stay_within_a_window_with_a_stable_start(tmp_path):
    model = Scripted(requests=[])
    path = f"{tmp_path}/sessions.db"

    def runner():
        # A new session service, as after a restart of the process.
        app = App(name="test", root_agent=agent(model), plugins=[EndmarkWindow(trigger_tokens=6_000, budget_tokens=3_000)])
        return Runner(app=app, session_service=SqliteSessionService(path))

    async def converse():
        first = runner()
        await first.session_service.create_session(app_name="test", user_id="u", session_id="s")
        for turn in range(3):
            await ask(runner() if turn else first, "s", f"Find out why the disk is full, part {turn}.")

    asyncio.run(converse())
    assert len(model.requests) == 63
    sizes = [len(json.dumps(request)) for request in model.requests]
    assert max(sizes) < 60_000, sizes
    assert all("Find out why the disk is full, part 0." in json.dumps(request) for request in model.requests)
    # Each request extends the one before it, unless the conversation was condensed again.
    changed = [number for number in range(1, 63) if common(model.requests[number - 1], model.requests[number]) < len(model.requests[number - 1])]
    assert 1 <= len(changed) <= 12, changed
    for request in model.requests:
        calls = [part["function_call"]["name"] for content in request for part in content["parts"] if "function_call" in part]
        assert len(calls) == sum("function_response" in part for content in request for part in content["parts"])


def test_a_short_conversation_stays_unchanged():
    model = Scripted(requests=[], calls=2)
    runner = InMemoryRunner(app=App(name="test", root_agent=agent(model), plugins=[EndmarkWindow()]))

    async def converse():
        await runner.session_service.create_session(app_name="test", user_id="u", session_id="s")
        await ask(runner, "s", "Find out why the disk is full.")
        return await runner.session_service.get_session(app_name="test", user_id="u", session_id="s")

    assert not asyncio.run(converse()).state and len(model.requests[-1]) == 5


def test_events_are_summarized_without_a_model():
    model = Scripted(requests=[], calls=4)
    config = EventsCompactionConfig(summarizer=EndmarkSummarizer(max_tokens=1_000), compaction_interval=2, overlap_size=0)
    runner = InMemoryRunner(app=App(name="test", root_agent=agent(model), events_compaction_config=config))

    async def converse():
        await runner.session_service.create_session(app_name="test", user_id="u", session_id="s")
        for turn in range(5):
            await ask(runner, "s", f"Find out why the disk is full, part {turn}.")
        return await runner.session_service.get_session(app_name="test", user_id="u", session_id="s")

    events = asyncio.run(converse()).events
    summaries = [event.actions.compaction.compacted_content.parts[0].text for event in events if event.actions.compaction]
    assert len(summaries) == 2 and "part 0" in summaries[0] and "df 1" in summaries[0] and len(summaries[0]) < 4_000
    shown = json.dumps(model.requests[-1])
    assert "earlier messages" in shown and len(model.requests[-1]) < 20


def test_credential_requests_and_empty_lists_are_not_summarized():
    secret = types.FunctionResponse(name="adk_request_credential", response={"token": "hunter2"})
    secret_event = Event(author="user", content=types.Content(role="user", parts=[types.Part(function_response=secret)]))
    text = Event(author="user", content=types.Content(role="user", parts=[types.Part(text="Find out why. " * 40)]))
    more = Event(author="sre", content=types.Content(role="model", parts=[types.Part(text="I look at the log. " * 400)]))
    summarizer = EndmarkSummarizer(max_tokens=300)
    found = asyncio.run(summarizer.maybe_summarize_events(events=[text, secret_event, more]))
    assert found is None or "hunter2" not in found.model_dump_json()
    assert asyncio.run(summarizer.maybe_summarize_events(events=[])) is None
    assert asyncio.run(summarizer.maybe_summarize_events(events=[secret_event])) is None
