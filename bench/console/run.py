#!/usr/bin/env python3
"""Measures how long the pages and the JSON routes need with a large store.

    python3 bench/console/run.py [--program PROGRAM] [--calls N] [--recoveries N] [--rounds N]

Fills a store with the records of a gateway that keeps them for thirty days, serves the store, and requests each page
and each route `--rounds` times, one after another. The command also computes the sums before the calls are summed:
the ratio shows the effect of summing. Prints Markdown. Needs only Python and the program, which is built unless
`--program` names one.
"""

import argparse
import json
import pathlib
import random
import re
import sqlite3
import statistics
import subprocess
import tempfile
import time
import urllib.request
from datetime import datetime, timedelta, timezone

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAYS = 30
CALLS_A_SESSION = 50
MODELS = ["gpt-5", "claude-sonnet-5", "gemini-2.5-pro", "deepseek-chat", "a-model-of-ours"]
UPSTREAMS = ["first", "second", "third"]
KEYS = 50

PAGES = [
    "", "?span=30d", "requests", "requests?outcome=look", "requests?outcome=exhausted&model=gpt-5", "requests?outcome=failed",
    "requests?model=no-such-model", "requests?outcome=resumed&key=no-such-key", "requests?model=gpt-5&key=key-7&upstream=second",
    "requests?session=session-7", "requests?outcome=resumed&session=session-7", "requests/{recovery}", "sessions", "sessions/session-7", "usage",
    "usage?by=session", "usage?by=key", "usage?by=day", "usage?since=7d", "budgets", "keys", "compactions", "runs", "runs/{run}",
]
ROUTES = [
    "usage?by=model", "usage?by=session", "usage?by=session&since=7d", "usage?by=key", "usage?by=day&since=7d", "usage?by=upstream",
    "usage?by=purpose&since=30d", "sessions/session-7", "report", "report?since=52w", "requests?limit=1000", "recoveries?limit=1000", "recoveries/{recovery}", "budgets?limit=1000",
    "compactions?limit=1000", "runs?limit=1000", "runs/{run}",
]


def moment(at):
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03}"


def calls(count, now, chance):
    """Yields calls in sessions of an hour or two. A tenth of their replies are cut. Yields whether the reply is cut,
    and the row of the call.
    """
    for session in range(count // CALLS_A_SESSION):
        at = now - timedelta(seconds=chance.uniform(600, DAYS * 86_400))
        key, model, upstream = f"key-{chance.randrange(KEYS)}", chance.choice(MODELS), chance.choice(UPSTREAMS)
        prompt = chance.randrange(1_000, 20_000)
        for call in range(CALLS_A_SESSION):
            at += timedelta(seconds=chance.expovariate(1 / 100))
            prompt += chance.randrange(200, 5_000)
            cut = call % 10 == 3
            output = chance.randrange(20, 2_000)
            cached = prompt * 8 // 10 if call else None
            yield cut, (
                f"em_{session:06x}{call:04x}", 1, "reply", f"session-{session}", key, upstream, "openai_chat", model, model, 1, "auto",
                moment(at), moment(at + timedelta(seconds=5)), 200, "clean" if not cut else "dropped", "limit" if cut else "stop",
                "cut" if cut else "whole", chance.choice(["limit", "dropped"]) if cut else None, prompt, output, cached,
                output // 2 if model == "gpt-5" else None, prompt + output, prompt * 4, output * 20, 400.0, 5_000.0)


def fill(path, count, recoveries, chance):
    now = datetime.now(timezone.utc)
    store = sqlite3.connect(path)
    store.execute("PRAGMA synchronous = OFF")
    marks = ",".join("?" * 27)
    logged = 0
    insert = f"""INSERT INTO usage (request_id, call, purpose, session, credential, upstream, format, model, answered_model, streamed,
      mode, started_at, ended_at, http_status, ending, stop, verdict, cut_kind, prompt_tokens, output_tokens, cached_tokens,
      reasoning_tokens, total_tokens, sent_bytes, received_bytes, first_byte_ms, total_ms) VALUES ({marks})"""
    for cut, row in calls(count, now, chance):
        store.execute(insert, row)
        if cut and logged < recoveries:
            logged += 1
            whole = chance.random() < 0.9
            store.execute(
                "INSERT INTO partial_completion_log VALUES (?, ?, 3, 200, 400, 1, ?, ?)",
                (logged, row[3], "RESOLVED" if whole else "EXHAUSTED", row[11][:19]))
            store.execute(
                "INSERT INTO recoveries VALUES (?, ?, 'choice 0', ?, ?, ?, ?, 'exact', 900, 80, 'the text is whole')",
                (logged, row[0], row[7], row[5], row[17], "resumed" if whole else "exhausted"))
            for ordinal in range(2):
                store.execute(
                    "INSERT INTO recovery_pieces VALUES (?, ?, 'prompt', 400, 'clean', 'stop', 'whole', 'it ends', 200, 'exact', 3, 0.9, ?, ?)",
                    (logged, ordinal, "0" * 64, "a text of some length " * 10))
    for session in range(count // CALLS_A_SESSION):
        store.execute(
            "INSERT OR IGNORE INTO budgets VALUES ('session', ?, 'ever', 'tokens', 900000, 0, 0, 0, 0, 0)", (f"session-{session}",))
    for number in range(recoveries // 20):
        store.execute(
            "INSERT INTO compactions VALUES ('client:key-1', ?, 40, ?, '[]', 'window', 90000, 12000, NULL, 400000, 30, ?, 0)",
            (f"{number:064x}", f"{number:064x}", moment(now)[:19]))
    for number in range(recoveries // 50):
        store.execute(
            """INSERT INTO runs (id, owner, state, agent, command, folder, artifact, attempt, max_attempts, input_tokens, output_tokens,
              context_exhaustion_risk, evidence, updated_at, ended_at) VALUES (?, 'o', 'succeeded', 'codex', '[]', '/', 'a.md', 1, 3,
              90000, 3000, 0, '[]', ?, ?)""", (f"run-{number:08x}", moment(now), moment(now)))
        for event in range(5):
            store.execute(
                "INSERT INTO run_events (run_id, name, attempt, state, message) VALUES (?, 'attempt_started', 1, 'running', 'x')",
                (f"run-{number:08x}",))
    store.commit()
    store.close()


def built():
    subprocess.run(["cargo", "build", "--release", "-p", "endmark-cli", "--all-features"], cwd=ROOT, check=True)
    return ROOT / "target/release/endmark"


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


class Served:
    """Runs the program with a store until the block ends."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __enter__(self):
        self.process = subprocess.Popen(
            [self.program, "serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:9/v1", "--store", f"sqlite:{self.folder}/store.db",
             "--set", "store_policy.keep_days=0"],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=self.folder)
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                self.address = found.group(0)
                return self
        raise SystemExit("the gateway did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.process.stderr.close()

    def get(self, place):
        with urllib.request.urlopen(self.address + place, timeout=600) as answer:
            return answer.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--recoveries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    program = (options.program or built()).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with Served(program, folder):
            pass
        path = folder / "store.db"
        took = seconds(lambda: fill(path, options.calls, options.recoveries, random.Random(4)))
        print(f"{options.calls} calls and {options.recoveries} recoveries, {path.stat().st_size >> 20} MiB, written in {took:.0f} s.\n")

        def usage(by):
            ask = [program, "usage", "--by", by, "--json", "--store", f"sqlite:{path}"]
            return json.loads(subprocess.run(ask, capture_output=True, check=True, cwd=folder).stdout)["data"]

        unsummed = {}
        for by in ["model", "key", "day"]:
            unsummed[by] = seconds(lambda: unsummed.update({by + " sums": usage(by)}))
        with Served(program, folder) as served:
            store = sqlite3.connect(path)
            begin = time.perf_counter()
            while store.execute("SELECT EXISTS (SELECT 1 FROM usage WHERE is_summed = 0)").fetchone()[0]:
                time.sleep(0.2)
            print(f"Summed in {time.perf_counter() - begin:.0f} s, into {store.execute('SELECT count(*) FROM usage_sums').fetchone()[0]} sums.\n")
            for by in ["model", "key", "day"]:
                took = seconds(lambda: unsummed.update({by + " now": usage(by)}))
                assert unsummed[by + " now"] == unsummed[by + " sums"], f"the sums by {by} are others than before"
                print(f"- `endmark usage --by {by}`: {unsummed[by] / took:.0f} times as fast as call by call")
            recovery, run = store.execute("SELECT max(log_id) / 2 FROM recoveries").fetchone()[0], "run-00000001"
            print("\n| | median ms | slowest ms | kB |\n|---|---:|---:|---:|")
            for place in ["/endmark/" + page for page in PAGES] + ["/endmark/api/" + route for route in ROUTES]:
                place = place.format(recovery=recovery, run=run)
                size = len(served.get(place))
                times = [1_000 * seconds(lambda: served.get(place)) for _ in range(options.rounds)]
                print(f"| `{place}` | {statistics.median(times):.0f} | {max(times):.0f} | {size / 1_000:.0f} |", flush=True)


if __name__ == "__main__":
    main()
