"""Defines cases for every path of a reply through a running gateway, and for requests."""

import contextlib
import http.client
import json
import threading

import served

from . import measured, replies, shapes

WIRES = list(replies.PATHS)
# The shapes that each path of a reply gets.
CORE = ["deep arrays", "wide empty arrays", "string of words", "words", "repeated '\\n'"]
JSON = [*shapes.JSON, "repeated '{'"]
TEXTS = ["deep arrays", "json lines", "repeated ' '", "repeated '\\n'", "repeated 'a'", "repeated '*'", "repeated '|'", "repeated '0'",
         "repeated '漢'", "words", "distinct words", "sentences on lines", "list items", "numbered items", "table rows", "one wide row",
         "fences", "long fence of code", "quotes in quotes", "opening tags", "half tags", "comments", "links", "open links",
         "an answer about the cut", "no spaces", "dots of omission", "code spans"]
# Replies to a continuation request: the same part, cut again; a few words; or the same part, complete.
RESTS = {
    "again": lambda text: (text, True),
    "short": lambda text: (' and the rest."]}', False),
    "same": lambda text: (text, False),
    "talk": lambda text: ("Here is the rest: " + text, False),
}
# The time limit of a request in seconds. The measured value is its CPU time.
PATIENCE = 60
# With a budget, each prompt is counted before it is sent.
BUDGET = ["--set", "budget.session_tokens=1000000000"]

# The base cost is zero, because the gateway is already running.
NOTHING = measured.Cost(0, 0)
state = {}


class Reply:
    """A cut reply, and the reply to the request for its rest."""

    is_command, options = False, []

    def __init__(self, wire, streamed, kind, shape, rest, dropped=False, length=replies.PART):
        self.wire, self.streamed, self.kind, self.shape, self.rest, self.dropped = wire, streamed, kind, shape, rest, dropped
        self.length = length
        way = f"{'streamed ' if streamed else ''}{kind}{' dropped' if dropped else ''}{' by tokens' if length < replies.PART else ''}"
        self.name = f"reply {wire} {way}, then {rest}: {shape}"

    def cost(self, size):
        start(self.options)
        return NOTHING, self.measured(size)

    def measured(self, size):
        text = shapes.grown(self.shape, size).decode()
        upstream = state["upstream"]
        upstream.first, upstream.rest, upstream.asked = text, RESTS[self.rest](text), 0
        upstream.tool, upstream.whole, upstream.dropped = self.kind == "tool", False, self.dropped
        upstream.length = self.length
        return ask(replies.path(self.wire, self.streamed), json.dumps(replies.request(self.wire, self.kind, self.streamed)))


class Request:
    """A request with this content, with or without a budget. The reply is one word."""

    is_command = False

    def __init__(self, wire, place, shape, budget=False):
        self.wire, self.place, self.shape, self.options = wire, place, shape, BUDGET if budget else []
        self.name = f"request {wire} {place}{' within a budget' if budget else ''}: {shape}"

    def cost(self, size):
        start(self.options)
        upstream = state["upstream"]
        upstream.first, upstream.rest, upstream.asked, upstream.whole = "Yes.", ("Yes.", False), 0, True
        upstream.tool, upstream.dropped, upstream.length = False, False, replies.PART
        return NOTHING, ask(replies.path(self.wire, False), self.body(shapes.grown(self.shape, size).decode(), size))

    def body(self, text, size):
        if self.place == "prompt":
            body = json.dumps(replies.request(self.wire, "text", False))
            return body.replace('"Write."', json.dumps(text))
        if self.place == "unknown field":
            depth = "[" * (size // 2)
            return json.dumps(replies.request(self.wire, "text", False))[:-1] + f', "metadata": {depth}{"]" * (size // 2)}}}'
        call = {"id": "c", "type": "function", "function": {"name": "write", "arguments": "{}"}}
        turns = [{"role": "user", "content": "Write."}]
        if self.place == "broken arguments":
            call["function"]["arguments"] = text
            turns += [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "a"}]
        elif self.place == "tool result":
            turns += [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": text}]
        else:
            for _ in range(size // 120):
                turns += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "Go on, please."}]
        return json.dumps({"model": "m", "messages": turns})


def ask(path, body):
    """Returns the cost of answering this request. Reads the answer to its end."""
    process, failed = state["process"], None
    process.begin()
    connection = http.client.HTTPConnection(state["address"], timeout=PATIENCE)
    try:
        headers = {"content-type": "application/json", "authorization": "Bearer a", "x-api-key": "a", "x-goog-api-key": "a", "anthropic-version": "2023-06-01"}
        connection.request("POST", path, body.encode(), headers)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status not in (200, 400, 413, 502):
            failed = f"status {answer.status}: {said[:200]!r}"
    except http.client.HTTPException:
        # If the upstream drops a reply, the gateway drops it for the client.
        pass
    except TimeoutError:
        failed = f"no answer within {PATIENCE} s"
    finally:
        connection.close()
    if failed:
        # The gateway may still be working on the request.
        stop()
    return process.cost(failed) if not failed else measured.Cost(PATIENCE, 0, failed)


def start(options):
    """Starts a gateway with these options, unless it is already running."""
    if "gateway" in state and state["options"] == options:
        return
    stop()
    base_url = f"http://127.0.0.1:{state['upstream'].server_port}/v1"
    gateway = served.Gateway(state["folder"], base_url, *options)
    process = measured.Process(gateway.process.pid)
    state.update(gateway=gateway, address=gateway.address, process=process, options=options)
    # Some things are created only at the first request.
    for wire in WIRES:
        Reply(wire, False, "json", "deep arrays", "short").measured(64)


def stop():
    gateway = state.pop("gateway", None)
    if gateway:
        gateway.process.kill()
        gateway.process.wait()


@contextlib.contextmanager
def running(folder):
    upstream = served.upstream(replies.Upstream)
    upstream.lock = threading.Lock()
    state.update(upstream=upstream, folder=folder)
    try:
        yield
    finally:
        stop()
        upstream.shutdown()


def can_be_cut(wire, streamed, kind):
    """Whether a reply of this kind can be cut. A call whose arguments are an object cannot."""
    return kind != "tool" or wire in ("openai_chat", "openai_responses") or (wire == "anthropic_messages" and streamed)


def cases(full):
    """Returns the cases, grouped by gateway."""
    return sorted(every_case(full), key=lambda case: len(case.options))


def every_case(full):
    """Returns all cases: each shape once and each path with a few shapes, or with `full` all combinations."""
    ways = [(wire, streamed, kind) for wire in WIRES for streamed in (False, True) for kind in ("text", "json", "tool")]
    for wire, streamed, kind in ways:
        if not can_be_cut(wire, streamed, kind):
            continue
        every = TEXTS if kind == "text" else JSON
        plain = (wire, streamed) == ("openai_chat", False)
        names = every if full or plain else [name for name in CORE if name in every][:3]
        for shape in names:
            for rest in RESTS if full else ("again",) if plain else ("short",):
                yield Reply(wire, streamed, kind, shape, rest)
        if streamed:
            for shape in names[:2]:
                yield Reply(wire, streamed, kind, shape, "short", dropped=True)
    for kind, shape in (("text", "words"), ("text", "repeated '`'"), ("json", "wide rows"), ("tool", "string of words")):
        yield Reply("openai_chat", True, kind, shape, "again", length=replies.TOKEN)
    if not full:
        for rest in ("short", "same", "talk"):
            for kind, names in (("text", ["words", "an answer about the cut", "sentences on lines"]), ("json", ["wide rows", "deep arrays"])):
                for shape in names:
                    yield Reply("openai_chat", False, kind, shape, rest)
    for wire in WIRES:
        for shape in ("words", "deep arrays") if not full else TEXTS:
            yield Request(wire, "prompt", shape)
        yield Request(wire, "unknown field", "deep arrays")
        yield Request(wire, "prompt", "words", budget=True)
    for shape in ("words", "sentences on lines", "wide rows", "repeated '\\n'", "table rows") if not full else TEXTS + JSON:
        yield Request("openai_chat", "tool result", shape)
    for shape in ("deep arrays", "words", "wide rows") if not full else JSON:
        yield Request("openai_chat", "broken arguments", shape)
    yield Request("openai_chat", "many turns", "words")
    yield Request("openai_chat", "many turns", "words", budget=True)
