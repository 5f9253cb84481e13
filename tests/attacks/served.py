"""Shared parts of the attacks: the attacked command, and an upstream with selectable faults."""

import contextlib
import http.server
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request

COMMAND = os.path.abspath(os.environ.get("ENDMARK", "target/release/endmark"))
WORDS = "one two three four five six seven eight nine ten"
# Never use a proxy of this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def reply_to(body):
    """Returns a model's reply: all of its words, as many as the limit allows, or the words after the shown ones."""
    said = next((m["content"] for m in reversed(body["messages"]) if m["role"] == "assistant"), "")
    words = WORDS.split()[len(said.split()) :]
    kept = words[: body.get("max_tokens") or len(words)] if not said else words
    text = (" " if said else "") + " ".join(kept)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    choice["finish_reason"] = "length" if len(kept) < len(words) else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": len(kept), "total_tokens": 1 + len(kept)}
    return {"id": "c", "object": "chat.completion", "model": body["model"], "choices": [choice], "usage": usage}


class Upstream(http.server.BaseHTTPRequestHandler):
    """Answers like a model, unless `fault` is set: `refuse`, `reset`, `half`, `stall`."""

    protocol_version = "HTTP/1.1"
    fault = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        payload, fault = json.dumps(reply_to(body)).encode(), self.server.fault
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return self.connection.close()
        self.send_response(503 if fault == "refuse" else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload[: len(payload) // 2] if fault in ("half", "stall") else payload)
        self.wfile.flush()
        if fault == "stall":
            time.sleep(3)
        if fault in ("half", "stall"):
            self.close_connection = True

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    # The default backlog is five connections. Any further ones would wait for seconds.
    request_queue_size = 4096
    fault = None

    def handle_error(self, *_):
        """Ignores clients that close the connection early."""


def upstream(handler=Upstream, port=0):
    server = Server(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Gateway:
    """A running `endmark serve`, in its own folder."""

    def __init__(self, folder, base_url, *options, before=(), environment=None):
        arguments = [*before, COMMAND, "serve", "--listen", "127.0.0.1:0", "--upstream", base_url, "--store", "sqlite:endmark.db", *options]
        variables = {**os.environ, **(environment or {})}
        self.process = subprocess.Popen(arguments, cwd=folder, stderr=subprocess.PIPE, text=True, env=variables)
        self.said, self.address, self.store = [], None, os.path.join(folder, "endmark.db")
        for line in self.process.stderr:
            self.said.append(line)
            if "listens on http" in line:
                self.address = line.split("://")[1].split()[0].rstrip(".")
                break
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def get(self, path):
        with DIRECT.open(f"http://{self.address}{path}", timeout=10) as reply:
            return reply.read().decode()

    def ready(self):
        return json.loads(self.get("/endmark/readyz"))

    def metric(self, name):
        lines = (line.split() for line in self.get("/endmark/metrics").splitlines())
        return sum(float(words[1]) for words in lines if words[0].split("{")[0] == name)

    def ask(self, limit=None, timeout=60, model="m"):
        """Returns the text of a reply or the status of a refusal, and the duration in seconds."""
        body = {"model": model, "messages": [{"role": "user", "content": "Count."}]} | ({"max_tokens": limit} if limit else {})
        headers = {"content-type": "application/json", "x-endmark-resume": "on"}
        request = urllib.request.Request(f"http://{self.address}/v1/chat/completions", json.dumps(body).encode(), headers)
        began = time.monotonic()
        try:
            with DIRECT.open(request, timeout=timeout) as reply:
                said = json.load(reply)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError as refusal:
            said = refusal.code
        return said, time.monotonic() - began

    def rows(self, table="usage", database=None):
        select = ["sqlite3", "-readonly", database or self.store, f"SELECT count(*) FROM {table}"]
        return int(subprocess.run(select, capture_output=True, text=True, check=True).stdout)

    def stop(self):
        """Stops the gateway. Returns its exit code and its output."""
        # The parent process may not be this one.
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.reader.join(5)
        return self.process.returncode, "".join(self.said)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)


def within(seconds, condition):
    """Waits until the condition holds. Returns the duration in seconds, or None after a timeout."""
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        with contextlib.suppress(OSError):
            if condition():
                return time.monotonic() - began
        time.sleep(0.05)
    return None
