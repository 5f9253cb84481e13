#!/usr/bin/env python3
"""Measures how many values that an agent needs later are kept by compaction (CX-4), compared with two common
policies.

For every tool call of a recorded conversation, the history before it is compacted. The score counts the values (four
characters or more) that the agent then put into the call's arguments and that occurred in the history. It is the
share of these values that are still in the request after compaction. It needs no model and no labels, because the
agent's next step shows which values it needed.

    recall.py --data trajectories.json [--command "endmark compact --batch"] [--shares 0.35,0.2] [--gate]

The data is a JSON list of objects with `traj`, messages of Chat Completions, as tau-bench records them. The
environment variable ENDMARK_TAU_BENCH can also contain its path. `--other-ids` first replaces every id by one of
another form.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

LEAST_CHARS = 4
BARS = {0.35: 0.99, 0.2: 0.95}


def leaves(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def text_of(message):
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = json.dumps(content)
    calls = message.get("tool_calls") or []
    return " ".join([content] + [f"{call['function']['name']} {call['function']['arguments']}" for call in calls])


def visible(messages):
    return "\n".join(text_of(message) for message in messages if message["role"] != "system")


WORD = re.compile(r"[\w./:@-]{4,}")


def words_of(value):
    """Returns the words of a command that do not consist only of lower-case letters, such as paths, identifiers and
    numbers.
    """
    return {word.strip(".:") for word in WORD.findall(value) if re.search(r"[^a-z]", word.strip(".:"))}


def cases(conversations, by_words=False):
    """Yields the history before each call, and the values of the call that occur in this history."""
    for conversation in conversations:
        messages = conversation["traj"]
        for position, message in enumerate(messages):
            values = set()
            for call in message.get("tool_calls") or []:
                try:
                    of_call = {leaf for leaf in leaves(json.loads(call["function"]["arguments"])) if len(leaf) >= LEAST_CHARS}
                    values |= {word for leaf in of_call for word in words_of(leaf) if len(word) >= LEAST_CHARS} if by_words else of_call
                except json.JSONDecodeError:
                    continue
            history = messages[:position]
            shown = visible(history)
            values = sorted(value for value in values if value in shown)
            if values:
                yield history, values


IDS = re.compile(r"\b(?:[a-z]+(?:_[a-z]+)*_\d{4,}|[A-Z]{3}\d{3}|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{6})\b")


def other_id(match):
    """Returns an id of another form: only letters, groups of digits, or hexadecimal digits with a prefix."""
    digest = hashlib.sha256(match.group().encode()).hexdigest()
    kind = int(digest[:2], 16) % 3
    if kind == 0:
        return "".join(chr(ord("a") + int(digest[at : at + 2], 16) % 26) for at in range(2, 20, 2))
    if kind == 1:
        return f"{int(digest[2:8], 16) % 10000:04}-{int(digest[8:14], 16) % 10000:04}"
    return f"x-{digest[2:10]}"


def endmark(command, histories, share):
    """Returns the histories after `endmark compact --batch`, in the same order. Runs several processes."""
    def run(part):
        lines = [json.dumps({"id": number, "for": "openai_chat", "request": history, "keep_share": share}) for number, history in part]
        answer = subprocess.run(shlex.split(command), input="\n".join(lines) + "\n", capture_output=True, text=True)
        if answer.returncode != 0:
            sys.exit(f"{command}: exit {answer.returncode}: {answer.stderr}{answer.stdout[-500:]}")
        return [json.loads(line) for line in answer.stdout.splitlines()]

    numbered = list(enumerate(histories))
    parts = [numbered[at::2] for at in range(2)]
    with ThreadPoolExecutor(2) as pool:
        answers = [answer for part in pool.map(run, parts) for answer in part]
    return [answer["request"] for answer in sorted(answers, key=lambda answer: answer["id"])], answers


def first_and_last(histories, keep):
    def one(history):
        said = [message for message in history if message["role"] != "system"]
        return said if len(said) <= keep + 1 else said[:1] + said[-keep:]
    return [one(history) for history in histories]


def cleared(histories, keep):
    def one(history):
        results = [at for at, message in enumerate(history) if message["role"] == "tool"]
        gone = set(results[: max(0, len(results) - keep)])
        return [dict(message, content="[cleared]") if at in gone else message for at, message in enumerate(history)]
    return [one(history) for history in histories]


def pinned(history):
    """Returns the share of a history that its first and its newest message occupy."""
    return (len(text_of(history[0])) + len(text_of(history[-1]))) / max(1, len(visible(history)))


def report(name, found, compacted):
    recalled = total = 0
    missed = {}
    for (history, values), after in zip(found, compacted):
        shown = visible(after)
        for value in values:
            total += 1
            if value in shown:
                recalled += 1
            else:
                missed[value] = missed.get(value, 0) + 1
    before = sum(len(visible(history)) for history, _ in found)
    kept = sum(len(visible(after)) for after in compacted)
    recall = recalled / total
    print(f"{name:<34} recall {recall:7.2%} of {total}   characters kept {kept / before:6.1%}")
    return recall, missed


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", default=os.environ.get("ENDMARK_TAU_BENCH"))
    arguments.add_argument("--command", default="target/release/endmark compact --batch")
    arguments.add_argument("--shares", default="0.35,0.2")
    arguments.add_argument("--other-ids", action="store_true")
    arguments.add_argument("--words", action="store_true", help="count the words of arguments: commands are one argument")
    arguments.add_argument("--with-room", action="store_true", help="only histories whose task and newest message, which always stay, take at most three quarters of the share")
    arguments.add_argument("--no-peers", action="store_true")
    arguments.add_argument("--missed", type=int, default=0, help="show this many lost values")
    arguments.add_argument("--every", type=int, default=1, help="only every so manieth conversation")
    arguments.add_argument("--gate", action="store_true", help="fail below the bars")
    options = arguments.parse_args()
    if not options.data:
        print("no data: name the recorded conversations by --data or ENDMARK_TAU_BENCH")
        return 0
    with open(options.data, encoding="utf-8") as file:
        text = file.read()
    if options.other_ids:
        text = IDS.sub(other_id, text)
    found = list(cases(json.loads(text)[:: options.every], options.words))
    every, below = found, False
    for share in map(float, options.shares.split(",")):
        found = [case for case in every if not options.with_room or pinned(case[0]) <= share * 0.75]
        histories = [history for history, _ in found]
        compacted, answers = endmark(options.command, histories, share)
        before = sum(answer["receipt"]["tokens_before"] for answer in answers)
        after = sum(answer["receipt"]["tokens_after"] for answer in answers)
        recall, missed = report(f"endmark, share {share}", found, compacted)
        over = sum(answer["receipt"]["over_budget"] for answer in answers)
        print(f"{'':<34} tokens kept {after / before:.1%}; {over} of {len(answers)} over their budget")
        anchors = {}
        for answer in answers:
            for kind, count in answer["receipt"]["anchors"].items():
                kept = anchors.setdefault(kind, [0, 0])
                kept[0] += count["found"]
                kept[1] += count["kept"]
        print(f"{'':<34} anchors kept: " + ", ".join(f"{kind} {kept / max(all_, 1):.0%}" for kind, (all_, kept) in sorted(anchors.items())))
        for value, count in sorted(missed.items(), key=lambda item: -item[1])[: options.missed]:
            print(f"    {count:3} {value[:100]}")
        below |= recall < BARS.get(share, 0)
    if not options.no_peers:
        report("first and last 4 messages", found, first_and_last(histories, 4))
        report("tool results cleared but 3", found, cleared(histories, 3))
    return 1 if below and options.gate else 0


if __name__ == "__main__":
    sys.exit(main())
