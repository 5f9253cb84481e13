"""Chooses where a document is cut: at positions of every kind, but never inside a UTF-8 character."""

from __future__ import annotations

import re

from chance import Chance

_JSON_CUTS = {
    "word": 4.0, "word-end": 2.0, "between-tokens": 4.0, "number": 1.5, "literal": 1.0, "key": 1.5, "escape": 1.5,
    "surrogate": 1.0, "indent": 1.0, "line-end": 1.5, "anywhere": 3.0,
}  # fmt: skip
_TEXT_CUTS = {"word": 4.0, "word-end": 3.0, "line-end": 2.0, "line-start": 2.0, "indent": 1.5, "anywhere": 3.0}
CUTS = {
    "json": _JSON_CUTS,
    "jsonl": _JSON_CUTS,
    "text": _TEXT_CUTS,
    "markdown": {**_TEXT_CUTS, "fence": 1.0, "in-block": 2.0, "row": 1.0},
    "tags": {**_TEXT_CUTS, "tag": 2.0, "attribute": 1.0, "between-tags": 2.0, "entity": 0.7},
}
_PATTERNS = {
    "word": r"[^\W\d_]()[^\W\d_]+",
    "word-end": r"[^\W\d_]()(?=[\s.,;:!?]|\\n)",
    "between-tokens": r"(?<=[\[{,:\]}])()[\s\"\[{\]},0-9-]",
    "number": r"[:,\[\s]-?\d()[\d.eE+-]+(?=[\s,\]}])",
    "literal": r"(?<=[:,\[\s])(?:t()rue|tr()ue|tru()e|f()alse|fals()e|n()ull|nu()ll)",
    "key": r'"[^\W\d]()\w*"\s*:',
    "escape": r'\\()(?:[nrtbf"\\/]|u)|\\u()[0-9a-fA-F]|\\u[0-9a-fA-F]{2}()[0-9a-fA-F]{2}',
    "surrogate": r"\\ud[89ab][0-9a-f]{2}(?:()\\u|\\()u|\\u()d|\\ud[c-f]()[0-9a-f])",
    "indent": r"(?:\\n|\n)[ \t]()[ \t]+",
    "line-end": r"()(?:\\n|\r?\n)",
    "line-start": r"\n()[^\r\n]",
    "fence": r"(?:\n``()`|\n```()\w*\n|\n```\w()\w)",
    "in-block": r"\n```\w+\n(?:[^`]{0,300}?)()[^`\n]",
    "row": r"\n\|[^\n]*?()[^\n]*\|\n",
    "tag": r"<()/?\w|</?\w()[\w-]*",
    "attribute": r'<[\w-]+ \w()\w*="|="()[^"]*"|="\w()[^"]*"',
    "between-tags": r">()\s*<|>\s()\s*<",
    "entity": r"&()\w+;|&\w()\w*;",
    "anywhere": r"()",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}


def cut_of(chance: Chance, text: str, format_: str) -> tuple[int, str]:
    """Returns a position at which the text is cut, at least one character from either end, and the kind of the
    position.
    """
    last = len(text.rstrip()) - 1
    for _ in range(6):
        name = chance.weighted(CUTS[format_])
        place = chance.between(1, max(1, last - 1))
        # Some cuts are near the beginning and some near the end, where one side gives little evidence.
        where = chance.unit()
        if where < 0.08:
            place = chance.between(1, min(60, max(1, last - 1)))
        elif where > 0.92:
            place = max(1, last - chance.between(1, 60))
        pattern = _COMPILED[name]
        found = pattern.search(text, max(0, place - 1), place + 4000) or pattern.search(text, 0, 20_000)
        if found is None:
            continue
        group = next((number for number, value in enumerate(found.groups(), 1) if value is not None), 0)
        position = found.start(group)
        if 1 <= position <= last:
            return position, name
    return max(1, min(last, chance.between(1, max(1, last)))), "anywhere"
