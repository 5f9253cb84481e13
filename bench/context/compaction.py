#!/usr/bin/env python3
"""Measures the CPU time of compaction by the length of the conversation, and that of peers that ask no model.

    python3 bench/context/compaction.py [--rounds 5] [--command target/release/endmark]

The conversation is generated: an agent uses a tool that returns logs, JSON and compiler output, with about four
characters per token. Endmark is the release build. It runs as a command on a file, so its time includes reading and
writing; the time of a run with a small file is subtracted. Peers run if they are installed (`pip install langchain
headroom-ai google-adk`): LangChain's `trim_messages` and `ClearToolUsesEdit`, both with their default counters,
headroom's `compress`, and ADK's `ContextFilterPlugin`, which keeps the newest ten rounds and counts no tokens. ADK's
own compaction asks a model, so it is not measured.
"""

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

SIZES = (250_000, 500_000, 1_000_000, 2_000_000)
WORDS = (
    "the order of a customer was looked at in detail and its amount agrees with what the ledger says for that day so "
    "nothing has to be booked again unless the warehouse reports another number or the carrier returns the parcel"
).split()


def conversation(tokens: int) -> list[dict]:
    made = random.Random(7)
    say = lambda count: " ".join(made.choices(WORDS, k=count))  # noqa: E731
    messages = [{"role": "user", "content": "Repair the orders of ZX-17, and never touch account 9000."}]
    size, step = 0, 0
    while size < tokens * 4:
        step += 1
        order = f"ord_{made.randrange(16**8):08x}"
        call = {"name": "get_order", "arguments": json.dumps({"order_id": order, "path": f"src/m{step % 97}/f{step}.rs"})}
        result = (
            json.dumps([{"id": f"it_{made.randrange(16**6):06x}", "price": made.randrange(9999) / 100, "name": say(4)} for _ in range(20)]),
            "\n".join(say(12) for _ in range(40)),
            "error: cannot find `x` in this scope\n" + "\n".join(f"src/a{line}.rs:{line}: {say(10)}" for line in range(30)),
        )[step % 3]
        new = [
            {"role": "assistant", "content": say(30), "tool_calls": [{"id": f"call_{step}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"call_{step}", "content": result},
        ]
        if step % 5 == 0:
            new.append({"role": "user", "content": f"Go on with {order}; {say(20)}"})
        messages += new
        size += sum(len(json.dumps(message)) for message in new)
    return [*messages, {"role": "user", "content": "Go on."}]


def endmark(command: str, folder: Path):
    def prepare(messages: list[dict]):
        path = folder / f"{len(messages)}.json"
        path.write_text(json.dumps(messages))
        asked = [command, "compact", str(path), "--for", "openai_chat", "--no-store", "--budget-tokens", "32000"]
        return lambda: subprocess.run(asked, capture_output=True, check=True)
    return prepare


def peers() -> dict:
    found = {}
    try:
        from langchain.agents.middleware.context_editing import ClearToolUsesEdit
        from langchain_core.messages import convert_to_messages, trim_messages
        from langchain_core.messages.utils import count_tokens_approximately
    except ImportError:
        pass
    else:
        def trimmed(messages):
            return lambda: trim_messages(messages, max_tokens=32_000, token_counter="approximate", start_on="human")
        def cleared(messages):
            return lambda: ClearToolUsesEdit().apply(convert_to_messages(messages), count_tokens=count_tokens_approximately)
        found |= {"LangChain trim_messages": trimmed, "LangChain ClearToolUsesEdit": cleared}
    try:
        from headroom import compress
    except ImportError:
        pass
    else:
        found["headroom compress"] = lambda messages: lambda: compress(messages, model="gpt-4o")
    try:
        from google.adk.models.llm_request import LlmRequest
        from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
        from google.genai import types
    except ImportError:
        pass
    else:
        def filtered(messages):
            contents = [types.Content(role="model" if message["role"] == "assistant" else "user", parts=adk_parts(types, message)) for message in messages]
            plugin = ContextFilterPlugin(num_invocations_to_keep=10)
            return lambda: asyncio.run(plugin.before_model_callback(callback_context=None, llm_request=LlmRequest(contents=contents)))
        found["ADK ContextFilterPlugin"] = filtered
    return found


def adk_parts(types, message: dict) -> list:
    if message["role"] == "tool":
        answer = types.FunctionResponse(id=message["tool_call_id"], name="get_order", response={"output": message["content"]})
        return [types.Part(function_response=answer)]
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls", [])]
    made = [types.FunctionCall(id=name, name=call["name"], args=json.loads(call["arguments"])) for name, call in calls]
    return [types.Part(text=message["content"]), *(types.Part(function_call=call) for call in made)]


def seconds(run) -> float:
    """Returns the CPU time of a run in seconds, including child processes that have ended."""
    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime
    before = used()
    run()
    return used() - before


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--command", default="target/release/endmark")
    arguments.add_argument("--without", action="append", default=[], help="leave this peer out")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runners = {"Endmark": endmark(given.command, Path(folder)), **peers()}
        runners = {name: run for name, run in runners.items() if name not in given.without}
        small = [{"role": "user", "content": "Go on."}]
        start = statistics.median(seconds(runners["Endmark"](small)) for _ in range(given.rounds))
        print(f"| tokens | {' | '.join(f'{name}, ms | ×' for name in runners)} |")
        for tokens in SIZES:
            messages = conversation(tokens)
            ready = {name: run(messages) for name, run in runners.items()}
            times = {name: [] for name in runners}
            for _ in range(given.rounds):
                for name, run in ready.items():
                    times[name].append(seconds(run) - (start if name == "Endmark" else 0))
            medians = {name: statistics.median(all_times) for name, all_times in times.items()}
            cells = " | ".join(f"{spent * 1_000:.0f} | {spent / medians['Endmark']:.2f}" for spent in medians.values())
            print(f"| {tokens:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
