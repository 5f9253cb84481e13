"""Code that all framework integrations share: recovery of replies with tool calls, errors, budgets and capped results."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ._context import Admitted, Meter, Outputs, Tokens, cap, count, read_tool
from ._core import call
from ._errors import EndmarkError, InvalidReply, NotAdmitted
from ._recovery import Ask, AskFailed, Log, Outcome, Pipeline, Reply, stop_meaning

CLOSING = "The token budget is used up. Summarise your findings with the data that you have. You cannot use tools any more."
"""The message that the closing call of a budget adds."""
READ_TOOL: str = read_tool()["name"]
REPEATED_CALL = "the answer makes a tool call instead of completing one"


@dataclass(frozen=True)
class Call:
    """A tool call as it was received."""

    name: str
    args: str
    """The arguments as JSON text, which may be cut."""


@dataclass(frozen=True)
class ReceivedReply:
    """A reply that a framework received."""

    text: str
    calls: tuple[Call, ...]
    stop: str | None
    """The provider's stop reason; None if it sent none."""
    output_tokens: int | None
    raw: Any
    """The framework's own object."""

    def written_text(self) -> str:
        """Returns everything that the model wrote."""
        return self.text + "".join(call.args for call in self.calls)


@dataclass(frozen=True)
class Continuation:
    """A request to make. If `is_rest`, it adds the shown text as the model's message and the prompt, and has no tools. Otherwise it
    repeats the first request."""

    is_rest: bool
    shown_text: str
    prompt: str


@dataclass(frozen=True)
class RecoveredReply:
    """A cut reply after its recovery."""

    outcome: Outcome
    args: str | None
    """The whole arguments of the last tool call, if that was cut. Otherwise None, and the outcome has the whole text."""
    last: ReceivedReply
    """The last answer. If the text was cut, the tool calls of this answer belong to the reply."""
    answers: tuple[ReceivedReply, ...]

    def disclosure(self) -> dict[str, Any]:
        return disclosure(self.outcome)


def disclosure(outcome: Outcome) -> dict[str, Any]:
    """Returns the metadata of a recovered reply."""
    return {"outcome": outcome.result, "attempts": outcome.attempts, "cut": outcome.cut}


class Settings(Protocol):
    """The settings with which an integration recovers replies."""

    max_attempts: int
    log: Log | None
    task_id: str


def recovery_steps(
    first: ReceivedReply, settings: Settings, *, is_json: bool, turn_number: int, is_sent: bool = False
) -> Generator[Continuation, ReceivedReply | AskFailed, RecoveredReply | None]:
    """Yields one continuation request after another and receives the answers. Returns None if nothing in the reply is cut.

    Raises `ResumeExhausted`, `InvalidReply` for a cut reply that no continuation could make valid, and `NotResumed` if the provider refused
    the reply or its stop reason is unknown. A malformed reply that is not cut is left to the framework, which validates it. `is_sent` means
    that a client already has the reply, so that it can only be extended.
    """
    cut = _cut_call(first)
    if cut is None and first.calls:
        # The reply ends with complete tool calls.
        return None
    if cut is not None:
        reply = Reply(cut.args, first.stop or "length", reasoned=not cut.args)
    else:
        reply = Reply(first.text, first.stop, output_tokens=first.output_tokens, reasoned=not first.text)
    pipeline = Pipeline(
        format="json" if cut is not None or is_json else None, max_attempts=settings.max_attempts, max_corrections=0, restart="off",
        log=settings.log,
    )  # fmt: skip
    answers: list[ReceivedReply] = []
    steps = pipeline.steps(reply, task_id=settings.task_id, turn_number=turn_number, is_sent=is_sent)
    try:
        step = next(steps)
        while not isinstance(step, Outcome):
            asked = cast(Ask, step)
            shown = asked.shown_text if cut is None else shown_arguments(cut.name, asked.shown_text)
            received = yield Continuation(asked.wanted == "rest", shown, asked.prompt)
            answer: Reply | AskFailed
            if isinstance(received, AskFailed):
                answer = received
            else:
                answers.append(received)
                answer = _continuation_reply(first, cut, asked, received)
            step = steps.send(answer)
    except InvalidReply:
        if first.stop is None or is_cut_stop(first.stop):
            raise
        return None
    finally:
        steps.close()
    if not answers:
        return None
    if cut is not None and not isinstance(step.json(), dict):
        raise EndmarkError(f"the arguments of `{cut.name}` are not an object", "invalid")
    return RecoveredReply(step, step.text if cut is not None else None, answers[-1], tuple(answers))


async def recover_async(
    first: ReceivedReply, ask: Callable[[Continuation], Awaitable[ReceivedReply]], settings: Settings, *, is_json: bool, turn_number: int,
    is_sent: bool = False,
) -> RecoveredReply | None:
    """Runs the recovery with an asynchronous client."""
    steps = recovery_steps(first, settings, is_json=is_json, turn_number=turn_number, is_sent=is_sent)
    try:
        asked = next(steps)
        while True:
            answer: ReceivedReply | AskFailed
            try:
                answer = await ask(asked)
            except Exception as error:
                answer = convert_error(error)
            asked = steps.send(answer)
    except StopIteration as done:
        return cast("RecoveredReply | None", done.value)
    finally:
        steps.close()


def recover(
    first: ReceivedReply, ask: Callable[[Continuation], ReceivedReply], settings: Settings, *, is_json: bool, turn_number: int,
    is_sent: bool = False,
) -> RecoveredReply | None:
    """Runs the recovery with a synchronous client."""
    steps = recovery_steps(first, settings, is_json=is_json, turn_number=turn_number, is_sent=is_sent)
    try:
        asked = next(steps)
        while True:
            answer: ReceivedReply | AskFailed
            try:
                answer = ask(asked)
            except Exception as error:
                answer = convert_error(error)
            asked = steps.send(answer)
    except StopIteration as done:
        return cast("RecoveredReply | None", done.value)
    finally:
        steps.close()


def convert_error(error: Exception) -> AskFailed:
    """Converts an error of a client. Its kind is `final` if the provider refuses the request itself, for example a bad key with
    status 401. The exception that ends the recovery contains the received part."""
    if isinstance(error, AskFailed):
        return error
    return AskFailed(str(error), "budget" if isinstance(error, NotAdmitted) else call("ask_failure", status=_http_status(error)))


def _http_status(error: BaseException) -> int | None:
    """Returns the HTTP status in the error of a client library, or in its cause."""
    cause: BaseException | None = error
    while cause is not None:
        response: Any = getattr(cause, "response", None)
        if isinstance(response, Mapping):
            # The format of botocore.
            metadata: Any = cast("Mapping[str, Any]", response).get("ResponseMetadata")
            of_response: Any = cast("Mapping[str, Any]", metadata or {}).get("HTTPStatusCode")
        else:
            of_response = getattr(response, "status_code", None)
        found: list[Any] = [getattr(cause, "status_code", None), getattr(cause, "code", None), of_response]
        for status in found:
            if isinstance(status, int) and 100 <= status < 600:
                return status
        cause = cause.__cause__
    return None


def is_cut_stop(stop: str | None) -> bool:
    """Whether a stop reason means that the reply is cut, such as an output limit. False without a stop reason."""
    return stop is not None and stop_meaning(stop) in ("limit", "repetition", "broken_off", "not_ended")


def shown_arguments(name: str, args: str) -> str:
    """Returns the cut arguments of a tool call as text for the model, because a model can continue a text but not a call."""
    return f"Arguments of the call to `{name}`, as JSON:\n{args}"


def _cut_call(received: ReceivedReply) -> Call | None:
    """Returns the last tool call if its arguments are cut. A complete call without arguments may have an empty text."""
    if not received.calls:
        return None
    last = received.calls[-1]
    if not last.args and not (received.stop is None or is_cut_stop(received.stop)):
        return None
    return None if is_object(last.args) else last


def is_object(args: str) -> bool:
    try:
        return isinstance(json.loads(args, strict=False), dict)
    except ValueError:
        return False


def _continuation_reply(first: ReceivedReply, cut: Call | None, asked: Ask, received: ReceivedReply) -> Reply | AskFailed:
    """Returns the part of an answer that continues the cut text or arguments. In a repeated reply, that is the last tool call."""
    text = received.text
    if cut is None:
        if received.calls and (_cut_call(received) is not None or is_cut_stop(received.stop)):
            return AskFailed("a tool call in the answer is cut")
    elif asked.wanted == "rest":
        if received.calls:
            return AskFailed(REPEATED_CALL)
    elif [call.name for call in received.calls] != [call.name for call in first.calls]:
        return AskFailed("the answer does not make the same tool calls again")
    else:
        text = received.calls[-1].args
    return Reply(text, received.stop, output_tokens=received.output_tokens)


@dataclass
class Budget:
    """Holds and settles the calls of an integration in the budget of a meter, if there is one."""

    meter: Meter | None
    assume_output_tokens: int = 4_096

    def admit(self, model: str, body: Any, limit: int | None, *, is_continuation: bool) -> Admitted | None:
        """Holds the maximum cost of a call."""
        if self.meter is None:
            return None
        tokens = count(body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str), model).tokens
        return self.meter.before_call(
            model, prompt_tokens=tokens, max_output_tokens=limit or self.assume_output_tokens, is_continuation=is_continuation
        )

    def settle(self, admitted: Admitted | None, tokens: Tokens | None, text: str | None = None) -> None:
        """Settles the cost of a call by its tokens, or else by its text. A call without both was not answered."""
        if self.meter is None or admitted is None:
            return
        self.meter.after_call(admitted, tokens, text=text)


class ToolResults:
    """Caps tool results, and reads their omitted parts. `outputs` keeps the full values, by default in memory."""

    def __init__(self, max_chars: int, outputs: Outputs | None) -> None:
        self.max_chars = max_chars
        self.outputs = outputs if outputs is not None else Outputs()

    def shorten(self, text: str) -> str:
        return cap(text, max_chars=self.max_chars, outputs=self.outputs).text

    def shorten_value(self, value: Any) -> Any:
        """Shortens a text or a JSON value to the limit. Returns any other value unchanged."""
        if isinstance(value, str):
            return self.shorten(value)
        try:
            written_text = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            return value
        return self.shorten(written_text) if len(written_text) > self.max_chars else value

    def read(self, arguments: Mapping[str, Any] | str) -> str:
        """Answers a call of `endmark_read`."""
        text, is_read = self.read_part(arguments)
        return text if is_read else f"Error: {text}"

    def read_part(self, arguments: Mapping[str, Any] | str) -> tuple[str, bool]:
        """Answers a call of `endmark_read`. Also returns whether the call was valid, because the model can correct an invalid one."""
        given: Any = arguments
        if isinstance(arguments, str):
            try:
                given = json.loads(arguments or "{}")
            except ValueError:
                given = None
        if not isinstance(given, Mapping):
            return "the arguments are not a JSON object", False
        wanted = {name: value for name, value in cast("Mapping[str, Any]", given).items() if value is not None}
        try:
            return self.outputs.read(wanted, max_chars=self.max_chars), True
        except EndmarkError as error:
            return str(error), False
