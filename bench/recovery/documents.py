"""Generates whole documents of every kind, which are then cut. They represent what a model meant to write."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any

import invented
import json_text
import wordings
from chance import Chance
from sources import Sources

KINDS = {"tool-call": 5.0, "array": 4.0, "jsonl": 3.0, "markdown": 4.0, "code": 3.0, "prose": 2.0, "tags": 4.0}
FORMATS = {
    "tool-call": "json", "array": "json", "jsonl": "jsonl", "markdown": "markdown",
    "code": "text", "prose": "text", "tags": "tags",
}  # fmt: skip
SMALLEST, LARGEST = 200, 200_000


@dataclass(frozen=True)
class Document:
    """A whole text with its kind and format."""

    kind: str
    format: str
    text: str


class _NumberAsWritten(float):
    """A number that is written exactly like this text."""

    def __new__(cls, text: str) -> "_NumberAsWritten":
        number = super().__new__(cls, float(text))
        number.text = text
        return number

    text: str

    def __repr__(self) -> str:
        return self.text


def document(chance: Chance, sources: Sources | None, kind: str, largest: int = LARGEST) -> Document:
    """Returns a document of a kind with about 200 to 200,000 characters. Most documents are small."""
    size = chance.magnitude(SMALLEST, max(SMALLEST + 1, largest))
    flavour = chance.weighted(invented.FLAVOURS)
    text = _MAKERS[kind](chance, sources, size, flavour)
    if kind in ("code", "prose", "markdown") and chance.maybe(0.08):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return Document(kind, FORMATS[kind], text)


def with_last_sentence(made: Document) -> Document:
    """Returns the document with an ordinary last sentence if it is prose or Markdown. The sentence depends only on
    the text.
    """
    if made.kind not in ("prose", "markdown"):
        return made
    chance = Chance("ending", made.text)
    text = made.text.rstrip("\r\n")
    line_end = "\r\n" if "\r\n" in text else "\n"
    last = line_end if made.text != text else ""
    return Document(made.kind, made.format, text + line_end * 2 + chance.pick(wordings.ENDINGS) + last)


def _content(chance: Chance, sources: Sources | None, size: int, flavour: str) -> tuple[str, str]:
    """Returns code or prose for a string or a block, with its language."""
    form = chance.weighted({"real": 4.0 if sources else 0.0, "code": 3.0, "prose": 1.5, "repetitive": 0.8})
    if form == "real" and sources and (real := sources.piece(chance, size)):
        return real
    if form == "repetitive":
        return invented.repetitive(chance, size), "text"
    if form == "prose":
        return invented.prose(chance, size, flavour), "text"
    language = chance.pick(list(invented.LANGUAGES))
    return invented.code(chance, size, flavour, language), language


def _path(chance: Chance, language: str) -> str:
    suffix = {"python": "py", "rust": "rs", "javascript": "js", "markdown": "md"}.get(language, "txt")
    return f"{chance.pick(['src', 'lib', 'docs', 'tests/unit', '.'])}/{invented.identifier(chance)}.{suffix}"


def _json(chance: Chance, value: Any, layout: str | None = None) -> str:
    """Returns a value as JSON: minified or laid out, escaped or raw, with either kind of line break."""
    text = json.dumps(value, ensure_ascii=chance.maybe(0.35), separators=(",", ":"))
    layout = layout or chance.pick(json_text.LAYOUTS)
    if layout != "minified":
        text, _ = json_text.laid_out([token for _, token in json_text.tokens_of(text)], layout)
    if "\n" in text and chance.maybe(0.06):
        text = text.replace("\n", "\r\n")
    return text + ("\n" if chance.maybe(0.25) else "")


def _tool_call(chance: Chance, sources: Sources | None, size: int, flavour: str) -> str:
    content, language = _content(chance, sources, size, flavour)
    form = chance.below(5)
    path = _path(chance, language)
    if form == 0:
        return _json(chance, {"path": path, "content": content})
    if form == 1:
        return _json(chance, {
            "name": "write_file",
            "arguments": {"path": path, "content": content, "overwrite": chance.maybe(0.5), "mode": chance.below(1000)},
        })
    if form == 2:
        half = content.find("\n", len(content) // 2) + 1
        return _json(chance, {"tool": "edit", "edits": [
            {"path": path, "line": chance.below(9999), "old": content[:half], "new": content[half:] or "\n"},
            {"path": _path(chance, language), "line": None, "old": "", "new": invented.sentence(chance, flavour)},
        ]})
    if form == 3:
        return _json(chance, {
            "command": ["bash", "-c", f"cat > {path} <<'EOF'\n{content}\nEOF"], "timeout": _number(chance),
            "env": {invented.identifier(chance).upper(): invented.sentence(chance, flavour)},
        })
    return _json(chance, {"thought": invented.paragraph(chance, flavour), "steps": [
        {"id": number, "do": invented.identifier(chance), "with": piece, "done": number == 0}
        for number, piece in enumerate(content.split("\n\n") if chance.maybe(0.5) else [content])
    ]})


def _number(chance: Chance) -> Any:
    return chance.pick([
        lambda: chance.below(10), lambda: chance.below(10_000_000), lambda: -chance.below(5000),
        lambda: _NumberAsWritten(f"{chance.below(1000)}.{chance.below(10000):04}"), lambda: 0, lambda: 0,
        lambda: _NumberAsWritten(f"{chance.between(1, 9)}.{chance.below(100):02}e{chance.pick(['+', '-', ''])}{chance.between(1, 12)}"),
        lambda: _NumberAsWritten("0.1000000000000000055511151231257827"), lambda: 12345678901234567890123,
    ])()  # fmt: skip


def _scalar(chance: Chance, flavour: str) -> Any:
    return chance.pick([
        lambda: _number(chance), lambda: _number(chance), lambda: chance.maybe(0.5), lambda: None,
        lambda: invented.identifier(chance), lambda: invented.sentence(chance, flavour), lambda: "",
        lambda: invented.word(chance, flavour), lambda: "\t\"quoted\"\\" + invented.word(chance, flavour) + "\n",
    ])()  # fmt: skip


def _value(chance: Chance, flavour: str, depth: int) -> Any:
    form = chance.unit()
    if depth <= 0 or form < 0.75:
        return _scalar(chance, flavour)
    if form < 0.88:
        return [_value(chance, flavour, depth - 1) for _ in range(chance.below(5))]
    return {invented.identifier(chance): _value(chance, flavour, depth - 1) for _ in range(chance.below(4))}


def _rows(chance: Chance, size: int, flavour: str) -> list[Any]:
    """Returns objects with the same keys. Sometimes all of them are equal, and sometimes they are rows of numbers."""
    keys = list(dict.fromkeys(["id", *(invented.identifier(chance) for _ in range(chance.between(1, 6)))]))
    form = chance.weighted({"records": 7.0, "equal": 0.8, "numbers": 1.0})
    rows: list[Any] = []
    length = 0
    equal = {key: _scalar(chance, "ascii") for key in keys}
    while length < size:
        row: Any
        if form == "equal":
            row = equal
        elif form == "numbers":
            row = [0 if chance.maybe(0.7) else chance.below(100) for _ in range(chance.between(3, 12))]
        else:
            row = {key: _value(chance, flavour, 2) for key in keys}
            row["id"] = len(rows) + 1
        rows.append(row)
        length += len(json.dumps(row))
    return rows


def _array(chance: Chance, _sources: Sources | None, size: int, flavour: str) -> str:
    rows = _rows(chance, size, flavour)
    if chance.maybe(0.3):
        return _json(chance, {"items": rows, "total": len(rows), "next": None})
    return _json(chance, rows)


def _lines(chance: Chance, sources: Sources | None, size: int, flavour: str) -> str:
    layout = chance.pick(["minified", "spaced"])
    if chance.maybe(0.25):
        content, _ = _content(chance, sources, size, flavour)
        rows: list[Any] = [{"n": number, "text": line} for number, line in enumerate(content.split("\n"), 1)]
    else:
        rows = _rows(chance, size, flavour)
    ascii_only = chance.maybe(0.35)
    separators = (",", ":") if layout == "minified" else (", ", ": ")
    text = "\n".join(json.dumps(row, ensure_ascii=ascii_only, separators=separators) for row in rows)
    return text + ("\n" if chance.maybe(0.7) else "")


def _markdown(chance: Chance, sources: Sources | None, size: int, flavour: str) -> str:
    if sources and chance.maybe(0.25) and (real := sources.piece(chance, size, markdown=True)):
        return real[0]
    parts = [f"# {invented.sentence(chance, flavour)[:-1]}"]
    length = 0
    while length < size:
        part = _block(chance, sources, min(size, 3000), flavour)
        parts.append(part)
        length += len(part)
    return "\n\n".join(parts) + "\n"


def _block(chance: Chance, sources: Sources | None, size: int, flavour: str) -> str:
    form = chance.weighted({"text": 4.0, "heading": 2.0, "list": 2.0, "table": 1.5, "code": 3.0, "quote": 0.5})
    if form == "heading":
        return "#" * chance.between(2, 4) + " " + invented.sentence(chance, flavour)[:-1]
    if form == "list":
        mark = chance.pick(["- ", "* ", "1. ", "- [ ] "])
        return "\n".join(mark + invented.sentence(chance, flavour) for _ in range(chance.between(2, 8)))
    if form == "table":
        columns = chance.between(2, 5)
        rows = [[invented.word(chance, flavour) for _ in range(columns)] for _ in range(chance.between(2, 12))]
        head = [invented.identifier(chance) for _ in range(columns)]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * columns, *rows])
    if form == "code":
        content, language = _content(chance, sources, chance.magnitude(80, max(100, size)), flavour)
        fence = "````" if "```" in content else "```"
        return f"{fence}{language}\n{content.rstrip()}\n{fence}"
    if form == "quote":
        return "> " + invented.paragraph(chance, flavour)
    return invented.paragraph(chance, flavour) + chance.pick(["", f" See [{invented.word(chance, flavour)}](docs/a.md)."])


def _code(chance: Chance, sources: Sources | None, size: int, flavour: str) -> str:
    if chance.maybe(0.12):
        return invented.repetitive(chance, size)
    while True:
        content, language = _content(chance, sources, size, flavour)
        if language != "text" and "```" not in content:
            return content


def _prose(chance: Chance, _sources: Sources | None, size: int, flavour: str) -> str:
    return invented.prose(chance, size, flavour) + ("\n" if chance.maybe(0.5) else "")


def _tags(chance: Chance, sources: Sources | None, size: int, flavour: str) -> str:
    """Returns well-formed XML with one root: a tool call in tags, or records."""
    if chance.maybe(0.5):
        content, language = _content(chance, sources, size, flavour)
        escaped = html.escape("".join(letter for letter in content if letter >= " " or letter in "\t\n"), quote=False)
        tool = chance.pick(["write_to_file", "file_content", "create", "answer"])
        if chance.maybe(0.5):
            return f"<{tool}>\n<path>{_path(chance, language)}</path>\n<content>\n{escaped}\n</content>\n</{tool}>\n"
        return f'<{tool} path="{_path(chance, language)}" lines="{chance.below(999)}">{escaped}</{tool}>'
    indent = chance.pick(["", "  ", "\t"])
    names = [f"{invented.identifier(chance, chance.pick(['_', '-', '']))}" for _ in range(chance.between(1, 4))]
    parts = ["<records>"]
    length = 0
    while length < size:
        attribute = f' {chance.pick(["id", "key", "at"])}="{html.escape(invented.word(chance, flavour))}{len(parts)}"'
        fields = "".join(
            f"\n{indent * 2}<{name}>{html.escape(str(_scalar(chance, flavour)).strip(), quote=False)}</{name}>"
            if chance.maybe(0.9) else f"\n{indent * 2}<{name} missing=\"yes\"/>"
            for name in names
        )  # fmt: skip
        parts.append(f"{indent}<record{attribute}>{fields}\n{indent}</record>")
        length += len(parts[-1])
    return "\n".join([*parts, "</records>"]) + ("\n" if chance.maybe(0.5) else "")


_MAKERS = {
    "tool-call": _tool_call, "array": _array, "jsonl": _lines, "markdown": _markdown,
    "code": _code, "prose": _prose, "tags": _tags,
}  # fmt: skip
