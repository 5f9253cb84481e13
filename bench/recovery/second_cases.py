"""The second generator. It uses other documents, which are cut between tokens, and models that continue by other
rules.

Both generators share the definition of a case and the rule when a text decides (`readings`), but no documents or
wordings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from beginnings import settled
from cases import Case
from chance import Chance
from nothing import evidence
from readings import Evidence, Seam, is_long, is_whole, judge, value
from second_documents import KINDS, LARGEST, document
from second_words import AFTER, ASKING, BEFORE, DECLINING, NOUNS, SUMMING_UP

_TOKEN = re.compile(r"\\u[0-9a-fA-F]{4}|\\.| ?[^\W\d_]{1,5}|\d{1,3}|\s+|[^\w\s]|.", re.DOTALL)
_TRIES = 40


def _token_ends(text: str) -> list[int]:
    return [found.end() for found in _TOKEN.finditer(text)]


def _clause(before: str, _chance: Chance) -> int:
    """Returns the start of the sentence, clause or statement that contains the cut."""
    found = [place.end() for place in re.finditer(r"[.!?;,{(\[]\s+|\\n|\n", before[:-1])]
    return found[-1] if found else -1


def _tokens_back(before: str, chance: Chance) -> int:
    ends = _token_ends(before[-400:])
    back = chance.between(1, 14)
    return len(before) - len(before[-400:]) + ends[-1 - back] if len(ends) > back + 1 else -1


def _lines_back(before: str, chance: Chance) -> int:
    place = len(before)
    for _ in range(chance.between(1, 3)):
        place = before.rfind("\n", 0, max(0, place - 1))
    return place + 1


def _section(before: str, _chance: Chance) -> int:
    """Returns the start of the paragraph, function, element or block that contains the cut."""
    return max(before.rfind(mark, 0, len(before) - 1) + len(mark) for mark in ("\n\n", "\n<", "\n  <", "\n#"))


def _pair(before: str, _chance: Chance) -> int:
    """Returns the start of the key of the open JSON pair."""
    near = max(0, len(before) - 1500)
    found = [near + place.start(1) for place in re.finditer(r'[{,]\s*("\w{1,40}"\s*:)', before[near:])]
    return found[-1] if found else -1


def _start(_before: str, _chance: Chance) -> int:
    return 0


BEGINS: dict[str, tuple[float, Callable[[str, Chance], int] | None]] = {
    "goes-on": (8, None), "trimmed": (5, None), "from-token": (2, None), "laid-out-anew": (1.5, None),
    "clause-again": (3, _clause), "tokens-again": (3, _tokens_back), "lines-again": (3, _lines_back),
    "section-again": (2, _section), "pair-again": (2, _pair), "all-again": (4, _start),
}  # fmt: skip
"""How a continuation begins: exactly; without the white space that a new turn has not; from an earlier place on."""
AROUND = {"": 5.0, "+before": 2.5, "+inline": 0.6, "+fence": 2.0, "+after": 1.5, "+before+fence": 1.2, "+fence+after": 0.6,
          "+before+after": 0.6}  # fmt: skip
NOTHING = {"none-asks": 1.2, "none-declines": 1.2, "none-sums-up": 1.0, "none-first-part": 1.5, "none-other": 1.2, "none-changed": 1.5,
           "none-cut-short": 1.5, "none-silent": 0.5}  # fmt: skip
_LANGUAGE = {"json": ["json", "", "jsonc"], "jsonl": ["json", "jsonl", ""], "markdown": ["md", "markdown", ""], "text": ["", "text", "sh", "sql", "toml"],
             "tags": ["xml", "html", ""]}  # fmt: skip


def cases(seed: int, number: int, largest: int = LARGEST) -> Iterator[Case]:
    """Yields `number` cases; each depends only on the seed and its own number."""
    for index in range(number):
        chance = Chance("second", seed, index)
        for _ in range(_TRIES):
            made = document(chance, chance.weighted({kind: weight for kind, (weight, _, _) in KINDS.items()}), largest)
            draft = _draft(chance, made.text, made.format, made.kind, largest)
            if draft is not None:
                yield Case(id=f"b{seed}-{index}", seed=f"b{seed}/{index}", format=made.format, kind=made.kind, cut="token", **draft)
                break


def _cut(chance: Chance, text: str) -> int:
    last = len(text.rstrip())
    ends = [end for end in _token_ends(text) if 0 < end < last]
    where = chance.unit()
    near = min(25, len(ends) - 1)
    return ends[-1 - chance.below(near)] if where < 0.1 else ends[chance.below(near)] if where > 0.9 else chance.pick(ends)


def _draft(chance: Chance, truth: str, format_: str, kind: str, largest: int) -> dict[str, Any] | None:
    cut = _cut(chance, truth)
    asked = chance.weighted({"unknown": 0.5, "cut": 0.3, "token": 0.2})
    asked = "unknown" if asked == "token" and format_ in ("markdown", "tags") else asked
    group = chance.weighted({"one": 8.0, "nothing": 1.3, "several": 0.8})
    if group == "nothing":
        return _useless_reply(chance, truth, cut, format_, asked, kind, largest)
    places = [cut, len(truth)]
    if group == "several":
        places = sorted({cut, *(_cut(chance, truth) for _ in range(chance.between(1, 2))), len(truth)})
    chunks, text_evidence, used, wrapped = [truth[: places[0]]], Evidence.DECIDED, [], False
    for place, end in zip(places, places[1:]):
        begin = chance.weighted({name: weight for name, (weight, _) in BEGINS.items()})
        around = chance.weighted(AROUND) if end == len(truth) else chance.weighted({"": 6.0, "+before": 1.0})
        continued = _continuation_with_evidence(chance, truth, place, end, format_, asked, begin, around)
        if continued is None:
            return None
        chunks.append(continued[0])
        text_evidence, wrapped = text_evidence & continued[1], bool(around)
        used.append(begin + around)
    style = used[0] if len(used) == 1 else "several"
    accept: list[str] = []
    if wrapped and format_ not in ("json", "jsonl"):
        bare = truth.rstrip("\n")
        accept = [text for text in (bare, bare + "\n") if text != truth]
    return {"asked": asked, "chunks": chunks, "truth": truth, "accept": accept, "decided": text_evidence is Evidence.DECIDED,
            "blind": text_evidence is Evidence.BLIND, "style": style, "note": ", then ".join(used) if len(used) > 1 else ""}  # fmt: skip


def _continuation_with_evidence(
    chance: Chance, truth: str, cut: int, end: int, format_: str, asked: str, begin: str, around: str
) -> tuple[str, Evidence] | None:
    before = truth[:cut]
    token = settled(before, format_).index
    start = token if asked == "token" else cut
    alone = False
    if begin == "from-token":
        if token == cut or asked == "cut":
            return None
        core = truth[token:end]
    elif begin == "laid-out-anew":
        if format_ != "json" or end < len(truth):
            return None
        core, alone = json.dumps(json.loads(truth), indent=chance.pick([None, 1, 3, "\t"]), ensure_ascii=False), True
        if core.startswith(before):
            return None
    elif (place := BEGINS[begin][1]) is not None:
        at = place(truth[:start], chance)
        if not 0 <= at < start or start - at > 3000 and at > 0:
            return None
        core = truth[at:end]
    else:
        core = truth[start:end]
        if begin == "trimmed":
            if core == core.strip() or not core.strip():
                return None
            core = core.strip()
    if not core.strip():
        return None
    text_evidence = judge(Seam(before, core, format_, asked, token, truth[:end] if end < len(truth) else truth, alone)) if _judged(truth, end, format_) else Evidence.UNDECIDED
    text, visible = _around(chance, core, before, format_, asked, around)
    if around and format_ in ("json", "jsonl"):
        visible = Evidence.DECIDED
        if is_whole(before + text + truth[end:], format_):
            same = value(before + text + truth[end:], format_) == value(truth, format_)
            visible = Evidence.DECIDED if same else Evidence.BLIND if asked == "cut" else Evidence.UNDECIDED
    return text, text_evidence & visible


def _judged(truth: str, end: int, format_: str) -> bool:
    """Returns the evidence for a case whose continuation is also cut. Only texts without a grammar can be judged
    then.
    """
    return end == len(truth) or format_ in ("text", "markdown")


def _around(chance: Chance, core: str, before: str, format_: str, asked: str, around: str) -> tuple[str, Evidence]:
    """Adds the text that a model puts around its part. Returns whether that text is recognisable without a grammar."""
    in_line = bool(before) and not before.endswith("\n")
    doubtful = Evidence.BLIND if asked == "cut" else Evidence.UNDECIDED
    text, visible = core, Evidence.DECIDED
    if not around and core.lstrip().startswith(("```", "~~~", ">", "---")):
        visible = Evidence.DECIDED if asked == "cut" else Evidence.UNDECIDED
    if "+fence" in around:
        mark = chance.pick(["```", "```", "````", "~~~"])
        text = f"{mark}{chance.pick(_LANGUAGE[format_])}\n{core}" + ("" if core.endswith("\n") else "\n") + mark
        inside = "```" in core or "~~~" in core or (before.count("```") % 2 == 1)
        visible = Evidence.DECIDED if in_line and not inside and core[:1] != "\n" else doubtful
    if "+before" in around:
        text = chance.pick(BEFORE) + chance.pick(["\n\n", "\n\n", "\n"]) + text
        visible = visible if in_line and core[:1] != "\n" else Evidence.UNDECIDED
    if "+inline" in around:
        text, visible = chance.pick([said for said in BEFORE if said[-1] in ":.："]) + " " + text, doubtful
    if "+after" in around:
        text = text.rstrip("\n") + chance.pick(["\n\n", "\n\n", "\n\n---\n\n"]) + chance.pick(AFTER)
        visible = visible if format_ == "tags" else visible & Evidence.UNDECIDED
    return text, visible


def _useless_reply(chance: Chance, truth: str, cut: int, format_: str, asked: str, kind: str, largest: int) -> dict[str, Any] | None:
    before, style = truth[:cut], chance.weighted(NOTHING)
    in_sentence = asked != "cut" and (before[-1].isalnum() or before[-1] in ",(")
    banks = {"none-asks": ASKING, "none-declines": DECLINING, "none-sums-up": SUMMING_UP}
    visible = Evidence.BLIND
    if style in banks:
        text = chance.pick(banks[style])
        visible = Evidence.DECIDED if in_sentence and style != "none-sums-up" else Evidence.BLIND
    elif style == "none-first-part":
        text, visible = before, Evidence.DECIDED if is_long(before, before) else Evidence.BLIND
    elif style == "none-other":
        text = document(chance, kind, min(largest, 3000)).text
    elif style == "none-changed":
        words = [found for found in re.finditer(r"(?<![\\\w&</])[a-z]{4,}(?![\w>])", before) if found.start() >= 40]
        if not words:
            return None
        changed = chance.pick(words)
        text = truth[: changed.start()] + chance.pick([noun for noun in NOUNS if noun != changed.group()]) + truth[changed.end() :]
        if is_long(before[: changed.start()], before[: changed.start()]):
            visible = Evidence.DECIDED
    elif style == "none-cut-short":
        rest = truth[cut:].rstrip()
        if format_ not in ("json", "tags") or len(rest) < 20:
            return None
        text, visible = rest[: _cut(chance, rest)], Evidence.DECIDED
    else:
        text, visible = chance.pick(["", "\n", " \n"]), Evidence.DECIDED
    text_evidence = evidence(before, (text, visible), format_, settled(before, format_).index)
    return {"asked": asked, "chunks": [before, text], "truth": None, "decided": text_evidence is Evidence.DECIDED,
            "blind": text_evidence is Evidence.BLIND, "style": style}  # fmt: skip
