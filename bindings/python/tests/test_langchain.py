"""Tests LangChain with the scripted model of `tests/sdk`, with and without the middleware."""

import asyncio
import sys
from pathlib import Path

import endmark
import pytest

pytest.importorskip("langchain")
pytest.importorskip("langchain_openai")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "sdk"))

import openai  # noqa: E402
import scripted  # noqa: E402
from endmark.langchain import EndmarkMiddleware  # noqa: E402
from langchain.agents import create_agent  # noqa: E402
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy  # noqa: E402
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: E402
from langchain_core.messages import AIMessage, ToolMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langgraph.types import Command  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from pydantic import BaseModel  # noqa: E402

# LangChain's clients share connections, which belong to one event loop.
LOOP = asyncio.new_event_loop()
MODES = ["invoke", "ainvoke", "stream", "astream"]


class Cat(BaseModel):
    name: str
    age: int
    friendly: bool
    likes: list[str]


@pytest.fixture(scope="module")
def model():
    with scripted.Model() as made:
        yield made


def run(model, kind, harm, mode, *, middleware=None, output="", streaming=False, **options):
    saved = []

    @tool
    def save_note(path: str, text: str) -> str:
        """Saves a note."""
        saved.append((path, text))
        return output or "saved"

    key, conversation = model.open(kind, harm)
    chat = ChatOpenAI(model="gpt-5", base_url=f"{model.origin}/v1", api_key="not-needed", max_retries=0, streaming=streaming)
    layers = [EndmarkMiddleware() if middleware is None else middleware] if middleware is not False else []
    agent = create_agent(chat, [save_note] if kind in ("call", "calls") else [], middleware=layers, **options)
    asked = {"messages": [{"role": "user", "content": f"{key}: tell me about it."}]}
    if mode == "invoke":
        state = agent.invoke(asked)
    elif mode == "ainvoke":
        state = LOOP.run_until_complete(agent.ainvoke(asked))
    elif mode == "stream":
        *_, state = agent.stream(asked, stream_mode="values")
    else:
        async def last():
            found = None
            async for found in agent.astream(asked, stream_mode="values"):
                pass
            return found

        state = LOOP.run_until_complete(last())
    assert not conversation.problems, conversation.problems
    return state, saved, conversation


@pytest.mark.parametrize("mode", MODES)
def test_a_cut_text_comes_out_whole_with_the_usage_of_all_calls(model, mode):
    state, _, conversation = run(model, "text", "limit", mode)
    reply = state["messages"][-1]
    assert reply.text == scripted.TEXT and len(state["messages"]) == 2
    assert len(conversation.requests) == 2 and "The last valid token" in conversation.requests[-1]
    assert reply.usage_metadata["input_tokens"] == 2 * scripted.USAGE[0]
    assert reply.response_metadata["finish_reason"] == "stop"
    assert reply.response_metadata["endmark"] == {"outcome": "resumed", "attempts": 1, "cut": "limit"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["call", "calls"])
def test_a_cut_call_is_made_once_with_whole_arguments(model, kind, mode):
    state, saved, _ = run(model, kind, "limit", mode)
    expected = [call for turn in scripted.TURNS[kind] for call in turn.calls]
    assert len(saved) == len(expected) and all(text.endswith("many hours.") for _, text in saved)
    assert state["messages"][-1].text == scripted.FINAL


@pytest.mark.parametrize("kind", ["call", "calls"])
def test_a_streamed_call_never_runs_with_cut_arguments(model, kind):
    state, saved, _ = run(model, kind, "limit", "invoke", streaming=True)
    assert [text.endswith("many hours.") for _, text in saved] == [True] * len(scripted.TURNS[kind][0].calls)
    assert state["messages"][-1].text == scripted.FINAL
    with pytest.raises(endmark.ResumeExhausted) as raised:
        run(model, kind, "limit", "invoke", streaming=True, middleware=EndmarkMiddleware(max_attempts=0))
    assert "Horse" in raised.value.merged_raw


@pytest.mark.parametrize(
    ("args", "opened"),
    [({}, ""), ({"a": "x}"}, '{"a": "x}'), ({"a": [1, {"b": []}]}, '{"a": [1, {"b": ['), ({"a": {"b": 12}}, '{"a": {"b": 12')],
)
def test_arguments_lose_their_closing_characters(args, opened):
    assert endmark.langchain._without_closers(args) == opened


def converse(*replies, middleware=None, **options):
    """Runs an agent with these replies or exceptions of the model. Returns its state, the notes, and the texts of the requests."""
    saved, requests, left = [], [], list(replies)

    class Model(GenericFakeChatModel):
        profile: object = {"structured_output": True}
        model_name: str = "gpt-5"

        def bind_tools(self, tools, **bound):
            return self.bind(**bound)

        def _generate(self, messages, stop=None, run_manager=None, **bound):
            requests.append([message.text for message in messages])
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return ChatResult(generations=[ChatGeneration(message=answer)])

    @tool
    def save_note(path: str, text: str) -> str:
        """Saves a note."""
        saved.append((path, text))
        return "saved"

    agent = create_agent(Model(messages=iter([])), [save_note], middleware=[middleware or EndmarkMiddleware()], **options)
    return agent.invoke({"messages": [{"role": "user", "content": "Tell me."}]}), saved, requests


def reply(text, stop="stop", tokens=None, **options):
    usage = tokens and {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens)}
    return AIMessage(text, response_metadata={"finish_reason": stop}, usage_metadata=usage, **options)


NOTE = {"name": "save_note", "args": {"path": "notes.txt", "text": "The disk is full"}, "id": "1", "type": "tool_call"}


def test_a_call_without_its_raw_arguments_is_completed_after_a_limit():
    _, saved, _ = converse(reply("", "length", tool_calls=[NOTE]), reply('disk is full, and no log was written."}'), reply("Done."))
    assert saved == [("notes.txt", "The disk is full, and no log was written.")]
    empty = {**NOTE, "args": {}}
    _, saved, _ = converse(reply("", "length", tool_calls=[empty]), reply("", "tool_calls", tool_calls=[NOTE]), reply("Done."))
    assert saved == [("notes.txt", "The disk is full")]


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_a_cut_structured_output_is_whole(model, mode):
    state, _, _ = run(model, "document", "limit", mode, response_format=ProviderStrategy(Cat))
    assert state["structured_response"] == Cat.model_validate_json(scripted.DOCUMENT)


def test_without_the_middleware_the_same_replies_are_lost(model):
    state, _, _ = run(model, "text", "limit", "invoke", middleware=False)
    assert state["messages"][-1].text != scripted.TEXT and scripted.TEXT.startswith(state["messages"][-1].text)
    assert run(model, "call", "limit", "invoke", middleware=False)[1] == []
    for kind, options in [("calls", {}), ("document", {"response_format": ProviderStrategy(Cat)})]:
        with pytest.raises(openai.OpenAIError):
            run(model, kind, "limit", "invoke", middleware=False, **options)


def test_a_whole_reply_stays_unchanged(model):
    state, _, conversation = run(model, "text", "", "invoke")
    assert len(conversation.requests) == 1 and "endmark" not in state["messages"][-1].response_metadata


def test_a_reply_that_stays_cut_raises(model):
    with pytest.raises(endmark.ResumeExhausted) as raised:
        run(model, "text", "limit", "invoke", middleware=EndmarkMiddleware(max_attempts=0))
    assert scripted.TEXT.startswith(raised.value.merged_raw)


def test_a_large_tool_result_is_capped_and_can_be_read(model):
    output = "".join(f"row {row}: {'error: disk full' if row == 31_000 else 'ok'}\n" for row in range(200_000))
    middleware = EndmarkMiddleware(max_result_chars=3_000)
    state, _, _ = run(model, "call", "", "invoke", middleware=middleware, output=output)
    [result] = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert len(result.text) <= 3_000 and "row 31000: error: disk full" in result.text
    handle = result.text.partition("endmark_read ")[2].split("\n")[0].strip(" ]")
    [read] = middleware.tools
    assert read.invoke({"handle": handle, "grep": "error"}) == "31001:row 31000: error: disk full\n"
    assert read.invoke({"handle": "nothing"}).startswith("Error: no output")


def test_a_budget_ends_in_a_call_without_tools_and_then_refuses(model):
    meter = endmark.Meter(max_tokens=4_200)
    state, _, conversation = run(model, "text", "", "invoke", middleware=EndmarkMiddleware(meter=meter))
    assert isinstance(state["messages"][-1], AIMessage) and meter.usage().tokens.completion == scripted.USAGE[1]
    meter = endmark.Meter(max_tokens=4_150)
    middleware = EndmarkMiddleware(meter=meter)
    run(model, "text", "", "invoke", middleware=middleware)
    _, _, conversation = run(model, "text", "", "invoke", middleware=middleware)
    assert "token budget is used up" in conversation.requests[-1] and '"tools"' not in conversation.requests[-1]
    with pytest.raises(endmark.NotAdmitted):
        run(model, "text", "", "invoke", middleware=middleware)


def test_a_whole_reply_keeps_its_structured_response():
    document = reply('{"name": "Tom", "age": 1, "friendly": true, "likes": []}')
    state, _, _ = converse(document, response_format=Cat)
    assert state["structured_response"].name == "Tom" and state["messages"][-1].content is document.content
    cut = [reply(document.text[:40], "length"), reply(document.text[40:])]
    assert converse(*cut, response_format=Cat)[0]["structured_response"].name == "Tom"


def test_a_continuation_is_never_the_closing_call():
    middleware = EndmarkMiddleware(meter=endmark.Meter(max_tokens=1_000), assume_output_tokens=200)
    with pytest.raises(endmark.ResumeExhausted) as raised:
        converse(reply("The cat sat on", "length", (700, 100)), reply(" Summary: nothing."), middleware=middleware)
    assert (raised.value.cause, raised.value.merged_raw) == ("budget", "The cat sat on")
    # The closing call is kept for the session's answer.
    _, _, requests = converse(reply("Summary: nothing."), middleware=middleware)
    assert "token budget is used up" in requests[0][-1]


def test_an_error_in_a_continuation_loses_nothing():
    with pytest.raises(endmark.ResumeExhausted, match="503") as raised:
        converse(reply("The cat sat on", "length"), RuntimeError("503"), RuntimeError("503"))
    assert raised.value.merged_raw == "The cat sat on"
    state, _, _ = converse(reply("The cat sat on", "length"), RuntimeError("503"), reply(" the mat."))
    assert state["messages"][-1].text == "The cat sat on the mat."
    with pytest.raises(RuntimeError):
        converse(RuntimeError("503"))


@pytest.mark.parametrize("first", ["", "I will save"])
def test_a_tool_call_in_the_answer_to_a_continuation_is_kept(first):
    answer = reply(" it now.", "tool_calls", tool_calls=[NOTE])
    state, saved, _ = converse(reply(first, "length"), answer, reply("Done."))
    assert saved == [("notes.txt", "The disk is full")] and state["messages"][1].text == f"{first} it now."
    cut = reply(" it now.", "length", tool_calls=[NOTE])
    with pytest.raises(endmark.ResumeExhausted, match="tool call"):
        converse(reply(first, "length"), cut, cut)


def test_a_cut_structured_output_by_a_tool_ends_the_agent():
    document = scripted.DOCUMENT
    cut = {"name": "Cat", "args": document[:60], "id": "1", "error": None, "type": "invalid_tool_call"}
    state, _, requests = converse(
        reply("", "length", invalid_tool_calls=[cut]), reply(document[60:]), response_format=ToolStrategy(Cat)
    )
    assert state["structured_response"] == Cat.model_validate_json(document) and len(requests) == 2
    assert state["messages"][-1].tool_call_id == "1"


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
IMAGE = {"type": "image", "url": "https://example.com/cat.png"}


def texts(*values):
    return [{"type": "text", "text": value} for value in values]


def test_other_blocks_keep_their_positions():
    first = [THOUGHT, *texts("See "), IMAGE, {**texts("The cat ")[0], "citations": [1]}, *texts("sat on")]
    state, _, requests = converse(reply(first, "length"), reply([THOUGHT, *texts(" the mat."), IMAGE]))
    whole = [*first[:4], *texts("sat on the mat."), IMAGE]
    assert state["messages"][-1].content == whole
    assert requests[1][-2].startswith("See The cat")
    state, _, _ = converse(reply([THOUGHT], "length"), reply([THOUGHT, *texts("The mat.")]))
    assert state["messages"][-1].content == [THOUGHT, *texts("The mat.")]


@pytest.mark.parametrize("name, word", [("done_reason", "length"), ("stopReason", "max_tokens"), ("finish_reason", "MAX_TOKENS")])
def test_the_stop_reasons_of_other_providers_are_read(name, word):
    first = AIMessage("The cat sat on", response_metadata={name: word})
    message = converse(first, reply(" the mat."))[0]["messages"][-1]
    assert message.text == "The cat sat on the mat." and message.response_metadata[name] != word


def test_an_unknown_stop_reason_is_disclosed():
    message = converse(reply("The cat sat on", "moon_phase"))[0]["messages"][-1]
    assert message.response_metadata["endmark"] == {"outcome": "passed", "reason": "unknown_stop"}
    assert message.response_metadata["finish_reason"] == "moon_phase"


class Refused(Exception):
    status_code = 400


def test_a_permanent_refusal_reaches_the_caller_and_is_not_retried():
    with pytest.raises(Refused) as raised:
        converse(reply("The cat sat on", "length"), Refused("no such field"), reply(" the mat."))
    assert isinstance(raised.value.__cause__, endmark.ResumeExhausted)
    assert (raised.value.__cause__.merged_raw, raised.value.__cause__.attempts) == ("The cat sat on", 0)


LONG = "row ok\n" * 5_000
MEDIA = {"type": "image", "base64": "A" * 9_000, "mime_type": "image/png"}


def capped(result):
    class Request:
        tool_call = {"name": "query", "args": {}, "id": "1"}

    return EndmarkMiddleware(max_result_chars=2_000).wrap_tool_call(Request(), lambda request: result)


def test_messages_in_a_command_are_capped():
    message = ToolMessage(LONG, tool_call_id="1")
    for update in [{"messages": [message], "note": LONG}, [("messages", [message]), ("note", LONG)]]:
        command = capped(Command(update=update, goto="next"))
        changed = dict(command.update)
        assert len(changed["messages"][0].text) <= 2_000 and changed["note"] == LONG and command.goto == "next"
    assert capped(Command(goto="next")) == Command(goto="next")


@pytest.mark.parametrize(
    "blocks",
    [[*texts(LONG), MEDIA], texts(*["row ok"] * 5_000), [{"type": "json", "json": {"rows": ["ok"] * 5_000}}, MEDIA], [LONG, LONG],
     [{"type": "document", "source": {"type": "text", "data": LONG}}], [{"type": "json", "value": "half \ud83d" * 900}]],
)  # fmt: skip
def test_the_blocks_of_a_result_share_one_limit(blocks):
    found = capped(ToolMessage(blocks, tool_call_id="1")).content
    assert len(found[0]["text"]) <= 2_000 and found[1:] == [block for block in blocks if block is MEDIA]
    small = [*texts("ok", "ok"), MEDIA]
    assert capped(ToolMessage(small, tool_call_id="1")).content == small
