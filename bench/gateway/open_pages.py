"""Simulates pages that are open in a browser. Each page is requested again and again, and events are followed."""

from __future__ import annotations

import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

# The pages that refresh themselves, each with the shortest pause of its script between two requests.
PAGES = {"/endmark/": 5.0, "/endmark/recoveries": 3.0}
EVENTS = "/endmark/api/runs/events"
# The script of a page waits this many times as long as the last request took.
REST = 20


class OpenPages:
    """One browser tab for each page that refreshes itself, and one tab with the list of runs, which follows events."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.took_ms: list[float] = []
        self.problem: Exception | None = None

    @property
    def answered(self) -> int:
        return len(self.took_ms)

    def median_ms(self) -> float:
        return statistics.median(self.took_ms)

    @contextmanager
    def open(self) -> Iterator[None]:
        closed = threading.Event()
        tabs = [threading.Thread(target=self._tab, args=(path, pause, closed)) for path, pause in PAGES.items()]
        for tab in tabs:
            tab.start()
        try:
            with urllib.request.urlopen(self.origin + EVENTS, timeout=60):
                yield
        finally:
            closed.set()
            for tab in tabs:
                tab.join()
        if self.problem:
            raise self.problem

    def _tab(self, path: str, pause: float, closed: threading.Event) -> None:
        while not closed.is_set():
            began = time.monotonic()
            try:
                with urllib.request.urlopen(self.origin + path, timeout=60) as page:
                    page.read()
            except OSError as problem:
                self.problem = problem
                return
            took = time.monotonic() - began
            self.took_ms.append(1e3 * took)
            closed.wait(max(pause, REST * took))
