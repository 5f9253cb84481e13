"""A scripted upstream in four wire formats. Its replies are cut text, JSON or tool calls, streamed or not."""

import http.server
import json

PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/m:{}",
}
# The characters per part of a streamed reply; in some cases as few as a token has.
PART, TOKEN = 2000, 8
SCHEMA = {"type": "object"}


def path(wire, stream):
    return PATHS[wire].format("streamGenerateContent?alt=sse" if stream else "generateContent")


def request(wire, kind, stream):
    """Returns the body of a request for text, JSON or a tool call."""
    asked, is_json, tool = "Write.", kind == "json", kind == "tool"
    if wire == "gemini":
        body = {"contents": [{"role": "user", "parts": [{"text": asked}]}]}
        if is_json:
            body["generationConfig"] = {"responseMimeType": "application/json"}
        if tool:
            body["tools"] = [{"functionDeclarations": [{"name": "write", "parametersJsonSchema": SCHEMA}]}]
        return body
    body = {"model": "m", "stream": stream}
    if wire == "openai_responses":
        body["input"] = asked
        if is_json:
            body["text"] = {"format": {"type": "json_object"}}
        if tool:
            body["tools"] = [{"type": "function", "name": "write", "parameters": SCHEMA}]
        return body
    body["messages"] = [{"role": "user", "content": asked}]
    if wire == "anthropic_messages":
        body["max_tokens"] = 1000
        if is_json:
            body["output_config"] = {"format": {"type": "json_schema", "schema": SCHEMA}}
        if tool:
            body["tools"] = [{"name": "write", "input_schema": SCHEMA}]
        return body
    if is_json:
        body["response_format"] = {"type": "json_object"}
    if tool:
        body["tools"] = [{"type": "function", "function": {"name": "write", "parameters": SCHEMA}}]
    return body


def whole(wire, text, tool, cut):
    """Returns a reply that is not streamed."""
    if wire == "openai_chat":
        function = {"name": "write", "arguments": text}
        message = {"role": "assistant", "content": None if tool else text}
        if tool:
            message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
        reason = "length" if cut else "tool_calls" if tool else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}
    if wire == "openai_responses":
        status = "incomplete" if cut else "completed"
        item = {"type": "message", "id": "m", "role": "assistant", "status": status}
        item["content"] = [{"type": "output_text", "text": text, "annotations": []}]
        if tool:
            item = {"type": "function_call", "id": "f", "call_id": "c", "name": "write", "arguments": text, "status": status}
        reply = {"id": "r", "object": "response", "status": status, "model": "m", "output": [item], "error": None}
        return reply | {"incomplete_details": {"reason": "max_output_tokens"} if cut else None}
    if wire == "anthropic_messages":
        block = {"type": "tool_use", "id": "c", "name": "write", "input": {}} if tool else {"type": "text", "text": text}
        reason = "max_tokens" if cut else "tool_use" if tool else "end_turn"
        reply = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block], "stop_reason": reason}
        return reply | {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    part = {"functionCall": {"name": "write", "args": {}}} if tool else {"text": text}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "MAX_TOKENS" if cut else "STOP"}
    return {"candidates": [candidate], "modelVersion": "m"}


def events(wire, text, tool, cut, length):
    """Returns the events of a streamed reply, in parts of this length."""
    parts = [text[at : at + length] for at in range(0, len(text), length)]
    last = whole(wire, text, tool, cut)
    if wire == "openai_chat":
        head = {"id": "c", "object": "chat.completion.chunk", "model": "m"}

        def chunk(delta, finish=None):
            return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        call = {"index": 0, "id": "c", "type": "function", "function": {"name": "write", "arguments": ""}}
        yield chunk({"role": "assistant"} | ({"tool_calls": [call]} if tool else {"content": ""}))
        for part in parts:
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]} if tool else {"content": part})
        yield chunk({}, last["choices"][0]["finish_reason"])
        yield "[DONE]"
    elif wire == "openai_responses":
        item, place = last["output"][0], {"item_id": "f" if tool else "m", "output_index": 0}
        empty = item | ({"arguments": ""} if tool else {"content": []}) | {"status": "in_progress"}
        name = "function_call_arguments" if tool else "output_text"
        place |= {} if tool else {"content_index": 0}
        yield {"type": "response.created", "response": last | {"status": "in_progress", "output": [], "incomplete_details": None}}
        yield {"type": "response.output_item.added", "output_index": 0, "item": empty}
        if not tool:
            yield {"type": "response.content_part.added", "part": item["content"][0] | {"text": ""}} | place
        for part in parts:
            yield {"type": f"response.{name}.delta", "delta": part} | place
        yield {"type": f"response.{name}.done", "arguments" if tool else "text": text} | place
        if not tool:
            yield {"type": "response.content_part.done", "part": item["content"][0]} | place
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": f"response.{last['status']}", "response": last}
    elif wire == "anthropic_messages":
        block = {"type": "tool_use", "id": "c", "name": "write", "input": {}} if tool else {"type": "text", "text": ""}
        yield {"type": "message_start", "message": last | {"content": [], "stop_reason": None}}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        for part in parts:
            delta = {"type": "input_json_delta", "partial_json": part} if tool else {"type": "text_delta", "text": part}
            yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        delta = {"stop_reason": last["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}
    else:
        for part in parts[:-1]:
            yield whole(wire, part, tool, False) | {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": part}]}}]}
        yield whole(wire, parts[-1] if parts else "", tool, cut)


def stream(wire, text, tool, cut, length=PART):
    """Returns a streamed reply as bytes."""
    frames = []
    for event in events(wire, text, tool, cut, length):
        named = isinstance(event, dict) and event.get("type")
        frames.append((f"event: {named}\n" if named else "") + f"data: {event if event == '[DONE]' else json.dumps(event)}\n\n")
    return "".join(frames).encode()


def body_of(wire, text, tool, cut, streamed, length=PART):
    return stream(wire, text, tool, cut, length) if streamed else json.dumps(whole(wire, text, tool, cut)).encode()


class Upstream(http.server.BaseHTTPRequestHandler):
    """Answers the first request with `server.first`, cut, and each later one with `server.rest`, cut or whole."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = self.rfile.read(int(self.headers.get("content-length", 0)))
        server = self.server
        wire = next((wire for wire, at in PATHS.items() if self.path.startswith(at.split("{}")[0])), "openai_chat")
        streamed = "stream" in self.path or b'"stream": true' in asked or b'"stream":true' in asked
        with server.lock:
            first, server.asked = server.asked == 0, server.asked + 1
        text, cut = (server.first, True) if first else server.rest
        payload = body_of(wire, text, first and server.tool, cut and not server.whole, streamed, server.length)
        if server.dropped and first:
            payload = payload[: len(payload) * 9 // 10]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(payload)
        self.close_connection = True

    def log_message(self, *_):
        pass
