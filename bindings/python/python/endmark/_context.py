"""Caps tool results, condenses conversations, counts tokens, and enforces the budget of a session."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

from . import _native
from ._core import Stateful, call, dumps, replace_surrogates, utf8
from ._errors import InvalidInput

WireFormat = Literal["openai_chat", "openai_responses", "anthropic_messages", "gemini"]
"""The wire formats of requests."""
MAX_RESULT_CHARS = 200_000
"""The default limit of a tool result, in characters."""


@dataclass(frozen=True)
class Capped:
    """A value within its limits."""

    text: str
    """The value, or a shortened value with visible markers where parts are omitted."""
    format: str
    is_cut: bool
    warnings: tuple[dict[str, Any], ...]
    """One warning for each incomplete value: `code`, `field`, `returned_bytes`, `original_bytes`, `handle`, …"""
    handle: str | None
    """The name with which the full value can be read, if it was kept."""


class Outputs:
    """Keeps the full values of capped results, so that a model can read the rest.

    >>> outputs = Outputs()
    >>> capped = cap("line\\n" * 100_000, max_chars=1_000, outputs=outputs)
    >>> outputs.read({"handle": capped.handle, "lines": "99999:"})
    'line\\nline\\n'

    Without a `path` the values are kept in memory. With a `path` they are in a SQLite file, which several threads and processes can
    share. If all values together exceed `max_bytes`, the least recently used ones are removed. Handles cannot be guessed, but a
    handle is enough to read its value.
    """

    def __init__(self, path: str | None = None, *, max_bytes: int = 64 << 20) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._connection: Any = None
        if path is not None:
            import sqlite3

            self._connection = sqlite3.connect(path, timeout=30, check_same_thread=False, isolation_level=None)
            self._connection.execute(_native.OUTPUTS_TABLE)

    def new_handle(self) -> str:
        return os.urandom(8).hex()

    def keep(self, handle: str, value: bytes) -> None:
        """Keeps a value under a handle."""
        with self._lock:
            if self._connection is None:
                self._values[handle] = value
                while len(self._values) > 1 and sum(map(len, self._values.values())) > self._max_bytes:
                    self._values.popitem(last=False)
                return
            self._connection.execute(_native.KEEP_OUTPUT, [handle, value])
            self._connection.execute(_native.REMOVE_OLDEST_OUTPUTS, [self._max_bytes, handle])

    def get(self, handle: str) -> bytes:
        """Returns the full value. Raises `InvalidInput` with the code `unknown_handle` for an unknown handle."""
        handle = replace_surrogates(handle)
        with self._lock:
            value: bytes | None
            if self._connection is None:
                value = self._values.get(handle)
                if value is not None:
                    self._values.move_to_end(handle)
            else:
                row = self._connection.execute(_native.READ_OUTPUT, [handle]).fetchone()
                value = row[0] if row else None
                self._connection.execute(_native.USE_OUTPUT, [handle])
        if value is None:
            raise InvalidInput(f"no output is kept under the handle `{handle}`; it may have been removed", "unknown_handle")
        return value

    def read(self, arguments: Mapping[str, Any] | str, *, max_chars: int = 20_000) -> str:
        """Answers a call of the tool `endmark_read`: a page, lines, bytes, the target of a JSON Pointer, or matching lines."""
        try:
            wanted: Any = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"`arguments` is not a JSON object: {error}", "invalid_part") from None
        handle: Any = cast("dict[str, Any]", wanted).get("handle") if isinstance(wanted, dict) else None
        if not isinstance(handle, str):
            raise InvalidInput("`handle` is missing: a marker in the result names it", "invalid_part")
        answer: str = call("read", self.get(handle), arguments=wanted, max_chars=max_chars)["for_model"]
        return answer

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()


def read_tool() -> dict[str, Any]:
    """Returns the `name`, `description` and JSON `schema` of the tool with which a model reads omitted parts of a result."""
    tool: dict[str, Any] = call("read_tool")
    return tool


def cap(
    value: str | bytes, *, max_chars: int | None = None, max_bytes: int | None = None, max_tokens: int | None = None,
    max_items: int | None = None, keep: Literal["both", "head", "tail"] = "both",
    format: Literal["auto", "text", "json", "jsonl", "csv", "diff"] = "auto", outputs: Outputs | None = None,
) -> Capped:  # fmt: skip
    """Shortens a tool's output with visible markers. JSON stays valid, and lines and rows that report errors are kept.

    >>> cap("short").is_cut
    False

    The default limit is 200,000 characters, the lowest possible one 80. Lists keep 500 items. If the value is shortened and
    `outputs` is given, the full value is kept there. Raises `InvalidInput` for limits that are too low.
    """
    handle = outputs.new_handle() if outputs is not None else None
    found = call(
        "cap", value, format=format, max_chars=max_chars, max_bytes=max_bytes, max_tokens=max_tokens, max_items=max_items,
        keep=keep, handle=handle, tool=outputs is not None,
    )  # fmt: skip
    if outputs is not None and handle is not None and found["is_cut"]:
        outputs.keep(handle, utf8(value) if isinstance(value, str) else value)
    return Capped(
        found["text"], found["format"], found["is_cut"], tuple(found["warnings"]), handle if found["is_cut"] else None
    )


@dataclass(frozen=True)
class Excerpt:
    """A part of an output."""

    text: str | None
    base64: str | None
    """The bytes, if they are not text."""
    for_model: str
    """The part as a model reads it, with its position."""
    page: int | None
    pages: int | None
    bytes: tuple[int, int] | None
    """The range of UTF-8 bytes, from 0, without the end."""
    lines: tuple[int, int] | None
    """The first and the last line, from 1."""
    matches: int | None
    warnings: tuple[dict[str, Any], ...]


def read(
    value: str | bytes, *, page: int | None = None, lines: str | None = None, bytes: str | None = None,
    pointer: str | None = None, grep: str | None = None, max_chars: int | None = None,
) -> Excerpt:  # fmt: skip
    """Reads a part of an output: a `page` (from 1, the default), `lines` as "10:20", `bytes` as "0:4096", the target of a JSON
    `pointer`, or the lines that match the regular expression `grep`.

    >>> read("one\\ntwo\\nthree\\n", lines="2:").text
    'two\\nthree\\n'

    Raises `InvalidInput` with the code `no_page`, `bad_range`, `bad_pattern` or `bad_pointer`.
    """
    parts = {"page": page, "lines": lines, "bytes": bytes, "pointer": pointer, "grep": grep}
    arguments = {"handle": "value", **{name: part for name, part in parts.items() if part is not None}}
    found = call("read", value, arguments=arguments, max_chars=max_chars)
    for name in ["bytes", "lines", "warnings"]:
        if found[name] is not None:
            found[name] = tuple(found[name])
    return Excerpt(**found)


@dataclass(frozen=True)
class Compacted:
    """A request after its conversation was condensed, if that was needed."""

    request: Any
    receipt: dict[str, Any]
    """`tokens_before`, `tokens_after`, `dropped` by kind, `shortened_results`, `over_budget`, `anchors` found and kept by kind, and
    `not_compacted`: why the request is unchanged, or None."""

    @property
    def is_compacted(self) -> bool:
        return self.receipt["not_compacted"] is None


def compact(
    request: Mapping[str, Any] | str | bytes, format: WireFormat, *, mode: Literal["window", "emergency"] = "window",
    trigger_tokens: int | None = None, budget_tokens: int | None = None, keep: int | None = None,
    keep_share: float | None = None,
) -> Compacted:  # fmt: skip
    """Condenses the older part of a conversation, without a model.

    `window` starts above 24,000 tokens of history, condenses it to at most 32,000 and keeps the newest 10 turns. `emergency` starts
    above 850,000 tokens of the whole request. The user's task is kept, and so is the result of each tool call. `keep_share` condenses
    the history to that share, whatever its size. Raises `InvalidInput` if the request does not have the format.
    """
    body = request if isinstance(request, (str, bytes)) else dumps(request, "`request`")
    options = {"for": format, "mode": mode, "trigger_tokens": trigger_tokens, "budget_tokens": budget_tokens}
    found = call("compact", body, keep=keep, keep_share=keep_share, **options)
    return Compacted(found["request"], found["receipt"])


@dataclass(frozen=True)
class Count:
    """The number of tokens of a text or request for a model, and its price."""

    tokens: int
    exact: bool
    """Whether the model's own tokenizer counted the tokens."""
    counted_as: str
    usd: str | None
    """The price in dollars, as a decimal number; None for a model without a known price."""
    prices_as_of: str


def count(
    text: str | Mapping[str, Any], model: str, *, format: WireFormat | None = None, at: int | None = None
) -> Count:
    """Counts the tokens of a text, or of a whole request in a wire `format`.

    >>> count("Hello, world", "gpt-5").tokens
    3

    `at` is the time whose prices apply, in seconds since 1970; by default now.
    """
    body = text if isinstance(text, str) else dumps(text, "`text`")
    return Count(**call("count", body, model=model, at=at, **{"for": format}))


@dataclass(frozen=True)
class Tokens:
    """The tokens of a call, as the provider reports them."""

    prompt: int = 0
    """All tokens of the prompt, including cached ones."""
    cached: int = 0
    cache_write: int = 0
    completion: int = 0
    """All generated tokens, including reasoning."""
    reasoning: int = 0


@dataclass(frozen=True)
class Admitted:
    """An admitted call. Its maximum cost is held until `after_call`."""

    id: int
    max_output_tokens: int
    """The output limit to send. In a closing call it may be lower than the requested one."""
    is_closing: bool
    """Whether this is the session's last call: make it without tools, and ask for a summary of the findings."""
    warning_percent: int | None
    """The spent share of the budget, if a warning level was passed for the first time."""


@dataclass(frozen=True)
class CallCost:
    tokens: int
    usd: str | None
    is_estimated: bool


@dataclass(frozen=True)
class Usage:
    """What a session has used so far."""

    calls: int
    estimated_calls: int
    unpriced_calls: int
    tokens: Tokens
    usd: str
    held_tokens: int
    tokens_left: int | None
    """The remaining tokens, or None without a budget in tokens."""


class Meter:
    """The budget of one session and its usage so far. Several threads and tasks may share a meter.

    >>> meter = Meter(max_tokens=10_000)
    >>> admitted = meter.before_call("gpt-5", prompt_tokens=900, max_output_tokens=500)
    >>> meter.after_call(admitted, Tokens(prompt=880, completion=240)).tokens
    1120
    >>> meter.usage().tokens_left
    8880

    A budget of 0 means unlimited. The maximum cost of a call is held before it and settled after it, so parallel calls cannot exceed
    the budget. The first call that no longer fits is admitted once, as the closing call.
    """

    def __init__(self, *, max_tokens: int = 0, max_usd: float = 0.0) -> None:
        self._meter = Stateful("meter", max_tokens=max_tokens, max_usd=max_usd)

    @classmethod
    def from_environment(cls) -> Meter:
        """Creates a meter with the budget of `ENDMARK_TOKEN_BUDGET` or else `SRE_AGENT_TOKEN_BUDGET`, such as `850,000` or `850_000`."""
        return cls(max_tokens=call("token_budget", environment=dict(os.environ)))

    def before_call(
        self, model: str, *, prompt_tokens: int, max_output_tokens: int, at: int | None = None, is_continuation: bool = False
    ) -> Admitted:
        """Admits a call and holds its maximum cost, or raises `NotAdmitted`.

        `is_continuation` means that the call continues a cut reply. Such a call is never the closing call, which is kept for the
        session's answer.
        """
        sizes = {"prompt_tokens": prompt_tokens, "max_output_tokens": max_output_tokens}
        return Admitted(**self._meter.call("before_call", model=model, at=at, is_continuation=is_continuation, **sizes))

    def after_call(
        self, admitted: Admitted, tokens: Tokens | None = None, *, text: str | None = None, at: int | None = None
    ) -> CallCost:
        """Settles a call with the `tokens` that its provider reports, or else with the received `text`. Without both, the call was not
        answered and costs nothing."""
        given: list[tuple[str, Any, type]] = [("tokens", tokens, Tokens), ("text", text, str)]
        for name, value, kind in given:
            if value is not None and not isinstance(value, kind):
                raise InvalidInput(f"`{name}` is not a {kind.__name__}: {type(value).__name__}", "invalid_usage")
        reported = None if tokens is None else {name: getattr(tokens, name) for name in Tokens.__dataclass_fields__}
        return CallCost(**self._meter.call("after_call", id=admitted.id, tokens=reported, text=text, at=at))

    @contextmanager
    def call(
        self, model: str, *, prompt_tokens: int, max_output_tokens: int, is_continuation: bool = False
    ) -> Generator[MeteredCall, None, None]:
        """Calls `before_call` and `after_call` around a block. A block that reports nothing is not charged.

        Raises `InvalidInput` if `tokens` or `text` is invalid, unless the block itself raises. The call is then charged for its prompt.
        """
        admitted = self.before_call(
            model, prompt_tokens=prompt_tokens, max_output_tokens=max_output_tokens, is_continuation=is_continuation
        )  # fmt: skip
        metered = MeteredCall(admitted)
        try:
            yield metered
        except BaseException:
            with suppress(InvalidInput):
                self._settle(metered)
            raise
        self._settle(metered)

    def _settle(self, metered: MeteredCall) -> None:
        try:
            self.after_call(metered.admitted, metered.tokens, text=metered.text)
        except InvalidInput:
            # Otherwise the budget would hold the maximum cost of the call permanently.
            self.after_call(metered.admitted, text="")
            raise

    def usage(self) -> Usage:
        found = self._meter.call("usage")
        found["tokens"] = Tokens(**found["tokens"])
        return Usage(**found)


class MeteredCall:
    """A running call. Set `tokens`, or `text` if the provider does not report tokens."""

    def __init__(self, admitted: Admitted) -> None:
        self.admitted = admitted
        self.tokens: Tokens | None = None
        self.text: str | None = None
