"""The way into the extension module: str and bytes unchanged, everything else as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from . import _native
from ._errors import EndmarkError, InvalidInput, raised


_HALF = re.compile("[\ud800-\udfff]")
_NAMES = {"`from`": "`asked_from`", "`for`": "`format`"}
"""The options whose arguments have another name."""


def utf8(text: str) -> bytes:
    """A str as UTF-8. Each half of a surrogate pair, which UTF-8 cannot hold, is U+FFFD, as the extension module reads it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _HALF.sub("\ufffd", text).encode()


def whole(text: str) -> str:
    """The text with U+FFFD instead of each half of a surrogate pair."""
    return utf8(text).decode()


def dumps(value: Any, name: str = "an argument") -> str:
    """A value as JSON. Halves of surrogate pairs stay as they are, since an escaped one would be no JSON for others."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} cannot be written as JSON: {error}", "invalid_argument") from None


def options_of(options: dict[str, Any]) -> str:
    named = {name: value for name, value in options.items() if value is not None}
    try:
        return dumps(named)
    except InvalidInput:
        for name, value in named.items():
            dumps(value, f"`{name}`")
        raise


def _failed(error: _native.NativeError) -> EndmarkError:
    failure = raised(error)
    message = str(failure)
    for option, argument in _NAMES.items():
        message = message.replace(option, argument)
    failure.args = (message, *failure.args[1:])
    return failure


def call(function: str, *inputs: str | bytes, **options: Any) -> Any:
    """Calls a function of the extension module."""
    try:
        return json.loads(_native.call(function, list(inputs), options_of(options)))
    except _native.NativeError as error:
        raise _failed(error) from None


def unit(text: str | bytes) -> str:
    """What offsets count, so that they index what was given."""
    return "code_points" if isinstance(text, str) else "bytes"


class Stateful:
    """An object of the extension module."""

    def __init__(self, kind: str, *inputs: str | bytes, **options: Any) -> None:
        try:
            self._inner = _native.Stateful(kind, list(inputs), options_of(options))
        except _native.NativeError as error:
            raise _failed(error) from None

    def call(self, method: str, *inputs: str | bytes, **options: Any) -> Any:
        try:
            return json.loads(self._inner.call(method, list(inputs), options_of(options)))
        except _native.NativeError as error:
            raise _failed(error) from None
