"""Recovers cut replies with any client: detects cuts, requests the rest, joins, validates and corrects."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args

from . import _native
from ._core import Stateful, call, replace_surrogates
from ._errors import EndmarkError, InvalidInput, InvalidReply, NotResumed, ResumeExhausted
from ._texts import Format, Seam

MAX_RESUME_ATTEMPTS = 2
"""The default maximum number of continuation requests."""
MAX_CORRECTION_ATTEMPTS = 1
"""The default maximum number of correction requests."""

Join = Literal["prompted", "exact", "in_message", "shown", "cut", "token", "unknown"]
"""How a continuation was requested: `prompted` with `Ask.prompt`; `exact` if the server certainly continued the same message
(prefill); `cut`, `token` or `unknown` if only the text can show where it continues."""


StopMeaning = Literal[
    "normal", "sequence", "limit", "refused", "paused", "repetition", "failed", "broken_off", "not_ended", "unknown"
]
"""The meaning of a stop reason. `broken_off`: the server ended the reply with an error. `failed`: with a permanent error."""


def stop_meaning(stop: str | None) -> StopMeaning:
    """Returns the meaning of a provider's stop reason. Ignores case and separators.

    >>> stop_meaning("MAX_TOKENS"), stop_meaning("guardrail_intervened"), stop_meaning("moon_phase"), stop_meaning(None)
    ('limit', 'refused', 'unknown', 'not_ended')
    """
    meaning: StopMeaning = call("stop_meaning", stop=stop)
    return meaning


@dataclass(frozen=True)
class Reply:
    """One reply of a model, as it was received."""

    text: str
    stop: str | None = None
    """The provider's stop reason, such as `length`, `max_tokens`, `stop` or `end_turn`. None means that the stream ended without one and
    counts as dropped. An unknown stop reason raises `NotResumed`."""
    output_tokens: int | None = None
    limit: int | None = None
    """The output limit of the request, in tokens. A reply that reaches it counts as cut, whatever its stop reason."""
    reasoned: bool = False
    """Whether the model reasoned. A reply without text then counts as cut, and not as empty."""
    ending: Literal["clean", "dropped", "stalled", "upstream_error"] | None = None
    join: Join = "prompted"
    """For a continuation: how it was requested."""

    def _options(self) -> dict[str, Any]:
        named = ["stop", "output_tokens", "limit", "reasoned", "ending"]
        return {name: value for name in named if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class Ask:
    """A request for a continuation."""

    attempt: int
    """From 1."""
    cut: str
    """The kind of cut: `limit`, `dropped`, `format`, `marker`, `empty` or `window`."""
    wanted: Literal["rest", "again", "restart"]
    """`rest` requests the rest of `so_far`. `again` and `restart` repeat the first request for the whole reply; `again` follows a reply
    without text and needs a higher output limit."""
    so_far: str
    """The text received so far."""
    shown: int
    """The number of code points of `so_far` to show to the model as its own reply."""
    prompt: str
    """The message that asks for the rest."""

    @property
    def shown_text(self) -> str:
        return self.so_far[: self.shown]

    def messages(self, history: Iterable[Any]) -> list[Any]:
        """Returns the messages to send, in the format of Chat Completions: the first request, the shown text and the prompt."""
        messages: list[Any] = list(history)
        if self.wanted == "rest":
            messages.append({"role": "assistant", "content": self.shown_text})
            messages.append({"role": "user", "content": self.prompt})
        return messages


@dataclass(frozen=True)
class Correction:
    """A request for a corrected document."""

    attempt: int
    prompt: str
    """The message that lists the problems and asks for the whole document."""
    text: str
    """The text to show to the model as its own reply."""

    def messages(self, history: Iterable[Any]) -> list[Any]:
        """Returns the messages to send, in the format of Chat Completions."""
        asked = [{"role": "assistant", "content": self.text}, {"role": "user", "content": self.prompt}]
        return [*history, *asked]


Request = Union[Ask, Correction]
"""The argument of a client."""


FailureKind = Literal["rejected", "lost", "final", "budget"]


class AskFailed(Exception):
    """A request brought no answer. Clients raise it; any other exception ends the recovery and reaches the caller.

    `kind` is `rejected` (this kind of request was refused, but another one may work), `lost` (no answer arrived; counts as an attempt),
    `final` (refused permanently) or `budget`.
    """

    def __init__(self, message: str, kind: FailureKind = "lost") -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Outcome:
    """A complete reply, and how it was completed."""

    text: str
    result: Literal["whole", "resumed", "restarted", "corrected"]
    attempts: int
    corrections: int
    cut: str | None
    """The kind of cut of the first reply, if it was cut."""
    disclosed: bool
    """Whether the reply was dropped or reached its limit, but is complete nevertheless."""
    seams: tuple[Seam, ...]

    def json(self) -> Any:
        """Parses the text as JSON."""
        return json.loads(self.text, strict=False)


class Log:
    """Writes one row for each cut reply into the table `partial_completion_log` of a SQLite file.

    >>> log = Log("replies.db")  # doctest: +SKIP

    The file may also be used by a gateway. Several threads and processes may write to it.
    """

    def __init__(self, path: str) -> None:
        import sqlite3

        self._connection = sqlite3.connect(path, timeout=30, check_same_thread=False, isolation_level=None)
        self._lock = threading.Lock()
        self._connection.executescript(_native.LOG_TABLE)

    def write(self, row: Mapping[str, Any], task_id: str, turn_number: int) -> None:
        values = {**row, "task_id": replace_surrogates(task_id), "turn_number": turn_number}
        names = list(values)
        sql = f"INSERT INTO partial_completion_log ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        with self._lock:
            self._connection.execute(sql, [values[name] for name in names])

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Pipeline:
    """Completes replies in three stages, always in this order: truncation resume, schema validation, formatting correction.

    >>> pipeline = Pipeline(schema={"type": "object", "required": ["sum"]})
    >>> first = Reply('{"sum": [1, 2,', "length")
    >>> pipeline.run(lambda ask: Reply(' 3]}', "stop"), first).text
    '{"sum": [1, 2, 3]}'

    `format` is the required format of a reply. With None, only the stop reason and the end of the stream show whether it is cut.
    `schema` is a JSON Schema; external references are not fetched. `restart` controls whether the last attempt may generate the reply
    again. `on_ambiguous="best"` uses the most likely of several seams. Any number of threads can share a pipeline.
    """

    def __init__(
        self,
        *,
        format: Format | None = "json",
        marker: str | None = None,
        schema: Mapping[str, Any] | None = None,
        max_attempts: int = MAX_RESUME_ATTEMPTS,
        max_corrections: int = MAX_CORRECTION_ATTEMPTS,
        restart: Literal["any", "same", "off"] = "any",
        on_ambiguous: Literal["stop", "best"] = "stop",
        prompt: str | None = None,
        log: Log | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "format": format, "marker": marker, "schema": schema, "max_attempts": max_attempts,
            "max_corrections": max_corrections, "restart": restart, "on_ambiguous": on_ambiguous, "prompt": prompt,
            "offsets": "code_points",
        }  # fmt: skip
        self._log = log

    def run(
        self, ask: Callable[[Request], Reply], first: Reply, *, task_id: str = "", turn_number: int = 1,
        is_sent: bool = False,
    ) -> Outcome:
        """Completes and validates a reply. `ask` is called for each continuation and correction.

        `is_sent` means that a client already has the reply, so that it can only be extended. Raises `ResumeExhausted`, `NotResumed` or
        `InvalidReply`, and any exception of `ask` except `AskFailed`.
        """
        steps = self.steps(first, task_id=task_id, turn_number=turn_number, is_sent=is_sent)
        try:
            step = next(steps)
            while not isinstance(step, Outcome):
                try:
                    answer: Reply | AskFailed = ask(step)
                except AskFailed as failure:
                    answer = failure
                step = steps.send(answer)
            return step
        finally:
            steps.close()

    async def run_async(
        self, ask: Callable[[Request], Awaitable[Reply]], first: Reply, *, task_id: str = "", turn_number: int = 1,
        is_sent: bool = False,
    ) -> Outcome:
        """Does the same as `run` with an asynchronous client. A cancelled task also writes its row to the log."""
        steps = self.steps(first, task_id=task_id, turn_number=turn_number, is_sent=is_sent)
        try:
            step = next(steps)
            while not isinstance(step, Outcome):
                try:
                    asked = ask(step)
                    if not inspect.isawaitable(asked):
                        raise InvalidInput(f"`ask` is not async: it returned {_describe_type(asked)}", "invalid_reply")
                    answer: Reply | AskFailed = await asked
                except AskFailed as failure:
                    answer = failure
                step = steps.send(answer)
            return step
        finally:
            steps.close()

    def steps(
        self, first: Reply, *, task_id: str = "", turn_number: int = 1, is_sent: bool = False
    ) -> Generator[Request | Outcome, Reply | AskFailed, None]:
        """Yields one request after another and receives the answers; yields the outcome last. If closed early, logs that the caller left."""
        _check_reply("first", first)
        recovery = Stateful("recovery", first.text, reply=first._options(), is_sent=is_sent, **self._options)
        step = recovery.call("next")
        try:
            while (kind := step.pop("step")) != "done":
                request: Request = Ask(**step) if kind == "resume" else Correction(**step)
                answer = yield request
                _check_answer(answer)
                if isinstance(answer, AskFailed):
                    step = recovery.call("failed", str(answer), kind=answer.kind)
                elif kind == "resume":
                    step = recovery.call("resumed", answer.text, reply=answer._options(), join=answer.join)
                else:
                    step = recovery.call("corrected", answer.text, **answer._options())
        except (GeneratorExit, EndmarkError):
            while step.get("step") != "done":
                step = recovery.call("failed", "the caller left", kind="final")
            self._write_log(step["log"], task_id, turn_number)
            raise
        self._write_log(step["log"], task_id, turn_number)
        yield _to_outcome(step, first.stop)

    def _write_log(self, row: Mapping[str, Any] | None, task_id: str, turn_number: int) -> None:
        if self._log is not None and row is not None:
            self._log.write(row, task_id, turn_number)


def _check_answer(answer: Reply | AskFailed) -> None:
    if not isinstance(answer, AskFailed):
        _check_reply("ask", answer)
    elif answer.kind not in get_args(FailureKind):
        raise InvalidInput(
            f"`ask` raised an AskFailed of the unknown `kind` {answer.kind!r}: use {', '.join(get_args(FailureKind))}", "invalid_reply"
        )


def _check_reply(argument: str, reply: Any) -> None:
    """Raises `InvalidInput` with the name of the argument if the value is not a reply."""
    if inspect.iscoroutine(reply):
        reply.close()
        raise InvalidInput(f"`{argument}` is async: await it, or use the async function", "invalid_reply")
    verb = "returned" if argument == "ask" else "is"
    if not isinstance(reply, Reply):
        raise InvalidInput(f"`{argument}` {verb} {_describe_type(reply)}, not a Reply", "invalid_reply")
    text: Any = reply.text
    if not isinstance(text, (str, bytes)):
        raise InvalidInput(f"`{argument}` {verb} a Reply whose `text` is {_describe_type(text)}, not a str", "invalid_reply")


def _describe_type(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _to_outcome(done: dict[str, Any], stop: str | None) -> Outcome:
    exhausted = done["exhausted"]
    if exhausted is not None:
        raise ResumeExhausted(
            exhausted["reason"], exhausted["cause"], exhausted["attempts"], exhausted["merged_raw"],
            exhausted["verified_len"], done["text"], exhausted["best"],
        )  # fmt: skip
    if done["result"] == "passed":
        raise NotResumed(done["text"], done["passed"], stop)
    if done["result"] == "invalid":
        raise InvalidReply(done["text"], done["problems"])
    seams = tuple(Seam(**seam) for seam in done["seams"])
    named = ["text", "result", "attempts", "corrections", "cut", "disclosed"]
    return Outcome(**{name: done[name] for name in named}, seams=seams)


def resume_if_truncated(
    ask: Callable[[Ask], Reply], first: Reply, format: Format | None = "json", *, marker: str | None = None,
    max_attempts: int = MAX_RESUME_ATTEMPTS, restart: Literal["any", "same", "off"] = "any", prompt: str | None = None,
    log: Log | None = None, task_id: str = "", turn_number: int = 1, is_sent: bool = False,
) -> Outcome:  # fmt: skip
    """Requests the rest of a cut reply, and joins it.

    >>> first = Reply('{"files": ["a.rs", "b', "max_tokens")
    >>> resume_if_truncated(lambda ask: Reply('"b.rs"]}', "end_turn"), first).text
    '{"files": ["a.rs", "b.rs"]}'

    Raises `ResumeExhausted` if the reply stays cut, `NotResumed` if the provider refused it, and `InvalidReply` if it is not cut but
    invalid. With `format=None`, the text has no grammar and is resumed if its `stop` or the end of its stream shows a cut.
    """
    pipeline = Pipeline(
        format=format, marker=marker, max_attempts=max_attempts, max_corrections=0, restart=restart, prompt=prompt, log=log
    )
    return pipeline.run(_refuse_corrections(ask), first, task_id=task_id, turn_number=turn_number, is_sent=is_sent)


async def resume_if_truncated_async(
    ask: Callable[[Ask], Awaitable[Reply]], first: Reply, format: Format | None = "json", *, marker: str | None = None,
    max_attempts: int = MAX_RESUME_ATTEMPTS, restart: Literal["any", "same", "off"] = "any", prompt: str | None = None,
    log: Log | None = None, task_id: str = "", turn_number: int = 1, is_sent: bool = False,
) -> Outcome:  # fmt: skip
    """Does the same as `resume_if_truncated` with an asynchronous client."""
    pipeline = Pipeline(
        format=format, marker=marker, max_attempts=max_attempts, max_corrections=0, restart=restart, prompt=prompt, log=log
    )
    return await pipeline.run_async(_refuse_corrections(ask), first, task_id=task_id, turn_number=turn_number, is_sent=is_sent)


def _refuse_corrections(ask: Callable[[Ask], Any]) -> Callable[[Request], Any]:
    def answer(request: Request) -> Any:
        if isinstance(request, Ask):
            return ask(request)
        raise AskFailed("no correction is asked for", "final")

    return answer
