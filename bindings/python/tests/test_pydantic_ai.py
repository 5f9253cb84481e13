"""Tests Pydantic AI with the scripted model of `tests/sdk`, with and without the capability."""

import asyncio
import dataclasses
import sys
from pathlib import Path

import endmark
import pytest

pytest.importorskip("pydantic_ai")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "sdk"))

import scripted  # noqa: E402
from endmark.pydantic_ai import EndmarkCapability, EndmarkModel, _condense  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from pydantic_ai import Agent, NativeOutput  # noqa: E402
from pydantic_ai.exceptions import ContentFilterError, IncompleteToolCall  # noqa: E402
from pydantic_ai.messages import (  # noqa: E402
    FilePart, BinaryContent, ModelRequest, ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, ThinkingPart, ToolCallPart,
    ToolReturnPart, UserPromptPart,
)  # fmt: skip
from pydantic_ai.models.function import FunctionModel  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402
from pydantic_ai.usage import RequestUsage  # noqa: E402

# Pydantic AI's clients share connections, which belong to one event loop.
LOOP = asyncio.new_event_loop()
KINDS = [OpenAIChatModel, OpenAIResponsesModel]


class Cat(BaseModel):
    name: str
    age: int
    friendly: bool
    likes: list[str]


@pytest.fixture(scope="module")
def model():
    with scripted.Model() as made:
        yield made


def run(model, kind, harm, *, api=OpenAIChatModel, mode="run", capability=None, output="", **options):
    """Runs an agent. Returns its result, the saved notes, the conversation, and the text from a stream."""
    saved, shown = [], []
    key, conversation = model.open(kind, harm)
    provider = OpenAIProvider(base_url=f"{model.origin}/v1", api_key="not-needed")
    layers = [EndmarkCapability() if capability is None else capability] if capability is not False else []
    agent = Agent(api("gpt-5", provider=provider), capabilities=layers, retries=0, **options)

    if kind in ("call", "calls"):
        @agent.tool_plain
        def save_note(path: str, text: str) -> str:
            """Saves a note."""
            saved.append((path, text))
            return output or "saved"

    async def events(_, stream):
        async for event in stream:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                shown.append(event.part.content)
            if isinstance(event, PartDeltaEvent) and hasattr(event.delta, "content_delta"):
                shown.append(event.delta.content_delta)

    async def result():
        if mode != "run_stream":
            return await agent.run(f"{key}: tell me about it.", event_stream_handler=events if mode == "events" else None)
        async with agent.run_stream(f"{key}: tell me about it.") as stream:
            await stream.get_output()
            return stream

    found = LOOP.run_until_complete(result())
    assert not conversation.problems, conversation.problems
    return found, saved, conversation, "".join(shown)


def last(result):
    return result.all_messages()[-1]


@pytest.mark.parametrize("mode", ["run", "events", "run_stream"])
@pytest.mark.parametrize("api", KINDS)
def test_a_cut_text_comes_out_whole_with_the_usage_of_all_calls(model, api, mode):
    result, _, conversation, shown = run(model, "text", "limit", api=api, mode=mode)
    assert last(result).text == scripted.TEXT and len(conversation.requests) == 2
    assert shown == (scripted.TEXT if mode == "events" else "")
    assert last(result).usage.input_tokens == 2 * scripted.USAGE[0] and result.usage.input_tokens == 2 * scripted.USAGE[0]
    assert last(result).metadata["endmark"] == {"outcome": "resumed", "attempts": 1, "cut": "limit"}
    assert last(result).finish_reason == "stop"


@pytest.mark.parametrize("mode", ["run", "events"])
@pytest.mark.parametrize("kind", ["call", "calls"])
@pytest.mark.parametrize("api", KINDS)
def test_a_cut_call_is_made_once_with_whole_arguments(model, api, kind, mode):
    result, saved, _, _ = run(model, kind, "limit", api=api, mode=mode)
    assert [text.endswith("many hours.") for _, text in saved] == [True] * len(scripted.TURNS[kind][0].calls)
    assert result.output == scripted.FINAL


@pytest.mark.parametrize("mode", ["run", "run_stream"])
def test_a_cut_structured_output_is_whole(model, mode):
    result, _, _, _ = run(model, "document", "limit", mode=mode, output_type=NativeOutput(Cat))
    assert Cat.model_validate_json(last(result).text) == Cat.model_validate_json(scripted.DOCUMENT)


def test_without_the_capability_the_same_replies_are_lost(model):
    result, *_ = run(model, "text", "limit", capability=False)
    assert result.output != scripted.TEXT and scripted.TEXT.startswith(result.output)
    with pytest.raises(IncompleteToolCall):
        run(model, "call", "limit", capability=False)


def test_a_whole_reply_stays_unchanged(model):
    result, _, conversation, _ = run(model, "text", "")
    assert len(conversation.requests) == 1 and not last(result).metadata


@pytest.mark.parametrize("mode", ["run", "events", "run_stream"])
def test_a_reply_that_stays_cut_raises(model, mode):
    for kind in ["text", "call"]:
        with pytest.raises(endmark.ResumeExhausted):
            run(model, kind, "limit", mode=mode, capability=EndmarkCapability(max_attempts=0))


def test_a_large_tool_result_is_capped_and_can_be_read(model):
    output = "".join(f"row {row}: {'error: disk full' if row == 31_000 else 'ok'}\n" for row in range(200_000))
    capability = EndmarkCapability(max_result_chars=3_000)
    result, _, _, _ = run(model, "call", "", capability=capability, output=output)
    [answer] = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert len(answer.content) <= 3_000 and "row 31000: error: disk full" in answer.content
    handle = answer.content.partition("endmark_read ")[2].split("\n")[0].strip(" ]")
    read = capability.get_toolset().tools["endmark_read"].function
    assert read(handle=handle, grep="error") == "31001:row 31000: error: disk full\n"
    assert read(handle="nothing").startswith("Error: no output")


def test_a_budget_ends_in_a_call_without_tools_and_then_refuses(model):
    capability = EndmarkCapability(meter=endmark.Meter(max_tokens=4_450))
    run(model, "text", "", capability=capability)
    _, _, conversation, _ = run(model, "text", "", mode="events", capability=capability)
    assert "token budget is used up" in conversation.requests[-1] and '"tools": [{' not in conversation.requests[-1]
    with pytest.raises(endmark.NotAdmitted):
        run(model, "text", "", capability=capability)
    assert capability.meter.usage().calls == 2 and capability.meter.usage().held_tokens == 0


def answer(*replies, agent_options=None, **options):
    left = list(replies)

    def make(messages, info):
        made = left.pop(0)
        if isinstance(made, Exception):
            raise made
        return made

    agent = Agent(FunctionModel(make), capabilities=[EndmarkCapability(**options)], retries=0, **(agent_options or {}))
    return LOOP.run_until_complete(agent.run("Tell me."))


def reply(*parts, stop="stop", tokens=(10, 5)):
    made = [TextPart(part) if isinstance(part, str) else part for part in parts]
    usage = RequestUsage(input_tokens=tokens[0], output_tokens=tokens[1])
    return ModelResponse(made, finish_reason=stop, usage=usage)


def test_thinking_files_and_other_parts_stay_unchanged():
    image = FilePart(BinaryContent(b"x", media_type="image/png"))
    cut = reply(ThinkingPart("Let me think.", signature="s"), "The cat ", image, "sat on", stop="length")
    parts = last(answer(cut, reply(ThinkingPart("More."), " the mat."))).parts
    assert [getattr(part, "content", None) for part in parts] == ["Let me think.", "The cat ", image.content, "sat on the mat.", "More."]


def test_an_unknown_or_missing_stop_reason_is_not_whole():
    assert last(answer(reply("The cat sat on", stop=None), reply(" the mat."))).text == "The cat sat on the mat."
    strange = ModelResponse([TextPart("The cat sat on")], provider_details={"finish_reason": "strange"})
    with pytest.raises(endmark.NotResumed):
        answer(strange)
    with pytest.raises(ContentFilterError):
        answer(reply(stop="content_filter"))


def test_a_continuation_is_never_the_closing_call():
    options = {"meter": endmark.Meter(max_tokens=1_000), "assume_output_tokens": 200}
    with pytest.raises(endmark.ResumeExhausted) as raised:
        answer(reply("The cat sat on", stop="length", tokens=(700, 100)), reply(" Summary: nothing."), **options)
    assert (raised.value.cause, raised.value.merged_raw) == ("budget", "The cat sat on")
    # The closing call is kept for the session's answer.
    assert last(answer(reply("Summary: nothing."), **options)).text == "Summary: nothing."


def test_an_error_in_a_continuation_loses_nothing():
    with pytest.raises(endmark.ResumeExhausted, match="503") as raised:
        answer(reply("The cat sat on", stop="length"), RuntimeError("503"), RuntimeError("503"))
    assert raised.value.merged_raw == "The cat sat on"
    with pytest.raises(RuntimeError):
        answer(RuntimeError("503"))


def test_sixty_turns_stay_within_a_window():
    messages = [ModelRequest([UserPromptPart("Find out why the disk is full.")])]
    for step in range(60):
        messages.append(ModelResponse([ToolCallPart("run", {"command": f"df {step}"}, f"c{step}")]))
        messages.append(ModelRequest([ToolReturnPart("run", "used 97 % " * 80, f"c{step}")]))
    kept = _condense(messages, 5_000)
    assert len(kept) < 25 and kept[0].parts[0].content == "Find out why the disk is full."
    assert "earlier messages" in kept[1].parts[0].content and kept[-1] == messages[-1] and kept[-2] is messages[-2]
    calls = [part.tool_call_id for message in kept for part in message.parts if isinstance(part, ToolCallPart)]
    assert calls == [part.tool_call_id for message in kept for part in message.parts if isinstance(part, ToolReturnPart)]
    assert _condense(messages, 0) is messages and _condense(messages, 900_000) is messages
    wrapped = EndmarkModel(FunctionModel(lambda *_: reply("Done.")), window_tokens=5_000)
    assert LOOP.run_until_complete(Agent(wrapped).run(message_history=messages)).output == "Done."


def test_a_cut_structured_output_by_a_tool_is_whole():
    def call(args):
        return ToolCallPart("final_result", args, "c1")

    cut = reply("I know him.", call(scripted.DOCUMENT[:60]), stop="length")
    result = answer(cut, reply(scripted.DOCUMENT[60:]), agent_options={"output_type": Cat})
    assert result.output == Cat.model_validate_json(scripted.DOCUMENT)
    again = [reply(call(""), stop="length"), reply(call(scripted.DOCUMENT), stop="tool_call")]
    assert answer(*again, agent_options={"output_type": Cat}).output.name == "Tom the cat"


@pytest.mark.parametrize("api", KINDS)
def test_a_stream_that_breaks_off_raises(model, api):
    with pytest.raises(Exception):
        run(model, "text", "drop", api=api, mode="events")


def test_a_paused_reply_is_left_to_the_framework():
    paused = reply("I search", stop=None)
    paused.state = "suspended"
    model = EndmarkModel(FunctionModel(lambda *_: reply("unused")))
    assert LOOP.run_until_complete(model.recovered(None, paused, is_sent=False)) is None


def test_a_copy_of_the_capability_shares_its_results():
    capability = EndmarkCapability(max_result_chars=200)
    copied = dataclasses.replace(capability)
    handle = capability._results.shortened("used 97 %\n" * 100).partition("endmark_read ")[2].split("\n")[0].strip(" ]")
    assert copied._results.read({"handle": handle, "lines": "1:1"}).startswith("used 97 %")
