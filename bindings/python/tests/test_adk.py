"""Google ADK itself in front of the scripted model of `tests/sdk`."""

import asyncio
import os
import sys
from pathlib import Path

import endmark
import pytest

pytest.importorskip("google.adk")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "sdk"))

import scripted  # noqa: E402
from endmark.adk import EndmarkLlm, EndmarkPlugin  # noqa: E402
from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.agents.run_config import RunConfig, StreamingMode  # noqa: E402
from google.adk.models.google_llm import Gemini  # noqa: E402
from google.adk.models.base_llm import BaseLlm  # noqa: E402
from google.adk.models.llm_request import LlmRequest  # noqa: E402
from google.adk.models.llm_response import LlmResponse  # noqa: E402
from google.adk.runners import InMemoryRunner  # noqa: E402
from google.genai import types  # noqa: E402

os.environ.setdefault("GOOGLE_API_KEY", "not-needed")


@pytest.fixture(scope="module")
def model():
    with scripted.Model() as made:
        yield made


def gemini(model):
    return Gemini(model="gemini-2.5-flash", base_url=model.origin, retry_options=types.HttpRetryOptions(attempts=1))


def run(model, kind, harm, *, stream=False, wrapped=True, plugin=None, output=None, **options):
    key, conversation = model.open(kind, harm)
    saved = []

    def save_note(path: str, text: str) -> dict:
        """Saves a note."""
        saved.append((path, text))
        return {"result": output or "saved"}

    async def events():
        llm = EndmarkLlm(wrapped=gemini(model), **options) if wrapped else gemini(model)
        agent = LlmAgent(name="scribe", model=llm, tools=[save_note] if kind == "call" else [])
        runner = InMemoryRunner(agent=agent, app_name="test", plugins=[plugin] if plugin else [])
        session = await runner.session_service.create_session(app_name="test", user_id="u")
        mode = StreamingMode.SSE if stream else StreamingMode.NONE
        asked = types.Content(role="user", parts=[types.Part(text=f"{key}: tell me about it.")])
        found = runner.run_async(user_id="u", session_id=session.id, new_message=asked, run_config=RunConfig(streaming_mode=mode))
        return [event async for event in found if not event.partial]

    found = asyncio.run(events())
    assert not conversation.problems, conversation.problems
    return found, saved, conversation


def text_of(event):
    return "".join(part.text or "" for part in event.content.parts or [])


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_text_comes_out_whole_with_the_usage_of_all_calls(model, stream):
    events, _, conversation = run(model, "text", "limit", stream=stream)
    assert text_of(events[-1]) == scripted.TEXT and events[-1].error_code is None
    assert events[-1].custom_metadata["endmark"] == {"outcome": "resumed", "attempts": 1, "cut": "limit"}
    assert events[-1].usage_metadata.prompt_token_count == 2 * scripted.USAGE[0] and len(conversation.requests) == 2


def test_without_the_wrapper_the_same_reply_is_cut(model):
    events, _, _ = run(model, "text", "limit", wrapped=False)
    assert text_of(events[-1]) != scripted.TEXT


def test_a_whole_reply_is_left_alone(model):
    events, _, conversation = run(model, "text", "")
    assert text_of(events[-1]) == scripted.TEXT and len(conversation.requests) == 1 and not events[-1].custom_metadata


def test_what_stays_cut_raises(model):
    with pytest.raises(endmark.ResumeExhausted):
        run(model, "text", "limit", max_attempts=0)


def test_a_large_tool_result_is_capped_and_can_be_read(model):
    plugin = EndmarkPlugin(max_result_chars=3_000)
    output = "".join(f"row {row}: {'error: disk full' if row == 31_000 else 'ok'}\n" for row in range(200_000))
    events, saved, conversation = run(model, "call", "", plugin=plugin, output=output)
    assert len(saved) == 1 and text_of(events[-1]) == scripted.FINAL
    [response] = [part.function_response for event in events for part in event.content.parts if part.function_response]
    shown = response.response["result"]
    assert len(shown) <= 3_000 and "row 31000: error: disk full" in shown and len(conversation.requests[-1]) < 20_000
    handle = shown.partition("endmark_read ")[2].split("\n")[0].strip(" ]")
    read = plugin.read_tool()
    assert read.name == "endmark_read"
    assert read.func(handle=handle, grep="error") == {"result": "31001:row 31000: error: disk full\n"}
    assert "no output" in read.func(handle="nothing")["error"]


def test_a_budget_ends_in_a_call_without_tools_and_then_refuses(model):
    meter = endmark.Meter(max_tokens=4_150)
    run(model, "text", "", meter=meter)
    _, _, conversation = run(model, "text", "", meter=meter)
    assert "token budget is used up" in conversation.requests[-1]
    with pytest.raises(endmark.NotAdmitted):
        run(model, "text", "", meter=meter)
    assert meter.usage().calls == 2 and meter.usage().held_tokens == 0


def test_a_large_request_is_braked_and_keeps_its_task(model):
    contents = [types.Content(role="user", parts=[types.Part(text="Find out why the disk is full.")])]
    for step in range(40):
        call = types.Part(function_call=types.FunctionCall(name="run", args={"command": f"df {step}"}))
        result = types.Part(function_response=types.FunctionResponse(name="run", response={"result": "used 97 % " * 80}))
        contents += [types.Content(role="model", parts=[call]), types.Content(role="user", parts=[result])]
    request = LlmRequest(model="gemini-2.5-flash", contents=contents)
    braked = EndmarkLlm(wrapped=gemini(model), brake_tokens=5_000)._braked(request)
    assert len(braked.contents) < 20 and "why the disk is full" in braked.contents[0].parts[0].text
    assert EndmarkLlm(wrapped=gemini(model))._braked(request) is request


class Scripted(BaseLlm):
    """Gives the replies, each an answer or an exception."""

    model: str = "gemini-2.5-flash"
    replies: list

    async def generate_content_async(self, request, stream=False):
        answer = self.replies.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield answer


NOTE = types.Part(function_call=types.FunctionCall(name="save_note", args={"text": "The disk is full"}))


def reply(*parts, stop="STOP", tokens=(10, 5)):
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=tokens[0], candidates_token_count=tokens[1])
    made = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    return LlmResponse(
        content=types.Content(role="model", parts=made), finish_reason=types.FinishReason(stop), usage_metadata=usage
    )


def parts_of(*replies, **options):
    asked = LlmRequest(model="gemini-2.5-flash", contents=[types.Content(role="user", parts=[types.Part(text="Tell me.")])])

    async def answer():
        llm = EndmarkLlm(wrapped=Scripted(replies=list(replies)), **options)
        [response] = [response async for response in llm.generate_content_async(asked)]
        return response.content.parts

    return asyncio.run(answer())


def test_a_continuation_is_never_the_closing_call():
    options = {"meter": endmark.Meter(max_tokens=1_000), "assume_output_tokens": 200}
    with pytest.raises(endmark.ResumeExhausted) as raised:
        parts_of(reply("The cat sat on", stop="MAX_TOKENS", tokens=(700, 100)), reply(" Summary: nothing."), **options)
    assert (raised.value.cause, raised.value.merged_raw) == ("budget", "The cat sat on")


def test_an_error_in_a_continuation_loses_nothing():
    cut = reply("The cat sat on", stop="MAX_TOKENS")
    with pytest.raises(endmark.ResumeExhausted, match="503") as raised:
        parts_of(cut, RuntimeError("503"), RuntimeError("503"), RuntimeError("503"))
    assert raised.value.merged_raw == "The cat sat on"
    assert parts_of(cut, RuntimeError("503"), reply(" the mat."))[0].text == "The cat sat on the mat."


def test_tool_calls_in_the_answer_to_a_continuation_are_kept():
    text, call = parts_of(reply("I will save", stop="MAX_TOKENS"), reply(" it now.", NOTE))
    assert text.text == "I will save it now." and call == NOTE
    assert parts_of(reply(stop="MAX_TOKENS"), reply(NOTE)) == [NOTE]
    cut = reply(" it now.", NOTE, stop="MAX_TOKENS")
    with pytest.raises(endmark.ResumeExhausted, match="tool calls may be missing"):
        parts_of(reply("I will save", stop="MAX_TOKENS"), cut, cut, cut)
