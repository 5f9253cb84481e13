"""Tests Google ADK with the scripted model of `tests/sdk`."""

import asyncio
import datetime
import os
import sys
from pathlib import Path

import endmark
import pydantic
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


def test_a_whole_reply_stays_unchanged(model):
    events, _, conversation = run(model, "text", "")
    assert text_of(events[-1]) == scripted.TEXT and len(conversation.requests) == 1 and not events[-1].custom_metadata


def test_a_reply_that_stays_cut_raises(model):
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


def test_a_large_request_is_condensed_and_keeps_its_task(model):
    contents = [types.Content(role="user", parts=[types.Part(text="Find out why the disk is full.")])]
    for step in range(40):
        call = types.Part(function_call=types.FunctionCall(name="run", args={"command": f"df {step}"}))
        result = types.Part(function_response=types.FunctionResponse(name="run", response={"result": "used 97 % " * 80}))
        contents += [types.Content(role="model", parts=[call]), types.Content(role="user", parts=[result])]
    request = LlmRequest(model="gemini-2.5-flash", contents=contents)
    braked = EndmarkLlm(wrapped=gemini(model), brake_tokens=5_000)._condense_if_large(request)
    assert len(braked.contents) < 20 and "why the disk is full" in braked.contents[0].parts[0].text
    assert EndmarkLlm(wrapped=gemini(model))._condense_if_large(request) is request


NOTE = types.Part(function_call=types.FunctionCall(name="save_note", args={"text": "The disk is full"}))


def reply(*parts, stop="STOP", tokens=(10, 5)):
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=tokens[0], candidates_token_count=tokens[1])
    made = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    return LlmResponse(
        content=types.Content(role="model", parts=made), finish_reason=stop and types.FinishReason(stop), usage_metadata=usage
    )


def answer_of(*replies, schema=None, **options):
    """Runs a wrapped model with these replies: responses, lists of them, or exceptions. Returns its reply and its requests."""
    requests, left = [], list(replies)

    class Replies(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            requests.append(llm_request)
            given = left.pop(0)
            for response in given if isinstance(given, list) else [given]:
                if isinstance(response, Exception):
                    raise response
                yield response

    async def made():
        llm = EndmarkLlm(wrapped=Replies(model="gemini-2.5-flash"), **options)
        asked = types.Content(role="user", parts=[types.Part(text="Tell me.")])
        config = types.GenerateContentConfig(response_schema=schema)
        request = LlmRequest(model="gemini-2.5-flash", contents=[asked], config=config)
        return [response async for response in llm.generate_content_async(request)][-1]

    return asyncio.run(made()), requests


def parts_of(*replies, **options):
    return answer_of(*replies, **options)[0].content.parts


def test_a_continuation_is_never_the_closing_call():
    options = {"meter": endmark.Meter(max_tokens=1_000), "assume_output_tokens": 200}
    with pytest.raises(endmark.ResumeExhausted) as raised:
        parts_of(reply("The cat sat on", stop="MAX_TOKENS", tokens=(700, 100)), reply(" Summary: nothing."), **options)
    assert (raised.value.cause, raised.value.merged_raw) == ("budget", "The cat sat on")
    # The closing call is kept for the session's answer.
    assert parts_of(reply("Summary: nothing."), **options)[0].text == "Summary: nothing."
    with pytest.raises(endmark.NotAdmitted):
        parts_of(reply("x"), **options)


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


def test_a_reply_without_a_finish_reason_is_cut():
    whole, requests = answer_of(reply("The cat sat on", stop=None), reply(" the mat."))
    assert whole.content.parts[0].text == "The cat sat on the mat." and len(requests) == 2
    with pytest.raises(endmark.ResumeExhausted):
        answer_of(reply("The cat sat on", stop="MAX_TOKENS"), *[reply(" the mat and then", stop=None)] * 3)


def test_all_responses_of_a_continuation_are_read():
    several = [reply(" the mat", stop=None), reply(" and slept.")]
    assert answer_of(reply("The cat sat on", stop="MAX_TOKENS"), several)[0].content.parts[0].text == "The cat sat on the mat and slept."


def test_other_parts_keep_their_positions():
    thought = types.Part(text="Hm.", thought=True)
    code = types.Part(executable_code=types.ExecutableCode(code="print(1)", language="PYTHON"))
    image = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"png"))
    whole, requests = answer_of(reply(thought, "I run it.", code, "The result is", stop="MAX_TOKENS"), reply(" one.", image))
    assert [part.text or part for part in whole.content.parts] == ["Hm.", "I run it.", code, "The result is one.", image]
    shown = requests[1].contents[-2].parts
    assert [part.text or part for part in shown[:2]] == ["I run it.", code] and "The result is".startswith(shown[-1].text)


@pytest.mark.parametrize("stop", ["MAX_TOKENS", None])
def test_a_call_at_the_end_of_a_cut_reply_never_runs(stop):
    half = types.Part(function_call=types.FunctionCall(name="save_note", args={"path": "notes.txt"}))
    whole, requests = answer_of(reply("I save.", half, stop=stop), reply("I save.", NOTE))
    assert whole.content.parts[1:] == [NOTE] and requests[1].contents == requests[0].contents
    with pytest.raises(endmark.ResumeExhausted):
        answer_of(*[reply("I save.", half, stop=stop)] * 4)
    # The text after a call proves that the call is complete.
    whole, _ = answer_of(reply(NOTE, "And now I", stop=stop), reply(" wait."))
    assert whole.content.parts[0] == NOTE and whole.content.parts[1].text == "And now I wait."


def test_a_reply_with_a_schema_is_checked_as_json():
    found = answer_of(reply('{"name": "Tom'), reply('"Tommy", "age": 3}'), schema={"type": "OBJECT"})[0]
    assert found.content.parts[0].text == '{"name": "Tommy", "age": 3}'


class Refused(Exception):
    code = 401


def test_a_permanent_refusal_reaches_the_caller_and_is_not_retried():
    with pytest.raises(Refused) as raised:
        answer_of(reply("The cat sat on", stop="MAX_TOKENS"), Refused("no such key"), reply(" the mat."))
    assert isinstance(raised.value.__cause__, endmark.ResumeExhausted)
    assert (raised.value.__cause__.merged_raw, raised.value.__cause__.attempts) == ("The cat sat on", 0)


def capped(result):
    class Tool:
        name = "query"

    plugin = EndmarkPlugin(max_result_chars=2_000)
    return asyncio.run(plugin.after_tool_callback(tool=Tool(), tool_args={}, tool_context=None, result=result))


class Row(pydantic.BaseModel):
    at: datetime.datetime
    text: str


@pytest.mark.parametrize(
    "value",
    [[datetime.datetime(2026, 1, 2)] * 200, b"\xff" * 9_000, [Row(at=datetime.datetime(2026, 1, 2), text="ok")] * 200, {1: "x" * 9_000},
     [{1, 2}] * 2_000, ["half \ud83d"] * 900, [float("nan")] * 2_000],
)  # fmt: skip
def test_a_result_of_any_type_is_capped(value):
    assert len(capped({"status": "ok", "rows": value})["result"]) <= 2_000
    assert capped({"rows": value[:1] if isinstance(value, list) else 1}) is None


def test_a_result_that_contains_itself_is_capped():
    loop = {"text": "x" * 9_000}
    loop["loop"] = loop
    assert len(capped(loop)["result"]) <= 2_000
