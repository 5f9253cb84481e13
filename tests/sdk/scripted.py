"""A model with scripted replies in the four formats. It cuts the first reply of a conversation, and checks every request.

A request names its conversation by a key in the user's message. A request for the rest, or for the same again, gets the rest or the
whole. A strict provider's rules apply: each tool result follows its call, each call has whole arguments, and each item reference
names an item that was stored whole.
"""

from __future__ import annotations

import itertools
import json
import re
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = (
    "Marie Curie was a Polish-French chemist who made groundbreaking discoveries in physics. "
    "She won two Nobel Prizes, and the second one was for the discovery of radium and polonium."
)
DOCUMENT = '{"name": "Tom the cat", "age": 12, "friendly": true, "likes": ["fresh fish", "warm blankets"]}'
FINAL = "The notes are saved, and nothing else is left to do."
LONG_STEPS = 8
PIECE = 7
TOOL = "save_note"
USAGE = (50, 20)


@dataclass(frozen=True)
class Turn:
    """The reply of one step: a text, calls of `save_note`, or both."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()


def note(number: int, size: int = 1) -> tuple[str, str]:
    text = f"Horse {number} is a large animal that eats grass and can run for many hours. " * size
    return TOOL, json.dumps({"path": f"horses-{number}.txt", "text": text.strip()})


# The steps of a conversation by its kind.
TURNS = {
    "text": [Turn(TEXT)],
    "document": [Turn(DOCUMENT)],
    "call": [Turn(calls=(note(1),)), Turn(FINAL)],
    "calls": [Turn("I save two notes.", (note(1), note(2))), Turn(FINAL)],
    "long": [*(Turn(calls=tuple(note(10 * step + k, 6) for k in range(1 + step % 2))) for step in range(LONG_STEPS)), Turn(FINAL)],
}


class Invalid(Exception):
    """A request that a strict provider rejects, or that contains a cut reply."""


@dataclass
class Conversation:
    kind: str
    # The fault of the first reply: `limit`, `drop` (of the connection), or an empty string.
    harm: str
    is_compacted: bool = False
    is_harmed: bool = False
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    references: int = 0


class Model:
    """The server. Conversations must be opened before they are used. The lock protects all of them."""

    def __init__(self, cut_share: float = 0.7):
        # The share of the text, or of the last call's arguments, that arrives before the cut.
        self.cut_share = cut_share
        self.lock = threading.Lock()
        self.conversations: dict[str, Conversation] = {}
        self.numbers = itertools.count(1)
        # Stored items of Responses by id, and whether each is whole.
        self.items: dict[str, tuple[dict, bool]] = {}
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                model.serve(self)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_):
                """Ignores clients that close the connection."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Model:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()

    def open(self, kind: str, harm: str, is_compacted: bool = False) -> tuple[str, Conversation]:
        key = f"K{next(self.numbers)}K"
        self.conversations[key] = Conversation(kind, harm, is_compacted)
        return key, self.conversations[key]

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        raw = request.rfile.read(int(request.headers.get("content-length") or 0)).decode()
        body = json.loads(raw)
        with self.lock:
            conversation = self.conversations[re.search(r"K\d+K", raw)[0]]
            conversation.requests.append(raw)
            try:
                answer = self.answer(request.path.partition("?")[0], body, conversation)
            except Invalid as problem:
                conversation.problems.append(str(problem))
                answer = None
        if answer is None:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": conversation.problems[-1], "code": 400}}
            self.send(request, 400, "application/json", [json.dumps(error).encode()])
            return
        events, whole, drops = answer
        if whole is not None:
            self.send(request, 200, "application/json", [json.dumps(whole).encode()])
        else:
            self.send(request, 200, "text/event-stream", [event.encode() for event in events], drops)

    @staticmethod
    def send(request: BaseHTTPRequestHandler, status: int, kind: str, parts: list[bytes], drops: bool = False) -> None:
        request.send_response(status)
        request.send_header("content-type", kind)
        request.send_header("transfer-encoding", "chunked")
        request.end_headers()
        try:
            for part in parts:
                request.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            if drops:
                request.connection.shutdown(socket.SHUT_RDWR)
                request.close_connection = True
            else:
                request.wfile.write(b"0\r\n\r\n")
        except OSError:
            request.close_connection = True

    def answer(self, path: str, body: dict, conversation: Conversation) -> tuple[list[str], dict | None, bool]:
        """Returns the events of a stream or the whole body, and whether the connection drops at the end."""
        form = next(form for form in FORMATS if form.owns(path))
        turns = TURNS[conversation.kind]
        history = form.history(body, self, conversation)
        step = checked(history, turns, conversation)
        stream = form.streams(path, body)
        turn = turns[step]
        is_harmed = conversation.is_harmed
        harm = "" if is_harmed or step != 0 else conversation.harm
        if is_harmed and (rest := remaining(history, turn)) is not None:
            turn = Turn(rest)
        conversation.is_harmed |= bool(harm)
        turn, is_cut = (cut(turn, self.cut_share), True) if harm else (turn, False)
        whole, events = form.reply(turn, "limit" if is_cut else "call" if turn.calls else "stop", self, body)
        if harm == "drop" and stream:
            # The events that close the last part and the reply never arrive.
            while form.is_end(events[-1]):
                events.pop()
        return events, None if stream else whole, harm == "drop" and stream


def cut(turn: Turn, share: float) -> Turn:
    """Returns the beginning of the turn: of its text, or of the arguments of its last call."""
    def begin(text: str) -> str:
        return text[: int(len(text) * share)]

    if not turn.calls:
        return Turn(begin(turn.text))
    *before, (name, arguments) = turn.calls
    return Turn(turn.text, (*before, (name, begin(arguments))))


def remaining(history: list[dict], turn: Turn) -> str | None:
    """Returns the answer to a request for the rest of a cut reply, or None if the request is not one."""
    last = history[-1]
    whole = turn.calls[-1][1] if turn.calls else turn.text
    if last["role"] == "assistant":
        return whole[len(last["text"]) :] if last["text"] and whole.startswith(last["text"]) else None
    quoted = re.search(r"last valid token that arrived is:\n(.*?)\n", last["text"], re.DOTALL)
    if not quoted:
        return None
    end = whole.find(quoted[1])
    if "exactly the text of the last valid token" in last["text"] and end >= 0:
        return whole[end:]
    shown = "\n".join(turn["text"] for turn in history)
    known = max((length for length in range(len(whole)) if whole[:length] in shown), default=0)
    return whole[known:]


def checked(history: list[dict], turns: list[Turn], conversation: Conversation) -> int:
    """Returns the step that this request asks for. Raises `Invalid` if the history is invalid or contains a cut reply."""
    step, waiting, names = 0, {}, set()
    for number, turn in enumerate(history):
        if turn["role"] == "tool":
            if waiting.pop(turn["id"], None) is None:
                raise Invalid(f"turn {number}: the result {turn['id']} has no call before it")
            continue
        if waiting:
            raise Invalid(f"turn {number}: {sorted(waiting)} have no results")
        for id, name, arguments in turn.get("calls", []):
            if id in names:
                raise Invalid(f"turn {number}: the call {id} is there twice")
            names.add(id)
            waiting[id] = True
            if (name, value(arguments)) not in [(name, json.loads(made)) for turn in turns for name, made in turn.calls]:
                raise Invalid(f"turn {number}: the call {name} is not whole: {arguments}")
        if turn.get("calls") and not conversation.is_compacted:
            if len(turn["calls"]) != len(turns[step].calls):
                raise Invalid(f"turn {number}: {len(turn['calls'])} calls instead of {len(turns[step].calls)}")
        step += bool(turn.get("calls"))
    if waiting:
        raise Invalid(f"at the end: {sorted(waiting)} have no results")
    if conversation.is_compacted:
        # A summary may replace earlier steps, so the newest note in the request determines the step.
        shown = json.dumps([[turn["text"], turn.get("calls")] for turn in history])
        saved = [int(number) for number in re.findall(r"horses-(\d+)", shown)]
        step = max(saved, default=-10) // 10 + 1
    return min(step, len(turns) - 1)


def pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def sse(event: dict, name: str | None = None) -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(event)}\n\n"


def plain(content) -> str:
    """Returns the text of a content, which is a string or a list of parts."""
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part if isinstance(part, str) else part.get("text") or "" for part in content)


class Format:
    """Reads requests and writes replies of one format."""

    path = ""

    def owns(self, path: str) -> bool:
        return path.endswith(self.path)

    def streams(self, _path: str, body: dict) -> bool:
        return bool(body.get("stream"))


class Chat(Format):
    finishes = {"stop": "stop", "limit": "length", "call": "tool_calls"}
    path = "/chat/completions"

    def is_end(self, event: str) -> bool:
        return '"finish_reason": "' in event or "[DONE]" in event or '"usage": {' in event

    def history(self, body: dict, *_) -> list[dict]:
        turns = []
        for message in body["messages"]:
            calls = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []]
            turn = {"role": message["role"], "text": plain(message.get("content")), "calls": calls, "id": message.get("tool_call_id")}
            turns.append(turn)
        return turns

    def reply(self, turn: Turn, end: str, model: Model, *_) -> tuple[dict, list[str]]:
        number = next(model.numbers)
        head = {"id": f"chatcmpl-{number}", "created": 1, "model": "m"}
        usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
        calls = [
            {"id": f"call_{number}_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for index, (name, arguments) in enumerate(turn.calls)
        ]
        message = {"role": "assistant", "content": turn.text or None, "refusal": None, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": self.finishes[end], "logprobs": None}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}

        def chunk(delta: dict, finish: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return sse({**head, "object": "chat.completion.chunk", "choices": [choice]})

        events = [chunk({"role": "assistant", "content": "" if turn.text else None})]
        events += [chunk({"content": piece}) for piece in pieces(turn.text)]
        for index, call in enumerate(calls):
            begun = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
            events.append(chunk({"tool_calls": [begun]}))
            for piece in pieces(call["function"]["arguments"]):
                events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
        events.append(chunk({}, self.finishes[end]))
        events.append(sse({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}))
        return whole, [*events, "data: [DONE]\n\n"]


class Responses(Format):
    path = "/responses"

    def is_end(self, event: str) -> bool:
        return ".done" in event or "response.completed" in event or "response.incomplete" in event

    def history(self, body: dict, model: Model, conversation: Conversation) -> list[dict]:
        """Joins consecutive items of the model to one turn."""
        items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
        turns: list[dict] = []
        is_thought = False
        for item in items:
            if item.get("type") == "item_reference":
                conversation.references += 1
                item, is_whole = model.items.get(item["id"], ({}, False))
                if not is_whole:
                    raise Invalid(f"a reference to an item that is {'cut' if item else 'not stored'}: {item}")
            kind = item.get("type", "message")
            if is_thought and (kind not in ("function_call", "message") or item.get("role") == "user"):
                raise Invalid(f"a thought without its item, before {item}")
            is_thought = kind == "reasoning"
            if is_thought:
                continue
            if kind == "function_call":
                call = (item["call_id"], item["name"], item["arguments"])
                if turns and turns[-1]["role"] == "assistant":
                    turns[-1]["calls"].append(call)
                else:
                    turns.append({"role": "assistant", "text": "", "calls": [call]})
            elif kind == "function_call_output":
                turns.append({"role": "tool", "text": plain(item["output"]), "id": item["call_id"]})
            else:
                turns.append({"role": item["role"], "text": plain(item["content"]), "calls": []})
        return turns

    def reply(self, turn: Turn, end: str, model: Model, body: dict) -> tuple[dict, list[str]]:
        number = next(model.numbers)
        status = "incomplete" if end == "limit" else "completed"
        # A thought is valid only together with the item after it.
        items: list[dict] = [{"id": f"rs_{number}", "type": "reasoning", "summary": []}] if turn.calls else []
        if turn.text:
            part = {"type": "output_text", "text": turn.text, "annotations": []}
            done = "completed" if turn.calls else status
            items.append({"id": f"msg_{number}", "type": "message", "status": done, "role": "assistant", "content": [part]})
        for index, (name, arguments) in enumerate(turn.calls):
            call = {"id": f"fc_{number}_{index}", "type": "function_call", "call_id": f"call_{number}_{index}", "name": name}
            is_cut = end == "limit" and index == len(turn.calls) - 1
            items.append({**call, "status": "incomplete" if is_cut else "completed", "arguments": arguments})
        if body.get("store") is not False:
            model.items |= {item["id"]: (item, item.get("status") != "incomplete") for item in items}
        details = {"reason": "max_output_tokens"} if end == "limit" else None
        usage = {
            "input_tokens": USAGE[0], "output_tokens": USAGE[1], "total_tokens": sum(USAGE),
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
        whole = {
            "id": f"resp_{number}", "object": "response", "created_at": 1, "model": "m", "status": status, "error": None,
            "incomplete_details": details, "output": items, "usage": usage, "store": body.get("store") is not False, "tools": [], "tool_choice": "auto",
            "parallel_tool_calls": True, "instructions": None, "metadata": {}, "temperature": 1, "top_p": 1,
            # LangChain reads this field to decide whether to parse the text.
            "text": {"format": {"type": "text"}, **body.get("text", {})},
        }  # fmt: skip
        events: list[dict] = []

        def add(kind: str, **fields) -> None:
            events.append({"type": f"response.{kind}", "sequence_number": len(events), **fields})

        begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        add("created", response=begun)
        for index, item in enumerate(items):
            place = {"item_id": item["id"], "output_index": index}
            if item["type"] == "reasoning":
                add("output_item.added", output_index=index, item=item)
                add("output_item.done", output_index=index, item=item)
            elif item["type"] == "message":
                part, text = {"type": "output_text", "text": "", "annotations": []}, turn.text
                add("output_item.added", output_index=index, item={**item, "status": "in_progress", "content": []})
                add("content_part.added", **place, content_index=0, part=part)
                for piece in pieces(text):
                    add("output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
                add("output_text.done", **place, content_index=0, text=text, logprobs=[])
                add("content_part.done", **place, content_index=0, part={**part, "text": text})
            else:
                add("output_item.added", output_index=index, item={**item, "status": "in_progress", "arguments": ""})
                for piece in pieces(item["arguments"]):
                    add("function_call_arguments.delta", **place, delta=piece)
                # The item of a cut call ends only with the reply.
                if item["status"] == "completed":
                    add("function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"])
            if item.get("status") == "completed" or item["type"] == "message":
                add("output_item.done", output_index=index, item=item)
        add("incomplete" if end == "limit" else "completed", response=whole)
        return whole, [sse(event, event["type"]) for event in events]


class Messages(Format):
    finishes = {"stop": "end_turn", "limit": "max_tokens", "call": "tool_use"}
    path = "/messages"

    def is_end(self, event: str) -> bool:
        return "content_block_stop" in event or "message_delta" in event or "message_stop" in event

    def history(self, body: dict, *_) -> list[dict]:
        turns = []
        for message in body["messages"]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                if block["type"] == "tool_result":
                    turns.append({"role": "tool", "text": plain(block.get("content")), "id": block["tool_use_id"]})
            calls = [(block["id"], block["name"], json.dumps(block["input"])) for block in blocks if block["type"] == "tool_use"]
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            if text or calls:
                turns.append({"role": message["role"], "text": text, "calls": calls})
        return turns

    def reply(self, turn: Turn, end: str, model: Model, *_) -> tuple[dict, list[str]]:
        number = next(model.numbers)
        usage = {"input_tokens": USAGE[0], "output_tokens": USAGE[1]}
        blocks: list[dict] = [{"type": "text", "text": turn.text}] if turn.text else []
        for index, (name, arguments) in enumerate(turn.calls):
            # A cut call in a whole reply has no arguments.
            blocks.append({"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": value(arguments) or {}})
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m"}
        stop = {"stop_reason": self.finishes[end], "stop_sequence": None}
        whole = {**head, "content": blocks, **stop, "usage": usage}
        begun = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
        events: list[dict] = [{"type": "message_start", "message": begun}]
        arguments = iter(turn.calls)
        for index, block in enumerate(blocks):
            is_text = block["type"] == "text"
            empty = {**block, **({"text": ""} if is_text else {"input": {}})}
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            for piece in pieces(block["text"] if is_text else next(arguments)[1]):
                delta = {"type": "text_delta", "text": piece} if is_text else {"type": "input_json_delta", "partial_json": piece}
                events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        events += [{"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]
        return whole, [sse(event, event["type"]) for event in events]


class Gemini(Format):
    finishes = {"stop": "STOP", "limit": "MAX_TOKENS", "call": "STOP"}

    def owns(self, path: str) -> bool:
        return "enerateContent" in path

    def streams(self, path: str, _body: dict) -> bool:
        return "streamGenerateContent" in path

    def is_end(self, event: str) -> bool:
        return '"finishReason"' in event

    def history(self, body: dict, *_) -> list[dict]:
        """Identifies calls by their order, since they have no ids."""
        turns, made, answered = [], 0, 0
        for content in body["contents"]:
            parts = content["parts"]
            calls = []
            for part in parts:
                if call := part.get("functionCall"):
                    calls.append((f"{made}", call["name"], json.dumps(call.get("args") or {})))
                    made += 1
                if result := part.get("functionResponse"):
                    turns.append({"role": "tool", "text": json.dumps(result["response"]), "id": f"{answered}"})
                    answered += 1
            text = "".join(part.get("text", "") for part in parts)
            if text or calls:
                turns.append({"role": "assistant" if content.get("role") == "model" else "user", "text": text, "calls": calls})
        return turns

    def reply(self, turn: Turn, end: str, model: Model, *_) -> tuple[dict, list[str]]:
        usage = {"promptTokenCount": USAGE[0], "candidatesTokenCount": USAGE[1], "totalTokenCount": sum(USAGE)}
        # Gemini sends calls whole or not at all.
        calls = [{"functionCall": {"name": name, "args": value(made)}} for name, made in turn.calls if value(made) is not None]

        def chunk(parts: list[dict], finish: str | None = None) -> dict:
            candidate = {"index": 0, "content": {"role": "model", "parts": parts}, **({"finishReason": finish} if finish else {})}
            return {"candidates": [candidate], "modelVersion": "m", "usageMetadata": usage}

        parts = [{"text": piece} for piece in pieces(turn.text)] + calls
        whole = chunk([*([{"text": turn.text}] if turn.text else []), *calls], self.finishes[end])
        events = [chunk([part]) for part in parts] + [chunk([{"text": ""}], self.finishes[end])]
        return whole, [sse(event) for event in events]


def value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


FORMATS = [Chat(), Responses(), Messages(), Gemini()]
