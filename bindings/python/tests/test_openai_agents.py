"""Tests the OpenAI Agents SDK with the scripted model of `tests/sdk`, with and without the provider."""

import asyncio
import sys
from pathlib import Path

import endmark
import pytest

pytest.importorskip("agents")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "sdk"))

import scripted  # noqa: E402
from agents import Agent, ModelBehaviorError, ModelSettings, RunConfig, Runner, function_tool  # noqa: E402
from agents.models.openai_provider import OpenAIProvider  # noqa: E402
from agents.models.interface import ModelTracing  # noqa: E402
from endmark.openai_agents import EndmarkProvider, EndmarkResults, window  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from openai.types.chat import ChatCompletion  # noqa: E402
from openai.types.responses import Response  # noqa: E402
from pydantic import BaseModel  # noqa: E402

# The clients share connections, which belong to one event loop.
LOOP = asyncio.new_event_loop()
APIS = [True, False]


class Cat(BaseModel):
    name: str
    age: int
    friendly: bool
    likes: list[str]


@pytest.fixture(scope="module")
def model():
    with scripted.Model() as made:
        yield made


def client(model):
    return AsyncOpenAI(base_url=f"{model.origin}/v1", api_key="not-needed", max_retries=0)


def run(model, kind, harm, *, responses=True, stream=False, wrapped=True, results=None, output="", config=None, output_type=None, **options):
    """Runs an agent. Returns its result, the saved notes, the conversation, and the text and arguments from a stream."""
    saved, shown = [], []

    @function_tool
    def save_note(path: str, text: str) -> str:
        """Saves a note."""
        saved.append((path, text))
        return output or "saved"

    key, conversation = model.open(kind, harm)
    provider = EndmarkProvider if wrapped else lambda made, **named: OpenAIProvider(openai_client=made, **named)
    tools = [save_note] if kind in ("call", "calls") else []
    agent = Agent(name="scribe", model="gpt-5", tools=results.capped(tools) if results else tools, output_type=output_type)
    settings = RunConfig(
        model_provider=provider(client(model), use_responses=responses, **options), tracing_disabled=True, **(config or {})
    )

    async def result():
        asked = f"{key}: tell me about it."
        if not stream:
            return await Runner.run(agent, asked, run_config=settings)
        found = Runner.run_streamed(agent, asked, run_config=settings)
        async for event in found.stream_events():
            if event.type == "raw_response_event" and event.data.type.endswith("delta"):
                shown.append(event.data.delta)
        return found

    found = LOOP.run_until_complete(result())
    assert not conversation.problems, conversation.problems
    return found, saved, conversation, "".join(shown)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("responses", APIS)
def test_a_cut_text_comes_out_whole_with_the_usage_of_all_calls(model, responses, stream):
    result, _, conversation, shown = run(model, "text", "limit", responses=responses, stream=stream)
    assert result.final_output == scripted.TEXT and len(conversation.requests) == 2
    assert shown == (scripted.TEXT if stream else "")
    # A stream reports usage only if the client asks for it.
    usage = result.context_wrapper.usage
    assert usage.input_tokens == 2 * scripted.USAGE[0] and usage.output_tokens == 2 * scripted.USAGE[1]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["call", "calls"])
@pytest.mark.parametrize("responses", APIS)
def test_a_cut_call_is_made_once_with_whole_arguments(model, responses, kind, stream):
    result, saved, _, shown = run(model, kind, "limit", responses=responses, stream=stream)
    expected = scripted.TURNS[kind][0].calls
    assert [text.endswith("many hours.") for _, text in saved] == [True] * len(expected)
    assert result.final_output == scripted.FINAL
    if stream:
        assert shown == scripted.TURNS[kind][0].text + "".join(arguments for _, arguments in expected) + scripted.FINAL


@pytest.mark.parametrize("responses", APIS)
def test_a_cut_structured_output_is_whole(model, responses):
    result, _, _, _ = run(model, "document", "limit", responses=responses, output_type=Cat)
    assert result.final_output == Cat.model_validate_json(scripted.DOCUMENT)


def test_without_the_provider_the_same_replies_are_lost(model):
    result, *_ = run(model, "text", "limit", responses=False, wrapped=False)
    assert result.final_output != scripted.TEXT and scripted.TEXT.startswith(result.final_output)
    for kind, responses in [("text", True), ("call", True), ("call", False)]:
        with pytest.raises((ModelBehaviorError, AssertionError, Exception)):
            run(model, kind, "limit", responses=responses, wrapped=False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("responses", APIS)
def test_a_whole_reply_stays_unchanged(model, responses, stream):
    result, _, conversation, shown = run(model, "text", "", responses=responses, stream=stream)
    assert len(conversation.requests) == 1 and result.final_output == scripted.TEXT
    assert shown == (scripted.TEXT if stream else "")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("responses", APIS)
def test_a_reply_that_stays_cut_raises(model, responses, stream):
    for kind in ["text", "call"]:
        with pytest.raises(endmark.ResumeExhausted):
            run(model, kind, "limit", responses=responses, stream=stream, max_attempts=0)


@pytest.mark.parametrize("responses", APIS)
def test_a_stream_that_breaks_off_raises(model, responses):
    with pytest.raises(Exception):
        run(model, "text", "drop", responses=responses, stream=True)


def test_a_large_tool_result_is_capped_and_can_be_read(model):
    output = "".join(f"row {row}: {'error: disk full' if row == 31_000 else 'ok'}\n" for row in range(200_000))
    results = EndmarkResults(max_result_chars=3_000)
    result, _, conversation, _ = run(model, "call", "", results=results, output=output)
    [answer] = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert len(answer) <= 3_000 and "row 31000: error: disk full" in answer and len(conversation.requests[-1]) < 20_000
    handle = answer.partition("endmark_read ")[2].split("\n")[0].strip(" ]")

    def read(arguments):
        return LOOP.run_until_complete(results.read_tool().on_invoke_tool(None, arguments))

    assert read(f'{{"handle": "{handle}", "grep": "error"}}') == "31001:row 31000: error: disk full\n"
    assert read('{"handle": "nothing"}').startswith("Error: no output") and read("[]").startswith("Error:")


@pytest.mark.parametrize("responses", APIS)
def test_a_budget_ends_in_a_call_without_tools_and_then_refuses(model, responses):
    meter = endmark.Meter(max_tokens=4_150)
    options = {"meter": meter, "responses": responses}
    run(model, "text", "", **options)
    _, _, conversation, _ = run(model, "text", "", stream=True, **options)
    assert "token budget is used up" in conversation.requests[-1] and '"tools":[{' not in conversation.requests[-1]
    with pytest.raises(endmark.NotAdmitted):
        run(model, "text", "", **options)
    assert meter.usage().calls == 2 and meter.usage().held_tokens == 0


def test_sixty_turns_stay_within_a_window():
    items = [{"role": "user", "content": "Find out why the disk is full."}]
    for step in range(60):
        items.append({"type": "function_call", "call_id": f"c{step}", "name": "run", "arguments": f'{{"command": "df {step}"}}'})
        items.append({"type": "function_call_output", "call_id": f"c{step}", "output": "used 97 % " * 80})

    class Data:
        model_data = type("Input", (), {"input": items, "instructions": "You are careful."})()

    kept = window(5_000)(Data)
    assert len(kept.input) < 25 and kept.input[0] == items[0] and kept.instructions == "You are careful."
    assert window(900_000)(Data) is Data.model_data


class Scripted(AsyncOpenAI):
    """Answers with the given API values, or raises the given exceptions."""

    def __init__(self, replies=(), **options):
        super().__init__(**{"api_key": "not-needed", **options})
        self.replies = replies

    def copy(self, **options):
        return Scripted(self.replies)

    async def post(self, path, **options):
        answer = self.replies.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(*replies, responses=True, **options):
    provider = EndmarkProvider(Scripted(list(replies)), use_responses=responses, **options)
    state = {"previous_response_id": None, "conversation_id": None, "prompt": None}
    asked = provider.get_model("gpt-5").get_response(
        None, "Tell me.", ModelSettings(), [], None, [], ModelTracing.DISABLED, **state
    )  # fmt: skip
    return LOOP.run_until_complete(asked)


def reply(*items, status="completed", reason=None, tokens=(10, 5)):
    made = [
        {"type": "message", "id": "m1", "role": "assistant", "status": status, "content": [
            {"type": "output_text", "text": item, "annotations": []}
        ]} if isinstance(item, str) else item for item in items
    ]  # fmt: skip
    details = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens), **details}
    return Response.model_validate({
        "id": "r1", "object": "response", "created_at": 1, "model": "m", "status": status, "output": made, "usage": usage, "tools": [],
        "tool_choice": "auto", "parallel_tool_calls": True, "incomplete_details": {"reason": reason} if reason else None,
    })  # fmt: skip


def chat(text, stop):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": stop}
    return ChatCompletion.model_construct(
        id="c", object="chat.completion", created=1, model="m", usage=None,
        choices=[ChatCompletion.model_construct(**choice | {"message": _message(text), "logprobs": None})],
    )  # fmt: skip


def _message(text):
    from openai.types.chat import ChatCompletionMessage

    return ChatCompletionMessage(role="assistant", content=text)


def texts(response):
    return [part.text for item in response.output if item.type == "message" for part in item.content]


THOUGHT = {"type": "reasoning", "id": "rs1", "summary": [], "encrypted_content": "x"}
SEARCH = {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"type": "search", "query": "cats"}}
LIMIT = {"status": "incomplete", "reason": "max_output_tokens"}


def test_reasoning_and_other_items_stay_unchanged():
    response = answer(reply(THOUGHT, SEARCH, "The cat ", "sat on", **LIMIT), reply({**THOUGHT, "id": "rs2"}, " the mat."))
    assert [item.type for item in response.output] == ["reasoning", "web_search_call", "message", "message", "reasoning"]
    assert texts(response) == ["The cat ", "sat on the mat."] and response.output[3].status == "completed"
    empty = answer(reply(THOUGHT, **LIMIT), reply(THOUGHT, "Whole."))
    assert texts(empty) == ["Whole."] and empty.usage.requests == 2


def test_a_limit_in_another_item_raises():
    with pytest.raises(ModelBehaviorError, match="web_search_call"):
        answer(reply({**SEARCH, "status": "in_progress"}, **LIMIT))


def test_an_unknown_or_missing_stop_reason_is_not_whole():
    assert texts(answer(chat("The cat sat on", None), chat(" the mat.", "stop"), responses=False)) == ["The cat sat on the mat."]
    with pytest.raises(endmark.NotResumed):
        answer(chat("The cat sat on", "strange"), responses=False)
    with pytest.raises(endmark.NotResumed):
        answer(reply("The cat sat on", status="incomplete", reason="content_filter"))
    assert texts(answer(chat("", "length"), chat("Whole.", "stop"), responses=False)) == ["Whole."]


def test_a_continuation_is_never_the_closing_call():
    options = {"meter": endmark.Meter(max_tokens=1_000), "assume_output_tokens": 200}
    with pytest.raises(endmark.ResumeExhausted) as raised:
        answer(reply("The cat sat on", tokens=(700, 100), **LIMIT), reply(" Summary: nothing."), **options)
    assert (raised.value.cause, raised.value.merged_raw) == ("budget", "The cat sat on")
    # The closing call is kept for the session's answer.
    assert texts(answer(reply("Summary: nothing."), **options)) == ["Summary: nothing."]


def test_an_error_in_a_continuation_loses_nothing():
    with pytest.raises(endmark.ResumeExhausted, match="503") as raised:
        answer(reply("The cat sat on", **LIMIT), RuntimeError("503"), RuntimeError("503"))
    assert raised.value.merged_raw == "The cat sat on"
    with pytest.raises(RuntimeError):
        answer(RuntimeError("503"))
