"""What the components for frameworks share: a reply with tool calls that becomes whole, errors, a call within a budget, a capped result."""

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
"""What the closing call of a budget asks for."""
READ_TOOL: str = read_tool()["name"]
REPEATED_CALL = "the answer makes a tool call instead of completing one"


@dataclass(frozen=True)
class Call:
    """A tool call as it was received."""

    name: str
    args: str
    """The arguments as JSON, which may be cut."""


@dataclass(frozen=True)
class Received:
    """A reply as a framework has it."""

    text: str
    calls: tuple[Call, ...]
    stop: str | None
    """The provider's word; None if it sent no word."""
    output_tokens: int | None
    raw: Any
    """The framework's own value."""

    def written(self) -> str:
        """All that the model wrote."""
        return self.text + "".join(call.args for call in self.calls)


@dataclass(frozen=True)
class Continuation:
    """A request to make: the same request again, or the shown text as the model's message, followed by the prompt, without tools."""

    is_rest: bool
    shown_text: str
    prompt: str


@dataclass(frozen=True)
class Recovered:
    """A reply that was cut, and what it is now."""

    outcome: Outcome
    args: str | None
    """The whole arguments of the last tool call, if that was cut; else the outcome's text is the whole text."""
    last: Received
    """The last answer. Its tool calls belong to a reply that was cut in its text."""
    answers: tuple[Received, ...]

    def disclosed(self) -> dict[str, Any]:
        return disclosed(self.outcome)


def disclosed(outcome: Outcome) -> dict[str, Any]:
    """What metadata says about a reply that became whole."""
    return {"outcome": outcome.result, "attempts": outcome.attempts, "cut": outcome.cut}


class Settings(Protocol):
    """How a component recovers replies."""

    max_attempts: int
    log: Log | None
    task_id: str


def recovery(
    first: Received, settings: Settings, *, is_json: bool, turn_number: int, is_sent: bool = False
) -> Generator[Continuation, Received | AskFailed, Recovered | None]:
    """What to ask for a reply, one request after the other. None: nothing in it is cut.

    Raises `ResumeExhausted`, `InvalidReply` for a cut reply that no rest could make valid, and `NotResumed` for a reply that its provider
    refused, or whose stop reason is unknown. A malformed reply that is not cut is left to the framework, which validates it. `is_sent`: its reader has it, so that it is only extended.
    """
    cut = _cut_call(first)
    if cut is None and first.calls:
        # The provider made them, and their arguments are whole.
        return None
    if cut is not None:
        reply = Reply(cut.args, first.stop or "length", reasoned=not cut.args)
    else:
        reply = Reply(first.text, first.stop, output_tokens=first.output_tokens, reasoned=not first.text)
    pipeline = Pipeline(
        format="json" if cut is not None or is_json else None, max_attempts=settings.max_attempts, max_corrections=0, restart="off",
        log=settings.log,
    )  # fmt: skip
    answers: list[Received] = []
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
                answer = _answer(first, cut, asked, received)
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
    return Recovered(step, step.text if cut is not None else None, answers[-1], tuple(answers))


async def recover_async(
    first: Received, ask: Callable[[Continuation], Awaitable[Received]], settings: Settings, *, is_json: bool, turn_number: int,
    is_sent: bool = False,
) -> Recovered | None:
    """Drives `recovery` with a client that is awaited."""
    steps = recovery(first, settings, is_json=is_json, turn_number=turn_number, is_sent=is_sent)
    try:
        asked = next(steps)
        while True:
            answer: Received | AskFailed
            try:
                answer = await ask(asked)
            except Exception as error:
                answer = ask_failed(error)
            asked = steps.send(answer)
    except StopIteration as done:
        return cast("Recovered | None", done.value)
    finally:
        steps.close()


def recover(
    first: Received, ask: Callable[[Continuation], Received], settings: Settings, *, is_json: bool, turn_number: int,
    is_sent: bool = False,
) -> Recovered | None:
    """Drives `recovery` with a client that is called."""
    steps = recovery(first, settings, is_json=is_json, turn_number=turn_number, is_sent=is_sent)
    try:
        asked = next(steps)
        while True:
            answer: Received | AskFailed
            try:
                answer = ask(asked)
            except Exception as error:
                answer = ask_failed(error)
            asked = steps.send(answer)
    except StopIteration as done:
        return cast("Recovered | None", done.value)
    finally:
        steps.close()


def ask_failed(error: Exception) -> AskFailed:
    """A continuation that brought no answer: `final` where the provider refuses the request itself, such as a bad key with status 401.
    The exception that ends the recovery has the received part."""
    if isinstance(error, AskFailed):
        return error
    return AskFailed(str(error), "budget" if isinstance(error, NotAdmitted) else call("ask_failure", status=_status(error)))


def _status(error: BaseException) -> int | None:
    """The HTTP status in the error of a client library, or in what caused it."""
    cause: BaseException | None = error
    while cause is not None:
        response: Any = getattr(cause, "response", None)
        if isinstance(response, Mapping):
            # Botocore's.
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
    """Whether a stop reason means that the reply is not complete, such as a limit of tokens. False without a word."""
    return stop is not None and stop_meaning(stop) in ("limit", "repetition", "broken_off", "not_ended")


def shown_arguments(name: str, args: str) -> str:
    """The cut arguments of a tool call as the model is shown them, which can extend a text but not a call."""
    return f"Arguments of the call to `{name}`, as JSON:\n{args}"


def _cut_call(received: Received) -> Call | None:
    """The last call, if its arguments are not whole. A call without arguments may have an empty text."""
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


def _answer(first: Received, cut: Call | None, asked: Ask, received: Received) -> Reply | AskFailed:
    """What an answer adds to the text or to the arguments; of a reply that was made again, its last call."""
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
    """The calls of a component within the budget of a meter, if there is one."""

    meter: Meter | None
    assume_output_tokens: int = 4_096

    def admit(self, model: str, body: Any, limit: int | None, *, is_continuation: bool) -> Admitted | None:
        """Holds what a call may cost."""
        if self.meter is None:
            return None
        tokens = count(body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str), model).tokens
        return self.meter.before_call(
            model, prompt_tokens=tokens, max_output_tokens=limit or self.assume_output_tokens, is_continuation=is_continuation
        )

    def settle(self, admitted: Admitted | None, tokens: Tokens | None, text: str | None = None) -> None:
        """Reports what a call cost: by its tokens, else by its text. A call without both was not answered."""
        if self.meter is None or admitted is None:
            return
        self.meter.after_call(admitted, tokens, text=text)


class Results:
    """Caps what tools answer, and reads the parts that were left out. `outputs` keeps the full values, by default in memory."""

    def __init__(self, max_chars: int, outputs: Outputs | None) -> None:
        self.max_chars = max_chars
        self.outputs = outputs if outputs is not None else Outputs()

    def shortened(self, text: str) -> str:
        return cap(text, max_chars=self.max_chars, outputs=self.outputs).text

    def shortened_value(self, value: Any) -> Any:
        """A text or a JSON value within the limit, or the value itself if it is shorter or not JSON."""
        if isinstance(value, str):
            return self.shortened(value)
        try:
            written = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            return value
        return self.shortened(written) if len(written) > self.max_chars else value

    def read(self, arguments: Mapping[str, Any] | str) -> str:
        """Answers a call of `endmark_read`."""
        text, is_read = self.read_part(arguments)
        return text if is_read else f"Error: {text}"

    def read_part(self, arguments: Mapping[str, Any] | str) -> tuple[str, bool]:
        """Answers a call of `endmark_read`, and whether it did: the model can correct a call that failed."""
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
