"""Attacks the real process with slowhttptest: slow heads, slow bodies, slow readers.

While each attack goes on an honest client asks again and again. It has to be answered, and soon; and what the attack
holds has to be given up in time. `slowhttptest` is a package of Debian; the command is target/release/endmark, or what
ENDMARK names.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

import served

CONNECTIONS = int(os.environ.get("ATTACKERS", "2000"))
# Each connection holds a pending reply. There are at most 1,024 of them, so an attacker with all of them blocks other clients.
READERS = min(CONNECTIONS, 1000)
SECONDS = int(os.environ.get("ATTACK_SECONDS", "30"))
# How long a socket may stay open after the attack has stopped sending: the longest time limit and some slack.
GIVEN_UP = 30 + 15
LARGE = b"x" * 4_000_000

ATTACKS = {
    "slow heads": ["-H", "-i", "3", "-x", "24"],
    "slow bodies": ["-B", "-i", "3", "-s", "8192", "-x", "24"],
    "slow readers": ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"],
}


class Upstream(served.Upstream):
    """Also serves a large file."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", str(len(LARGE)))
        self.end_headers()
        self.wfile.write(LARGE)


def asked(gateway, until):
    """Returns the latencies of answered requests, and the number of unanswered ones."""
    times, failed = [], 0
    while not until():
        try:
            said, took = gateway.ask(timeout=10)
            assert said == served.WORDS, said
            times.append(took)
        except (AssertionError, OSError):
            failed += 1
        time.sleep(0.02)
    return sorted(times), failed


def sockets(process):
    """Counts the open connections of the process, without those to its upstream and without files."""
    folder, count = f"/proc/{process.pid}/fd", 0
    for name in os.listdir(folder):
        # A listed descriptor may be closed by now.
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"{folder}/{name}").startswith("socket:")
    return count


def at(times, share):
    return 1000 * times[min(len(times) - 1, int(share * len(times)))]


def main():
    if not shutil.which("slowhttptest"):
        sys.exit("slowhttptest is not installed: apt-get install slowhttptest")
    upstream = served.upstream(Upstream)
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        with served.Gateway(folder, f"http://127.0.0.1:{upstream.server_port}/v1") as gateway:
            end = time.monotonic() + 5
            calm, _ = asked(gateway, lambda: time.monotonic() > end)
            before = sockets(gateway.process)
            print(f"calm: {len(calm)} requests, p50 {at(calm, 0.5):.1f} ms, p99 {at(calm, 0.99):.1f} ms")
            for name, options in ATTACKS.items():
                reads = name == "slow readers"
                path, count = ("/v1/files/large", READERS) if reads else ("/v1/chat/completions", CONNECTIONS)
                attack = ["slowhttptest", *options, "-c", str(count), "-r", "500", "-l", str(SECONDS), "-p", "3"]
                attack += ["-u", f"http://{gateway.address}{path}"]
                running = subprocess.Popen(attack, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                most = [0]

                def is_over():
                    most[0] = max(most[0], sockets(gateway.process))
                    return running.poll() is not None

                times, failed = asked(gateway, is_over)
                given_up = time.monotonic() + GIVEN_UP
                while sockets(gateway.process) > before + 4 and time.monotonic() < given_up:
                    time.sleep(0.2)
                left = max(0, sockets(gateway.process) - before - 4)
                print(
                    f"{name}: {count} sockets, {most[0]} open at most; {len(times)} honest requests served, {failed} not; "
                    f"p50 {at(times, 0.5):.1f} ms, p99 {at(times, 0.99):.1f} ms; {left} sockets left over"
                )
                if failed > len(times) // 100 or left:
                    bad.append(name)
            gateway.stop()
    if bad:
        sys.exit(f"not held: {', '.join(bad)}")


main()
