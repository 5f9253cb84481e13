"""Calls the extension module. Texts are passed as str or bytes, everything else as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from . import _native
from ._errors import EndmarkError, InvalidInput, to_exception


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ARGUMENT_NAMES = {"`from`": "`asked_from`", "`for`": "`format`"}
"""Options of the extension module whose Python arguments have another name."""


def utf8(text: str) -> bytes:
    """Encodes a str as UTF-8. Replaces each lone surrogate, which UTF-8 cannot encode, by U+FFFD, as the extension module does."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub("\ufffd", text).encode()


def replace_surrogates(text: str) -> str:
    """Returns the text with U+FFFD instead of each lone surrogate."""
    return utf8(text).decode()


def dumps(value: Any, name: str = "an argument") -> str:
    """Writes a value as JSON. Lone surrogates are not escaped, because other parsers reject an escaped one."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} cannot be written as JSON: {error}", "invalid_argument") from None


def dump_options(options: dict[str, Any]) -> str:
    named = {name: value for name, value in options.items() if value is not None}
    try:
        return dumps(named)
    except InvalidInput:
        for name, value in named.items():
            dumps(value, f"`{name}`")
        raise


def _to_exception(error: _native.NativeError) -> EndmarkError:
    failure = to_exception(error)
    message = str(failure)
    for option, argument in _ARGUMENT_NAMES.items():
        message = message.replace(option, argument)
    failure.args = (message, *failure.args[1:])
    return failure


def call(function: str, *inputs: str | bytes, **options: Any) -> Any:
    """Calls a function of the extension module."""
    try:
        return json.loads(_native.call(function, list(inputs), dump_options(options)))
    except _native.NativeError as error:
        raise _to_exception(error) from None


def offset_unit(text: str | bytes) -> str:
    """Returns the unit of offsets into this value: code points of a str, or bytes."""
    return "code_points" if isinstance(text, str) else "bytes"


class Stateful:
    """An object of the extension module, with its state."""

    def __init__(self, kind: str, *inputs: str | bytes, **options: Any) -> None:
        try:
            self._inner = _native.Stateful(kind, list(inputs), dump_options(options))
        except _native.NativeError as error:
            raise _to_exception(error) from None

    def call(self, method: str, *inputs: str | bytes, **options: Any) -> Any:
        try:
            return json.loads(self._inner.call(method, list(inputs), dump_options(options)))
        except _native.NativeError as error:
            raise _to_exception(error) from None
