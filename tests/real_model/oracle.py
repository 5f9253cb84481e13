"""What may be said about a stitched reply, judged against what the server says without Endmark."""

from __future__ import annotations

import json
from os.path import commonprefix

from conversation import Question, Reply, Speaker

UNCUT_TOKENS = 300
# Long enough that the server's own text would not contain it twice by chance.
TELLING_CHARACTERS = 40


class Oracle:
    """The model server, asked directly: the uncut reply, the cut one, and its own continuation of a cut one."""

    def __init__(self, server: Speaker):
        self.server = server

    def uncut(self, question: Question) -> Reply | None:
        """None where the model did not come to an end by itself: nothing can be compared with that."""
        self.server.warm(question)
        reply = self.server.ask(question, max_tokens=UNCUT_TOKENS)
        return reply if reply.finish_reason in ("stop", "tool_calls") and reply.tokens < UNCUT_TOKENS else None

    def cut(self, question: Question, tokens: int) -> Reply:
        return self.server.ask(question, max_tokens=tokens)

    def own_continuation(self, question: Question, first: str) -> str:
        """`first` and what the server itself adds to it. It repeats the beginning it was given in its answer."""
        continued = self.server.ask(question.then({"role": "assistant", "content": first}), max_tokens=UNCUT_TOKENS)
        return continued.text if continued.text.startswith(first) else first + continued.text


def differs_as_the_server_does(stitched: str, uncut: str, own: str) -> bool:
    """Another text than the uncut one, but it leaves it at the very place where the server's own continuation does."""
    return stitched == own or len(commonprefix([stitched, uncut])) == len(commonprefix([own, uncut])) < len(uncut)


def repeats_its_beginning(stitched: str, first: str, uncut: str) -> bool:
    """A restart glued on, or the last line said twice, which the server's own text does not do."""
    beginning, tail = first[:TELLING_CHARACTERS], first[-TELLING_CHARACTERS:]
    rest = stitched[len(first) :]
    restarted = len(first) >= TELLING_CHARACTERS and beginning in rest and uncut.count(beginning) < 2
    doubled = len(first) >= TELLING_CHARACTERS and tail in rest and uncut.count(tail) < 2
    return restarted or doubled


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def conforms(text: str, schema: dict) -> bool:
    """As much of JSON Schema as the prompts use."""
    return is_json(text) and _fits(json.loads(text), schema)


def _fits(value: object, schema: dict) -> bool:
    kind = schema["type"]
    if kind == "object":
        properties = schema["properties"]
        return (
            isinstance(value, dict)
            and set(schema.get("required", [])) <= set(value) <= set(properties)
            and all(_fits(item, properties[name]) for name, item in value.items())
        )
    if kind == "array":
        most = schema.get("maxItems", len(value) if isinstance(value, list) else 0)
        return isinstance(value, list) and len(value) <= most and all(_fits(item, schema["items"]) for item in value)
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "string":
        return isinstance(value, str) and len(value) <= schema.get("maxLength", len(value))
    return kind == "integer" and isinstance(value, int)
