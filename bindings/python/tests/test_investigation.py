"""Runs the example of an investigation with a server in Gemini's format."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("google.adk")

PACKAGE = Path(__file__).resolve().parents[1]
REPORT = "# Report\n\nThe log `/var/log/app.log` fills the disk. Evidence: `du /var/log`. Next step: rotate it."


class Server:
    """Requests `steps` commands, then writes a report that is cut. Without tools, it writes a summary."""

    def __init__(self, steps, command):
        self.requests = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.requests.append(body)
                part, stop = server.answer(body, steps, command)
                usage = {"promptTokenCount": 100, "candidatesTokenCount": 50, "totalTokenCount": 150}
                candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": stop}
                answer = json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, body, steps, command):
        last = body["contents"][-1]["parts"][-1]
        if "last valid token" in last.get("text", ""):
            # The prompt asks for an answer that repeats the last token.
            token = re.search(r"last valid token that arrived is:\n(.*?)\n", last["text"], re.DOTALL)[1]
            return {"text": REPORT[REPORT.find(token) :]}, "STOP"
        if not body.get("tools"):
            return {"text": "Summary: the disk is full."}, "STOP"
        done = len([1 for request in self.requests if request.get("tools")]) - 1
        if done < steps:
            return {"functionCall": {"name": "run_command", "args": {"command": f"{command} {done}" if command == "ls" else command}}}, "STOP"
        return {"text": REPORT[:60]}, "MAX_TOKENS"


def investigate(tmp_path, steps, command, budget):
    server = Server(steps, command)
    environment = {**os.environ, "GOOGLE_API_KEY": "not-needed", "SRE_AGENT_TOKEN_BUDGET": budget}
    url = f"http://127.0.0.1:{server.http.server_port}"
    options = ["--base-url", url, "--folder", str(tmp_path / "kept"), "Why is the disk full?"]
    script = [sys.executable, str(PACKAGE / "examples" / "investigation.py")]
    try:
        done = subprocess.run([*script, *options], env=environment, capture_output=True, text=True, timeout=120)
    finally:
        server.http.shutdown()
    return done, server.requests


def test_the_investigation_ends_with_a_whole_report_and_its_usage(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("".join(f"row {row}: {'error: disk full' if row == 31_000 else 'ok'}\n" for row in range(150_000)))
    done, requests = investigate(tmp_path, 3, f"cat {log}", "850_000")
    assert done.returncode == 0 and done.stdout.strip() == REPORT, done
    assert "5 calls, 500 prompt and 250 completion tokens" in done.stderr and done.stderr.count("run_command") == 3
    assert all(len(json.dumps(request)) < 100_000 for request in requests)
    assert "row 31000: error: disk full" in json.dumps(requests[1]) and "endmark_read" in json.dumps(requests[1]["tools"])
    [[status]] = sqlite3.connect(tmp_path / "kept" / "replies.db").execute("SELECT final_status FROM partial_completion_log")
    assert status == "RESOLVED"
    kept = sqlite3.connect(tmp_path / "kept" / "results.db").execute("SELECT count(*) FROM outputs_of_tools").fetchone()
    assert kept == (3,)


def test_a_used_up_budget_ends_the_investigation_with_a_summary(tmp_path):
    done, requests = investigate(tmp_path, 1_000, "ls", "6,000")
    assert done.returncode == 0 and done.stdout.strip() == "Summary: the disk is full.", done
    assert "token budget is used up" in json.dumps(requests[-1]) and not requests[-1].get("tools") and len(requests) > 5


def test_the_investigation_runs_only_read_only_commands(tmp_path):
    done, requests = investigate(tmp_path, 1, "rm -rf /", "850_000")
    assert done.returncode == 0 and "only these programs may run" in json.dumps(requests[1])
    done, requests = investigate(tmp_path, 1, "find / -name x -delete", "850_000")
    assert "may not change anything" in json.dumps(requests[1])
