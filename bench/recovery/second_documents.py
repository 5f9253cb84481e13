"""The documents of the second generator, which has other kinds and rules than the first."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any

from chance import Chance
from documents import Document
from second_words import NOUNS, PLACES, clause, name, paragraph, sentence, tongue

SMALLEST, LARGEST = 150, 12_000


def _code(chance: Chance, size: int) -> str:
    """Returns the lines of a shell script, SQL or settings."""
    return chance.pick([_shell, _sql, _settings])(chance, size)


def _grown(chance: Chance, size: int, part: Callable[[Chance, int], str], joint: str) -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts.append(part(chance, len(parts)))
    return joint.join(parts)


def _shell(chance: Chance, size: int) -> str:
    def part(chance: Chance, _: int) -> str:
        variable, other = name(chance), name(chance, "-")
        return chance.pick([
            f'{variable}="$1"\nif [ -z "${variable}" ]; then\n  echo "usage: $0 {variable.upper()}" >&2\n  exit 2\nfi',
            f'for {variable} in *.{chance.pick(["log", "csv", "png"])}; do\n    cp -- "${variable}" "/srv/{other}/${{{variable}%.*}}"\ndone',
            f"# {sentence(chance)}\n{variable}() {{\n\tlocal {name(chance)}=${{1:-{chance.below(99)}}}\n\tprintf '%s\\n' \"$@\" | sort -u\n}}",
            f"curl -fsS 'https://{other}.example/{variable}?page={chance.below(40)}' | jq -r '.[] | .{variable}' > {other}.txt",
        ])  # fmt: skip
    return "#!/bin/sh\nset -eu\n\n" + _grown(chance, size, part, "\n\n") + "\n"


def _sql(chance: Chance, size: int) -> str:
    table = name(chance)
    columns = list(dict.fromkeys(["id", *(name(chance) for _ in range(chance.between(1, 4)))]))
    def part(chance: Chance, at: int) -> str:
        values = [str(at + 1), *(chance.pick([lambda: "NULL", lambda: f"'{clause(chance)}'", lambda: f"{chance.below(9000) / 100:.2f}"])()
                                 for _ in columns[1:])]  # fmt: skip
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(values)});"
    head = f"CREATE TABLE {table} (\n" + ",\n".join(f"    {column} TEXT" for column in columns) + "\n);\n"
    return head + _grown(chance, size, part, "\n") + "\n"


def _settings(chance: Chance, size: int) -> str:
    def toml(chance: Chance, _: int) -> str:
        lines = [f"{name(chance)} = {chance.pick([repr(chance.below(5000)), 'true', json.dumps(clause(chance))])}" for _ in range(4)]
        return f"[{name(chance, '.')}]\n" + "\n".join(lines)
    def yaml(chance: Chance, _: int) -> str:
        inner = "\n".join(f"    {name(chance)}: {chance.pick([str(chance.below(90)), 'off', clause(chance)])}" for _ in range(3))
        return f"- name: {name(chance, ' ')}\n  when: {chance.pick(PLACES)}\n  with:\n{inner}"
    return _grown(chance, size, toml, "\n\n") + "\n" if chance.maybe(0.5) else _grown(chance, size, yaml, "\n") + "\n"


def _written(chance: Chance, value: Any) -> str:
    indent = chance.pick([None, None, 2, 2, 4, "\t"])
    text = json.dumps(value, indent=indent, ensure_ascii=chance.maybe(0.3))
    return text + chance.pick(["", "", "\n"])


def _service(chance: Chance, size: int) -> str:
    """Returns nested settings with few similar rows."""
    found: dict[str, Any] = {"version": f"{chance.below(9)}.{chance.below(20)}.{chance.below(9)}"}
    while len(json.dumps(found)) < size:
        found[f"{name(chance)}_{len(found)}"] = {
            "enabled": chance.maybe(0.5), "port": chance.between(1000, 65535), "description": sentence(chance),
            "paths": [f"/{name(chance, '/')}" for _ in range(chance.below(4))], "limits": {"cpu": chance.below(80) / 10, "memory": None},
        }  # fmt: skip
    return _written(chance, found)


def _listing(chance: Chance, size: int) -> str:
    """Returns a page of an API's list."""
    rows: list[Any] = []
    spoken = tongue(chance)
    while len(rows) * 160 < size:
        rows.append({
            "uuid": f"{chance.below(1 << 30):08x}-{chance.below(65536):04x}", "created_at": f"2024-0{chance.between(1, 9)}-1{chance.below(10)}T0{chance.below(10)}:30:00Z",
            "title": sentence(chance, spoken)[:-1], "score": chance.below(1000) / 8, "tags": [chance.pick(NOUNS) for _ in range(chance.below(4))],
            "owner": {"name": chance.pick(["Ida", "Bruno", "Mei", "Olga"]), "url": f"https://example.org/u/{chance.below(400)}"} if chance.maybe(0.8) else None,
        })  # fmt: skip
    return _written(chance, {"data": rows, "meta": {"page": chance.below(9), "more": chance.maybe(0.5)}})


def _messages(chance: Chance, size: int) -> str:
    """Returns a conversation whose messages contain code and paragraphs."""
    spoken, found = tongue(chance), []
    while len(json.dumps(found)) < size:
        content = chance.pick([
            lambda: sentence(chance, spoken), lambda: paragraph(chance, spoken) + "\n\n" + paragraph(chance, spoken),
            lambda: f"Try this:\n\n```sh\n{_shell(chance, 120)}```\n\n{sentence(chance)}", lambda: _code(chance, 300),
        ])()  # fmt: skip
        found.append({"role": ["user", "assistant"][len(found) % 2], "content": content})
    return _written(chance, {"model": name(chance, "-"), "messages": found} if chance.maybe(0.5) else found)


def _map(chance: Chance, size: int) -> str:
    points = [[round(chance.below(360_000) / 1000 - 180, 3), round(chance.below(180_000) / 1000 - 90, 3)] for _ in range(size // 18 + 3)]
    shape = {"type": "Feature", "properties": {"name": clause(chance), "kind": None}, "geometry": {"type": "LineString", "coordinates": points}}
    return _written(chance, shape)


def _events(chance: Chance, size: int) -> str:
    def part(chance: Chance, at: int) -> str:
        row = {"ts": f"{at // 60:02}:{at % 60:02}.{chance.below(1000):03}", "level": chance.pick(["INFO", "WARN", "DEBUG"]), "msg": clause(chance)}
        if chance.maybe(0.4):
            row["ctx"] = {"attempt": chance.below(5), "trace": f"{chance.below(1 << 24):06x}"}
        return json.dumps(row)
    return _grown(chance, size, part, "\n") + "\n"


def _lessons(chance: Chance, size: int) -> str:
    spoken = tongue(chance)
    def part(chance: Chance, _: int) -> str:
        return json.dumps({"prompt": sentence(chance, spoken), "completion": paragraph(chance, spoken) + chance.pick(["", "\n\n" + paragraph(chance)])},
                          ensure_ascii=chance.maybe(0.5))  # fmt: skip
    return _grown(chance, size, part, "\n") + chance.pick(["", "\n"])


def _recipe(chance: Chance, size: int) -> str:
    items = "\n".join(f"* {chance.between(1, 500)} g {name(chance, ' ')}" for _ in range(chance.between(3, 9)))
    def step(chance: Chance, at: int) -> str:
        return f"{at + 1}. {sentence(chance)}"
    return f"# {name(chance, ' ').title()}\n\n*Serves {chance.between(2, 8)}*\n\n## You need\n\n{items}\n\n## Steps\n\n{_grown(chance, size, step, chr(10))}\n"


def _minutes(chance: Chance, size: int) -> str:
    spoken = tongue(chance)
    def item(chance: Chance, at: int) -> str:
        points = "\n".join(f"- {sentence(chance, spoken)}" + (f"\n  - {sentence(chance)}" if chance.maybe(0.3) else "") for _ in range(chance.between(1, 4)))
        return f"### {at + 1}. {clause(chance).title()}\n\n{paragraph(chance, spoken)}\n\n{points}"
    return f"## Minutes, {chance.between(1, 28)} May\n\nPresent: Ida, Bruno, Mei\n\n" + _grown(chance, size, item, "\n\n") + "\n"


def _guide(chance: Chance, size: int) -> str:
    def table(chance: Chance) -> str:
        rows = [f"| `--{name(chance, '-')}` | {chance.pick(['yes', 'no', str(chance.below(99))])} | {clause(chance)} |" for _ in range(chance.between(2, 7))]
        return "\n".join(["| Option | Default | Meaning |", "|---|:-:|---|", *rows])
    def part(chance: Chance, _: int) -> str:
        block = f"```{chance.pick(['console', 'yaml', '', 'sql'])}\n{_code(chance, chance.between(60, 400)).strip()}\n```"
        return chance.pick([lambda: f"## {clause(chance).capitalize()}", lambda: paragraph(chance), lambda: paragraph(chance),
                            lambda: f"{sentence(chance)[:-1]}:\n\n{block}", lambda: table(chance), lambda: f"> **Note:** {paragraph(chance, most=2)}"])()  # fmt: skip
    return f"# {name(chance, '-')}\n\n" + _grown(chance, size, part, "\n\n") + "\n"


def _table(chance: Chance, size: int) -> str:
    columns = chance.between(2, 6)
    def row(chance: Chance, at: int) -> str:
        return ",".join([str(at), *(chance.pick([str(chance.below(10_000)), name(chance), f'"{clause(chance)}, {chance.below(50)}"', ""]) for _ in range(columns))])
    return ",".join(["n", *(name(chance) for _ in range(columns))]) + "\n" + _grown(chance, size, row, "\n") + "\n"


def _patch(chance: Chance, size: int) -> str:
    def part(chance: Chance, at: int) -> str:
        file, lines = f"{name(chance, '/')}.conf", [line for line in _code(chance, 240).split("\n") if line.strip()]
        marked = [chance.pick([" ", " ", "+", "-"]) + line for line in lines]
        return f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -{at * 9 + 1},{len(lines)} +{at * 9 + 1},{len(lines)} @@\n" + "\n".join(marked)
    return _grown(chance, size, part, "\n") + "\n"


def _letter(chance: Chance, size: int) -> str:
    spoken = tongue(chance)
    body = _grown(chance, size, lambda chance, _: paragraph(chance, spoken), "\n\n")
    return f"Dear {chance.pick(['Olga', 'Mr Brandt', 'neighbours'])},\n\n{body}\n\n{chance.pick(['Warm wishes,', 'Bis bald,', 'Yours truly,'])}\n{chance.pick(['Ida', 'B. Falk'])}\n"


def _essay(chance: Chance, size: int) -> str:
    spoken = tongue(chance)
    return _grown(chance, size, lambda chance, _: paragraph(chance, spoken, 9), chance.pick(["\n\n", "\n", " "])) + chance.pick(["", "\n"])


def _scene(chance: Chance, size: int) -> str:
    return _grown(chance, size, lambda chance, _: f"{chance.pick(['IDA', 'BRUNO', 'THE JUDGE'])}: {paragraph(chance, most=3)}", "\n") + "\n"


def _feed(chance: Chance, size: int) -> str:
    spoken = tongue(chance)
    def item(chance: Chance, at: int) -> str:
        return (f"    <item>\n      <title>{html.escape(sentence(chance, spoken), quote=False)}</title>\n      <link>https://example.net/{at}?a=1&amp;b={chance.below(9)}</link>\n"
                f"      <description>{html.escape(paragraph(chance, spoken), quote=False)}</description>\n    </item>")  # fmt: skip
    head = '<?xml version="1.0" encoding="UTF-8"?>\n' if chance.maybe(0.6) else ""
    return f'{head}<rss version="2.0">\n  <channel>\n' + _grown(chance, size, item, "\n") + "\n  </channel>\n</rss>\n"


def _page(chance: Chance, size: int) -> str:
    def part(chance: Chance, _: int) -> str:
        text = html.escape(paragraph(chance), quote=False)
        return chance.pick([f"<p>{text}</p>", f'<div class="{name(chance, " ")}">\n<h2>{clause(chance)}</h2>\n<p>{text}</p>\n</div>',
                            "<ul>\n" + "\n".join(f"<li>{clause(chance)}</li>" for _ in range(chance.between(2, 5))) + "\n</ul>", f'<img src="{name(chance)}.png" alt="{clause(chance)}" />'])  # fmt: skip
    return f"<html>\n<body>\n<h1>{clause(chance)}</h1>\n" + _grown(chance, size, part, "\n") + "\n</body>\n</html>\n"


def _drawing(chance: Chance, size: int) -> str:
    def part(chance: Chance, _: int) -> str:
        return chance.pick([f'<circle cx="{chance.below(640)}" cy="{chance.below(480)}" r="{chance.below(40)}"/>', f"<text x=\"{chance.below(640)}\">{clause(chance)}</text>",
                            f'<path d="M {chance.below(99)} {chance.below(99)} l {chance.below(9)}.5 -{chance.below(9)}"/>'])  # fmt: skip
    return f'<svg width="640" height="480">\n  ' + _grown(chance, size, part, "\n  ") + "\n</svg>\n"


KINDS: dict[str, tuple[float, str, Callable[[Chance, int], str]]] = {
    "service": (3, "json", _service), "listing": (4, "json", _listing), "messages": (5, "json", _messages), "map": (1, "json", _map),
    "events": (2, "jsonl", _events), "lessons": (2, "jsonl", _lessons),
    "recipe": (1.5, "markdown", _recipe), "minutes": (2, "markdown", _minutes), "guide": (3, "markdown", _guide),
    "shell": (1.5, "text", _shell), "sql": (1, "text", _sql), "settings": (1.5, "text", _settings), "table": (1, "text", _table), "patch": (1, "text", _patch),
    "letter": (1, "text", _letter), "essay": (2, "text", _essay), "scene": (1, "text", _scene),
    "feed": (2, "tags", _feed), "page": (2, "tags", _page), "drawing": (1, "tags", _drawing),
}  # fmt: skip


def document(chance: Chance, kind: str, largest: int = LARGEST) -> Document:
    """Returns a document of a kind with about 150 to 12,000 characters. Most documents are small."""
    _, format_, maker = KINDS[kind]
    return Document(kind, format_, maker(chance, chance.magnitude(SMALLEST, min(LARGEST, max(SMALLEST + 1, largest)))))
