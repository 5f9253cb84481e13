#!/usr/bin/env python3
"""Measures the gateway's memory: idle, and with many streams that their clients read slowly.

    python3 bench/gateway/memory.py [--program target/release/endmark] [--streams 1000] [--seconds 60]

Prints Markdown. Each client reads one kilobyte per second of a stream of 50 MiB that the upstream sends as fast as it can.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import time
from pathlib import Path

from run import PROJECT
from servers import Server, built, endmark, measuring

REPLY_BYTES = 50 * 1024 * 1024
# With a small buffer, the gateway has to hold the data that a slow client does not read.
RECEIVE_BUFFER_BYTES = 8 * 1024
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"Go."}]}'
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)


async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    choice = {"index": 0, "delta": {"content": "x" * 2_000}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    events = f"data: {json.dumps(chunk)}\n\n".encode() * 8
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for _ in range(REPLY_BYTES // len(events)):
            writer.write(events)
            await writer.drain()
    except (OSError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


async def read_slowly(port: int, seconds: float) -> None:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    with connection:
        await loop.sock_connect(connection, ("127.0.0.1", port))
        await loop.sock_sendall(connection, REQUEST)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not await loop.sock_recv(connection, 1024):
                raise SystemExit("the gateway gave up a slow reader")
            await asyncio.sleep(1)


def kilobytes(pid: int, file: str, name: str) -> int:
    text = Path(f"/proc/{pid}/{file}").read_text()
    return sum(int(number) for number in re.findall(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE))


async def measure(program: Path, folder: Path, running: list[Server], streams: int, seconds: float) -> None:
    upstream = await asyncio.start_server(pour, "127.0.0.1", 0)
    gateway = endmark("Endmark", program, folder / "endmark", upstream.sockets[0].getsockname()[1], "")
    # This upstream cannot answer the test request of `Server.start`.
    gateway.answers = lambda: "listens on" in (gateway.folder / "log").read_text()
    running.append(gateway)
    gateway.start()
    await asyncio.sleep(2)
    pid = gateway.process.pid
    idle = kilobytes(pid, "status", "VmRSS")
    of_files, own = kilobytes(pid, "status", "RssFile"), kilobytes(pid, "smaps", "Private_Dirty")
    await asyncio.gather(*(read_slowly(gateway.port, seconds) for _ in range(streams)))
    grown = kilobytes(pid, "status", "VmHWM") - idle
    print("| | MiB |\n|---|--:|")
    print(f"| idle | {idle / 1024:.1f} |\n| of which pages of files | {of_files / 1024:.1f} |\n| of which its own | {own / 1024:.1f} |")
    print(f"| growth by {streams:,} slow streams | {grown / 1024:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, help="this Endmark, instead of the release build")
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    program = (options.program or built("endmark", PROJECT, "endmark-cli")).resolve()
    with measuring() as (folder, running):
        asyncio.run(measure(program, folder, running, options.streams, options.seconds))


if __name__ == "__main__":
    main()
