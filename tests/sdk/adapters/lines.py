"""Reads requests as lines, and writes the library's results as lines."""

from __future__ import annotations

import gzip
import json
import sys
from typing import Callable

import httpx2

# Fields that differ in each reply.
IDENTITY = {"id", "created", "created_at", "completed_at", "timings", "system_fingerprint", "item_id", "call_id", "response_id"}


def told(value):
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items() if key not in IDENTITY}
    return [told(item) for item in value] if isinstance(value, list) else value


class Compressing(httpx2.HTTPTransport):
    """A transport that compresses every request, as these libraries allow."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = httpx2.Headers({**request.headers, "content-encoding": "gzip"})
        headers.pop("content-length", None)
        body = gzip.compress(request.read())
        return super().handle_request(
            httpx2.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)
        )


def serve(ask: Callable[[dict], dict], own: type[Exception]) -> None:
    for line in sys.stdin:
        try:
            answer = ask(json.loads(line))
        # An application must handle any exception of the library.
        except Exception as error:  # noqa: BLE001
            status = getattr(error, "status_code", None) or getattr(error, "code", None)
            answer = {
                "error": type(error).__name__, "is_own": isinstance(error, own),
                "status": status if isinstance(status, int) else None, "message": str(error),
            }  # fmt: skip
        print(json.dumps(answer, default=repr), flush=True)
