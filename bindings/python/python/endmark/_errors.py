"""The exceptions of the package, all derived from `EndmarkError`."""

from __future__ import annotations

import json
from typing import Any

from . import _native


class EndmarkError(Exception):
    """Any failure that Endmark reports. `code` is a stable, machine-readable word."""

    def __init__(self, message: str, code: str = "error") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, unpickling calls the class with the message alone, so that process pools would lose the error.
        return _restore_error, (type(self), self.args, self.__dict__)


class InvalidInput(EndmarkError, ValueError):
    """An argument is not valid: an unknown format, a limit that is too small, text that is not UTF-8."""


class Malformed(EndmarkError, ValueError):
    """No continuation could make the text valid, or the text does not have the given format."""


class InternalError(EndmarkError, RuntimeError):
    """A bug in Endmark. Please report it with the input that causes it."""


class NotAdmitted(EndmarkError):
    """A budget does not admit a call.

    `code` is `held` (running calls hold the rest of the budget: retry after one of them has ended), `used_up`, `too_large` (the call
    may need more than the whole budget) or `no_price` (there is a budget in dollars, and the model has no price).
    """


class MergeError(EndmarkError):
    """Two parts could not be joined to a verified text. The exception contains everything received.

    `code` is `ambiguous`, `still_truncated`, `malformed`, `nothing_to_join` or `no_seam`.
    """

    def __init__(self, message: str, code: str, attempt: str, verified_len: int, best: dict[str, Any] | None) -> None:
        super().__init__(message, code)
        self.attempt = attempt
        """Everything received, joined at the best seam, or simply concatenated."""
        self.verified_len = verified_len
        """The number of code points at the start of `attempt` that are verified."""
        self.best = best
        """The best candidate with its `text`, `seam` and `verdict`, or None."""


class ResumeExhausted(EndmarkError):
    """The recovery ended, and the reply is still cut. `code` is the cause: `attempts`, `no_progress`, `ambiguous`, `refused`,
    `rejected`, `budget` or `stopped`.
    """

    def __init__(
        self, message: str, cause: str, attempts: int, merged_raw: str, verified_len: int, text: str, best: str | None
    ) -> None:
        super().__init__(message, cause)
        self.cause = cause
        self.attempts = attempts
        """The number of calls that were made."""
        self.merged_raw = merged_raw
        """Everything received, joined at the best seams."""
        self.verified_len = verified_len
        """The number of code points at the start of `merged_raw` that are verified."""
        self.text = text
        """The verified start of the reply, which can be shown to users."""
        self.best = best
        """The most likely whole text, or None. It is only a guess."""


class NotResumed(EndmarkError):
    """The provider refused, filtered, paused or gave up the reply, or its stop reason is unknown. No continuation was requested.

    `text` is the unchanged reply. `code` is `passed`, or `unknown_stop` for an unknown stop reason: the reply may be cut.
    """

    def __init__(self, text: str, reason: str | None = None, stop: str | None = None) -> None:
        if reason == "unknown":
            message = f"the stop reason {stop!r} is not known: the reply may be cut, and was not resumed"
        else:
            message = f"the provider refused, filtered, paused or gave up the reply (stop reason {stop!r}); it was not resumed"
        super().__init__(message, "unknown_stop" if reason == "unknown" else "passed")
        self.text = text
        self.stop = stop
        """The provider's stop reason."""


class InvalidReply(EndmarkError):
    """The reply is not cut but invalid: it violates its grammar or its schema, and no correction helped."""

    def __init__(self, text: str, problems: list[dict[str, str]]) -> None:
        first = "; ".join(f"{problem['path'] or 'the document'}: {problem['message']}" for problem in problems[:3])
        super().__init__(f"the reply is not valid: {first}", "invalid")
        self.text = text
        self.problems = problems
        """The problems, each with a JSON Pointer `path` and a `message`."""


def _restore_error(kind: type[EndmarkError], args: tuple[Any, ...], state: dict[str, Any]) -> EndmarkError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def to_exception(error: _native.NativeError) -> EndmarkError:
    """Returns the exception for a failure of the extension module."""
    failure: dict[str, Any] = json.loads(str(error))
    message, code = failure["message"], failure["code"]
    kind = failure["kind"]
    if kind == "merge":
        details = failure["details"]
        return MergeError(message, code, details["attempt"], details["verified_len"], details["best"])
    kinds: dict[str, type[EndmarkError]] = {
        "invalid": InvalidInput, "malformed": Malformed, "budget": NotAdmitted, "bug": InternalError,
    }
    return kinds[kind](message, code)
