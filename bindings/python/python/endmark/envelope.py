"""Prints the result of a command as one JSON document, in which nothing is shortened without a warning.

    @app.command()          # click or typer; `answers` decorates any function
    @answers(max_response_bytes=100_000)
    def show(name: str):
        return {"name": name, "log": read_log(name)}
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, TypedDict, TypeVar

from ._core import call, dumps
from ._errors import InvalidInput

__all__ = ["CommandFailed", "Document", "Rule", "answers", "document", "run"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Rule(TypedDict, total=False):
    """The known limits of a field, which help to detect that a backend cut its value. `field` is a path from `data`, in which `[*]` means
    every item."""

    field: str
    max_bytes: Optional[int]
    max_chars: Optional[int]
    max_items: Optional[int]
    exact: bool
    """Whether the value is always complete, however it ends."""


class CommandFailed(Exception):
    """The error of a command. `data` is the part of the result that is available nevertheless."""

    def __init__(
        self, code: str, message: str, *, exit_code: int = 1, hint: str | None = None, data: Any = None, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.data = data
        self.body = {"code": code, "exit_code": exit_code, "message": message, "hint": hint, "field": field}


@dataclass(frozen=True)
class Document:
    """A finished envelope."""

    json: str
    """The document on one line, with `ok`, `data`, `error`, `warnings` and `meta`."""
    exit_code: int


def document(
    data: Any = None, *, error: CommandFailed | None = None, warnings: Sequence[dict[str, Any]] = (), duration_ms: int = 0,
    max_response_bytes: int | None = None, rules: Sequence[Rule] = (),
) -> Document:  # fmt: skip
    """Creates an envelope, with a warning for each value that a backend cut or that is shortened here.

    The whole document has at most `max_response_bytes` (1,000,000 by default, at least 1,024). Numbers keep all their digits. Raises
    `InvalidInput` if `data` cannot be written as JSON, or if the limit is too low.

    >>> import json
    >>> json.loads(document({"log": "the first lines [...]"}).json)["warnings"][0]["field"]
    'data.log'
    """
    if error is not None:
        data = error.data
    found = call(
        "envelope", dumps(data, "`data`"), error=None if error is None else error.body, warnings=list(warnings),
        duration_ms=duration_ms, max_response_bytes=max_response_bytes, rules=list(rules),
    )  # fmt: skip
    return Document(found["document"], found["exit_code"])


def run(command: Callable[[], Any], *, max_response_bytes: int | None = None, rules: Sequence[Rule] = ()) -> int:
    """Runs a command, prints its envelope, and returns the exit code. Use it in a `main` with argparse.

    A `CommandFailed` becomes the error of the envelope. Any other exception becomes the error `bug` with exit code 70, and its traceback
    goes to standard error.
    """
    limits: dict[str, Any] = {"max_response_bytes": max_response_bytes, "rules": rules}
    # Invalid limits are a mistake of the programmer, so raise before the command runs.
    document(**limits)
    begun = time.monotonic()
    data, error = None, None
    try:
        data = command()
    except CommandFailed as failed:
        error = failed
    except Exception as bug:
        import traceback

        traceback.print_exc()
        error = CommandFailed("bug", f"{type(bug).__name__}: {bug}", exit_code=70)
    duration_ms = int((time.monotonic() - begun) * 1000)
    options: dict[str, Any] = {"duration_ms": duration_ms, **limits}
    try:
        made = document(data, error=error, **options)
    except InvalidInput as bug:
        made = document(error=CommandFailed("bug", f"the answer is not valid: {bug}", exit_code=70), **options)
    sys.stdout.buffer.write(made.json.encode() + b"\n")
    sys.stdout.buffer.flush()
    return made.exit_code


def answers(*, max_response_bytes: int | None = None, rules: Sequence[Rule] = ()) -> Callable[[_F], _F]:
    """Decorates a function that is a command. Its return value is printed in an envelope, and the process exits.

    Raises `InvalidInput` for invalid limits when it decorates the function.
    """
    document(max_response_bytes=max_response_bytes, rules=rules)

    def decorated(function: _F) -> _F:
        @functools.wraps(function)
        def command(*arguments: Any, **named: Any) -> None:
            code = run(lambda: function(*arguments, **named), max_response_bytes=max_response_bytes, rules=rules)
            raise SystemExit(code)

        return command  # type: ignore[return-value]

    return decorated
