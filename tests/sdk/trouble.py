"""A proxy between Endmark and a real server. It injects a fault into one reply of any format, and records the reaction.

The header `x-trouble: KIND:AMOUNT:NAME` of a request selects the fault. It applies only to the first request with this NAME, so
that retries and continuations succeed. Statuses and `gzip` apply to all requests.

    drop    after AMOUNT events (of a reply that is not streamed: bytes) the connection is cut
    end     the same, but the body ends regularly
    dead    the same as `drop`, and every further request is refused with 503
    stall   nothing more arrives, and the connection stays open
    slow    every event is AMOUNT milliseconds late
    status  the status AMOUNT, and an error in the provider's shape
    gzip    the reply is compressed although the client did not request it

A compressed request is decompressed on its way to the real server.
"""

from __future__ import annotations

import gzip
import http.client
import json
import select
import socket
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real_model"))

# The upper limit of every wait in the tests, in seconds.
PATIENCE_SECONDS = 60
HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "host"}
# Headers only for this server. They are not passed on.
OWN = {"x-trouble", "accept-encoding"}
# The first two bytes of gzip data.
GZIP = b"\x1f\x8b"


def same(body: bytes) -> str:
    """Returns a form of the body that is the same for equal requests, because each library orders the fields differently."""
    try:
        return json.dumps(json.loads(body), sort_keys=True)
    except ValueError:
        return repr(body)


class Gone(Exception):
    """The other side has closed the connection."""


class Trouble:
    """The proxy, on its own port, in front of the server at `origin`."""

    def __init__(self, origin: str, paths: tuple[str, str] = ("", ""), remembers: bool = False):
        self.target = origin.removeprefix("http://")
        # Whether equal requests are sent to the server only once, because it would repeat its reply.
        self.remembers = remembers
        self.remembered: dict[tuple[str, str] | None, tuple[int, list[tuple[str, str]], list[bytes]]] = {}
        # The prefix of paths, and the prefix that the server has instead.
        self.paths = paths
        self.lock = threading.Lock()
        self.asked: dict[str, int] = {}
        self.gone: set[str] = set()
        self.compressed: set[str] = set()
        # The bodies that were passed on, by the name of their request.
        self.passed: dict[str, bytes] = {}
        trouble = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # A reply in several writes must not wait for acknowledgements.
            disable_nagle_algorithm = True

            def do_GET(self):
                trouble.serve(self)

            def do_POST(self):
                trouble.serve(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Trouble:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()

    def requests(self, name: str) -> int:
        """Returns how many requests with this name arrived."""
        with self.lock:
            return self.asked.get(name, 0)

    def came_compressed(self, name: str) -> bool:
        """Returns whether the first request with this name was compressed."""
        with self.lock:
            return name in self.compressed

    def body(self, name: str) -> bytes | None:
        """Returns the bytes that were passed on for the request of this name."""
        with self.lock:
            return self.passed.get(name)

    def saw_it_go(self, name: str) -> bool:
        """Returns whether the client of a request with this name closed the connection early."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with self.lock:
                if name in self.gone:
                    return True
            time.sleep(0.05)
        return False

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        kind, amount, name = (request.headers.get("x-trouble") or "::").split(":")
        with self.lock:
            self.asked[name] = self.asked.get(name, 0) + 1
            is_first = self.asked[name] == 1
        if kind == "status":
            self.refuse(request, int(amount))
            return
        if kind == "dead" and not is_first:
            self.refuse(request, 503)
            return
        if not is_first and kind != "gzip":
            kind = ""
        if request.headers.get("content-encoding") == "gzip":
            with self.lock:
                if is_first:
                    self.compressed.add(name)
            body = gzip.decompress(body) if body.startswith(GZIP) else b"not compressed"
        try:
            self.answer(request, body, kind, int(amount or 0), name)
        except (Gone, BrokenPipeError, ConnectionResetError):
            with self.lock:
                self.gone.add(name)
            request.close_connection = True

    def answer(self, request: BaseHTTPRequestHandler, body: bytes, kind: str, amount: int, name: str) -> None:
        given, has = self.paths
        path = has + request.path.removeprefix(given) if request.path.startswith(given) else request.path
        asked = (path, same(body)) if self.remembers and body else None
        if known := self.remembered.get(asked):
            self.pass_on(request, *known, kind, amount, name)
            return
        passed = HOP_BY_HOP | self.kept_back() | {"content-encoding"}
        headers = {key: value for key, value in request.headers.items() if key.lower() not in passed}
        server = http.client.HTTPConnection(self.target, timeout=PATIENCE_SECONDS)
        try:
            server.request(request.command, path, body, headers)
            answer = server.getresponse()
            parts: list[bytes] = []
            told = answer.status, [(key, value) for key, value in answer.getheaders() if key.lower() not in HOP_BY_HOP]
            self.pass_on(request, *told, self.parts(answer, parts), kind, amount, name)
            if asked and answer.status == 200 and answer.isclosed():
                self.remembered[asked] = (*told, parts)
        finally:
            server.close()

    def kept_back(self) -> set[str]:
        """Returns the request headers that are only for this server."""
        return OWN

    @staticmethod
    def refuse(request: BaseHTTPRequestHandler, status: int) -> None:
        message = f"refused with {status}"
        if "/messages" in request.path:
            error = {"type": "error", "error": {"type": "api_error", "message": message}}
        elif "/models/" in request.path:
            error = {"error": {"code": status, "message": message, "status": "UNKNOWN"}}
        else:
            error = {"error": {"message": message, "type": "refused", "param": None, "code": None}}
        body = json.dumps(error).encode()
        request.send_response(status)
        request.send_header("content-type", "application/json")
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def pass_on(
        self, request: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], parts: Iterable[bytes],
        kind: str, amount: int, name: str,
    ) -> None:  # fmt: skip
        is_stream = any(key.lower() == "content-type" and "event-stream" in value for key, value in headers)
        request.send_response(status)
        for key, value in headers:
            request.send_header(key, value)
        if kind == "gzip":
            request.send_header("content-encoding", "gzip")
        request.send_header("transfer-encoding", "chunked")
        request.end_headers()
        packer = zlib.compressobj(wbits=31) if kind == "gzip" else None
        sent, body = 0, b""
        for part in parts:
            if kind in ("drop", "dead", "end", "stall") and sent >= amount:
                self.stop(request, kind)
                return
            if kind == "slow":
                self.wait(request, amount / 1000)
            data = packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) if packer else part
            body += part
            # Record the part before it is sent, because a test may read the record right after the last event.
            with self.lock:
                self.passed[name] = body
            self.chunk(request, data)
            sent += 1 if is_stream else len(part)
        if packer:
            self.chunk(request, packer.flush())
        request.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def parts(answer: http.client.HTTPResponse, kept: list[bytes]) -> Iterator[bytes]:
        """Yields the events of a stream, or small pieces of a body, and records them."""
        if "event-stream" not in (answer.getheader("content-type") or ""):
            body = answer.read()
            kept += [body[at : at + 40] for at in range(0, len(body), 40)]
            yield from kept
            return
        event = b""
        while line := answer.readline():
            event += line
            if line in (b"\n", b"\r\n"):
                kept.append(event)
                yield event
                event = b""
        if event:
            kept.append(event)
            yield event

    @staticmethod
    def chunk(request: BaseHTTPRequestHandler, data: bytes) -> None:
        if data:
            request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            request.wfile.flush()

    def stop(self, request: BaseHTTPRequestHandler, kind: str) -> None:
        if kind == "stall":
            self.wait(request, PATIENCE_SECONDS)
        if kind == "end":
            request.wfile.write(b"0\r\n\r\n")
        else:
            request.connection.shutdown(socket.SHUT_RDWR)
        request.close_connection = True

    @staticmethod
    def wait(request: BaseHTTPRequestHandler, seconds: float) -> None:
        """Waits. Raises an error if the client closes the connection in the meantime."""
        readable, _, _ = select.select([request.connection], [], [], seconds)
        if readable and not request.connection.recv(1, socket.MSG_PEEK):
            raise Gone


class Witness(Trouble):
    """The same proxy in front of Endmark itself, without faults. It records every byte that a library gets."""

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        name = (request.headers.get("x-trouble") or "::").rpartition(":")[2]
        try:
            self.answer(request, body, "", 0, name)
        except (Gone, BrokenPipeError, ConnectionResetError):
            request.close_connection = True

    def kept_back(self) -> set[str]:
        return set()
