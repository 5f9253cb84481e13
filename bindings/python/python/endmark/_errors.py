"""The exceptions of the package. All are an `EndmarkError`."""

from __future__ import annotations

import json
from typing import Any

from . import _native


class EndmarkError(Exception):
    """Any failure that Endmark reports. `code` is a word for programs, which stays the same."""

    def __init__(self, message: str, code: str = "error") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        # By default a copy calls the class with the message alone, and process pools lose the error.
        return _restored, (type(self), self.args, self.__dict__)


class InvalidInput(EndmarkError, ValueError):
    """An argument is not valid: an unknown format, a limit that is too small, text that is not UTF-8."""


class Malformed(EndmarkError, ValueError):
    """No continuation could make the text valid, or it is not of the format that was named."""


class InternalError(EndmarkError, RuntimeError):
    """A bug in Endmark. Please report it with the input that causes it."""


class NotAdmitted(EndmarkError):
    """A budget does not admit a call.

    `code` is `held` (calls under way hold what is left: ask again when one of them is over), `used_up`, `too_large` (the call may
    need more than the whole budget) or `no_price` (there is a budget in dollars, and the model has no price).
    """


class MergeError(EndmarkError):
    """Two parts were not joined to a verified text. Nothing received is lost with it.

    `code` is `ambiguous`, `still_truncated`, `malformed`, `nothing_to_join` or `no_seam`.
    """

    def __init__(self, message: str, code: str, attempt: str, verified_len: int, best: dict[str, Any] | None) -> None:
        super().__init__(message, code)
        self.attempt = attempt
        """Everything received, joined at the best seam, or one part after the other."""
        self.verified_len = verified_len
        """How many code points at the beginning of `attempt` are verified."""
        self.best = best
        """The best candidate, with its `text`, `seam` and `verdict`, if there is one."""


class ResumeExhausted(EndmarkError):
    """The attempts are used up, and the reply is still not whole. `code` is the cause: `attempts`, `no_progress`, `ambiguous`,
    `refused`, `rejected`, `budget` or `stopped`.
    """

    def __init__(
        self, message: str, cause: str, attempts: int, merged_raw: str, verified_len: int, text: str, best: str | None
    ) -> None:
        super().__init__(message, cause)
        self.cause = cause
        self.attempts = attempts
        """How many calls were made without the reply becoming whole."""
        self.merged_raw = merged_raw
        """Everything received, joined at the best seams."""
        self.verified_len = verified_len
        """How many code points at the beginning of `merged_raw` are verified."""
        self.text = text
        """The true beginning of the reply, which can be shown to its reader."""
        self.best = best
        """The likeliest whole text, if there is one. It is a guess."""


class NotResumed(EndmarkError):
    """The provider refused, filtered, paused or gave up the reply, or ended it with a word that is not known, so that nothing was asked.

    `text` is the reply, unchanged. `code` is `passed`, or `unknown_stop` for such a word: the reply may be cut.
    """

    def __init__(self, text: str, reason: str | None = None, stop: str | None = None) -> None:
        if reason == "unknown":
            message = f"the stop reason {stop!r} is not known: the reply may be cut, and was not resumed"
        else:
            message = f"the provider refused, filtered, paused or gave up the reply (stop reason {stop!r}); it was not resumed"
        super().__init__(message, "unknown_stop" if reason == "unknown" else "passed")
        self.text = text
        self.stop = stop
        """Why the model stopped, in its provider's word."""


class InvalidReply(EndmarkError):
    """The reply is not cut, and not valid either: it breaks its grammar or its schema, and no correction helped."""

    def __init__(self, text: str, problems: list[dict[str, str]]) -> None:
        first = "; ".join(f"{problem['path'] or 'the document'}: {problem['message']}" for problem in problems[:3])
        super().__init__(f"the reply is not valid: {first}", "invalid")
        self.text = text
        self.problems = problems
        """Each with a JSON Pointer `path` and a `message`."""


def _restored(kind: type[EndmarkError], args: tuple[Any, ...], state: dict[str, Any]) -> EndmarkError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def raised(error: _native.NativeError) -> EndmarkError:
    """The exception for a failure of the extension module."""
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
