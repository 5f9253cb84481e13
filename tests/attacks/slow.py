"""slowhttptest against the real process: slow heads, slow bodies, slow readers.

While each attack goes on an honest client asks again and again. It has to be answered, and soon; and what the attack
holds has to be given up in time. `slowhttptest` is a package of Debian; the command is target/release/endmark, or what
ENDMARK names.
"""

import contextlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

CONNECTIONS = int(os.environ.get("ATTACKERS", "2000"))
# Each has a reply under way, of which there are 1,024 at most: who holds them all keeps others waiting.
READERS = min(CONNECTIONS, 1000)
SECONDS = int(os.environ.get("ATTACK_SECONDS", "30"))
# How long a socket may be held after the attack has stopped sending: the longest of the limits, and some slack.
GIVEN_UP = 30 + 15
LARGE = b"x" * 4_000_000

ATTACKS = {
    "slow heads": ["-H", "-i", "3", "-x", "24"],
    "slow bodies": ["-B", "-i", "3", "-s", "8192", "-x", "24"],
    "slow readers": ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"],
}


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer("application/octet-stream", LARGE)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        self.answer("application/json", json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}).encode())

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    # By itself it would keep five connections until they are accepted, and those beyond would wait for seconds.
    request_queue_size = 4096

    def handle_error(self, *_):
        """Attackers go away in the middle."""


def ask(address):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Go."}]}).encode()
    request = urllib.request.Request(f"http://{address}/v1/chat/completions", body, {"content-type": "application/json"})
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=10) as reply:
        assert json.load(reply)["choices"][0]["message"]["content"] == "ok"
    return time.monotonic() - began


def asked(address, until):
    """The latencies of requests that were served, and how many were not."""
    times, failed = [], 0
    while not until():
        try:
            times.append(ask(address))
        except OSError:
            failed += 1
        time.sleep(0.02)
    return sorted(times), failed


def sockets(process):
    """Connections that the process has open, beside those to its upstream and its own files."""
    folder, count = f"/proc/{process.pid}/fd", 0
    for name in os.listdir(folder):
        # One that was listed can be closed by now.
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"{folder}/{name}").startswith("socket:")
    return count


def at(times, share):
    return 1000 * times[min(len(times) - 1, int(share * len(times)))]


def main():
    if not shutil.which("slowhttptest"):
        sys.exit("slowhttptest is not installed: apt-get install slowhttptest")
    upstream = Server(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    command = os.path.abspath(os.environ.get("ENDMARK", "target/release/endmark"))
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        arguments = [command, "serve", "--listen", "127.0.0.1:0", "--upstream", f"http://127.0.0.1:{upstream.server_port}/v1"]
        gateway = subprocess.Popen(arguments, cwd=folder, stderr=subprocess.PIPE, text=True)
        try:
            address = next(line for line in gateway.stderr if "listens on http" in line).split("://")[1].split()[0]
            threading.Thread(target=lambda: [None for _ in gateway.stderr], daemon=True).start()
            end = time.monotonic() + 5
            calm, _ = asked(address, lambda: time.monotonic() > end)
            before = sockets(gateway)
            print(f"calm: {len(calm)} requests, p50 {at(calm, 0.5):.1f} ms, p99 {at(calm, 0.99):.1f} ms")
            for name, options in ATTACKS.items():
                reads = name == "slow readers"
                path, count = ("/v1/files/large", READERS) if reads else ("/v1/chat/completions", CONNECTIONS)
                attack = ["slowhttptest", *options, "-c", str(count), "-r", "500", "-l", str(SECONDS), "-p", "3"]
                attack += ["-u", f"http://{address}{path}"]
                running = subprocess.Popen(attack, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                most = [0]

                def is_over():
                    most[0] = max(most[0], sockets(gateway))
                    return running.poll() is not None

                times, failed = asked(address, is_over)
                given_up = time.monotonic() + GIVEN_UP
                while sockets(gateway) > before + 4 and time.monotonic() < given_up:
                    time.sleep(0.2)
                left = max(0, sockets(gateway) - before - 4)
                print(
                    f"{name}: {count} sockets, {most[0]} open at most; {len(times)} honest requests served, {failed} not; "
                    f"p50 {at(times, 0.5):.1f} ms, p99 {at(times, 0.99):.1f} ms; {left} sockets left over"
                )
                if failed > len(times) // 100 or left:
                    bad.append(name)
        finally:
            gateway.terminate()
            gateway.wait(60)
    if bad:
        sys.exit(f"not held: {', '.join(bad)}")


main()
