"""Replies that do not continue the document. Any answer with the outcome `whole` is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable

import invented
import json_text
from chance import Chance
from readings import Evidence, is_long, is_whole, overlaps
from wordings import EXPLANATIONS, PLACEHOLDERS, QUESTIONS, REFUSALS, Bank, wording_for, spoken

Answer = tuple[str, Evidence]
"""The received text, and whether it can be distinguished from a continuation without a grammar."""


def _in_sentence(before: str) -> bool:
    """Returns whether a text stops mid-sentence, so that a new sentence cannot continue it."""
    return bool(before) and (before[-1].isalnum() or before[-1] in ",(")


def _reply_with_wording(bank: Bank, tells: bool) -> Callable[..., Answer | None]:
    def answer(chance: Chance, before: str, _rest: str, format_: str, asked: str, _other: str) -> Answer | None:
        seen = tells and asked != "cut" and _in_sentence(before)
        language = spoken(chance)
        text = wording_for(chance, bank, format_, language)
        if chance.maybe(0.3):
            text += "\n\n" + wording_for(chance, bank, format_, language)
        return text, Evidence.DECIDED if seen else Evidence.BLIND

    return answer


def identical(_chance: Chance, before: str, _rest: str, _format: str, _asked: str, _other: str) -> Answer | None:
    return before, Evidence.DECIDED if is_long(before, before) else Evidence.BLIND


def empty(chance: Chance, *_: str) -> Answer | None:
    return chance.pick(["", "", "\n", " "]), Evidence.DECIDED


def other_document(chance: Chance, _before: str, _rest: str, _format: str, _asked: str, other: str) -> Answer | None:
    return other, Evidence.BLIND


def other_version(chance: Chance, before: str, rest: str, _format: str, _asked: str, _other: str) -> Answer | None:
    """Restarts the document, but with a word changed before the cut."""
    truth = before + rest
    words = list(re.finditer(r"(?<![\\\w&</])(?!true|false|null)[A-Za-z]{4,}(?![\w>])", before))
    late = [found for found in words if found.start() >= 40]
    if not late:
        return None
    changed = chance.pick(late)
    instead = chance.pick([word for word in invented.ENGLISH if len(word) > 3 and word != changed.group()])
    text = truth[: changed.start()] + instead + truth[changed.end() :]
    return text, Evidence.DECIDED if is_long(before[: changed.start()], before[: changed.start()]) else Evidence.BLIND


def placeholder(chance: Chance, before: str, rest: str, format_: str, _asked: str, _other: str) -> Answer | None:
    words = chance.pick(PLACEHOLDERS)
    if format_ in ("json", "jsonl"):
        # Inside the string and properly closed, so that it looks like a continuation.
        end = re.search(r'(?<!\\)"[\s\]}]*\Z', rest)
        return "\\n" + words.replace('"', "'") + (end.group() if end and chance.maybe(0.5) else ""), Evidence.BLIND
    return "\n" + words + "\n", Evidence.BLIND


def degenerate(chance: Chance, before: str, _rest: str, _format: str, _asked: str, _other: str) -> Answer | None:
    """Repeats the same few words until the limit."""
    piece = before[-chance.between(5, 60) :]
    return piece * chance.between(8, 60), Evidence.BLIND


def cut_again(chance: Chance, _before: str, rest: str, format_: str, _asked: str, _other: str) -> Answer | None:
    """A good continuation that is itself cut and is not continued."""
    if format_ not in ("json", "tags") or len(rest) < 20:
        return None
    return rest[: chance.between(1, len(rest.rstrip()) - 2)], Evidence.DECIDED


NOTHING: dict[str, tuple[float, Callable[..., Answer | None]]] = {
    "none-identical": (1.5, identical),
    "none-empty": (0.6, empty),
    "none-refusal": (1.2, _reply_with_wording(REFUSALS, True)),
    "none-question": (1.0, _reply_with_wording(QUESTIONS, True)),
    "none-explanation": (1.2, _reply_with_wording(EXPLANATIONS, False)),
    "none-other-document": (1.5, other_document),
    "none-other-version": (1.5, other_version),
    "none-placeholder": (0.4, placeholder),
    "none-degenerate": (0.5, degenerate),
    "none-cut-again": (1.5, cut_again),
}
"""Styles without a correct text, by name, with their weights."""


def evidence(before: str, answer: Answer, format_: str, settled: int) -> Evidence:
    """Returns the evidence that the reply is not a continuation. With a grammar, that no simple reading is a whole
    text.
    """
    text, visible = answer
    if format_ in ("text", "markdown"):
        return visible
    if is_whole(before, format_) or _looks_like_a_restart(before, text, format_):
        return Evidence.BLIND
    for start in {before, before[:settled]}:
        for k in [0, *overlaps(start, text)]:
            if is_whole(start + text[k:], format_):
                return Evidence.BLIND
    return Evidence.DECIDED


def _looks_like_a_restart(before: str, text: str, format_: str) -> bool:
    """Returns whether the text is a whole document that begins with everything received before the cut."""
    if format_ == "tags":
        return is_whole(text, format_) and text.startswith(before)
    said_before, said_now = (json_text.unescaped(json_text.minified(part)) for part in (before, text))
    return is_whole(text, format_) and said_now.startswith(said_before)
