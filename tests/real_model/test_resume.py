#!/usr/bin/env python3
"""Tests with the official client that Endmark resumes cut replies of a real model.

    cargo build --release --package endmark-cli
    python3 tests/real_model/test_resume.py            # the acceptance, some minutes
    python3 tests/real_model/test_resume.py --full     # more cuts
    python3 tests/real_model/test_resume.py --only calls --only dropped

Every result is compared with a reply of the same server at the same time: the text of a small quantised model depends
on the machine.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from pathlib import Path

import model_server

FOLDER = model_server.DEFAULT_FOLDER
if __name__ == "__main__":
    model_server.run_in_environment(FOLDER)

from conversation import Question, Reply, Speaker, call_questions, document_questions, text_questions  # noqa: E402
import gateway  # noqa: E402
from gateway import Gateway  # noqa: E402
from oracle import (  # noqa: E402
    UNCUT_TOKENS,
    Oracle,
    conforms,
    differs_as_the_server_does,
    is_json,
    repeats_its_beginning,
)

NORMAL = ("stop", "tool_calls")
MODES = ((False, "whole body"), (True, "streamed"))


class Trial:
    """One server, one Endmark with two upstreams (prefill and prompt), and the counts."""

    def __init__(self, server: model_server.ModelServer, gateway: Gateway, full: bool):
        self.server = server
        self.gateway = gateway
        self.full = full
        self.direct = Speaker(server.base_url)
        self.prefill = Speaker(gateway.base_url("prefill"))
        self.prompt = Speaker(gateway.base_url("prompt"))
        self.oracle = Oracle(self.direct)
        self.rows: dict[str, dict[str, int]] = {}
        # The prompt and answer tokens of continuations, by the way in which the rest was requested.
        self.costs: dict[str, list[tuple[int, int]]] = {}
        self.failures: list[str] = []

    def count(self, row: str, what: str) -> None:
        self.rows.setdefault(row, {})[what] = self.rows.get(row, {}).get(what, 0) + 1

    def book(self, first: Reply, reply: Reply) -> tuple[str, bool]:
        """Records the cost of a recovery beyond its first call. Returns how the rest was requested, call by call, and whether
        the last word was rewritten."""
        shown = self.gateway.command("log", "show", reply.request or "", "--json").stdout
        rows = (json.loads(shown or "{}").get("data") or {}).get("rows") or []
        pieces = [piece for row in rows for piece in row["pieces"][1:]]
        strategies = ", ".join(piece["strategy"] for piece in pieces) or "nothing"
        extra = [reply.usage.get(name, 0) - first.usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens")]
        self.costs.setdefault(strategies, []).append((extra[0], extra[1]))
        return strategies, any(piece["seam"] and piece["seam"]["style"] == "rewritten" for piece in pieces)

    def expect(self, row: str, holds: bool, what: str, reply: Reply, *, as_what: str = "as expected") -> None:
        if holds:
            self.count(row, as_what)
            return
        self.count(row, "FAILED")
        shown = f"finish={reply.finish_reason} outcome={reply.outcome} attempts={reply.attempts} error={reply.error}"
        self.failures.append(f"[{row}] {what}\n    {shown} request={reply.request}\n    {shortened(reply.body)}")
        print(f"\nFAILED {self.failures[-1]}", flush=True)


def shortened(text: str) -> str:
    """Shortens a text for a failure message, because a small model can repeat a sentence a hundred times."""
    return repr(text) if len(text) <= 700 else f"{text[:500]!r} … {text[-150:]!r} ({len(text)} characters)"


def texts_by_prefill(trial: Trial) -> None:
    cuts = (3, 5, 7, 11, 20, 33, 40, 64) if trial.full else (20,)
    for number, question in enumerate(text_questions(), 1):
        uncut = trial.oracle.uncut(question)
        if uncut is None:
            trial.count("text, prefill", "no end of its own")
            continue
        for tokens in cuts:
            first = trial.oracle.cut(question, tokens)
            if first.finish_reason != "length":
                trial.count("text, prefill", "not cut")
                continue
            for stream, mode in MODES:
                reply = trial.prefill.ask(question, stream=stream, resume="on", max_tokens=tokens)
                name = f"prompt {number} cut at {tokens} ({mode})"
                judge_text(trial, question, name, first, uncut, reply)


def judge_text(trial: Trial, question: Question, name: str, first: Reply, uncut: Reply, reply: Reply) -> None:
    row = "text, prefill"
    trial.book(first, reply)
    whole = reply.finish_reason in NORMAL and reply.outcome == "resumed" and reply.attempts >= 1
    paid = reply.tokens > first.tokens and reply.usage.get("prompt_tokens", 0) > first.usage["prompt_tokens"]
    if whole and paid and reply.text == uncut.text:
        trial.expect(row, True, name, reply, as_what="identical")
        return
    own = trial.oracle.own_continuation(question, first.text)
    excused = whole and paid and differs_as_the_server_does(reply.text, uncut.text, own)
    wanted = f"uncut {shortened(uncut.text)}\n    own   {shortened(own)}"
    trial.expect(row, excused, f"{name}: neither of\n    {wanted}", reply, as_what="server differs alike")


def texts_by_prompt(trial: Trial) -> None:
    cuts = (7, 20, 40) if trial.full else (40,)
    for number, question in enumerate(text_questions(), 1):
        uncut = trial.oracle.uncut(question)
        if uncut is None:
            continue
        for tokens in cuts:
            first = trial.oracle.cut(question, tokens)
            if first.finish_reason != "length":
                continue
            for stream, mode in MODES if trial.full else (MODES[number % 2],):
                reply = trial.prompt.ask(question, stream=stream, resume="on", max_tokens=tokens)
                judge_asked(trial, f"prompt {number} cut at {tokens} ({mode})", mode, first, uncut, reply)


def judge_asked(trial: Trial, name: str, mode: str, first: Reply, uncut: Reply, reply: Reply) -> None:
    """Checks a prompted continuation. This model often answers something else, so a whole and a refused reply are both right."""
    row = f"text, in words ({mode})"
    strategies, rewritten = trial.book(first, reply)
    starts = reply.text.startswith(first.text)
    if reply.finish_reason == "length":
        honest = starts and reply.outcome in ("cut", "exhausted")
        untrue = f"{name}: refused, but not with its true beginning {first.text!r}"
        trial.expect(row, honest, untrue, reply, as_what="refused")
        return
    if strategies.split("@")[0].endswith(("again", "restart")):
        # A whole reply is right if it equals the server's. A stream must continue the sent text.
        complete = reply.finish_reason in NORMAL and (starts or mode != "streamed")
        trial.expect(row, complete, f"{name}: asked for again, and not whole", reply, as_what="whole, asked for again")
        return
    asks_itself = "last valid token" in reply.text
    if rewritten and mode != "streamed":
        # Nothing of the last word was sent, and the log records that it was replaced.
        begun = first.text[: len(first.text.rstrip()) - len(first.text.split()[-1])]
        right = reply.finish_reason in NORMAL and reply.text.startswith(begun) and not asks_itself
        trial.expect(row, right, f"{name}: wrong after {begun!r}", reply, as_what="whole, the last word rewritten")
        return
    right = reply.finish_reason in NORMAL and starts and not asks_itself
    right = right and not repeats_its_beginning(reply.text, first.text, uncut.text)
    trial.expect(row, right, f"{name}: silently wrong after {first.text!r}", reply, as_what="whole")


def documents(trial: Trial) -> None:
    cuts = (3, 7, 11, 18, 25, 33) if trial.full else (7, 18)
    for number, question in enumerate(document_questions(), 1):
        schema = question.options["response_format"]["json_schema"]["schema"]
        uncut = trial.oracle.uncut(question)
        if uncut is None:
            trial.count("document, prefill", "no end of its own")
            continue
        for tokens in cuts:
            first = trial.oracle.cut(question, tokens)
            if first.finish_reason != "length":
                continue
            for stream, mode in MODES:
                name = f"document {number} cut at {tokens} ({mode}) after {first.text!r}"
                # A reply whose required grammar is not closed is resumed automatically.
                reply = trial.prefill.ask(question, stream=stream, max_tokens=tokens)
                whole = reply.finish_reason == "stop" and reply.outcome == "resumed" and conforms(reply.text, schema)
                # With a grammar, the server may tokenise the cut text differently from before, and then continue differently.
                own = trial.oracle.own_continuation(question, first.text)
                alike = {uncut.text: "identical", own: "as the server itself"}.get(reply.text, "valid, other text")
                whole = whole and reply.text.startswith(first.text)
                trial.expect("document, prefill", whole, name, reply, as_what=alike)

                if trial.full:
                    reply = trial.prompt.ask(question, stream=stream, max_tokens=tokens)
                    judge_asked_document(trial, name, schema, first, reply, stream)


def judge_asked_document(trial: Trial, name: str, schema: dict, first: Reply, reply: Reply, stream: bool) -> None:
    """Checks a prompted continuation, which has no grammar that enforces the schema."""
    row = "document, prompt"
    begins = reply.text.startswith(first.text)
    if reply.finish_reason == "length":
        honest = begins and reply.outcome in ("cut", "exhausted")
        trial.expect(row, honest, f"{name}: refused, but not with its true beginning", reply, as_what="refused")
    elif not stream:
        # A body that was not sent yet may begin differently from the first call.
        trial.expect(row, conforms(reply.text, schema), name, reply, as_what="whole")
    else:
        # Streamed text can no longer be corrected, only disclosed.
        disclosed = reply.schema == "invalid" and is_json(reply.text)
        right = begins and (conforms(reply.text, schema) or disclosed)
        trial.expect(row, right, name, reply, as_what="whole, told invalid" if disclosed else "whole")


def calls(trial: Trial) -> None:
    cuts = (15, 20, 30, 40) if trial.full else (30,)
    for number, question in enumerate(call_questions(), 1):
        uncut = trial.oracle.uncut(question)
        if uncut is None or not uncut.arguments:
            trial.count("tool call, prefill", "no call of its own")
            continue
        for tokens in cuts:
            for stream, mode in MODES:
                reply = trial.prefill.ask(question, stream=stream, max_tokens=tokens)
                whole = reply.finish_reason == "tool_calls" and reply.outcome == "resumed"
                same = whole and reply.arguments == uncut.arguments
                name = f"call {number} cut at {tokens} ({mode}): uncut {uncut.arguments!r}"
                trial.expect("tool call, prefill", same, name, reply, as_what="identical")


def clients_decide(trial: Trial) -> None:
    """`auto` respects a limit on plain text, `warn` never requests the rest, and a client's stop sequence ends a reply."""
    question = text_questions()[0]
    trial.direct.warm(question)
    for stream, mode in MODES:
        reply = trial.prefill.ask(question, stream=stream, max_tokens=1)
        kept = reply.finish_reason == "length" and reply.tokens == 1 and reply.outcome == "cut"
        trial.expect("auto", kept, f"one token asked for, one expected ({mode})", reply)

        before = trial.server.generated_tokens()
        reply = trial.prefill.ask(question, stream=stream, resume="warn", max_tokens=20)
        spent = trial.server.generated_tokens() - before
        silent = reply.finish_reason == "length" and reply.outcome == "cut" and reply.attempts == 0
        trial.expect("warn", silent and spent == reply.tokens == 20, f"only disclosed ({mode}), spent {spent}", reply)

        plain = trial.direct.ask(question, stop=["process"], max_tokens=UNCUT_TOKENS)
        reply = trial.prefill.ask(question, stream=stream, resume="on", stop=["process"], max_tokens=UNCUT_TOKENS)
        ended = reply.finish_reason == "stop" and reply.text == plain.text and reply.outcome in (None, "whole")
        trial.expect("stop word", ended, f"ends before the stop word ({mode}): {plain.text!r}", reply)


def dropped(trial: Trial) -> None:
    """The server is killed during a reply, and returns while Endmark requests the rest."""
    question = text_questions()[0]
    uncut = trial.oracle.uncut(question)
    for after in (10, 30, 60) if trial.full else (30,):
        trial.direct.warm(question)
        pieces: list[str] = []
        returning: list[threading.Thread] = []

        def crash(so_far: Reply) -> None:
            pieces.append(so_far.text)
            if len(pieces) == after:
                trial.server.kill()
                returning.append(threading.Thread(target=trial.server.start))
                returning[0].start()

        reply = trial.prefill.ask(question, stream=True, on_text=crash, max_tokens=UNCUT_TOKENS)
        for thread in returning:
            thread.join()
        received = pieces[after - 1] if len(pieces) >= after else ""
        whole = bool(received) and reply.finish_reason == "stop" and reply.outcome == "resumed"
        same = "identical" if uncut and reply.text == uncut.text else "whole, other text"
        begins = reply.text.startswith(received)
        trial.expect("server killed", whole and begins, f"after {after} pieces {received!r}", reply, as_what=same)


SUBJECTS = {
    "prefill": texts_by_prefill,
    "prompt": texts_by_prompt,
    "documents": documents,
    "calls": calls,
    "decide": clients_decide,
    "dropped": dropped,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="more cuts, every mode")
    parser.add_argument("--only", action="append", choices=SUBJECTS, help="only this subject; may be repeated")
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    arguments = parser.parse_args()
    if arguments.program:
        gateway.program = lambda: arguments.program.resolve()
    # SIGTERM must also stop the started processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    upstream = {"format": "openai"}
    with model_server.ModelServer(model_server.install(FOLDER), FOLDER) as server:
        upstreams = {
            "prefill": {**upstream, "base_url": server.base_url, "prefill": "auto"},
            "prompt": {**upstream, "base_url": server.base_url, "prefill": "never"},
        }
        # Limit continuations to the tokens of an uncut reply, because a small model can write without end.
        with Gateway(FOLDER / "test", upstreams, {"mode": "auto", "continuation_tokens": UNCUT_TOKENS}) as endmark:
            trial = Trial(server, endmark, arguments.full)
            for subject in arguments.only or SUBJECTS:
                started = time.monotonic()
                SUBJECTS[subject](trial)
                print(f"{subject}: {time.monotonic() - started:.0f} s", flush=True)
    return report(trial, time.monotonic() - begun)


def report(trial: Trial, seconds: float) -> int:
    print(f"\n{'what was cut and how it was resumed':<36}  replies")
    for row, counts in trial.rows.items():
        print(f"{row:<36}  {', '.join(f'{count} {what}' for what, count in counts.items())}")
    if trial.costs:
        print(f"\n{'how the rest was asked for':<36}  recoveries, extra tokens of prompts, of answers (means)")
    for strategies, costs in trial.costs.items():
        means = [sum(cost[part] for cost in costs) / len(costs) for part in (0, 1)]
        print(f"{strategies:<36}  {len(costs)}, {means[0]:.0f}, {means[1]:.0f}")
    print(f"\n{len(trial.failures)} failed, {seconds:.0f} s")
    return 1 if trial.failures or not trial.rows else 0


if __name__ == "__main__":
    sys.exit(main())
