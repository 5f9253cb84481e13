"""Runs a stitcher's command: sends cases to its standard input and reads the answers in order."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from cases import Case

PATIENCE_SECONDS = 900.0
"""A command that gives no answer for this many seconds is stopped."""


def answers(command: str, cases: Iterable[Case]) -> Iterator[tuple[Case, dict[str, Any] | None]]:
    """Yields every case with its answer, or with None if there is no answer.

    Cases wait for their answers in a file and not in memory, because a command may answer only after it has read all
    of them.
    """
    with tempfile.TemporaryFile("w+b") as waiting:
        process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
        )
        assert process.stdin is not None and process.stdout is not None
        feeder = _Feeder(cases, process, waiting)
        feeder.start()
        read_to = 0
        for _ in _numbers(feeder):
            line = _line_in_time(process)
            with feeder.lock:
                waiting.seek(read_to)
                case = Case.from_line(waiting.readline())
                read_to = waiting.tell()
            yield case, _read(line)
        process.stdout.close()
        process.wait()
        if feeder.failure is not None:
            raise feeder.failure


def _numbers(feeder: "_Feeder") -> Iterator[int]:
    number = 0
    while feeder.has(number):
        yield number
        number += 1


def _line_in_time(process: subprocess.Popen[str]) -> str:
    """Returns the next line of output. Returns nothing if the command has ended or was silent for too long."""
    assert process.stdout is not None
    timer = threading.Timer(PATIENCE_SECONDS, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def _read(line: str) -> dict[str, Any] | None:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


class _Feeder(threading.Thread):
    """Writes the cases to the command while another thread reads the answers."""

    def __init__(self, cases: Iterable[Case], process: subprocess.Popen[str], waiting: Any):
        super().__init__(daemon=True)
        self.lock = threading.Lock()
        self.failure: BaseException | None = None
        self._cases = cases
        self._process = process
        self._waiting = waiting
        self._written = 0
        self._ended = False
        self._changed = threading.Condition()

    def run(self) -> None:
        assert self._process.stdin is not None
        listening = True
        try:
            for case in self._cases:
                with self.lock:
                    self._waiting.seek(0, 2)
                    self._waiting.write(case.line().encode("ascii") + b"\n")
                    self._waiting.flush()
                with self._changed:
                    self._written += 1
                    self._changed.notify_all()
                if listening:
                    try:
                        self._process.stdin.write(case.question() + "\n")
                    except (BrokenPipeError, OSError):
                        listening = False
            if listening:
                self._process.stdin.close()
        except (BrokenPipeError, OSError):
            pass
        except BaseException as failure:  # noqa: BLE001 - handed on to the reading thread
            self.failure = failure
            self._process.kill()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def has(self, number: int) -> bool:
        """Waits until it is known whether there is a case with this number. Returns whether there is."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._written > number)
            return self._written > number
