"""What the components for frameworks have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ._context import Outputs, read_tool
from ._errors import EndmarkError, NotAdmitted
from ._recovery import AskFailed

CLOSING = "The token budget is used up. Summarise your findings with the data that you have. You cannot use tools any more."
"""What the closing call of a budget asks for."""
_TEMPORARY = (408, 409, 425, 429)
"""Statuses of the client's errors after which the same request may succeed."""


def ask_failed(error: Exception) -> AskFailed:
    """A failed call as a recovery takes it. `final`: the provider refuses the request itself, such as a bad key with status 401."""
    if isinstance(error, AskFailed):
        return error
    if isinstance(error, NotAdmitted):
        return AskFailed(str(error), "budget")
    status = _status(error)
    is_final = status is not None and 400 <= status < 500 and status not in _TEMPORARY
    return AskFailed(str(error), "final" if is_final else "lost")


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


def read_rest(outputs: Outputs, arguments: Mapping[str, Any], max_chars: int) -> tuple[str, bool]:
    """Answers a call of the tool `endmark_read`, and whether it did: the model can correct a call that failed."""
    wanted = {name: value for name, value in arguments.items() if value is not None}
    try:
        return outputs.read(wanted, max_chars=max_chars), True
    except EndmarkError as error:
        return str(error), False


READ_TOOL: str = read_tool()["name"]
