"""Computes the features of a line: its pieces, and its form and position. plain/register.rs computes the same ones."""

from __future__ import annotations

import string
from pathlib import Path

SLOTS = 1 << 14
LONGEST = 160
SMALL = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
FENCES = ("```", "~~~")


def is_wide(sign: str) -> bool:
    """Returns whether a character belongs to a script that writes words without spaces between them."""
    return ord(sign) >= 0x2E80 or 0x0E00 <= ord(sign) < 0x0E80


def normalised(line: str) -> str:
    """Normalises a line: lower case, single spaces, no punctuation around it, every digit a zero."""
    text = " ".join(line.lower().split())[:LONGEST]
    text = "".join("0" if sign.isdigit() else sign for sign in text)
    start, end = 0, len(text)
    while start < end and not text[start].isalnum():
        start += 1
    while end > start and not text[end - 1].isalnum():
        end -= 1
    return text[start:end]


def slot(piece: str) -> int:
    """Returns the folded FNV-1a hash of a piece."""
    value = 0x811C9DC5
    for byte in piece.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return (value ^ value >> 15) % SLOTS


def pieces(line: str) -> list[int]:
    """Returns the distinct slots of the pieces of a line: letter sequences, words, pairs of words."""
    text = normalised(line)
    if not text:
        return []
    padded = f" {text} "
    found = set()
    for length in (3, 4):
        for at in range(len(padded) - length + 1):
            found.add(slot(padded[at : at + length]))
    for at, sign in enumerate(text):
        if is_wide(sign):
            found.add(slot(text[at]))
            found.add(slot(text[at : at + 2]))
    words = text.split(" ")
    for at, word in enumerate(words):
        found.add(slot("\x01" + word))
        if at:
            found.add(slot("\x02" + words[at - 1] + " " + word))
    found.add(slot("\x03" + words[0]))
    found.add(slot("\x04" + words[-1]))
    return sorted(found)


def known(line: str, text: str) -> float:
    """Returns the share of a line's longer words that occur in the text, 0 to 1; one half if the line has none."""
    line, text = line.translate(SMALL), text.translate(SMALL)
    words = {word for word in "".join(sign if sign.isalnum() else " " for sign in line).split() if len(word) > 3}
    words = {word for word in words if not any(is_wide(sign) for sign in word)}
    if not words:
        return 0.5
    return sum(word in text for word in words) / len(words)


def is_end_of_sentence(text: str) -> bool:
    return text.endswith((".", "!", "?", "…", "。", "！", "？", "।"))


def is_bracketed(text: str) -> bool:
    return text.startswith(("(", "[", "*", "_", "-", "（", "【")) and text.endswith((")", "]", "*", "_", "-", "）", "】"))


def has_wide_letters(text: str) -> bool:
    return any(ord(sign) >= 0x370 and sign.isalpha() for sign in text)


def opens_fence(text: str) -> bool:
    return text.lstrip().startswith(FENCES)


ANNOUNCING = [
    "score", "answering", "colon", "sentence", "bracketed", "heading", "alone", "fence", "word", "word, low", "paragraph",
    "low", "sign", "long", "short", "known", "script", "line", "code", "rule",
]


def announcing(line: str, before: str, behind: str, score: float, answering: float, near: str) -> list[float]:
    """Returns the form of a line at the beginning of a continuation."""
    text = line.strip()
    core = text.rstrip("*_ ")
    low = text[:1].islower()
    in_word = before[-1:].isalnum() or before[-1:] == "_"
    below = behind.lstrip("\r ")
    alone = below.startswith(("\n\n", "\n\r\n"))
    sign = not text[:1].isalnum() and not is_bracketed(text) and not text.startswith("#")
    return [
        score, answering, core.endswith((":", "：")), is_end_of_sentence(core), is_bracketed(text), text.startswith("#"),
        alone, below.startswith("\n") and opens_fence(below), in_word and not low, in_word and low,
        not before or before.endswith(("\n\n", "\n\r\n")), low, sign, len(text) > 100,
        len(text) < 14 and not alone and not is_bracketed(text), known(text, near),
        has_wide_letters(text) != has_wide_letters(near), before.endswith("\n"),
        any(each in text for each in "{};=<\\|`$"), below.lstrip("\r\n").startswith(("---\n", "***\n", "___\n")),
    ]


LEAVING = [
    "score", "sentence", "colon", "bracketed", "apart", "widely", "low", "sign", "code", "script", "behind code", "long",
    "known", "lines", "rule", "names answer", "reader",
]

ADDRESS = Path(__file__).parents[2] / "crates/endmark-recovery/src/stitch/register/address.txt"


def _words() -> dict[str, set[str]]:
    """Returns the words of each part of `address.txt`."""
    found: dict[str, set[str]] = {}
    for line in ADDRESS.read_text("utf-8").splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = current = set()
        elif not line.startswith("#"):
            current.update(line.split())
    return found


WORDS = _words()


def has_word(part: str, line: str) -> bool:
    """Returns whether a line contains a word of a part of `address.txt`."""
    words = set("".join(sign if sign.isalpha() else " " for sign in line).split())
    words |= {word.lower() for word in words if word != "i"}
    return any(each in line if is_wide(each[0]) else each in words for each in WORDS[part])


def leaving(part: str, kept: str, breaks: int, widely: bool, score: float, near: str) -> list[float]:
    """Returns the form of the last lines of a continuation."""
    text = part.strip()
    core = text.rstrip("*_ ")
    last = kept.rsplit("\n", 1)[-1]
    sign = not (text[:1].isalnum() or text[:1] in "¡¿") and not is_bracketed(text)
    return [
        score, is_end_of_sentence(core), core.endswith((":", "：")), is_bracketed(text), breaks > 1, widely,
        text[:1].islower(), sign, any(each in text for each in "{}=<\\|`$"),
        has_wide_letters(text) != has_wide_letters(near), last.endswith(tuple("};]>|)`~")), len(text) > 100,
        known(text, near), "\n" in text, bool(last.strip()) and not last.strip().strip("-*_="),
        has_word("answer", text), has_word("reader", text),
    ]


ANSWERING = ["score", "announcing", "question", "sentence", "colon", "low", "long", "in word", "known", "script", "code"]


def answering(line: str, before: str, score: float, announcing_score: float, near: str) -> list[float]:
    """Returns the form of the first line of a continuation that may be a separate answer."""
    text = line.strip()
    return [
        score, announcing_score, text.endswith(("?", "？")), text.endswith((".", "!", "。", "！")), text.endswith(":"),
        text[:1].islower(), len(text) > 100, before[-1:].isalnum(), known(text, near),
        has_wide_letters(text) != has_wide_letters(near), any(each in text for each in "{};=<\\|`$"),
    ]
