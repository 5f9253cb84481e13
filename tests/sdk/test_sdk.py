#!/usr/bin/env python3
"""The official libraries as they are, once directly and once through Endmark, over one table of cases.

    cargo build --release --package endmark
    python3 tests/sdk/test_sdk.py

The server is a real model; what goes wrong is done to its replies on their way. `--document` writes what came of it into
docs/compatibility.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real_model"))

import gateway  # noqa: E402
from cases import BODIES, CASES, Case  # noqa: E402
from model_server import MODEL_NAME, ModelServer, SetUpError, install as install_model  # noqa: E402
from sdks import FOLDER, SDKS, Library, Sdk, install, versions  # noqa: E402
from servers import CERTIFICATE, REPOSITORY, Gateway  # noqa: E402
from trouble import Trouble  # noqa: E402

DOCUMENT = REPOSITORY / "docs" / "compatibility.md"
NAMES = itertools.count(1)


class Ways:
    """The addresses of one format: the server itself, Endmark before it, and that over TLS."""

    def __init__(self, trouble: Trouble, plain: Gateway, secured: Gateway, upstream: str):
        self.trouble, self.plain, self.secured, self.upstream = trouble, plain, secured, upstream

    def directly(self) -> str:
        return f"{self.trouble.origin}/v1"

    def through(self, tls: bool) -> str:
        return (self.secured if tls else self.plain).base_url(self.upstream)


class Row:
    """What came of one case with one library, streamed or not."""

    def __init__(self, library: Library, ways: Ways, model: str, oracle: dict):
        self.library, self.ways, self.model, self.oracle = library, ways, model, oracle
        self.sdk: Sdk = library.sdk

    def ask(self, case: Case, stream: bool, base_url: str, headers: dict[str, str]) -> tuple[dict, str]:
        name = f"request-{next(NAMES)}"
        trouble = {"x-trouble": f"{case.trouble}:{name}"} if case.trouble else {}
        body = BODIES[self.sdk.format](case.kind, self.model, case.max_tokens)
        asked = {
            "base_url": base_url, "body": body, "stream": stream, "headers": {**headers, **trouble},
            "timeout": case.timeout, "cancel_after": case.cancel_after,
        }  # fmt: skip
        return self.library.ask(asked), name

    def problems(self, case: Case, stream: bool) -> tuple[list[str], str]:
        """What is not as it has to be, and what the library did alone."""
        direct, alone = None, ""
        if case.direct or case.outcome == "same":
            if case.outcome == "same" and stream is case.streams[0]:
                # The same prompt computed cold and from the cache can differ in the last bits, and with them a word.
                self.ask(replace(case, max_tokens=1), stream, self.ways.directly(), {})
            direct, _ = self.ask(case, stream, self.ways.directly(), {})
            alone = self.alone(direct)
            if case.outcome == "same":
                if direct.get("error"):
                    return [f"directly: {brief(direct)}"], alone
                self.oracle[case.kind, stream] = direct
            if case.direct == "cut" and not (direct.get("error") or direct["finish"] == self.sdk.finishes["limit"]):
                return [f"directly it is not cut: {brief(direct)}"], alone
            if case.direct == "broken" and not self.is_broken(case, direct, stream):
                return [f"directly it is not broken: {brief(direct)}"], alone
        answer, name = self.ask(case, stream, self.ways.through(case.tls), case.headers)
        return list(self.wrong(case, stream, direct, answer, name)), alone

    def alone(self, direct: dict) -> str:
        if direct.get("error"):
            return f"raises {direct['error']}"
        return f"says {direct['finish']}" if direct["finish"] else "says nothing"

    def is_broken(self, case: Case, direct: dict, stream: bool) -> bool:
        whole = self.oracle[case.kind, stream]
        return bool(direct.get("error")) or (direct["text"], direct["calls"]) != (whole["text"], whole["calls"])

    def wrong(self, case: Case, stream: bool, direct: dict | None, answer: dict, name: str):
        """Everything that is wrong with what came through Endmark."""
        words = self.sdk.finishes
        if case.outcome == "error":
            if not answer.get("error") or not answer["is_own"]:
                yield f"no error of the library's own: {brief(answer)}"
            elif answer["status"] not in (case.status, None):
                yield f"another status: {brief(answer)}"
            elif case.direct == "error" and answer["error"] != direct["error"]:
                yield f"{answer['error']}, directly {direct['error']}"
            return
        if answer.get("error"):
            yield brief(answer)
            return
        if case.outcome == "gone":
            if not self.ways.trouble.saw_it_go(name):
                yield "the server was left to finish"
            return
        whole = self.oracle[case.kind, stream]
        if case.outcome == "same" and answer["whole"] != direct["whole"]:
            yield f"not the same: {answer['whole']}, directly {direct['whole']}"
        if case.outcome == "cut" and (answer["text"], answer["finish"]) != (direct["text"], direct["finish"]):
            yield f"not the cut reply: {brief(answer)}"
        if case.outcome in ("same", "whole"):
            if answer["finish"] != words["call" if case.kind == "call" else "whole"]:
                yield f"it does not end as a whole reply: {brief(answer)}"
            if not is_more(answer, direct):
                yield f"it does not go on from what came: {brief(answer)}, directly {brief(direct)}"
            if case.kind == "document" and "friendly" not in json.loads(answer["text"]):
                yield f"not the document: {brief(answer)}"
            if case.kind == "call" and not (answer["calls"] and "content" in calls(answer)[0][1]):
                yield f"not the call: {brief(answer)}"


def is_more(answer: dict, direct: dict | None) -> bool:
    """Whether it begins with what came directly, where the library gave that out; a cut call has no value to compare."""
    came = (direct or {}).get("text") or ""
    return answer["text"].startswith(came)


def calls(answer: dict) -> list:
    """The calls, with their arguments as values."""
    return [(name, json.loads(arguments)) for name, arguments in answer["calls"]]


def brief(answer: dict) -> str:
    if answer.get("error"):
        return f"{answer['error']} {answer['status']}: {answer['message'][:200]}"
    return f"{answer['finish']}, {answer['text'] or answer['calls']!r}"


def tried(sdk: Sdk, ways: Ways, model: str) -> tuple[dict, dict]:
    """The problems of every case, and what the library does alone, by case and streaming."""
    problems, alone, oracle = {}, {}, {}
    with Library(sdk, CERTIFICATE) as library:
        row = Row(library, ways, model, oracle)
        for case in CASES:
            for stream in case.streams:
                begun = time.monotonic()
                found, what = row.problems(case, stream)
                problems[case.name, stream], alone[case.name, stream] = found, what
                word = "FAIL" if found else "ok  "
                kind = "streamed" if stream else "whole"
                print(f"{word}  {sdk.name}, {case.name}, {kind} ({time.monotonic() - begun:.1f} s)", flush=True)
                for problem in found:
                    print(f"      {problem}", flush=True)
    return problems, alone


def matrix(results: dict[str, tuple[dict, dict]]) -> str:
    """What came of it, as a table in Markdown: whole replies first, streams second."""
    pinned = versions()
    heads = [f"{sdk.name} {pinned[sdk.name]}" for sdk in SDKS if sdk.name in results]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for case in CASES:
        cells = []
        for problems, alone in results.values():
            marks = ["✗" if problems[case.name, stream] else "✓" for stream in case.streams]
            did = {alone[case.name, stream] for stream in case.streams} - {""}
            shown = f" (alone: {'; '.join(sorted(did))})" if case.direct in ("cut", "broken") and did else ""
            cells.append("".join(marks) + shown)
        lines.append(f"| {case.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def document(table: str) -> None:
    text = DOCUMENT.read_text()
    marked = re.compile(r"(<!-- clients: written by tests/sdk -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marked.search(text):
        raise SetUpError(f"{DOCUMENT} has no place for the table of clients")
    DOCUMENT.write_text(marked.sub(lambda found: found[1] + table + "\n" + found[2], text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="the endmark to test, in place of the release build")
    parser.add_argument("--all", action="store_true", help="also the libraries that have to be compiled")
    parser.add_argument("--only", default="", metavar="NAME", help="only libraries whose name has this in it")
    parser.add_argument("--document", action="store_true", help="write the table into docs/compatibility.md")
    given = parser.parse_args()
    if given.program:
        gateway.program = lambda: given.program.resolve()
    try:
        chosen = [sdk for sdk in SDKS if given.only in sdk.name and (given.all or not sdk.is_large)]
        install(chosen)
        installation = install_model()
        folder = FOLDER / "gateways"
        results = {}
        with ModelServer(installation, FOLDER) as model, Trouble(model.origin) as trouble:
            upstreams = {"model": {"base_url": f"{trouble.origin}/v1"}}
            with Gateway(folder / "plain", upstreams) as plain, Gateway(folder / "tls", upstreams, tls=True) as secured:
                ways = Ways(trouble, plain, secured, "model")
                for sdk in chosen:
                    results[sdk.name] = tried(sdk, ways, MODEL_NAME)
        shutil.rmtree(folder)
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 1
    table = matrix(results)
    print(f"\n{table}")
    if given.document:
        document(table)
    failed = [problems for results in results.values() for problems in results[0].values() if problems]
    print(f"\n{len(failed)} failed" if failed else "\nAll as expected.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
