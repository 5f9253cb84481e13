#!/usr/bin/env python3
"""Tests the gateway's traces and metrics with OpenTelemetry's own protocol definitions and with the parser
of Prometheus' own library.

    python3 tests/telemetry/test_telemetry.py
    python3 tests/telemetry/test_telemetry.py --built     with the one that the tests were built with

Builds `endmark` with the feature `otel`, puts it in front of an upstream that cuts its replies, receives its spans over
OTLP and reads its metrics.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import DIRECT, free_port, new_environment, run, stop_process, wait_until_ready  # noqa: E402

FOLDER = ROOT / ".telemetry"
PYTHON = FOLDER / "venv" / "bin" / "python"


def install() -> None:
    """Installs the package in one folder, unless it is installed already. The folder can be deleted at any time."""
    requirements = HERE / "requirements.txt"
    fill = lambda place: run([*new_environment(place / "venv"), "-r", str(requirements)])  # noqa: E731
    installed(FOLDER, requirements.read_bytes(), fill)


if __name__ == "__main__" and Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
    try:
        install()
    except Exception as problem:  # noqa: BLE001
        sys.exit(str(problem))
    os.execv(PYTHON, [str(PYTHON), *sys.argv])

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: E402
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status  # noqa: E402
from prometheus_client.openmetrics.parser import text_string_to_metric_families  # noqa: E402

# One canary for each place where a secret, or user content, can enter. The model's name is not secret. Each request
# carries one secret, since the gateway refuses two different ones.
SECRET = "canary-Secret-1"
CANARIES = {
    "authorization": SECRET,
    "x-api-key": SECRET,
    "cookie": "canary=canary-Cookie-3",
    "query": SECRET,
    "prompt": "canary-Prompt-5",
    "reply": "canary-Reply-6",
    "error": "canary-Error-7",
    "collector": "canary-CollectorKey-8",
    "session": "canary-Session-9",
}
TEXT = f"one two three {CANARIES['reply']} four five six seven eight nine ten"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["content-length"]))

    def answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Upstream(Handler):
    """Cuts a reply in the middle, and continues it on request."""

    def do_POST(self) -> None:
        request = json.loads(self.body())
        if request["model"] == "refused":
            error = {"error": {"message": f"who is {CANARIES['error']}?", "type": "invalid_request_error"}}
            return self.answer(401, "application/json", json.dumps(error).encode())
        last = request["messages"][-1]
        goes_on = last["role"] == "assistant"
        cut = len(TEXT) // 2
        text, finish = (TEXT[len(last["content"]) :], "stop") if goes_on else (TEXT[:cut], "length")
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        usage["prompt_tokens_details"] = {"cached_tokens": 3}
        reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-2", "choices": [choice], "usage": usage}
        return self.answer(200, "application/json", json.dumps(reply).encode())


class Collector(Handler):
    """Receives spans like any collector."""

    requests: list[tuple[dict[str, str], bytes]] = []

    def do_POST(self) -> None:
        self.requests.append((dict(self.headers.items()) | {":path": self.path}, self.body()))
        self.answer(200, "application/x-protobuf", ExportTraceServiceResponse().SerializeToString())


def serve(handler: type[Handler]) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Gateway:
    """`endmark serve` with these environment variables. All spans are sent before it stops."""

    def __init__(self, program: Path, upstream: int, environment: dict[str, str]):
        self.port, self.folder = free_port(), tempfile.TemporaryDirectory(prefix="endmark-telemetry-")
        self.log = Path(self.folder.name) / "log"
        command = [str(program), "serve", "--listen", f"127.0.0.1:{self.port}", "--log", "json", "-v"]
        command += ["--upstream", f"http://127.0.0.1:{upstream}/v1", "--store", f"sqlite:{self.folder.name}/e.db"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env={**kept, **environment}, stdout=log, stderr=log)

    def __enter__(self) -> Gateway:
        wait_until_ready(f"http://127.0.0.1:{self.port}/endmark/readyz", self.process, self.log)
        return self

    def __exit__(self, *_: object) -> None:
        stop_process(self.process)
        self.said = self.log.read_text()
        self.folder.cleanup()

    def metrics(self) -> dict[str, list]:
        """Returns the samples of each family, as parsed by Prometheus' own library."""
        with DIRECT.open(f"http://127.0.0.1:{self.port}/endmark/metrics", timeout=30) as answer:
            assert answer.headers["content-type"].startswith("application/openmetrics-text")
            return {of.name: of.samples for of in text_string_to_metric_families(answer.read().decode())}

    def ask(self, model: str) -> tuple[int, dict[str, str], bytes]:
        messages = [{"role": "user", "content": f"Count. {CANARIES['prompt']}"}]
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions?key={CANARIES['query']}"
        headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {CANARIES['authorization']}",
            "x-api-key": CANARIES["x-api-key"],
            "cookie": CANARIES["cookie"],
            "x-endmark-resume": "on",
            "x-endmark-session": CANARIES["session"],
            "traceparent": f"00-{TRACE}-{PARENT}-01",
        }
        body = json.dumps({"model": model, "max_tokens": 5, "messages": messages}).encode()
        request = urllib.request.Request(url, data=body, headers=headers)
        try:
            with DIRECT.open(request, timeout=30) as answer:
                return answer.status, dict(answer.headers.items()), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers.items()), error.read()


def value(of: object) -> object:
    said = getattr(of, of.WhichOneof("value"))
    return [value(item) for item in said.values] if of.HasField("array_value") else said


def attributes(of: object) -> dict[str, object]:
    return {item.key: value(item.value) for item in of.attributes}


def received() -> list[tuple[dict[str, object], Span]]:
    """Returns every span with the resource attributes of its sender."""
    spans = []
    for _, body in Collector.requests:
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = attributes(of_resource.resource)
            spans += [(resource, span) for scope in of_resource.scope_spans for span in scope.spans]
    return spans


def check_spans(request_id: str) -> None:
    spans = received()
    servers = [span for _, span in spans if span.kind == Span.SPAN_KIND_SERVER]
    assert len(servers) == 2, [span.name for _, span in spans]
    assert all(resource["service.name"] == "endmark" for resource, _ in spans)
    for server in servers:
        assert (server.trace_id.hex(), server.parent_span_id.hex()) == (TRACE, PARENT)
        assert server.name == "POST /v1/chat/completions"
    mended, refused = sorted(servers, key=lambda span: span.start_time_unix_nano)
    of_mended = attributes(mended)
    assert of_mended["endmark.calls"] == 2, of_mended
    assert of_mended["endmark.request.id"] == request_id and of_mended["endmark.outcome"] == "resumed", of_mended
    assert of_mended["http.route"] == "/v1/chat/completions" and mended.status.code != Status.STATUS_CODE_ERROR

    calls = [span for _, span in spans if span.parent_span_id == mended.span_id]
    calls.sort(key=lambda span: span.start_time_unix_nano)
    assert [attributes(call)["endmark.purpose"] for call in calls] == ["reply", "resume"]
    for call in calls:
        of_call = attributes(call)
        assert call.kind == Span.SPAN_KIND_CLIENT and call.name == "chat gpt-4o", call.name
        assert call.start_time_unix_nano >= mended.start_time_unix_nano
        assert call.end_time_unix_nano <= mended.end_time_unix_nano
        expected = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.model": "m-2",
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.output_tokens": 5,
            "gen_ai.usage.cache_read.input_tokens": 3,
            "http.response.status_code": 200,
            "endmark.ending": "clean",
            "endmark.request.id": request_id,
        }
        assert {name: of_call.get(name) for name in expected} == expected, of_call
    assert attributes(calls[0])["endmark.cut"] == "limit"
    reasons = [attributes(call)["gen_ai.response.finish_reasons"] for call in calls]
    assert reasons == [["length"], ["stop"]], reasons

    (call,) = [span for _, span in spans if span.parent_span_id == refused.span_id]
    assert call.status.code == refused.status.code == Status.STATUS_CODE_ERROR
    assert attributes(call)["error.type"] == "401" and attributes(call)["http.response.status_code"] == 401
    assert "gen_ai.response.finish_reasons" not in attributes(call)


def check_metrics(families: dict[str, list]) -> None:
    """Checks the metrics of two calls of one model and of a refused call, with the names and labels of the conventions."""
    of = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "openai"}

    def found(family: str, suffix: str, **labels: str) -> float | None:
        labels = of | labels
        samples = [sample for sample in families[family] if sample.name == family + suffix]
        # A label with an empty value counts as absent.
        return next((s.value for s in samples if {k: v for k, v in s.labels.items() if v} == labels), None)

    duration, tokens = "gen_ai_client_operation_duration_seconds", "gen_ai_client_token_usage"
    assert found(duration, "_count", gen_ai_request_model="gpt-4o") == 2, families[duration]
    assert found(duration, "_sum", gen_ai_request_model="gpt-4o") > 0
    assert found(duration, "_count", gen_ai_request_model="_other", error_type="401") == 1, families[duration]
    assert found(duration, "_bucket", gen_ai_request_model="gpt-4o", le="81.92") == 2
    for kind, number in (("input", 14), ("output", 10)):
        labels = {"gen_ai_request_model": "gpt-4o", "gen_ai_token_type": kind}
        assert found(tokens, "_sum", **labels) == number and found(tokens, "_count", **labels) == 2, families[tokens]
    assert found(tokens, "_bucket", gen_ai_request_model="gpt-4o", gen_ai_token_type="input", le="16.0") == 2
    assert not [s for s in families[tokens] if s.labels["gen_ai_request_model"] == "_other"], "none was reported"


def check_secrets() -> None:
    for _, body in Collector.requests:
        for place, canary in CANARIES.items():
            assert canary.encode() not in body, f"the canary of the {place} is in a span"


def wait_for(seconds: float, done) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", action="store_true", help="it is built already, with the feature `otel`")
    if not parser.parse_args().built:
        subprocess.run(["cargo", "build", "--locked", "--package", "endmark-cli", "--features", "otel"], cwd=ROOT, check=True)
    described = run(["cargo", "metadata", "--format-version", "1", "--no-deps", "--manifest-path", str(ROOT / "Cargo.toml")])
    program = Path(json.loads(described)["target_directory"]) / "debug" / "endmark"
    upstream, collector = serve(Upstream), serve(Collector)
    endpoint = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_EXPORTER_OTLP_HEADERS": f"x-collector-key={CANARIES['collector']}",
    }

    with Gateway(program, upstream.server_port, {**endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100"}) as gateway:
        status, headers, body = gateway.ask("gpt-4o")
        assert status == 200 and json.loads(body)["choices"][0]["message"]["content"] == TEXT, body
        assert gateway.ask("refused")[0] == 401
        # Checked while the gateway runs, because traces must not arrive only at shutdown.
        wait_for(30, lambda: len(received()) >= 5)
        families = gateway.metrics()
    check_spans(headers["x-endmark-request"])
    check_metrics(families)
    check_secrets()
    for sent, _ in Collector.requests:
        assert sent[":path"] == "/v1/traces" and sent["x-collector-key"] == CANARIES["collector"]
    assert not any("gen_ai" in line for line in gateway.said.splitlines()), "what is for traces is in the log"
    print("spans and metrics of a mended reply and of a refusal: as they should be, without a secret")

    Collector.requests.clear()
    others = {"OTEL_SERVICE_NAME": "my-gateway", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"}
    with Gateway(program, upstream.server_port, {**endpoint, **others}) as gateway:
        gateway.ask("gpt-4o")
    resources = [resource for resource, _ in received()]
    assert resources, "what was not sent is sent at the end"
    assert all(of["service.name"] == "my-gateway" and of["deployment.environment.name"] == "test" for of in resources)
    print("the environment's own names: heeded")

    for silent in ({"OTEL_TRACES_SAMPLER": "always_off"}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}):
        Collector.requests.clear()
        with Gateway(program, upstream.server_port, {**endpoint, **silent}) as gateway:
            assert gateway.ask("gpt-4o")[0] == 200
        assert not received(), silent
    print("no sampler, no SDK, no exporter: no spans")

    with Gateway(program, upstream.server_port, {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}) as gateway:
        assert gateway.ask("gpt-4o")[0] == 200
    print("a collector that is not there: costs no reply")


if __name__ == "__main__":
    main()
