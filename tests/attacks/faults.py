#!/usr/bin/env python3
"""Tests faults around a running gateway, each once with the real process: a clock that jumps, a store that is
read-only, locked, removed or replaced, an upstream that flaps, and one with TLS and HTTP/2 under the same faults.

    python3 tests/attacks/faults.py            all of them
    python3 tests/attacks/faults.py clock      this one

Each prints one line of figures. The command is target/release/endmark, or what ENDMARK names. `faketime` and `sqlite3`
are packages of Debian; the HTTP/2 of the upstream is the Python package h2 (requirements.txt).
"""

import collections
import glob
import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from model_server import new_environment, run  # noqa: E402
from served import COMMAND, WORDS, Gateway, upstream, within  # noqa: E402

SECONDS = float(os.environ.get("FAULT_SECONDS", "10"))


def clock(folder):
    """The wall clock repeatedly jumps forward and back by days."""
    library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)
    assert library, "libfaketime is not installed: apt-get install faketime"
    now = os.path.join(folder, "now")

    def jump(offset):
        with open(now + ".next", "w") as file:
            file.write(offset)
        os.replace(now + ".next", now)

    jump("+0")
    fake = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": now, "FAKETIME_NO_CACHE": "1"}
    # The monotonic clock never jumps.
    fake |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    model = upstream()
    with Gateway(folder, f"http://127.0.0.1:{model.server_port}/v1", environment=fake) as gateway:
        asked, slowest, jumps = 0, 0.0, ["+2d", "-3d", "+0", "-3650d", "+3650d", "+0"]
        for offset in jumps:
            jump(offset)
            for limit in (None, 3, None, 3):
                said, took = gateway.ask(limit)
                assert said == WORDS, (offset, said)
                asked, slowest = asked + 1, max(slowest, took)
        assert gateway.ready()["status"] == "ready", gateway.ready()
        code, said = gateway.stop()
        assert code == 0 and "panicked" not in said, said
        years = subprocess.run(
            ["sqlite3", gateway.store, "SELECT count(DISTINCT substr(started_at, 1, 4)) FROM usage"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        assert int(years) > 2, "the clock did jump"
        calls, cuts = gateway.rows(), gateway.rows("partial_completion_log")
        assert calls >= asked and cuts == asked // 2, (calls, cuts)
        return f"{len(jumps)} jumps, {asked} replies whole, {calls} calls and {cuts} cut replies recorded, slowest {slowest:.2f} s"


def read_only(folder):
    """The gateway must not start with a store that cannot be written."""
    store, said = os.path.join(folder, "endmark.db"), []
    model = upstream()
    base_url = f"http://127.0.0.1:{model.server_port}/v1"
    with Gateway(folder, base_url) as gateway:
        gateway.ask()
        gateway.stop()
    serve = [COMMAND, "serve", "--listen", "127.0.0.1:0", "--upstream", base_url]
    mounted = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"', folder]
    before = open(store, "rb").read()
    for command in (mounted + serve + ["--store", "sqlite:endmark.db"], mounted + serve + ["--store", "sqlite:other.db"]):
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
        assert run.returncode == 4 and "store" in run.stderr, run
        said.append(run.stderr.strip().splitlines()[-1])
    assert open(store, "rb").read() == before and not os.path.exists(os.path.join(folder, "other.db"))
    return f"exit code 4 at the start, nothing changed: {said[0]}"


def locked(folder):
    """Another program holds the database's write lock."""
    server = upstream()
    with Gateway(folder, f"http://127.0.0.1:{server.server_port}/v1") as gateway:
        times = {"calm": gateway.ask(3)[1]}
        shell = subprocess.Popen(["sqlite3", gateway.store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        shell.stdin.write(".timeout 5000\nBEGIN IMMEDIATE;\nSELECT 'locked';\n")
        shell.stdin.flush()
        assert shell.stdout.readline() == "locked\n"
        # For a model without known usage, the gateway also reads the store.
        for model, (name, limit) in enumerate((("whole", None), ("cut", 3))):
            said, times[name] = gateway.ask(limit, model=f"unknown-{model}")
            assert said == WORDS, said
        # Waiting for the store takes at most two seconds in total; the rest is slack for a loaded machine.
        assert times["cut"] - times["calm"] < 3, times
        assert gateway.ready()["status"] == "degraded"
        shell.kill()
        shell.wait()
        well = within(30, lambda: gateway.ready()["status"] == "ready" and gateway.metric("endmark_store_rows_waiting") == 0)
        assert well is not None, gateway.ready()
        assert gateway.stop()[0] == 0
        assert gateway.rows("partial_completion_log") == 2
        return f"a whole reply took {times['whole']:.2f} s, a cut one {times['cut']:.2f} s (before: {times['calm']:.2f} s); all recorded {well:.1f} s after it was free"


def removed(folder):
    """The store's files are replaced by another database while the gateway runs."""
    model, told = upstream(), []
    with Gateway(folder, f"http://127.0.0.1:{model.server_port}/v1") as gateway:
        for number, replace in enumerate((False, True, False), 1):
            gateway.ask(3)
            within(5, lambda: gateway.metric("endmark_store_rows_waiting") == 0)
            for file in glob.glob(gateway.store + "*"):
                os.rename(file, os.path.join(folder, f"{number}-{os.path.basename(file)}"))
            if replace:
                shutil.copy(os.path.join(folder, "1-endmark.db"), gateway.store)
            told.append(within(10, lambda: gateway.metric("endmark_store_renewals_total") == number))
            assert told[-1] is not None and gateway.metric("endmark_store_degraded") == 1
            assert gateway.ready()["status"] == "degraded", gateway.ready()
        gateway.ask(3)
        code, said = gateway.stop()
        assert code == 0 and said.count("removed or replaced") >= 3, said
        rows, kept = gateway.rows(), gateway.rows(database=os.path.join(folder, "2-endmark.db"))
        assert rows >= 2 and gateway.rows("partial_completion_log") == 1, rows
        return f"reported after {max(told):.1f} s at most; {rows} calls recorded in the new files, {kept} in the files that were moved away"


def flapping(folder):
    """An upstream goes down and comes back, refuses, resets, and stops mid-reply while eight clients keep sending."""
    model = upstream()

    def change(fault):
        nonlocal model
        if fault == "gone":
            model.shutdown()
            model.server_close()
            time.sleep(SECONDS / 16)
            model = upstream(port=model.server_port)
        else:
            model.fault = fault

    faults = ["refuse", None, "reset", None, "half", None, "gone", None] * 2
    with Gateway(folder, f"http://127.0.0.1:{model.server_port}/v1", "--set", "retry.max_retries=2") as gateway:
        return f"{len(faults)} turns, {under_faults(gateway, faults, change)}"


def under_faults(gateway, faults, change):
    """Eight clients request whole and cut replies during all faults. Every result is whole or an error."""
    seen, over = collections.Counter(), threading.Event()

    def client(number):
        while not over.is_set():
            try:
                said, _ = gateway.ask(3 if number % 2 else None)
            except OSError as error:
                said = repr(error)
            # Without a continuation, the client gets the cut text and is informed of the cut.
            is_beginning = isinstance(said, str) and said and WORDS.startswith(said)
            seen["whole" if said == WORDS else "cut" if is_beginning else str(said)] += 1
            if said != WORDS:
                time.sleep(0.01)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in clients:
        thread.start()
    for fault in faults:
        change(fault)
        time.sleep(SECONDS / len(faults))
    well = within(30, lambda: gateway.ask()[0] == WORDS)
    over.set()
    for thread in clients:
        thread.join(90)
    assert well is not None, seen
    wrong = {said: count for said, count in seen.items() if said not in ("whole", "cut", "502", "503", "504")}
    assert not wrong and seen["whole"], wrong
    asked = sum(seen.values())
    assert within(10, lambda: gateway.metric("endmark_store_rows_waiting") == 0) is not None
    code, said = gateway.stop()
    assert code == 0 and "panicked" not in said, said
    assert gateway.rows() >= asked
    refused = asked - seen["whole"] - seen["cut"]
    return f"{asked} replies: {seen['whole']} whole, {seen['cut']} cut and told so, {refused} refused with an error; well again after {well:.1f} s; {gateway.rows()} calls recorded"


def secure(folder):
    """Repeats the faults in HTTP/2 streams over TLS."""
    server, authority = secure_upstream(folder)
    options = ("--set", f"ca_file={authority}", "--set", "retry.max_retries=2", "--set", "limits.first_byte_seconds=2")
    with Gateway(folder, f"https://localhost:{server.port}/v1", *options) as gateway:

        def change(fault):
            server.fault = fault

        said = under_faults(gateway, ["refuse", None, "reset", None, "half", None, "goaway", None, "close", None], change)
        assert server.streams > 10 and server.connections < server.streams, "it was HTTP/2"
        return f"{said}; {server.streams} streams on {server.connections} connections"


def secure_upstream(folder):
    """Starts the upstream in secure_upstream.py, and installs its package."""
    environment = HERE.parent.parent / ".attacks"
    if not list(environment.glob("lib/python*/site-packages/h2")):
        run([*new_environment(environment), "-r", str(HERE / "requirements.txt")])
    sys.path.extend(map(str, environment.glob("lib/python*/site-packages")))
    return importlib.import_module("secure_upstream").start(folder)


ATTACKS = [clock, read_only, locked, removed, flapping, secure]


def main():
    names = sys.argv[1:] or [attack.__name__ for attack in ATTACKS]
    for attack in ATTACKS:
        if attack.__name__ in names:
            with tempfile.TemporaryDirectory() as folder:
                print(f"{attack.__name__}: {attack(folder)}", flush=True)


main()
