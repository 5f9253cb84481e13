"""Defines a case for every command that reads untrusted bytes."""

import json
import os
import re
import subprocess
import threading

from . import measured, replies, shapes

COMMAND = os.path.abspath(os.environ["ENDMARK"])
TEXTS, JSON, EVERY = list(shapes.TEXTS), list(shapes.JSON), list(shapes.ALL)
# A process for each shape would take too long, so these shapes represent all kinds of work.
FEW = ["deep arrays", "wide rows", "string of words", "json lines", "repeated 'a'", "repeated '\\n'", "words", "distinct words",
       "sentences on lines", "list items", "opening tags", "error lines", "table rows", "paths", "hashes"]
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}


class Folder:
    """Input files, each created once."""

    def __init__(self, folder):
        self.folder, self.lock, self.environment = folder, threading.Lock(), ENVIRONMENT | {"HOME": folder}

    def path(self, name):
        return os.path.join(self.folder, re.sub(r"[^\w.]", "_", name))

    def file(self, name, content):
        path = self.path(name)
        with self.lock:
            if not os.path.exists(path):
                with open(path, "wb") as file:
                    file.write(content())
        return path


class Case:
    is_command = True
    base, guard = {}, threading.Lock()

    def __init__(self, folder, name, arguments, shape, wrap=None, allowed=(0, 1, 2), size=1, before=None):
        self.folder, self.name, self.arguments, self.shape, self.wrap = folder, f"{name}: {shape}", arguments, shape, wrap
        self.allowed, self.size, self.before = allowed, size, before

    def cost(self, size):
        """Returns the cost of starting the program, and the additional cost of this size."""
        begun = self.measured(64)
        return begun, self.measured(int(size * self.size)).beyond(begun)

    def measured(self, size):
        name = f"{self.wrap.__name__ if self.wrap else 'raw'} {list(shapes.ALL).index(self.shape) if self.shape in shapes.ALL else self.shape} {size}"

        def content():
            text = shapes.grown(self.shape, size) if self.shape in shapes.ALL else b""
            return self.wrap(text, self.shape, size) if self.wrap else text

        path = self.folder.file(name, content)
        said = self.folder.path(f"said {threading.get_ident()}")
        arguments = [argument.replace("FILE", path) for argument in self.arguments]
        if self.before:
            handle = self.before(self.folder, path)
            arguments = [argument.replace("HANDLE", handle) for argument in arguments]
        stdin = "/dev/null" if arguments != self.arguments else path
        return measured.of_child([COMMAND, *arguments], self.folder.environment, stdin, said, self.allowed)


def as_text(raw):
    return raw.decode(errors="replace")


def batch_line(raw, *_):
    return json.dumps({"id": 1, "text": as_text(raw)}).encode() + b"\n"


def batch_lines(_raw, _shape, size):
    return b'{"id":1,"text":"{\\"a\\":[1"}\n' * (size // 30)


def pieces(raw, *_):
    return json.dumps({"id": 1, "chunks": [as_text(raw), as_text(raw)]}).encode() + b"\n"


def piece_with_rest(raw, *_):
    return json.dumps({"id": 1, "chunks": [as_text(raw), "and the rest."]}).encode() + b"\n"


def rest_of_piece(raw, *_):
    return json.dumps({"id": 1, "chunks": ["It begins with some words", as_text(raw)]}).encode() + b"\n"


def many_pieces(raw, *_):
    text = as_text(raw)
    step = max(64, len(text) // 8)
    return json.dumps({"id": 1, "chunks": [text[at : at + step] for at in range(0, len(text), step)]}).encode() + b"\n"


def tiny_pieces(raw, *_):
    text = as_text(raw)[: len(raw) // 4]
    return json.dumps({"id": 1, "chunks": [text[at : at + 64] for at in range(0, len(text), 64)]}).encode() + b"\n"


def quoted(raw, *_):
    return json.dumps({"a": [as_text(raw)]}).encode()


def claude_result(raw, *_):
    response = {"stdout": as_text(raw), "stderr": "", "interrupted": False, "isImage": False}
    event = {"session_id": "s", "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "a"}, "cwd": "/"}
    return json.dumps(event | {"tool_response": response}).encode()


def transcript(raw, *_):
    message = {"role": "user", "content": as_text(raw)}
    lines = [{"type": "user", "isSidechain": False, "message": message}] * 2
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def rpc_result(raw, *_):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": as_text(raw)}]}}).encode() + b"\n"


def rpc_raw(raw, *_):
    return b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"n":"' + re.sub(rb'[^\w ,.]', b"", raw) + b'"}}\n'


def messages(raw, *_):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [{"role": "user", "content": "Begin."}]
    for _ in range(3):
        turns += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        turns += [{"role": "tool", "tool_call_id": "c", "content": as_text(raw)[: len(raw) // 3]}]
        turns += [{"role": "user", "content": "Go on."}]
    return json.dumps({"model": "gpt-5", "messages": turns}).encode()


def many_messages(_raw, shape, size):
    turns = []
    for at in range(size // 120):
        turns.append({"role": ("user", "assistant")[at % 2], "content": f"See src/a{at}.rs, and order ord_{at}f3a: it is done."})
    if shape == "gemini":
        roles = {"user": "user", "assistant": "model"}
        return json.dumps({"contents": [{"role": roles[t["role"]], "parts": [{"text": t["content"]}]} for t in turns]}).encode()
    return json.dumps({"model": "m", "input" if shape == "openai_responses" else "messages": turns}).encode()


def many_calls(_raw, _shape, size):
    turns = [{"role": "user", "content": "Begin."}]
    for at in range(size // 220):
        function = {"name": "f", "arguments": f'{{"path": "src/a{at}.rs"}}'}
        turns.append({"role": "assistant", "content": None, "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}]})
        turns.append({"role": "tool", "tool_call_id": f"c{at}", "content": f"row {at}: ERROR"})
    return json.dumps({"model": "gpt-5", "messages": turns}).encode()


def saved(wire, streamed, tool):
    def saved_reply(raw, *_):
        return replies.body_of(wire, as_text(raw), tool, True, streamed)

    saved_reply.__name__ = f"saved_{wire}_{streamed}_{tool}"
    return saved_reply


FRAMES = {
    "data lines": b"data: x\n",
    "events without choices": b"data: {}\n\n",
    "comments": b":\n\n",
    "names of events": b"event: a\n",
    "one event of many lines": b"data: [\n",
    "small parts": b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
    "choices": b'{"index":0,"delta":{"content":"a"}},',
}


def frames(_raw, shape, size):
    unit = FRAMES[shape]
    head = b'data: {"object":"chat.completion.chunk","choices":[' if shape == "choices" else b'data: {"object":"chat.completion.chunk","choices":[]}\n\n'
    return head + unit * (size // len(unit))


def kept(folder, path):
    """Returns the handle of an output that `cap` kept."""
    command = [COMMAND, "cap", "--json", "--max-chars", "1000", path]
    said = subprocess.run(command, env=folder.environment, capture_output=True, text=True).stdout
    return next(iter(re.findall(r"\bh[0-9a-f]{16,}", said)), "h0")


def cases(place):
    """Returns all cases."""
    folder = Folder(place)

    def each(name, arguments, names, wrap=None, **more):
        for shape in names:
            yield Case(folder, name, arguments, shape, wrap, **more)

    for format in ("auto", "json", "jsonl", "markdown", "tags", "text"):
        yield from each(f"detect {format}", ["detect", "--format", format], EVERY)
    yield from each("detect marker", ["detect", "--marker", "<<END>>"], ["repeated '<'", "words"])
    yield from each("detect --json", ["detect", "--json"], ["deep arrays", "opening tags"])
    yield from each("detect --complete", ["detect", "--format", "json", "--complete"], JSON)
    yield from each("detect --save-state", ["detect", "--save-state", "/dev/null"], FEW)
    yield from each("detect --batch", ["detect", "--batch", "--complete"], FEW, batch_line)
    yield from each("detect --batch", ["detect", "--batch"], ["many lines"], batch_lines)
    yield from each("detect frames", ["detect"], FRAMES, frames)
    for wire in replies.PATHS:
        for streamed in (False, True):
            yield from each(f"detect saved {wire} {streamed}", ["detect"], ["deep arrays", "words"], saved(wire, streamed, False))
            yield from each(f"detect saved call {wire} {streamed}", ["detect"], ["deep arrays"], saved(wire, streamed, True))
    for format in ("json", "jsonl", "markdown", "tags", "text"):
        names = JSON if format.startswith("json") else TEXTS
        for wrap in (pieces, piece_with_rest, rest_of_piece, many_pieces):
            yield from each(f"stitch {format} {wrap.__name__}", ["stitch", "--batch", "--format", format], names, wrap)
    yield from each("stitch tiny pieces", ["stitch", "--batch", "--format", "json"], ["wide rows"], tiny_pieces)
    yield from each("stitch tiny pieces", ["stitch", "--batch", "--format", "text"], ["distinct words"], tiny_pieces)
    for format in ("auto", "text", "json", "jsonl", "csv", "diff"):
        yield from each(f"cap {format}", ["cap", "--no-store", "--max-chars", "3000", "--format", format], EVERY)
    yield from each("cap quoted", ["cap", "--no-store", "--max-chars", "3000"], EVERY, quoted)
    yield from each("cap --batch", ["cap", "--batch", "--no-store"], FEW, batch_line)
    for part in (["--grep", "a.*b"], ["--lines", "2:3"], ["--page", "2"], ["--pointer", "/a"], ["--bytes", "10:"]):
        yield from each(f"read {part[0]}", ["read", "HANDLE", *part], ["words", "sentences on lines", "deep arrays", "wide rows"], before=kept)
    yield from each("compact", ["compact", "--no-store", "--for", "openai_chat", "--keep-share", "0.2"], TEXTS, messages)
    for wire in replies.PATHS:
        yield from each("compact many turns", ["compact", "--no-store", "--for", wire, "--keep-share", "0.2"], [wire], many_messages)
    yield from each("compact many calls", ["compact", "--no-store", "--for", "openai_chat", "--keep-share", "0.2"], ["openai_chat"], many_calls)
    yield from each("compact emergency", ["compact", "--no-store", "--for", "openai_chat", "--mode", "emergency", "--trigger-tokens", "100"], FEW, messages)
    yield from each("count", ["count", "--model", "gpt-5"], FEW)
    yield from each("count claude", ["count", "--model", "claude-sonnet-5"], FEW)
    # The guard examines each occurrence in these shapes, so they are smaller.
    dense = ["placeholders", "rest left out", "forbidden phrases", "forbidden phrases on lines"]
    yield from each("guard", ["guard"], dense, size=1 / 8)
    yield from each("guard", ["guard"], [shape for shape in TEXTS if shape not in dense])
    yield from each("guard --forbid", ["guard", "--forbid", "a", "--forbid-only", "--to", "sarif"], ["repeated 'a'", "words"])
    yield from each("guard --batch", ["guard", "--batch"], FEW, batch_line)
    for command in ("check", "progress", "merge", "report"):
        yield from each(f"findings {command}", ["findings", command], TEXTS + ["json lines", "wide rows"])
    yield from each("findings fit", ["findings", "fit", "--budget-left", "10000"], FEW + ["findings", "evidence", "flow"])
    yield from each("exec", ["exec", "--", "/bin/cat", "FILE"], FEW)
    yield from each("exec --cap", ["exec", "--cap", "--", "/bin/cat", "FILE"], FEW)
    yield from each("hook tool", ["hook", "tool", "--agent", "claude", "--max-chars", "3000"], FEW, claude_result)
    yield from each("mcp wrap", ["mcp", "wrap", "--max-chars", "3000", "--", "/bin/sh", "-c", "read a; cat FILE"], FEW, rpc_result, allowed=(0, 3))
    yield from each("mcp wrap raw", ["mcp", "wrap", "--", "/bin/sh", "-c", "read a; cat FILE"], ["words", "repeated 'a'"], rpc_raw, allowed=(0, 3))
