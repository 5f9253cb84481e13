#!/usr/bin/env python3
"""Compares the usage that `endmark usage` and resumed replies report with the upstream's bill, in the shapes of many vendors.

    cargo build --release --package endmark-cli
    python3 tests/sdk/test_billed.py [--program target/debug/endmark] [--requests 10000]

Each shape has its own model. Reported figures must be right to the token and the nano-dollar. An estimate must be marked, and within
20 % of the count by a published vocabulary.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real_model"))

import gateway  # noqa: E402
import scripted  # noqa: E402
from model_server import SetUpError  # noqa: E402
from servers import REPOSITORY, Gateway  # noqa: E402

# Dollars per million tokens, chosen so that most costs must be rounded to a nano-dollar.
PRICES = {"input": 0.1234567, "cached_input": 0.0123456, "output": 2.7182818}
# The same prices in millionths of nano-dollars per token.
INPUT, CACHED, OUTPUT = 123_456_700, 12_345_600, 2_718_281_800
TEXT = " ".join([scripted.TEXT, scripted.note(1, 4)[1], scripted.FINAL])
# Prose, data and code, as in an agent's request. The upstream counts with o200k_base, so the model names must imply it. Estimates for
# unknown vocabularies are deliberately 15 % higher.
PROMPT = f"Write about horses and about Marie Curie. {scripted.TEXT}\n{scripted.DOCUMENT}\n" + Path(scripted.__file__).read_text()[2000:5000]
MOST_DEVIATION = 0.2
THREADS = 16


@dataclass(frozen=True)
class Bill:
    prompt: int
    cached: int
    written: int
    completion: int
    reasoning: int

    @property
    def millionths(self) -> int:
        return (self.prompt - self.cached) * INPUT + self.cached * CACHED + self.completion * OUTPUT


def bill(number: int, way: Way) -> Bill:
    prompt, completion = 40 + number * 7_919 % 3_000, 10 + number * 104_729 % 700
    written = prompt // 4 if way.has_writes and number % 5 == 1 else 0
    reasoning = completion // 3 if way.has_reasoning and number % 4 == 0 else 0
    return Bill(prompt, prompt // 2 if number % 3 == 0 else 0, written, completion, reasoning)


def chat_usage(b: Bill) -> dict:
    return {
        "prompt_tokens": b.prompt, "completion_tokens": b.completion, "total_tokens": b.prompt + b.completion,
        "prompt_tokens_details": {"cached_tokens": b.cached}, "completion_tokens_details": {"reasoning_tokens": b.reasoning},
    }  # fmt: skip


def xai_usage(b: Bill) -> dict:
    """Counts reasoning separately from the completion."""
    return {**chat_usage(b), "completion_tokens": b.completion - b.reasoning}


def kimi_usage(b: Bill) -> dict:
    total = {"total_tokens": b.prompt + b.completion, "cached_tokens": b.cached}
    return {"prompt_tokens": b.prompt, "completion_tokens": b.completion, **total}


def litellm_usage(b: Bill) -> dict:
    return {**chat_usage(b), "cache_creation_input_tokens": b.written, "cache_read_input_tokens": b.cached}


def responses_usage(b: Bill) -> dict:
    return {
        "input_tokens": b.prompt, "output_tokens": b.completion, "total_tokens": b.prompt + b.completion,
        "input_tokens_details": {"cached_tokens": b.cached}, "output_tokens_details": {"reasoning_tokens": b.reasoning},
    }  # fmt: skip


def messages_usage(b: Bill) -> dict:
    cache = {"cache_read_input_tokens": b.cached, "cache_creation_input_tokens": b.written}
    return {"input_tokens": b.prompt - b.cached - b.written, "output_tokens": b.completion, **cache}


def gemini_usage(b: Bill) -> dict:
    return {
        "promptTokenCount": b.prompt, "cachedContentTokenCount": b.cached, "candidatesTokenCount": b.completion - b.reasoning,
        "thoughtsTokenCount": b.reasoning, "totalTokenCount": b.prompt + b.completion,
    }  # fmt: skip


def in_choice(events: list[dict]) -> list[dict]:
    """Moves the usage into the last choice, as Moonshot does."""
    *before, last, count = events
    last["choices"][0]["usage"] = count["usage"]
    return [*before, last]


def in_x_groq(events: list[dict]) -> list[dict]:
    *before, last, count = events
    return [*before, {**last, "x_groq": {"id": "req", "usage": count["usage"]}}]


def without_count(events: list[dict]) -> list[dict]:
    return [{key: value for key, value in event.items() if key != "usage"} for event in events if event.get("choices") != []]


def broken(events: list[dict]) -> list[dict]:
    """Leaves out the events that end the reply."""
    return [event for event in events if event["type"] not in ("content_block_stop", "message_delta", "message_stop")]


def prompt_alone(events: list[dict]) -> list[dict]:
    for event in events:
        event["usageMetadata"] = {"promptTokenCount": event["usageMetadata"]["promptTokenCount"]}
    return events


@dataclass(frozen=True)
class Way:
    """How a vendor reports usage. With an `edit` of a stream's events, all replies are streams."""

    name: str
    form: object
    usage: object
    edit: object = None
    # The figures that the vendor does not report: `prompt`, `completion`.
    estimated: tuple[str, ...] = ()
    has_writes: bool = False
    has_reasoning: bool = True
    is_late: bool = False
    is_cut: bool = False


CHAT, RESPONSES, MESSAGES, GEMINI = scripted.FORMATS
WAYS = [
    Way("chat", CHAT, chat_usage),
    Way("chat-cut", CHAT, chat_usage, is_cut=True),
    Way("xai", CHAT, xai_usage),
    Way("kimi", CHAT, kimi_usage, in_choice, has_reasoning=False),
    Way("groq", CHAT, chat_usage, in_x_groq),
    Way("litellm", CHAT, litellm_usage, has_writes=True),
    Way("late", CHAT, chat_usage, list, is_late=True),
    Way("responses", RESPONSES, responses_usage),
    Way("responses-cut", RESPONSES, responses_usage, is_cut=True),
    Way("messages", MESSAGES, messages_usage, has_writes=True, has_reasoning=False),
    Way("messages-cut", MESSAGES, messages_usage, has_writes=True, has_reasoning=False, is_cut=True),
    Way("gemini", GEMINI, gemini_usage),
    Way("gemini-cut", GEMINI, gemini_usage, is_cut=True),
    Way("silent", CHAT, chat_usage, without_count, ("prompt", "completion"), has_reasoning=False),
    Way("broken", MESSAGES, messages_usage, broken, ("completion",), has_writes=True, has_reasoning=False),
    Way("prompt-alone", GEMINI, gemini_usage, prompt_alone, ("completion",), has_reasoning=False),
]
PATHS = {
    CHAT: "/u/openai/v1/chat/completions", RESPONSES: "/u/openai/v1/responses", MESSAGES: "/u/anthropic/v1/messages",
    GEMINI: "/u/gemini/v1beta/models/{model}:{method}",
}  # fmt: skip


def counted(value: object, usage: dict) -> object:
    """Returns the reply with each of its usage fields replaced by this usage."""
    if isinstance(value, dict):
        names = ("usage", "usageMetadata")
        return {key: usage if key in names and item else counted(item, usage) for key, item in value.items()}
    return [counted(item, usage) for item in value] if isinstance(value, list) else value


class Vendor(scripted.Model):
    """Answers with one text, and keeps the bill of every call."""

    def __init__(self, tokens: dict[str, int]):
        super().__init__()
        self.tokens = tokens
        self.bills: dict[str, list[Bill]] = collections.defaultdict(list)
        self.by_request: dict[int, list[Bill]] = collections.defaultdict(list)

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        raw = request.rfile.read(int(request.headers["content-length"])).decode()
        body = json.loads(raw)
        path = request.path.partition("?")[0]
        name = body.get("model") or path.rpartition("/")[2].partition(":")[0]
        way = next(way for way in WAYS if f"gpt-4o-billed-{way.name}" == name)
        history = way.form.history(body, self, scripted.Conversation("text", ""))
        rest = scripted.remaining(history, scripted.Turn(TEXT))
        turn = scripted.Turn(rest if rest is not None else TEXT[: len(TEXT) // 2] if way.is_cut else TEXT)
        with self.lock:
            made = bill(next(self.numbers), way)
            if way.estimated:
                # Figures that are not reported are billed by the text.
                fields = {name: self.tokens[name] for name in way.estimated}
                made = Bill(**{**vars(made), "cached": 0, "written": 0, **fields})
            self.bills[name].append(made)
            self.by_request[int(re.search(r"Request (\d+)", raw)[1])].append(made)
        whole, events = way.form.reply(turn, "limit" if way.is_cut and rest is None else "stop", self, body)
        if not way.form.streams(path, body):
            self.send(request, 200, "application/json", [json.dumps(counted(whole, way.usage(made))).encode()])
            return
        values = [counted(json.loads(event.partition("data: ")[2]), way.usage(made)) for event in events if "[DONE]" not in event]
        for value in values:
            if value.get("type") == "message_start":
                value["message"]["usage"] = {**value["message"]["usage"], "output_tokens": 1}
        values = way.edit(values) if way.edit else values
        frames = [scripted.sse(value, value.get("type")) for value in values]
        if way.form is CHAT:
            frames.insert(len(frames) - way.is_late, "data: [DONE]\n\n")
        self.send(request, 200, "text/event-stream", [frame.encode() for frame in frames], way.edit is broken)


def body(way: Way, model: str, stream: bool, prompt: str) -> dict:
    if way.form is GEMINI:
        return {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
    common = {"model": model, "stream": stream}
    if way.form is RESPONSES:
        return {**common, "input": prompt}
    common |= {"max_tokens": 1000} if way.form is MESSAGES else {"stream_options": {"include_usage": True}} if stream else {}
    return {**common, "messages": [{"role": "user", "content": prompt}]}


def found_in(value: object, names: tuple[str, ...]) -> list:
    """Returns the values of all fields with one of these names, in order."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in ([item] if key in names else found_in(item, names))]
    return [found for item in value for found in found_in(item, names)] if isinstance(value, list) else []


def ask(port: int, number: int, vendor: Vendor) -> str:
    """Sends one request. Returns the problems with the usage and the cost in its reply."""
    way = WAYS[number % len(WAYS)]
    stream = way.edit is not None or number // len(WAYS) % 2 == 0
    model = f"gpt-4o-billed-{way.name}"
    path = PATHS[way.form].format(model=model, method="streamGenerateContent?alt=sse" if stream else "generateContent")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(body(way, model, stream, f"Request {number}. {PROMPT}")), {
        "content-type": "application/json", "x-endmark-resume": "on" if way.is_cut else "off",
    })  # fmt: skip
    answer = connection.getresponse()
    try:
        text = answer.read().decode()
    except http.client.IncompleteRead as cut:
        text = cut.partial.decode()
    connection.close()
    if answer.status != 200:
        return f"{way.name}: status {answer.status}: {text[:300]}"
    if not way.is_cut:
        return ""
    # The reply consists of several calls, and reports their sum.
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")] if stream else [text]
    values = [json.loads(line) for line in lines]
    bills = vendor.by_request[number]
    shown = [way.usage(made) for made in bills]
    billed = {key: sum(usage[key] for usage in shown) for key, value in shown[0].items() if isinstance(value, int)}
    counts = [usage for usage in found_in(values, ("usage", "usageMetadata")) if isinstance(usage, dict)]
    reported = {key: value for usage in counts for key, value in usage.items() if key in billed}
    costs = [told.get("cost_usd") for told in found_in(values, ("endmark",))] or [answer.getheader("x-endmark-cost-usd")]
    if reported != billed:
        return f"{way.name}: the reply reports {reported}, billed {billed}: {counts}"
    cost = dollars(sum(made.millionths for made in bills))
    return "" if costs[-1] == cost else f"{way.name}: the reply reports {costs} dollars of {bills}"


def dollars(millionths: int) -> str:
    nanos = (millionths + 500_000) // 1_000_000
    return f"{nanos // 10**9}.{nanos % 10**9:09}"


def problems(way: Way, bills: list[Bill], row: dict) -> list[str]:
    """Returns the problems with the ledger's sum for one way of reporting."""
    found = []
    fields = {"prompt": "prompt_tokens", "cached": "cached_tokens", "written": "cache_write_tokens"}
    fields |= {"completion": "completion_tokens", "reasoning": "reasoning_tokens"}
    for name, field in {"calls": "calls", **fields}.items():
        billed = len(bills) if name == "calls" else sum(getattr(made, name) for made in bills)
        if name in way.estimated:
            print(f"     {way.name}: {field} estimated at {row[field] / billed - 1:+.1%}")
            if abs(row[field] / billed - 1) > MOST_DEVIATION:
                found.append(f"{field}: {row[field]}, billed {billed}")
        elif row[field] != billed:
            found.append(f"{field}: {row[field]}, billed {billed}")
    if row["estimated_calls"] != (len(bills) if way.estimated else 0):
        found.append(f"{row['estimated_calls']} of {len(bills)} calls are marked as estimated")
    if not way.estimated and row["usd"] != dollars(sum(made.millionths for made in bills)):
        found.append(f"{row['usd']} dollars, billed {dollars(sum(made.millionths for made in bills))}")
    return found


def tokens_of(program: Path, text: str) -> int:
    done = subprocess.run([program, "count", "--model", "gpt-4o", "--json"], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["data"]["tokens"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    parser.add_argument("--requests", type=int, default=10_000)
    given = parser.parse_args()
    if given.program:
        gateway.program = lambda: given.program.resolve()
    folder = REPOSITORY / ".sdk" / "billed"
    try:
        vendor = Vendor({"prompt": tokens_of(gateway.program(), PROMPT), "completion": tokens_of(gateway.program(), TEXT)})
        upstreams = {
            name: {"format": name, "base_url": vendor.origin + version, "prefill": "never"}
            for name, version in (("openai", "/v1"), ("anthropic", "/v1"), ("gemini", "/v1beta"))
        }  # fmt: skip
        budget = {"day_tokens": 10**9}
        with vendor, Gateway(folder, upstreams, budget=budget, **{'prices."gpt-4o-billed-*"': PRICES}, limits={"requests": 500}) as endmark:
            with ThreadPoolExecutor(THREADS) as pool:
                asked = list(pool.map(lambda number: ask(endmark.port, number, vendor), range(given.requests)))
            # A row is usually committed within a tenth of a second.
            time.sleep(0.5)
            answer = json.loads(endmark.command("usage", "--by", "model", "--json").stdout)
            rows = {row["model"]: row for row in answer["data"]["rows"]}
        shutil.rmtree(folder)
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 1
    failed = [problem for problem in asked if problem]
    for way in WAYS:
        name = f"gpt-4o-billed-{way.name}"
        found = problems(way, vendor.bills[name], rows[name])
        print(f"{'FAIL' if found else 'ok  '}  {name}: {len(vendor.bills[name])} calls" + "".join(f"\n      {problem}" for problem in found))
        failed += found
    print(f"\n{len(failed)} failed: {failed[:3]}" if failed else f"\n{given.requests} requests, all as billed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
