"""Fits the weights that distinguish announcements, remarks and answers from lines of texts.

There are two steps. First, the pieces of a line (letter sequences and words) are weighted by their frequency in the
lines of the bank next to this file and in lines of texts. Then this score and the form and position of the line are
weighted on simulated joins. For this, each line gets a score from a fit without that line. Both steps are logistic
regressions. The same seed, bank and texts give the same weights.

    python3 bench/register/fit.py --texts FOLDER [--texts FOLDER ...] --write crates/endmark-recovery/src/stitch/register
"""

from __future__ import annotations

import argparse
import math
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import features

HERE = Path(__file__).parent
REGISTERS = ("announcing", "leaving", "answering")
FOLDS = 5
KINDS = (".py", ".md", ".rst", ".txt", ".rs", ".js", ".html", ".xml", ".sh", ".toml", ".po")
MOST_BYTES = 200_000
REACH = 6_000
"""How many characters of the text on each side of a line are searched for its words."""


def bank(register: str) -> list[str]:
    """Returns the lines of a register."""
    lines = (HERE / f"{register}.txt").read_text("utf-8").splitlines()
    return sorted({line.strip() for line in lines if line.strip()})


def messages(text: str) -> list[str]:
    """Returns the messages of a catalogue in its language."""
    found = re.findall(r'^msgstr(?:\[\d\])? ((?:".*"\s*\n?)+)', text, re.M)
    joined = ["".join(re.findall(r'"(.*)"', each)) for each in found]
    return [each.replace("\\n", "\n").replace('\\"', '"') for each in joined if each]


def documents(folders: list[Path], chance: random.Random, most: int) -> list[str]:
    """Returns texts of all kinds, with the same number for each kind of file."""
    kinds: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in KINDS and path.is_file() and ".git" not in path.parts and "target" not in path.parts:
                kinds.setdefault(path.suffix, []).append(path)
    found = []
    weights = {".po": 3.0, ".txt": 3.0, ".md": 2.0, ".py": 2.0, ".html": 0.5, ".js": 0.5}
    total = sum(weights.get(kind, 0.7) for kind in kinds)
    for kind, paths in sorted(kinds.items()):
        chance.shuffle(paths)
        taken = 0
        for path in paths:
            if taken >= most * weights.get(kind, 0.7) / total:
                break
            text = path.read_text("utf-8", errors="replace")[:MOST_BYTES]
            if kind == ".po":
                said = messages(text)
                chance.shuffle(said)
                joiner = chance.choice(["\n", "\n\n", "\n", " "])
                text = joiner.join(said[: chance.choice([20, 60])])
            if len(text) > 200:
                found.append(text)
                taken += 1
    return found


def lines_of(texts: list[str], chance: random.Random, most: int) -> list[str]:
    """Returns lines with which a continuation or a sentence of a text begins."""
    found = []
    while len(found) < most:
        text = chance.choice(texts)
        at = chance.randrange(len(text))
        how = chance.random()
        if how < 0.6:
            at = text.rfind("\n", 0, at) + 1
        elif how < 0.85:
            at = max(text.rfind(" ", 0, at), text.rfind("\n", 0, at)) + 1
        line = text[at:].lstrip("\n").split("\n", 1)[0]
        if chance.random() < 0.3:
            end = [match.end() for match in re.finditer(r"[.:!?](?= )|[。！：]", line)]
            line = line[: chance.choice(end)] if end else line
        if line.strip() and len(line) < 400:
            found.append(line)
    return found


def logistic(rows: list[list[float]], truth: list[bool], weigh: list[float], steps: int, ridge: float) -> list[float]:
    """Returns the weights of a few dense features, with the intercept last, found with Newton's method."""
    size = len(rows[0]) + 1
    beta = [0.0] * size
    for _ in range(steps):
        gradient = [-ridge * value for value in beta]
        hessian = [[ridge if row == column else 0.0 for column in range(size)] for row in range(size)]
        for row, label, weight in zip(rows, truth, weigh, strict=True):
            full = [*map(float, row), 1.0]
            share = 1 / (1 + math.exp(-max(-30, min(30, sum(map(float.__mul__, beta, full))))))
            spread = weight * share * (1 - share)
            error = weight * (label - share)
            for left in range(size):
                if full[left]:
                    gradient[left] += error * full[left]
                    for right in range(left + 1):
                        hessian[left][right] += spread * full[left] * full[right]
        for left in range(size):
            for right in range(left):
                hessian[right][left] = hessian[left][right]
        beta = [value + step for value, step in zip(beta, solved(hessian, gradient), strict=True)]
    return beta


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Returns the solution of a system of linear equations."""
    size = len(right)
    rows = [[*matrix[row], right[row]] for row in range(size)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column and rows[row][column]:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [one - factor * other for one, other in zip(rows[row], rows[column], strict=True)]
    return [rows[row][size] / rows[row][row] for row in range(size)]


class Pieces:
    """A logistic regression over the pieces of lines."""

    def __init__(self) -> None:
        self.weights = [0.0] * features.SLOTS
        self.bias = 0.0

    def score(self, slots: list[int]) -> float:
        if not slots:
            return 0.0
        return self.bias + sum(self.weights[slot] for slot in slots) / math.sqrt(len(slots))

    def fit(self, lines: list[tuple[list[int], bool, float]], chance: random.Random, rounds: int) -> None:
        squares = [1e-6] * features.SLOTS
        order = list(range(len(lines)))
        for _ in range(rounds):
            chance.shuffle(order)
            for index in order:
                slots, label, weight = lines[index]
                if not slots:
                    continue
                share = 1 / (1 + math.exp(-max(-30, min(30, self.score(slots)))))
                each = 1 / math.sqrt(len(slots))
                error = weight * (label - share)
                self.bias += 0.01 * error
                step = error * each
                for slot in slots:
                    gradient = step - 2e-5 * self.weights[slot]
                    squares[slot] += gradient * gradient
                    self.weights[slot] += 0.25 * gradient / math.sqrt(squares[slot])


def wording(line: str, others: list[str], chance: random.Random) -> str:
    """Returns a line of the bank, alone or after another one."""
    if chance.random() < 0.25 and line[:1].isupper():
        first = chance.choice(others)
        if first[:1].isupper() and first.endswith((".", "!")) and len(first) < 60:
            return f"{first} {line}"
    if chance.random() < 0.25:
        return re.sub(r"\b(text|document|file|output|answer|code)\b", lambda _: chance.choice(
            ["text", "document", "file", "output", "answer", "code", "payload", "response", "content", "message", "JSON", "XML",
             "section", "list", "script", "object", "array", "records", "snippet", "tool call"]), line)
    return line


def dressed(line: str, chance: random.Random) -> str:
    """Returns a line in the style of a model: plain, emphasised, in brackets, or as a heading."""
    how = chance.random()
    core = line.rstrip(":：")
    if how < 0.07:
        return f"**{line}**"
    if how < 0.1:
        return f"*{line}*"
    if how < 0.13:
        return f"({core})"
    if how < 0.15:
        return f"[{core}]"
    if how < 0.19:
        return f"{'#' * chance.randint(1, 4)} {core}"
    if how < 0.21:
        return f"{core} —"
    if how < 0.23:
        return f"{core}..."
    return line


def cut(text: str, chance: random.Random) -> tuple[str, str]:
    """Returns a text that is cut somewhere."""
    length = min(len(text), int(200 * 40 ** chance.random()))
    start = chance.randrange(len(text) - length + 1)
    start = text.rfind("\n", 0, start) + 1
    part = text[start : start + length]
    end = part.rfind("\n")
    part = part[:end] if end > 60 and chance.random() < 0.8 else part
    at = chance.randrange(1, max(2, len(part) - 1))
    how = chance.random()
    if how < 0.3:
        at = max(part.rfind("\n", 0, at) + 1, 1)
    elif how < 0.4:
        at = max(part.rfind("\n", 0, at), 1)
    elif how < 0.55:
        at = max(part.rfind(" ", 0, at), 1)
    elif how < 0.6:
        at = max(part.rfind("\n\n", 0, at) + 2, 1)
    return part[:at], part[at:]


def sentences(text: str) -> list[str]:
    """Returns the sentences of a text that are not long."""
    return re.findall(r"(?<=[.!?] )[A-Z][^.!?\n{}<=]{12,120}[.!?](?= |\n)", text)


Score = Callable[[str, str], float]
"""Score of a line for a register, by a fit that has not seen the line."""


def near_of(before: str, rest: str) -> str:
    return before[-REACH:] + "\n" + rest[:REACH]


def announced(texts: list[str], banks: dict[str, list[str]], score: Score, chance: random.Random, many: int) -> Iterator[tuple[list[float], bool]]:
    for _ in range(many):
        before, rest = cut(chance.choice(texts), chance)
        kind = chance.random()
        if kind < 0.5:
            source = chance.choice(banks["announcing"])
            line = dressed(wording(source, banks["announcing"], chance), chance)
            behind = chance.choices(["\n\n", "\n", "\n\n---\n\n", "\n```\n", "\n\n```text\n", " "], [6, 2.5, 1, 1, 1.5, 2.5])[0]
            behind, register = behind + rest, "announcing"
            if behind.startswith(" "):
                behind = ""
        elif kind < 0.6:
            source = chance.choice(banks["answering"])
            line, behind, register = source, chance.choice(["", "\n", "\n\nxx"]), "answering"
        else:
            kept = rest.lstrip() if chance.random() < 0.8 else rest
            line = kept.split("\n", 1)[0]
            behind = kept[len(line) :]
            if chance.random() < 0.35:
                ends = [match.end() for match in re.finditer(r"[.:!)\]…*—–](?= )|[。：！]", line)]
                if ends:
                    line, behind = line[: chance.choice(ends)], ""
            source, register = line, "text"
            rest = behind
        if not line.strip() or len(line.encode()) > 400:
            continue
        near = near_of(before, rest)
        yield features.announcing(line, before, behind, score("announcing", source if register != "announcing" else source + "\t" + line), score("answering", line), near), register == "announcing"


def left(texts: list[str], banks: dict[str, list[str]], score: Score, chance: random.Random, many: int) -> Iterator[tuple[list[float], bool]]:
    for _ in range(many):
        before, rest = cut(chance.choice(texts), chance)
        rest = rest.rstrip()
        if not rest:
            continue
        is_remark = chance.random() < 0.5
        if is_remark:
            source = chance.choice(banks["leaving"])
            part = dressed(wording(source, banks["leaving"], chance), chance)
            apart = chance.choices(["\n\n", "\n", "\n\n---\n\n", "\n\n\n", "\n```\n\n"], [6, 3, 1, 0.7, 1.5])[0]
            kept = rest + apart
            key = source + "\t" + part
        elif (own := chance.random()) < 0.5:
            # An ordinary last sentence below the text. Its words are as unrelated to the text as those of a remark.
            found = sentences(chance.choice(texts))
            part = key = chance.choice(banks["ending"] if own < 0.25 or not found else found)
            kept = rest + chance.choice(["\n\n", "\n\n", "\n"])
        else:
            at = max(rest.rfind("\n\n") + 2 if chance.random() < 0.5 and "\n\n" in rest else 0, rest.rfind("\n") + 1 if chance.random() < 0.5 else 0)
            if not at:
                at = rest.rfind("\n") + 1
            if not at:
                continue
            kept, part = rest[:at], rest[at:]
            key = part
        text = part.strip()
        if not any(sign.isalpha() for sign in text) or len(text.encode()) > 400 or text.count("\n") > 2:
            continue
        stripped = kept.rstrip()
        breaks = kept[len(stripped) :].count("\n")
        widely = breaks > 2 and "\n\n\n" not in stripped and "\n\n\n" not in before
        yield features.leaving(part, stripped, breaks, widely, score("leaving", key), before[-REACH:] + "\n" + stripped[-REACH:]), is_remark


def answered(texts: list[str], banks: dict[str, list[str]], score: Score, chance: random.Random, many: int) -> Iterator[tuple[list[float], bool]]:
    for _ in range(many):
        before, rest = cut(chance.choice(texts), chance)
        is_answer = chance.random() < 0.5
        line = chance.choice(banks["answering"]) if is_answer else rest.strip().split("\n", 1)[0]
        if not line.strip():
            continue
        behind = "" if is_answer else rest.strip()[len(line) :]
        line = line.encode()[:400].decode(errors="ignore")
        scores = score("answering", line), score("announcing", line)
        yield features.answering(line, before, *scores, near_of(before, behind)), is_answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", action="append", type=Path, required=True, help="a folder of texts, catalogues (.po) among them")
    parser.add_argument("--write", type=Path, help="the folder that gets weights.bin; the rest is printed")
    parser.add_argument("--lines", type=int, default=16_000)
    parser.add_argument("--joints", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=REGISTERS, help="fit this register alone; the weights of the others stay")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    texts = documents(options.texts, chance, 3_000)
    banks = {register: bank(register) for register in REGISTERS}
    endings = bank("ending")
    print(f"{len(texts)} texts, {', '.join(f'{len(lines)} {register}' for register, lines in banks.items())}")
    text_lines = [(features.pieces(line), line) for line in lines_of(texts, chance, options.lines)]
    whole: dict[str, Pieces] = {}
    folds: dict[str, list[Pieces]] = {}
    fitted = (options.only,) if options.only else REGISTERS
    for register in fitted:
        own = [(line, index % FOLDS) for index, line in enumerate(sorted(banks[register], key=lambda line: random.Random(line).random()))]
        others = [line for other in REGISTERS if other != register and {register, other} != {"announcing", "leaving"} for line in banks[other]]
        def rows(fold: int | None) -> list[tuple[list[int], bool, float]]:
            mine = [line for line, part in own if part != fold]
            lines = [wording(line, mine, chance) for line in mine for _ in range(3)]
            found = [(features.pieces(line), True, 1.0) for line in lines]
            found += [(slots, False, 1.0) for index, (slots, _) in enumerate(text_lines) if index % FOLDS != fold]
            found += [(features.pieces(line), False, 0.5) for line in others]
            if register == "leaving":
                kept = [line for index, line in enumerate(endings) if index % FOLDS != fold]
                found += [(features.pieces(line), False, 1.0) for line in kept for _ in range(3)]
            return found
        folds[register] = []
        for fold in (*range(FOLDS), None):
            model = Pieces()
            model.fit(rows(fold), chance, 6)
            if fold is None:
                whole[register] = model
            else:
                folds[register].append(model)
        part_of = dict(own)
        caught = [folds[register][part].score(features.pieces(line)) for line, part in part_of.items()]
        fresh = [folds[register][0].score(slots) for index, (slots, _) in enumerate(text_lines) if index % FOLDS == 0]
        fresh.sort()
        for share in (0.99, 0.999):
            bar = fresh[int(len(fresh) * share)]
            print(f"{register}: {sum(value > bar for value in caught) / len(caught):.3f} above {share:.1%} of the lines of texts")
    place = {register: {line: index % FOLDS for index, line in enumerate(sorted(banks[register], key=lambda line: random.Random(line).random()))} for register in REGISTERS}

    def score(register: str, line: str) -> float:
        source, _, shown = line.partition("\t")
        if register == "leaving" and source in endings:
            return folds[register][endings.index(source) % FOLDS].score(features.pieces(source))
        fold = place[register].get(source, 0)
        return folds[register][fold].score(features.pieces(shown or source))

    half = len(texts) // 2
    for name, cases, names in (("announcing", announced, features.ANNOUNCING), ("leaving", left, features.LEAVING), ("answering", answered, features.ANSWERING)):
        if name not in fitted:
            continue
        found = list(cases(texts, {**banks, "ending": endings}, score, chance, options.joints))
        rows_, truth = [row for row, _ in found], [label for _, label in found]
        third = len(rows_) * 2 // 3
        share = sum(truth[:third]) / third
        weigh = [0.5 / share if label else 0.5 / (1 - share) for label in truth]
        beta = logistic(rows_[:third], truth[:third], weigh[:third], 12, 1.0)
        print(f"\n{name}: bits")
        for feature, value in zip([*names, "always"], beta, strict=True):
            print(f"    {feature:12} {value / math.log(2):7.2f}")
        bits = [(sum(map(float.__mul__, beta, [*map(float, row), 1.0])) / math.log(2), label) for row, label in zip(rows_[third:], truth[third:], strict=True)]
        for low, high in ((-99, -8), (-8, -4), (-4, -2), (-2, 0), (0, 2), (2, 4), (4, 6), (6, 8), (8, 10), (10, 14), (14, 99)):
            inside = [label for value, label in bits if low <= value < high]
            if inside:
                print(f"    {low:4} to {high:3} bits: {len(inside):5} lines, {sum(inside) / len(inside):.4f} of the register")
    if options.write:
        data = bytearray((options.write / "weights.bin").read_bytes() if options.only else bytes(3 * features.SLOTS))
        for register in fitted:
            scale = max(map(abs, whole[register].weights)) / 127
            first = REGISTERS.index(register) * features.SLOTS
            data[first : first + features.SLOTS] = b"".join(round(value / scale).to_bytes(1, "little", signed=True) for value in whole[register].weights)
            print(f"{register}: scale {scale:.6f}, bias {whole[register].bias:.4f}")
        (options.write / "weights.bin").write_bytes(bytes(data))


if __name__ == "__main__":
    main()
