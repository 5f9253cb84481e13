"""The way into the extension module: str and bytes unchanged, everything else as JSON."""

from __future__ import annotations

import json
from typing import Any

from . import _native
from ._errors import InvalidInput, raised


def options_of(options: dict[str, Any]) -> str:
    try:
        return json.dumps({name: value for name, value in options.items() if value is not None})
    except TypeError as error:
        raise InvalidInput(f"an argument cannot be written as JSON: {error}", "invalid_argument") from None


def call(function: str, *inputs: str | bytes, **options: Any) -> Any:
    """Calls a function of the extension module."""
    try:
        return json.loads(_native.call(function, list(inputs), options_of(options)))
    except _native.NativeError as error:
        raise raised(error) from None


def unit(text: str | bytes) -> str:
    """What offsets count, so that they index what was given."""
    return "code_points" if isinstance(text, str) else "bytes"


class Stateful:
    """An object of the extension module."""

    def __init__(self, kind: str, *inputs: str | bytes, **options: Any) -> None:
        try:
            self._inner = _native.Stateful(kind, list(inputs), options_of(options))
        except _native.NativeError as error:
            raise raised(error) from None

    def call(self, method: str, *inputs: str | bytes, **options: Any) -> Any:
        try:
            return json.loads(self._inner.call(method, list(inputs), options_of(options)))
        except _native.NativeError as error:
            raise raised(error) from None
