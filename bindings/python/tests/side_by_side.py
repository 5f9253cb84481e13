"""Writes the table in `docs/python.md`: the same replies in each framework, directly and with Endmark.

    python3 tests/side_by_side.py [--check]

The frameworks are the real ones, in front of the scripted model of `tests/sdk`. `--check` fails if the table in the page differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", GOOGLE_API_KEY="not-needed", OPENAI_API_KEY="not-needed")
warnings.simplefilter("ignore")
logging.disable(logging.ERROR)
REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "tests" / "sdk"))

import endmark  # noqa: E402
import scripted  # noqa: E402
from pydantic import BaseModel  # noqa: E402

PAGE = REPOSITORY / "docs" / "python.md"
BEGIN, END = "<!-- side by side: begin -->\n", "<!-- side by side: end -->\n"
LOOP = asyncio.new_event_loop()
TURNS = 60
scripted.TURNS["sixty"] = [*(scripted.Turn(calls=(scripted.note(10 * step),)) for step in range(TURNS)), scripted.Turn(scripted.FINAL)]
ROWS = "".join(f"row {row}: {'error: disk full' if row == 31_000 else 'ok'}\n" for row in range(150_000))
WINDOW = 5_000
CONVERSATIONS = 12
# A call may cost its prompt and 4,096 tokens of output.
BUDGET = 4_600


class Cat(BaseModel):
    name: str
    age: int
    friendly: bool
    likes: list[str]


@dataclass
class Case:
    kind: str
    harm: str = ""
    stream: bool = False
    output: str = "saved"
    meter: endmark.Meter | None = None
    window: int = 0
    saved: list = field(default_factory=list)

    @property
    def has_tools(self) -> bool:
        return self.kind in ("call", "calls", "sixty")

    def save(self, path: str, text: str) -> str:
        self.saved.append(text)
        return self.output


def langchain(model, question, case, wrapped):
    from endmark.langchain import EndmarkMiddleware
    from langchain.agents import create_agent
    from langchain.agents.structured_output import ProviderStrategy
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def save_note(path: str, text: str) -> str:
        """Saves a note."""
        return case.save(path, text)

    chat = ChatOpenAI(model="gpt-5", base_url=f"{model.origin}/v1", max_retries=0, streaming=case.stream)
    options = {"response_format": ProviderStrategy(Cat)} if case.kind == "document" else {}
    layers = [EndmarkMiddleware(meter=case.meter)] if wrapped else []
    agent = create_agent(chat, [save_note] if case.has_tools else [], middleware=layers, **options)
    asked = {"messages": [{"role": "user", "content": question}]}
    return agent.invoke(asked, {"recursion_limit": 500})["messages"][-1].text


def adk(model, question, case, wrapped):
    from endmark.adk import EndmarkLlm, EndmarkPlugin
    from endmark.adk_window import EndmarkWindow
    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.apps.app import App
    from google.adk.models.google_llm import Gemini
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    def save_note(path: str, text: str) -> dict:
        """Saves a note."""
        return {"result": case.save(path, text)}

    async def run():
        gemini = Gemini(model="gemini-2.5-flash", base_url=model.origin, retry_options=types.HttpRetryOptions(attempts=1))
        plugin = EndmarkPlugin(max_result_chars=20_000)
        tools = ([save_note] if case.has_tools else []) + ([plugin.read_tool()] if wrapped and case.has_tools else [])
        llm = EndmarkLlm(wrapped=gemini, meter=case.meter) if wrapped else gemini
        agent = LlmAgent(name="scribe", model=llm, tools=tools, output_schema=Cat if case.kind == "document" else None)
        window = [EndmarkWindow(trigger_tokens=case.window)] if case.window else []
        runner = InMemoryRunner(app=App(name="test", root_agent=agent, plugins=[plugin, *window] if wrapped else []))
        session = await runner.session_service.create_session(app_name="test", user_id="u")
        asked = types.Content(role="user", parts=[types.Part(text=question)])
        mode = RunConfig(streaming_mode=StreamingMode.SSE if case.stream else StreamingMode.NONE)
        events = runner.run_async(user_id="u", session_id=session.id, new_message=asked, run_config=mode)
        whole = [event async for event in events if not event.partial]
        return "".join(part.text or "" for part in (whole[-1].content.parts if whole[-1].content else None) or [])

    return asyncio.run(run())


def openai_agents(model, question, case, wrapped):
    from agents import Agent, RunConfig, Runner, function_tool
    from agents.models.openai_provider import OpenAIProvider
    from endmark.openai_agents import EndmarkProvider, EndmarkResults, window
    from openai import AsyncOpenAI

    @function_tool
    def save_note(path: str, text: str) -> str:
        """Saves a note."""
        return case.save(path, text)

    client = AsyncOpenAI(base_url=f"{model.origin}/v1", max_retries=0)
    tools = [save_note] if case.has_tools else []
    tools = EndmarkResults().capped(tools) if wrapped and tools else tools
    provider = EndmarkProvider(client, meter=case.meter, use_responses=False) if wrapped else OpenAIProvider(openai_client=client, use_responses=False)
    config = RunConfig(
        model_provider=provider, tracing_disabled=True, call_model_input_filter=window(case.window) if wrapped and case.window else None
    )
    agent = Agent(name="scribe", model="gpt-5", tools=tools, output_type=Cat if case.kind == "document" else None)

    async def run():
        if not case.stream:
            return await Runner.run(agent, question, run_config=config, max_turns=200)
        found = Runner.run_streamed(agent, question, run_config=config)
        async for _ in found.stream_events():
            pass
        return found

    found = LOOP.run_until_complete(run()).final_output
    return found if isinstance(found, str) else found.model_dump_json()


def pydantic_ai(model, question, case, wrapped):
    from endmark.pydantic_ai import EndmarkCapability
    from pydantic_ai import Agent, NativeOutput, UsageLimits
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    chat = OpenAIChatModel("gpt-5", provider=OpenAIProvider(base_url=f"{model.origin}/v1"))
    layers = [EndmarkCapability(meter=case.meter, window_tokens=case.window)] if wrapped else []
    agent = Agent(chat, capabilities=layers, retries=0, **({"output_type": NativeOutput(Cat)} if case.kind == "document" else {}))
    if case.has_tools:
        @agent.tool_plain
        def save_note(path: str, text: str) -> str:
            """Saves a note."""
            return case.save(path, text)

    async def run():
        if not case.stream:
            return (await agent.run(question, usage_limits=UsageLimits(request_limit=None))).output
        async with agent.run_stream(question) as stream:
            return await stream.get_output()

    found = LOOP.run_until_complete(run())
    return found if isinstance(found, str) else found.model_dump_json()


def litellm(model, question, case, wrapped):
    import litellm as itself
    from endmark.litellm import EndmarkLiteLLM

    itself.suppress_debug_info = True
    llm = EndmarkLiteLLM(meter=case.meter, window_tokens=case.window) if wrapped else itself
    options = {"api_base": f"{model.origin}/v1", "max_retries": 0, "stream": case.stream}
    if case.has_tools:
        described = {"name": "save_note", "description": "Saves a note.", "parameters": {"type": "object"}}
        options["tools"] = [{"type": "function", "function": described}, *([llm.read_tool()] if wrapped else [])]
    if case.kind == "document":
        options["response_format"] = {"type": "json_object"}
    messages = [{"role": "user", "content": question}]
    while True:
        response = llm.completion("openai/gpt-5", messages, **options)
        response = itself.stream_chunk_builder(list(response)) if case.stream else response
        message = response.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            result = case.save(**json.loads(call.function.arguments))
            plain = {"role": "tool", "tool_call_id": call.id, "content": result}
            messages.append(llm.tool_message(call, result) if wrapped else plain)


FRAMEWORKS = {
    "LangChain": langchain, "Google ADK": adk, "OpenAI Agents SDK": openai_agents, "Pydantic AI": pydantic_ai, "LiteLLM": litellm,
}  # fmt: skip


def run(model, framework, case, wrapped):
    """Returns the resulting text, the error's name, and the conversation."""
    key, conversation = model.open(case.kind, case.harm, is_compacted=case.kind == "sixty")
    try:
        return framework(model, f"{key}: tell me about it.", case, wrapped), None, conversation
    except Exception as error:
        return "", type(error).__name__, conversation


def read(model, framework, case, wrapped):
    """Describes the result of a reply with text."""
    text, error, _ = run(model, framework, case, wrapped)
    if error:
        return f"raises `{error}`"
    expected = scripted.DOCUMENT if case.kind == "document" else scripted.TEXT
    if case.kind == "document":
        try:
            return "whole" if json.loads(text) == json.loads(expected) else "cut, no error"
        except ValueError:
            return "cut, no error"
    return "whole" if text == expected else "cut, no error"


def called(model, framework, case, wrapped):
    """Describes the result of a reply with calls."""
    _, error, conversation = run(model, framework, case, wrapped)
    expected = len(scripted.TURNS[case.kind][0].calls)
    whole = sum(text.endswith("many hours.") for text in case.saved)
    made = "made with cut arguments" if whole < len(case.saved) else f"{whole} of {expected} made" if expected > 1 else "made" if whole else "not made"
    error = error or ("a refused request" if conversation.problems else None)
    return f"{made}, raises `{error}`" if error else made


def sized(model, framework, case, wrapped):
    """Describes how much of a large result the model gets."""
    _, error, conversation = run(model, framework, case, wrapped)
    if error:
        return f"raises `{error}`"
    sent = conversation.requests[-1]
    row = "" if "row 31000: error: disk full" in sent else ", without the error"
    return f"{amount(len(sent))} sent{row}"


def grown(model, framework, case, wrapped):
    """Describes the largest request of a long conversation."""
    _, error, conversation = run(model, framework, case, wrapped)
    return f"raises `{error}`" if error else f"up to {amount(max(map(len, conversation.requests)))}"


def spent(model, framework, case, wrapped):
    """Describes the usage of conversations that together exceed one budget."""
    calls, last = 0, ""
    for _ in range(CONVERSATIONS):
        _, error, conversation = run(model, framework, case, wrapped)
        calls += len(conversation.requests)
        if error:
            closes = "the last for a summary, " if "token budget is used up" in last else ""
            return f"{calls} calls, {closes}then `{error}`"
        last = conversation.requests[-1]
    return f"{calls} calls"


def amount(size: int) -> str:
    return f"{size / 1_000_000:.0f} MB" if size > 900_000 else f"{max(1, round(size / 10_000)) * 10} KB"


CASES = [
    ("whole text", read, lambda: Case("text")),
    ("cut text", read, lambda: Case("text", "limit")),
    ("cut JSON", read, lambda: Case("document", "limit")),
    ("cut call", called, lambda: Case("call", "limit")),
    ("two calls, the second cut", called, lambda: Case("calls", "limit")),
    ("cut text in a stream", read, lambda: Case("text", "limit", stream=True)),
    ("tool result of 2 MB with one error", sized, lambda: Case("call", output=ROWS)),
    (f"{TURNS} turns, window of {WINDOW:,} tokens", grown, lambda: Case("sixty", output="used 97 %\n" * 200, window=WINDOW)),
    (
        f"{CONVERSATIONS} conversations, budget of {BUDGET:,} tokens", spent,
        lambda: Case("text", meter=endmark.Meter(max_tokens=BUDGET)),
    ),
]


def table() -> str:
    lines = [f"| the model's reply | {' | '.join(FRAMEWORKS)} |", f"|{'---|' * (len(FRAMEWORKS) + 1)}"]
    with scripted.Model() as model:
        for name, outcome, case in CASES:
            cells = []
            for framework in FRAMEWORKS.values():
                direct, with_it = (outcome(model, framework, case(), wrapped) for wrapped in (False, True))
                cells.append(direct if direct == with_it else f"{direct} → **{with_it}**")
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    made = table()
    before, _, rest = PAGE.read_text().partition(BEGIN)
    old, _, after = rest.partition(END)
    if arguments.check:
        if old.strip() != made.strip():
            print(f"{PAGE} does not have this table; run {Path(__file__).name}:\n{made}", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}")
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
