"""Compares caps of tool output: time, size, what is kept, and whether the format stays valid.

    python3 bench/context/run.py [--rounds 15] [--huge-bytes 5000000000]

Endmark is the release build, run as a command on a file; the time of a run on a small file is subtracted. OpenHands' cut
is reimplemented from its source (openhands-sdk 1.58.2), and so is deepagents' preview (0.7.32) if it is not installed.
headroom-ai itself is run if it is installed. Their time is that of the function alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENDMARK = Path(__file__).resolve().parents[2] / "target/release/endmark"
LIMIT_CHARS = 200_000
ROWS = 11_000
ERROR_ROWS = (4_321, 8_765)


def rows() -> str:
    """Returns 2 MB of JSON: 11,000 rows, of which two are errors."""
    listed = []
    for number in range(ROWS):
        row = {
            "id": number,
            "timestamp": f"2026-11-24T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.125Z",
            "service": f"service-{number % 12}",
            "status": "ok",
            "duration_ms": 10 + number * 7 % 90,
            "message": f"request {number:06} served from cache for the tenant {number * 31 % 997}",
            "error": None,
        }
        if number in ERROR_ROWS:
            row |= {"status": "failed", "error": f"upstream gave up on {number}"}
        listed.append(row)
    return json.dumps(listed)


def log() -> str:
    """Returns 1.8 MB of a log with a three-line error in the middle."""
    lines = []
    for number in range(18_000):
        lines.append(
            f"2026-11-24 12:{number // 60 % 60:02}:{number % 60:02} INFO worker-{number % 8} request {number:06} "
            f"served in {number * 7 % 90} ms, cache warm"
        )
        if number == 9_000:
            lines += [
                "2026-11-24 12:30:00 ERROR worker-3 database unreachable: deadline of 250 ms exceeded",
                "Traceback (most recent call last):",
                "ConnectionError: pool 7 exhausted",
            ]
    return "\n".join(lines) + "\n"


def openhands(text: str) -> str:
    """Reimplements maybe_truncate, which keeps both ends of the text around a notice."""
    notice = "<response clipped><NOTE>Due to the max output limit, only part of the full response has been shown to you.</NOTE>"
    if len(text) <= LIMIT_CHARS:
        return text
    available = LIMIT_CHARS - len(notice)
    head = available // 2 + available % 2
    return text[:head] + notice + text[-(available - head):]


def deepagents():
    """Returns the function that makes the preview of an evicted result: five lines from each end, each with at most
    1,000 characters.
    """
    try:
        from deepagents.middleware._message_eviction import _create_content_preview
    except ImportError:
        return deepagents_restated
    return lambda text: _create_content_preview(text).text


def deepagents_restated(text: str) -> str:
    lines = text.splitlines()
    shown = lines if len(lines) <= 10 else [*lines[:5], f"... [{len(lines) - 10} lines truncated] ...", *lines[-5:]]
    return "\n".join(line[:1_000] for line in shown)


def headroom():
    try:
        from headroom import compress
    except ImportError:
        return None
    def run(text: str) -> str:
        result = compress([{"role": "tool", "tool_call_id": "c", "content": text}], model="gpt-4o")
        return result.messages[0]["content"]
    return run


def timed(rounds: int, run) -> tuple[float, str]:
    times, output = [], ""
    for _ in range(rounds):
        started = time.perf_counter()
        output = run()
        times.append(time.perf_counter() - started)
    return statistics.median(times), output


def endmark(path: Path) -> str:
    ran = subprocess.run([ENDMARK, "cap", "--no-store", path], capture_output=True, check=True)
    return ran.stdout.decode()


def kept(text: str, facts: list[str]) -> str:
    return f"{sum(fact in text for fact in facts)} of {len(facts)}"


def form(text: str, is_json: bool, original: str) -> str:
    if not is_json:
        return "text"
    try:
        shown = json.loads(text)
    except ValueError:
        return "no JSON"
    if not isinstance(shown, list):
        return "JSON, no list any more"
    whole = {json.dumps(row) for row in json.loads(original)}
    foreign = [row for row in shown if "endmark_omitted" not in row and json.dumps(row) not in whole]
    return f"JSON, {len(foreign)} rows that are not in the input" if foreign else "JSON"


def memory(command: list[str], chunk: bytes, size: int) -> tuple[int, float, int]:
    """Pipes `size` bytes of input to a command. Returns its peak memory in bytes, its duration in seconds, and the
    characters of its output.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL)
        written = 0
        while written < size:
            process.stdin.write(chunk)
            written += len(chunk)
        process.stdin.flush()
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.stdin.close()
        process.wait()
        output.seek(0)
        chars = len(output.read().decode())
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    return peak, time.perf_counter() - started, chars


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--huge-bytes", type=int, default=0)
    given = arguments.parse_args()
    preview = deepagents()
    values = {
        "2 MB of JSON": (rows(), True, [f"upstream gave up on {row}" for row in ERROR_ROWS]),
        "1.8 MB log": (log(), False, ["database unreachable", "Traceback (most recent", "pool 7 exhausted"]),
    }
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small")
        small.write_text("all is well\n")
        start, _ = timed(given.rounds, lambda: endmark(small))
        for name, (value, is_json, facts) in values.items():
            path = Path(folder, "value")
            path.write_text(value)
            print(f"\n{name}: {len(value.encode()):,} bytes\n")
            print("| | time | characters | error facts kept | form |\n|---|---|---|---|---|")
            run = [("Endmark", lambda: endmark(path), start)]
            run += [("OpenHands' cut", lambda: openhands(value), 0), ("deepagents' preview", lambda: preview(value), 0)]
            if (peer := headroom()) is not None:
                run.append(("headroom", lambda: peer(value), 0))
            for peer_name, function, off in run:
                seconds, output = timed(3 if peer_name == "headroom" else given.rounds, function)
                print(
                    f"| {peer_name} | {max(0, seconds - off) * 1000:.1f} ms | {len(output):,} "
                    f"| {kept(output, facts)} | {form(output, is_json, value)} |"
                )
    print(f"\n(the command itself takes {start * 1000:.1f} ms)")
    if given.huge_bytes:
        row = "".join(f'{{"id": {number}, "state": "ok", "ms": {number % 9}}}\n' for number in range(20_000))
        table = "id,state,ms\n" + "".join(f"{number},ok,{number % 9}\n" for number in range(20_000))
        for name, chunk in {"log": log(), "JSON Lines": row, "CSV": table, "one line": "x" * (1 << 20)}.items():
            peak, seconds, chars = memory([str(ENDMARK), "cap", "--no-store"], chunk.encode(), given.huge_bytes)
            print(f"{given.huge_bytes:,} bytes of {name}: {peak / 1e6:.1f} MB at the peak, {seconds:.0f} s, {chars:,} characters")


if __name__ == "__main__":
    if not os.access(ENDMARK, os.X_OK):
        sys.exit(f"{ENDMARK} is missing: cargo build --release --locked --package endmark-cli")
    main()
