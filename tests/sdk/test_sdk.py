#!/usr/bin/env python3
"""Runs the unmodified official libraries over one table of cases, once directly and once through Endmark.

    cargo build --release --package endmark-cli
    python3 tests/sdk/test_sdk.py

The server is a real model; faults are injected into its replies on their way. `--document` writes the results into
docs/compatibility.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "real_model"), str(HERE.parent / "graders")]

import gateway  # noqa: E402
import mocks  # noqa: E402
from cases import BODIES, CASES, VERSIONS, Case, body, cases_for, choose_call, is_mocked  # noqa: E402
from model_server import MODEL_NAME, ModelServer, SetUpError, install as install_model  # noqa: E402
from sdks import FOLDER, SDKS, Library, Sdk, install, versions  # noqa: E402
from servers import CERTIFICATE, REPOSITORY, Gateway  # noqa: E402
from trouble import Trouble, Witness  # noqa: E402

DOCUMENT = REPOSITORY / "docs" / "compatibility.md"
NAMES = itertools.count(1)


class Mock(mocks.Process):
    """aimock, for the format that the real model server does not support."""

    def __init__(self):
        program = mocks.FOLDER / "node_modules" / ".bin" / "llmock"
        command = [str(program), "--fixtures", str(HERE / "fixtures.json"), "--strict", "--chunk-size", "9"]
        super().__init__("aimock-sdk", command, "/v1/models")


class Ways:
    """The addresses of the servers: direct, behind Endmark, and behind Endmark over TLS."""

    def __init__(self, model: Trouble, mock: Trouble, plain: Gateway, secured: Gateway, impatient: Gateway, witness: Witness):
        self.model, self.mock = model, mock
        self.plain, self.secured, self.impatient = plain, secured, impatient
        # In front of the plain gateway, for replies whose bytes are compared.
        self.witness = witness

    def trouble(self, format: str, case: Case) -> Trouble:
        return self.mock if is_mocked(format, case.kind) else self.model

    def directly(self, format: str, case: Case) -> str:
        return self.trouble(format, case).origin + VERSIONS[format]

    def through(self, format: str, case: Case) -> str:
        is_long = case.trouble.startswith(("stall", "dead"))
        endmark = self.secured if case.tls else self.impatient if is_long else self.plain
        upstream = f"mock-{format}" if is_mocked(format, case.kind) else "model"
        origin = self.witness.origin if case.outcome == "same" else endmark.origin
        return f"{origin}/u/{upstream}{VERSIONS[format]}"


class Row:
    """The result of one case with one library, streamed or not."""

    def __init__(self, library: Library, ways: Ways, model: str, oracle: dict):
        self.library, self.ways, self.model, self.oracle = library, ways, model, oracle
        self.sdk: Sdk = library.sdk

    def ask(self, case: Case, stream: bool, base_url: str, headers: dict[str, str]) -> tuple[dict, str]:
        name = f"request-{next(NAMES)}"
        trouble = {"x-trouble": f"{case.trouble or ':'}:{name}"}
        asked = {
            "base_url": base_url, "body": body(self.sdk.format, case, self.model), "stream": stream, "headers": {**headers, **trouble},
            "timeout": case.timeout, "cancel_after": case.cancel_after, "compressed": case.compressed,
        }  # fmt: skip
        return self.library.ask(asked), name

    def problems(self, case: Case, stream: bool) -> tuple[list[str], str]:
        """Returns every deviation from the expected result, and what the library did directly."""
        direct, alone = None, ""
        if case.direct or case.outcome == "same":
            direct, _ = self.ask(case, stream, self.ways.directly(self.sdk.format, case), {})
            alone = self.alone(direct)
            if case.outcome == "same":
                if direct.get("error") or direct["finish"] == self.sdk.finishes["limit"]:
                    return [f"directly: {brief(direct)}"], alone
                self.oracle[case.kind, stream] = direct
            # Ignore the stop reason of a cut reply, because some servers report `completed`.
            if case.direct in ("cut", "broken") and not self.is_broken(case, direct, stream):
                return [f"directly it is not {case.direct}: {brief(direct)}"], alone
        if (case.kind, stream) not in self.oracle:
            return ["there is no whole reply to compare with"], alone
        answer, name = self.ask(case, stream, self.ways.through(self.sdk.format, case), case.headers)
        return list(self.wrong(case, stream, direct, answer, name)), alone

    def alone(self, direct: dict) -> str:
        if direct.get("error"):
            return f"raises {direct['error']}"
        return f"reports {direct['finish']}" if direct["finish"] else "reports nothing"

    def is_broken(self, case: Case, direct: dict, stream: bool) -> bool:
        whole = self.oracle.get((case.kind, stream))
        return whole is None or bool(direct.get("error")) or (direct["text"], direct["calls"]) != (whole["text"], whole["calls"])

    def wrong(self, case: Case, stream: bool, direct: dict | None, answer: dict, name: str):
        """Yields every fault of the result that came through Endmark."""
        words = self.sdk.finishes
        if case.outcome == "error":
            if not answer.get("error") or not answer["is_own"]:
                yield f"no error of the library's own: {brief(answer)}"
            elif case.status and answer["status"] not in (case.status, None):
                yield f"another status: {brief(answer)}"
            elif case.direct == "error" and answer["error"] != direct["error"]:
                yield f"{answer['error']}, directly {direct['error']}"
            return
        if answer.get("error"):
            yield brief(answer)
            return
        if case.outcome == "gone":
            if not self.ways.trouble(self.sdk.format, case).saw_it_go(name):
                yield "the server was left to finish"
            return
        trouble = self.ways.trouble(self.sdk.format, case)
        if case.compressed and not trouble.came_compressed(name):
            yield "the request did not come compressed"
        if case.outcome == "same" and (trouble.requests(name), trouble.body(name)) != (1, self.ways.witness.body(name)):
            yield f"not the same bytes:\n{trouble.body(name)}\nand through Endmark\n{self.ways.witness.body(name)}"
        if case.outcome == "same" and answer["whole"] != direct["whole"]:
            yield f"not the same: {answer['whole']}, directly {direct['whole']}"
        # An expected cut passes unchanged, but never with the finish reason of a whole reply.
        if case.outcome == "cut" and (answer["text"], answer["finish"]) != (direct["text"], words["limit"]):
            yield f"not the cut reply: {brief(answer)}"
        if case.outcome in ("same", "whole"):
            # A reply that equals the direct one must also have its finish reason.
            if case.outcome == "whole" and answer["finish"] != words["call" if case.kind == "call" else "whole"]:
                yield f"it does not end as a whole reply: {brief(answer)}"
            if not is_more(answer, direct):
                yield f"it does not go on from what came: {brief(answer)}, directly {brief(direct)}"
            if case.kind == "document" and "friendly" not in (value(answer["text"]) or {}):
                yield f"not the document: {brief(answer)}"
            if case.kind == "call" and not (answer["calls"] and "content" in (calls(answer)[0][1] or {})):
                yield f"not the call: {brief(answer)}"


def is_more(answer: dict, direct: dict | None) -> bool:
    """Whether the answer begins with the direct one, if the library returned that. A cut call has no comparable value."""
    came = (direct or {}).get("text") or ""
    return answer["text"].startswith(came)


def calls(answer: dict) -> list:
    """Returns the calls, with their arguments as values; None for arguments that are not JSON."""
    return [(name, value(arguments)) for name, arguments in answer["calls"]]


def value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def brief(answer: dict) -> str:
    if answer.get("error"):
        return f"{answer['error']} {answer['status']}: {answer['message'][:200]}"
    return f"{answer['finish']}, {answer['text'] or answer['calls']!r}"


def tried(sdk: Sdk, ways: Ways, model: str) -> tuple[dict, dict]:
    """Returns the problems of every case, and what the library does directly, by case and streaming."""
    problems, alone, oracle = {}, {}, {}
    with Library(sdk, CERTIFICATE) as library:
        row = Row(library, ways, model, oracle)
        for case in cases_for(sdk.format, sdk.without):
            for stream in case.streams:
                begun = time.monotonic()
                found, what = row.problems(case, stream)
                problems[case.name, stream], alone[case.name, stream] = found, what
                word = "FAIL" if found else "ok  "
                kind = "streamed" if stream else "whole"
                print(f"{word}  {sdk.name} {sdk.format}, {case.name}, {kind} ({time.monotonic() - begun:.1f} s)", flush=True)
                for problem in found:
                    print(f"      {problem}", flush=True)
    return problems, alone


def matrix(results: dict[Sdk, tuple[dict, dict]]) -> dict[str, str]:
    """Returns a Markdown table of the results for each format. In each cell, whole replies precede streams."""
    pinned, tables = versions(), {}
    for format in BODIES:
        tried = {sdk: result for sdk, result in results.items() if sdk.format == format}
        if not tried:
            continue
        heads = [f"{sdk.name} {pinned[sdk.name]}" for sdk in tried]
        lines = [f"| `{format}` | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for case in cases_for(format):
            cells = []
            for problems, alone in tried.values():
                if not any((case.name, stream) in problems for stream in case.streams):
                    cells.append("–")
                    continue
                marks = ["✗" if problems[case.name, stream] else "✓" for stream in case.streams]
                did = {alone[case.name, stream] for stream in case.streams} - {""}
                shown = f" (alone: {'; '.join(sorted(did))})" if case.direct in ("cut", "broken") and did else ""
                cells.append("".join(marks) + shown)
            lines.append(f"| {case.name} | " + " | ".join(cells) + " |")
        tables[format] = "\n".join(lines)
    return tables


def document(tables: dict[str, str]) -> None:
    """Writes the tables into the page, and keeps those of other formats."""
    text = DOCUMENT.read_text()
    for format, table in tables.items():
        marked = re.compile(rf"(<!-- {format}: written by tests/sdk -->\n).*?(<!-- end -->)", re.DOTALL)
        if not marked.search(text):
            raise SetUpError(f"{DOCUMENT} has no place for the table of {format}")
        text = marked.sub(lambda found, table=table: found[1] + table + "\n" + found[2], text)
    DOCUMENT.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    parser.add_argument("--all", action="store_true", help="also the libraries that scripts/test leaves out, and no cached replies")
    parser.add_argument("--only", default="", metavar="NAME", help="only libraries whose name has this in it")
    parser.add_argument("--format", default="", metavar="NAME", help="only formats whose name has this in it")
    parser.add_argument("--document", action="store_true", help="write the table into docs/compatibility.md")
    given = parser.parse_args()
    if given.program:
        gateway.program = lambda: given.program.resolve()
    try:
        named = [sdk for sdk in SDKS if given.only in sdk.name and given.format in sdk.format]
        chosen = [sdk for sdk in named if given.all or not sdk.is_left_to_full]
        install(chosen)
        mocks.install()
        installation = install_model()
        folder = FOLDER / f"gateways-{os.getpid()}"
        results = {}
        with (
            # The results of a cold and a cached prompt can differ in the last bits, and therefore in a word. This matters if
            # the same request is sent twice.
            ModelServer(installation, FOLDER, caches_prompts=not given.all) as model,
            Mock() as mock,
            # At temperature 0 a model repeats its reply, so each request is sent only once, except in scripts/full.
            Trouble(model.origin, remembers=not given.all) as trouble,
            # Google's libraries request a newer API version than the mock supports.
            Trouble(mock.origin, ("/v1/models/", "/v1beta/models/")) as mocked,
        ):
            choose_call(model.origin, MODEL_NAME)
            upstreams = {
                "model": {"base_url": f"{trouble.origin}/v1"},
                "mock-gemini": {"format": "gemini", "base_url": f"{mocked.origin}/v1beta", "prefill": "never"},
                "mock-openai_responses": {"base_url": f"{mocked.origin}/v1", "prefill": "never"},
                "mock-anthropic_messages": {
                    "format": "anthropic", "base_url": f"{mocked.origin}/v1", "prefill": "never",
                },
            }
            with (
                Gateway(folder / "plain", upstreams) as plain,
                Gateway(folder / "tls", upstreams, tls=True) as secured,
                # The gateway gives up a hopeless wait before the library does.
                Gateway(folder / "impatient", upstreams, limits={"idle_seconds": 3, "reconnect_seconds": 2}) as impatient,
                Witness(plain.origin) as witness,
            ):
                ways = Ways(trouble, mocked, plain, secured, impatient, witness)
                for sdk in chosen:
                    results[sdk] = tried(sdk, ways, MODEL_NAME)
        shutil.rmtree(folder)
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 1
    tables = matrix(results)
    print("", *tables.values(), sep="\n\n")
    if given.document:
        document(tables)
    failed = [problems for results in results.values() for problems in results[0].values() if problems]
    print(f"\n{len(failed)} failed" if failed else "\nAll as expected.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
