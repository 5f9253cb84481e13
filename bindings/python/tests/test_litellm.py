"""Tests LiteLLM with the scripted model of `tests/sdk`, with and without Endmark."""

import asyncio
import json
import os
import sys
from pathlib import Path

import endmark
import pytest

# Otherwise LiteLLM downloads prices when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
litellm = pytest.importorskip("litellm")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "sdk"))

import scripted  # noqa: E402
from endmark.litellm import EndmarkLiteLLM  # noqa: E402

litellm.suppress_debug_info = True
LOOP = asyncio.new_event_loop()
MODES = ["completion", "acompletion", "stream", "astream"]
TOOL = {"type": "function", "function": {"name": "save_note", "description": "Saves a note.", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def model():
    with scripted.Model() as made:
        yield made


def ask(llm, messages, mode, **options):
    """Returns the response, or the response that the chunks of a stream form."""
    if mode == "completion":
        return llm.completion("openai/gpt-5", messages, **options)
    if mode == "acompletion":
        return LOOP.run_until_complete(llm.acompletion("openai/gpt-5", messages, **options))
    options |= {"stream": True, "stream_options": {"include_usage": True}}
    if mode == "stream":
        return litellm.stream_chunk_builder(list(llm.completion("openai/gpt-5", messages, **options)))

    async def chunks():
        return [chunk async for chunk in await llm.acompletion("openai/gpt-5", messages, **options)]

    return litellm.stream_chunk_builder(LOOP.run_until_complete(chunks()))


def run(model, kind, harm, mode="completion", llm=None, output="saved", **options):
    """Runs the tools until the model stops. Returns the last response, the saved notes, and the conversation."""
    key, conversation = model.open(kind, harm)
    llm = EndmarkLiteLLM() if llm is None else llm
    options |= {"api_base": f"{model.origin}/v1", "api_key": "not-needed", "max_retries": 0}
    if kind in ("call", "calls"):
        options["tools"] = [TOOL]
    messages, saved = [{"role": "user", "content": f"{key}: tell me about it."}], []
    while True:
        response = ask(llm, messages, mode, **options)
        message = response.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        saved += [json.loads(call.function.arguments)["text"] for call in message.tool_calls]
        messages += [llm.tool_message(call, output) for call in message.tool_calls]
    assert not conversation.problems, conversation.problems
    return response, saved, conversation


@pytest.mark.parametrize("mode", MODES)
def test_a_cut_text_comes_out_whole_with_the_usage_of_all_calls(model, mode):
    response, _, conversation = run(model, "text", "limit", mode)
    assert response.choices[0].message.content == scripted.TEXT and response.choices[0].finish_reason == "stop"
    assert len(conversation.requests) == 2
    assert (response.usage.prompt_tokens, response.usage.completion_tokens) == tuple(2 * tokens for tokens in scripted.USAGE)
    if "completion" in mode:
        assert response.choices[0].provider_specific_fields["endmark"] == {"outcome": "resumed", "attempts": 1, "cut": "limit"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["call", "calls"])
def test_a_cut_call_comes_out_with_whole_arguments(model, kind, mode):
    response, saved, _ = run(model, kind, "limit", mode)
    assert [text.endswith("many hours.") for text in saved] == [True] * len(scripted.TURNS[kind][0].calls)
    assert response.choices[0].message.content == scripted.FINAL


@pytest.mark.parametrize("mode", MODES)
def test_a_cut_document_is_whole(model, mode):
    response, *_ = run(model, "document", "limit", mode, response_format={"type": "json_object"})
    assert json.loads(response.choices[0].message.content) == json.loads(scripted.DOCUMENT)


def test_without_endmark_the_same_replies_are_lost(model):
    key, _ = model.open("text", "limit")
    options = {"api_base": f"{model.origin}/v1", "api_key": "not-needed"}
    response = litellm.completion("openai/gpt-5", [{"role": "user", "content": key}], **options)
    assert response.choices[0].message.content != scripted.TEXT


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_reply_stays_unchanged(model, mode):
    response, _, conversation = run(model, "text", "", mode)
    assert response.choices[0].message.content == scripted.TEXT and len(conversation.requests) == 1
    assert response.usage.prompt_tokens == scripted.USAGE[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_reply_that_stays_cut_raises(model, mode):
    for kind in ["text", "call"]:
        with pytest.raises(endmark.ResumeExhausted):
            run(model, kind, "limit", mode, EndmarkLiteLLM(max_attempts=0))


@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_a_stream_that_breaks_off_raises(model, mode):
    with pytest.raises(Exception):
        run(model, "text", "drop", mode)


def test_a_large_tool_result_is_capped_and_can_be_read(model):
    output = "".join(f"row {row}: {'error: disk full' if row == 31_000 else 'ok'}\n" for row in range(200_000))
    llm = EndmarkLiteLLM(max_result_chars=3_000)
    _, _, conversation = run(model, "call", "", llm=llm, output=output)
    assert "row 31000: error: disk full" in conversation.requests[-1] and len(conversation.requests[-1]) < 20_000
    handle = conversation.requests[-1].partition("endmark_read ")[2].split("\\n")[0].strip(" ]")

    def read(arguments):
        call = litellm.ChatCompletionMessageToolCall(function={"name": "endmark_read", "arguments": arguments}, id="1")
        return llm.tool_message(call)["content"]

    assert llm.read_tool()["function"]["name"] == "endmark_read"
    assert read(json.dumps({"handle": handle, "grep": "error"})) == "31001:row 31000: error: disk full\n"
    assert read('{"handle": "nothing"}').startswith("Error: no output") and read("[]").startswith("Error:")


@pytest.mark.parametrize("mode", MODES)
def test_a_budget_ends_in_a_call_without_tools_and_then_refuses(model, mode):
    meter = endmark.Meter(max_tokens=4_210)
    llm = EndmarkLiteLLM(meter=meter)
    run(model, "text", "", mode, llm)
    _, _, conversation = run(model, "text", "", mode, llm, tools=[TOOL])
    assert "token budget is used up" in conversation.requests[-1] and '"tools"' not in conversation.requests[-1]
    with pytest.raises(endmark.NotAdmitted):
        run(model, "text", "", mode, llm)
    assert meter.usage().calls == 2 and meter.usage().held_tokens == 0


def test_sixty_turns_stay_within_a_window(model):
    key, conversation = model.open("call", "", is_compacted=True)
    messages = [{"role": "user", "content": f"{key}: find out why the disk is full."}]
    for step in range(60):
        call = {"id": f"c{step}", "type": "function", "function": {"name": "save_note", "arguments": scripted.note(1)[1]}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": "used 97 % " * 80})
    llm = EndmarkLiteLLM(window_tokens=5_000)
    ask(llm, messages, "completion", api_base=f"{model.origin}/v1", api_key="not-needed")
    assert len(json.loads(conversation.requests[0])["messages"]) < 25 and "find out why" in conversation.requests[0]


def reply(content, stop="stop", tokens=(10, 5), **message):
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    made = {"role": "assistant", "content": content, **message}
    return litellm.ModelResponse(choices=[{"index": 0, "message": made, "finish_reason": stop}], usage=usage)


def answer(*replies, is_json=False, **options):
    left = list(replies)

    class Functions:
        @staticmethod
        def completion(**_):
            made = left.pop(0)
            if isinstance(made, Exception):
                raise made
            return made

    llm = EndmarkLiteLLM(functions=Functions, **options)
    wanted = {"response_format": {"type": "json_object"}} if is_json else {}
    return llm.completion("openai/gpt-5", [{"role": "user", "content": "Tell me."}], **wanted).choices[0]


def test_reasoning_and_other_fields_stay_unchanged():
    thought = [{"type": "thinking", "thinking": "Let me think.", "signature": "s"}]
    choice = answer(reply("The cat sat on", "length", reasoning_content="Let me think.", thinking_blocks=thought), reply(" the mat."))
    assert choice.message.content == "The cat sat on the mat." and choice.message.reasoning_content == "Let me think."
    assert choice.message.thinking_blocks[0]["signature"] == "s"


def test_an_unknown_stop_reason_is_not_whole():
    with pytest.raises(endmark.NotResumed):
        answer(reply("The cat sat on", "strange"))
    assert answer(reply("", "content_filter")).finish_reason == "content_filter"
    with pytest.raises(endmark.InvalidInput, match="several choices"):
        EndmarkLiteLLM().completion("openai/gpt-5", [], n=2)


def test_a_cut_document_that_cannot_become_valid_raises():
    for cut in ['{"a": 1]', "Here it is: {"]:
        with pytest.raises((endmark.InvalidReply, endmark.ResumeExhausted)):
            answer(*[reply(cut, "length")] * 3, is_json=True)
    assert answer(reply('{"a": 1]', "stop"), is_json=True).message.content == '{"a": 1]'


def test_an_error_in_a_continuation_loses_nothing():
    with pytest.raises(endmark.ResumeExhausted, match="503") as raised:
        answer(reply("The cat sat on", "length"), RuntimeError("503"), RuntimeError("503"))
    assert raised.value.merged_raw == "The cat sat on"
    with pytest.raises(RuntimeError):
        answer(RuntimeError("503"))
    options = {"meter": endmark.Meter(max_tokens=1_000), "assume_output_tokens": 200}
    with pytest.raises(endmark.ResumeExhausted) as raised:
        answer(reply("The cat sat on", "length", (700, 100)), reply(" Summary: nothing."), **options)
    assert (raised.value.cause, raised.value.merged_raw) == ("budget", "The cat sat on")
    # The closing call is kept for the session's answer.
    assert answer(reply("Summary: nothing."), **options).message.content == "Summary: nothing."


def test_a_continuation_that_is_stopped_for_repetition_loses_nothing():
    call = {"id": "c1", "type": "function", "function": {"name": "save_note", "arguments": "{}"}}
    with pytest.raises(endmark.ResumeExhausted) as raised:
        answer(reply("The cat sat on", "length"), *[reply(" the", "repetition", tool_calls=[call])] * 2)
    assert raised.value.merged_raw == "The cat sat on"


def test_a_stream_without_a_stop_reason_is_not_whole():
    class Stream(list):
        # LiteLLM's last chunk nevertheless has the finish reason `stop`.
        received_finish_reason = None

    def chunk(delta, finish):
        return litellm.ModelResponseStream(id="c", choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    left = [Stream([chunk({"role": "assistant", "content": "The cat sat on"}, None), chunk({}, "stop")]), reply(" the mat.")]

    class Functions:
        @staticmethod
        def completion(**_):
            return left.pop(0)

    chunks = list(EndmarkLiteLLM(functions=Functions).completion("openai/gpt-5", [{"role": "user", "content": "Hi"}], stream=True))
    assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == "The cat sat on the mat."
    assert [each.choices[0].finish_reason for each in chunks if each.choices] == [None, None, "stop"]
