"""Sends the same cut requests directly and through Endmark. quickstart.py starts it in the model's environment."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import threading
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Callable

import gateway as gateway_module
from columns import CUT, SEAM, side_by_side
from conversation import Question, Reply, Speaker, call_questions, document_questions, text_questions
from gateway import Gateway
from model_server import DEFAULT_FOLDER, MODEL_NAME, ModelServer, SetUpError, install

PIECES_BEFORE_CRASH = 30
# Dollars per million tokens. The model is free; these are the prices of small hosted ones.
PRICES = {"input": 0.10, "output": 0.40}


@dataclass
class Pair:
    title: str
    direct: Reply
    through: Reply
    # The text that had arrived when the direct reply broke off.
    beginning: str

    @property
    def problem(self) -> str | None:
        if self.through.error:
            return self.through.error
        if self.through.finish_reason not in ("stop", "tool_calls"):
            return f"the reply through Endmark is not whole (finish_reason {self.through.finish_reason})"
        if not self.through.body.startswith(self.beginning):
            return "the reply through Endmark does not begin with what the cut reply had"
        return None

    def show(self) -> None:
        ended = self.direct.error.split(":")[0] if self.direct.error else f"finish_reason: {self.direct.finish_reason}"
        seam = len(self.beginning)
        mended = self.through.body[:seam] + SEAM + self.through.body[seam:]
        whole = f"through Endmark — finish_reason: {self.through.finish_reason}, {self.through.outcome}"
        print(f"\n■ {self.title}\n")
        print(side_by_side((f"directly — {ended}", self.direct.body + CUT), (whole, mended)), flush=True)
        if self.problem:
            print(f"\nPROBLEM: {self.problem}", file=sys.stderr)


class Stage:
    def __init__(self, server: ModelServer, gateway: Gateway):
        self.server = server
        self.direct = Speaker(server.base_url)
        self.through = Speaker(gateway.base_url())

    def cut(
        self, title: str, question: Question, tokens: int, *, stream: bool = False, resume: str | None = None
    ) -> Pair:
        self.direct.warm(question)
        direct = self.direct.ask(question, stream=stream, max_tokens=tokens)
        through = self.through.ask(question, stream=stream, resume=resume, max_tokens=tokens)
        return Pair(title, direct, through, direct.body)

    def killed(self, title: str, question: Question) -> Pair:
        broken, direct = self._broken(self.direct, question, self.server.kill)
        returning = threading.Thread(target=self.server.start)

        def crash_and_return() -> None:
            self.server.kill()
            returning.start()

        _, through = self._broken(self.through, question, crash_and_return)
        if returning.ident:
            returning.join()
        return Pair(title, direct, through, broken)

    def _broken(self, speaker: Speaker, question: Question, crash: Callable[[], None]) -> tuple[str, Reply]:
        """Sends a request to a freshly started server, so that both sides start equally, and crashes it during the reply."""
        self.server.stop()
        self.server.start()
        self.direct.warm(question)
        arrived: list[str] = []

        def watch(so_far: Reply) -> None:
            arrived.append(so_far.text)
            if len(arrived) == PIECES_BEFORE_CRASH:
                crash()

        reply = speaker.ask(question, stream=True, on_text=watch, max_tokens=400)
        return arrived[min(PIECES_BEFORE_CRASH, len(arrived)) - 1] if arrived else "", reply


def perform(stage: Stage) -> list[Pair]:
    texts, document, call = text_questions(), document_questions()[0], call_questions()[0]
    acts = [
        lambda: stage.cut("A text, cut at 40 tokens", texts[0], 40, resume="on"),
        lambda: stage.cut("A streamed text, cut at 40 tokens", texts[1], 40, stream=True, resume="on"),
        lambda: stage.cut("JSON with a schema, cut at 18 tokens", document, 18),
        lambda: stage.cut("A tool call's arguments, cut at 30 tokens", call, 30),
        lambda: stage.killed("A server that is killed in the middle of a stream, and comes back", texts[0]),
    ]
    pairs = []
    for act in acts:
        pairs.append(act())
        pairs[-1].show()
    return pairs


def show_ledger(gateway: Gateway, pairs: list[Pair]) -> None:
    print("\n■ What Endmark recorded\n\n$ endmark log")
    print(gateway.command("log").stdout.rstrip())
    rows = {row["request_id"]: row for row in json.loads(gateway.command("log", "--json").stdout)["data"]["rows"]}
    print("\n■ Tokens of the further calls that Endmark made (endmark log --json)\n")
    print(f"{'generated':>9} {'read':>6}")
    for pair in pairs:
        row = rows.get(pair.through.request, {})
        print(f"{row.get('extra_output_tokens', '?'):>9} {row.get('extra_prompt_tokens', '?'):>6}  {pair.title}")


def show_bill(gateway: Gateway, pairs: list[Pair]) -> None:
    """Shows tokens and dollars without Endmark, from the replies, and with Endmark, from `endmark usage`."""
    counted = [pair.direct.usage for pair in pairs if pair.direct.usage]
    prompt = sum(usage["prompt_tokens"] for usage in counted)
    completion = sum(usage["completion_tokens"] for usage in counted)
    dollars = (prompt * Decimal(str(PRICES["input"])) + completion * Decimal(str(PRICES["output"]))) / 1_000_000
    usage = json.loads(gateway.command("usage", "--json").stdout)["data"]["total"]
    uncounted = len(pairs) - len(counted)
    cut = f"{len(pairs)} cut replies" + (f", without {uncounted} that broke off uncounted" if uncounted else "")
    whole = f"{sum(pair.problem is None for pair in pairs)} whole replies, in {usage['calls']} calls"
    if usage["estimated_calls"]:
        whole += f", {usage['estimated_calls']} of them estimated"
    print(f"\n■ What it cost, at ${PRICES['input']:.2f} and ${PRICES['output']:.2f} per million tokens (endmark usage --json)")
    print("  Every reply here was cut on purpose, by a limit that is too small: in ordinary use most replies need no further call.\n")
    print(f"{'':<17} {'read':>6} {'generated':>9} {'US dollars':>11}")
    print(f"{'without Endmark':<17} {prompt:>6} {completion:>9} {dollars:>11.6f}  {cut}")
    print(
        f"{'with Endmark':<17} {usage['prompt_tokens']:>6} {usage['completion_tokens']:>9} {Decimal(usage['usd_at_least']):>11.6f}  {whole}",
        flush=True,
    )


def show_how_to_go_on(server: ModelServer, gateway: Gateway, is_kept: bool) -> None:
    stop = f"kill {gateway.process.pid} {server.process.pid}" if is_kept else "Ctrl-C"
    print(f"""
The model and Endmark are running. Point any client at Endmark:

  export OPENAI_BASE_URL={gateway.base_url()} OPENAI_API_KEY=not-needed
  curl {gateway.base_url()}/chat/completions -H 'content-type: application/json' -H 'x-endmark-resume: on' \\
    -d '{{"model":"{MODEL_NAME}","max_tokens":40,"messages":[{{"role":"user","content":"What is photosynthesis?"}}]}}'

To stop:   {stop}
The log:   {gateway.program} log --config {gateway.configuration}
The page:  {gateway.origin}/endmark/""", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, help="the built endmark; default: the release build")
    parser.add_argument("--keep", action="store_true", help="leave the model and Endmark running in the background")
    parser.add_argument("--begun", type=float, default=time.monotonic(), help="when the quick start began")
    arguments = parser.parse_args()
    # SIGTERM also stops the started processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def say(words: str) -> None:
        print(f"[{time.monotonic() - arguments.begun:4.0f} s] {words}", flush=True)

    with contextlib.ExitStack() as running:
        server = running.enter_context(ModelServer(install(), DEFAULT_FOLDER))
        upstream = {"format": "openai", "base_url": server.base_url}
        folder = DEFAULT_FOLDER / "quickstart"
        prices = {MODEL_NAME: PRICES}
        if arguments.program:
            gateway_module.program = lambda: arguments.program
        gateway = running.enter_context(Gateway(folder, {"local": upstream}, {"mode": "auto"}, prices))
        say(f"the model answers at {server.base_url}, Endmark at {gateway.base_url()}")
        pairs = perform(Stage(server, gateway))
        show_ledger(gateway, pairs)
        show_bill(gateway, pairs)
        whole = sum(pair.problem is None for pair in pairs)
        print()
        say(f"{whole} of {len(pairs)} cut replies are whole through Endmark")
        if arguments.keep:
            show_how_to_go_on(server, gateway, is_kept=True)
            running.pop_all()
        elif sys.stdin.isatty() and sys.stdout.isatty():
            show_how_to_go_on(server, gateway, is_kept=False)
            with contextlib.suppress(KeyboardInterrupt):
                gateway.process.wait()
            print()
        else:
            say(f"stopped, since there is no terminal; `scripts/quickstart --keep` leaves the page at {gateway.origin}/endmark/ open")
    return 0 if whole == len(pairs) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
