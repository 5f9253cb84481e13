"""Judges a stitched reply by comparing it with the server's own replies without Endmark."""

from __future__ import annotations

import json
from os.path import commonprefix

from conversation import Question, Reply, Speaker

UNCUT_TOKENS = 300
# Long enough that the server's text does not contain it twice by chance.
TELLING_CHARACTERS = 40


class Oracle:
    """Direct replies of the model server: the uncut one, the cut one, and its own continuation of a cut one."""

    def __init__(self, server: Speaker):
        self.server = server

    def uncut(self, question: Question) -> Reply | None:
        """Returns the uncut reply. Returns None if the model did not end it by itself, because it is then not comparable."""
        self.server.warm(question)
        reply = self.server.ask(question, max_tokens=UNCUT_TOKENS)
        return reply if reply.finish_reason in ("stop", "tool_calls") and reply.tokens < UNCUT_TOKENS else None

    def cut(self, question: Question, tokens: int) -> Reply:
        return self.server.ask(question, max_tokens=tokens)

    def own_continuation(self, question: Question, first: str) -> str:
        """Returns `first` with the server's own continuation, whose answer repeats the given start."""
        continued = self.server.ask(question.then({"role": "assistant", "content": first}), max_tokens=UNCUT_TOKENS)
        return continued.text if continued.text.startswith(first) else first + continued.text


def differs_as_the_server_does(stitched: str, uncut: str, own: str) -> bool:
    """Whether a text differs from the uncut one first at the same place as the server's own continuation."""
    return stitched == own or len(commonprefix([stitched, uncut])) == len(commonprefix([own, uncut])) < len(uncut)


def repeats_its_beginning(stitched: str, first: str, uncut: str) -> bool:
    """Whether a text contains its start or its last line twice, although the server's own text does not."""
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
    """Whether a text conforms to a schema. Supports only the keywords that the prompts use."""
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
