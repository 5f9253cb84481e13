#!/usr/bin/env python3
"""Tests third-party frameworks as clients of the gateway, with a scripted model that cuts its replies.

    cargo build --release --package endmark-cli
    python3 tests/sdk/test_frameworks.py [--program target/debug/endmark] [--only NAME]

Every framework must end up with the whole reply, and must run each tool once with whole arguments. Each request upstream must be
valid and carry whole replies only: see scripted.py. The test also prints what a framework does with the same reply without
Endmark. `--document` writes the table into docs/compatibility.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real_model"))

import gateway  # noqa: E402
import scripted  # noqa: E402
from installed import installed  # noqa: E402
from model_server import SetUpError, new_environment, run  # noqa: E402
from sdks import ADAPTERS as LINES, Library, Sdk  # noqa: E402
from servers import CERTIFICATE, REPOSITORY, Gateway  # noqa: E402

FOLDER = REPOSITORY / ".frameworks"
SOURCES = HERE / "frameworks"
DOCUMENT = REPOSITORY / "docs" / "compatibility.md"
PYTHON_FOLDER, NODE_FOLDER = FOLDER / "frameworks-python", FOLDER / "frameworks-node"
ADAPTERS = NODE_FOLDER / "adapters"
PYTHON = str(PYTHON_FOLDER / "venv" / "bin" / "python")
# Mastra and version 7 of the AI SDK need Node.js 22.
NODE_22 = str(NODE_FOLDER / "node_modules" / ".bin" / "node")


@dataclass(frozen=True)
class Case:
    """One column: the `kind` of conversation, and the fault of its first reply."""

    name: str
    kind: str
    harm: str = ""
    streams: tuple[bool, ...] = (False, True)
    is_compacted: bool = False


CASES = [
    Case("text", "text"),
    Case("text, cut", "text", "limit"),
    Case("structured output", "document"),
    Case("structured output, cut", "document", "limit"),
    Case("a tool call, cut", "call", "limit"),
    Case("two tool calls", "calls"),
    Case("two tool calls, the second cut", "calls", "limit"),
    Case("text in a stream that drops", "text", "drop", (True,)),
    Case("structured output in a stream that drops", "document", "drop", (True,)),
    Case("two tool calls in a stream that drops", "calls", "drop", (True,)),
    Case("eight steps with calls, condensed on the way", "long", is_compacted=True),
]


def node(name: str, adapter: str, *arguments: str, program: str = "node") -> Sdk:
    return Sdk(name, "openai", (program, str(ADAPTERS / adapter), *arguments), {})


def python(name: str, format: str, adapter: str, *arguments: str) -> Sdk:
    return Sdk(name, format, (PYTHON, str(ADAPTERS / adapter), *arguments), {})


FRAMEWORKS = [
    *(node(f"AI SDK {version}, {api}", "ai_sdk.mjs", version, api) for version in "56" for api in ("chat", "responses")),
    *(node(f"AI SDK 7, {api}", "ai_sdk.mjs", "7", api, program=NODE_22) for api in ("chat", "responses")),
    node("Mastra, responses", "mastra.mjs", program=NODE_22),
    *(python(f"LangChain, {api}", "openai", "langchain.py", api) for api in ("chat", "responses")),
    python("LangChain, anthropic", "anthropic", "langchain.py", "anthropic"),
    *(python(f"pydantic-ai, {api}", "openai", "pydantic_agent.py", api) for api in ("chat", "responses")),
    python("LiteLLM, chat", "openai", "litellm_client.py", "openai"),
    python("LiteLLM, anthropic", "anthropic", "litellm_client.py", "anthropic"),
    python("Google ADK", "gemini", "adk.py"),
]
# The package of each framework, and the file that pins its version.
PACKAGES = {
    "AI SDK 5": ("ai-5", "package.json"), "AI SDK 6": ("ai-6", "package.json"), "AI SDK 7": ('"ai', "package.json"),
    "Mastra": ("@mastra/core", "package.json"), "LangChain": ("langchain-openai", "requirements.txt"),
    "LangChain, anthropic": ("langchain-anthropic", "requirements.txt"),
    "pydantic-ai": ("pydantic-ai-slim", "requirements.txt"), "LiteLLM": ("litellm", "requirements.txt"),
    "Google ADK": ("google-adk", "requirements.txt"),
}  # fmt: skip
# Long enough that a conversation is condensed although it only refers to its calls.
RESULT = "saved and checked against the list of all horses " * 30
# Frameworks derive a model's abilities from its name.
MODELS = {"openai": "gpt-4.1", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}
VERSIONS = {"openai": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}


def install(chosen: list[Sdk]) -> None:
    """Installs the packages of the chosen frameworks, or finds them. Their folders can be deleted at any time."""
    requirements, package = SOURCES / "requirements.txt", SOURCES / "package.json"

    def fill_python(place: Path) -> None:
        run([*new_environment(place / "venv"), "-r", str(requirements)])

    def fill_node(place: Path) -> None:
        (place / "package.json").write_bytes(package.read_bytes())
        run(["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--silent"])

    for folder, wanted, fill in [(PYTHON_FOLDER, requirements, fill_python), (NODE_FOLDER, package, fill_node)]:
        if any(sdk.program[1].endswith(".py") == (folder == PYTHON_FOLDER) for sdk in chosen):
            installed(folder, wanted.read_bytes(), fill)
    # Node looks for packages in the folders above a program.
    ADAPTERS.mkdir(parents=True, exist_ok=True)
    for source in [*SOURCES.glob("*.mjs"), *SOURCES.glob("*.py"), *LINES.glob("lines.*")]:
        shutil.copy(source, ADAPTERS / source.name)


class Trial:
    """One framework, asked directly and through the gateways."""

    def __init__(self, library: Library, model: scripted.Model, served: dict[str, Gateway]):
        self.library, self.model, self.served = library, model, served

    def ask(self, case: Case, stream: bool, origin: str) -> tuple[dict, scripted.Conversation]:
        key, conversation = self.model.open(case.kind, case.harm, case.is_compacted)
        format = self.library.sdk.format
        # ADK adds the version to the address by itself.
        version = "" if format == "gemini" else VERSIONS[format]
        answer = self.library.ask({
            "base_url": origin + version, "model": MODELS[format], "kind": case.kind, "stream": stream,
            "prompt": f"Conversation {key}: save two notes about horses.", "steps": scripted.LONG_STEPS + 2, "timeout": 60,
            "result": RESULT if case.is_compacted else "saved",
        })  # fmt: skip
        return answer, conversation

    def problems(self, case: Case, stream: bool) -> list[str]:
        upstream = self.library.sdk.format
        # Gemini sends a call whole or not at all, so Endmark only knows that another call may be missing. Frameworks can
        # detect this only from an error.
        is_hidden = upstream == "gemini" and case.kind == "calls" and bool(case.harm)
        endmark = self.served["window" if case.is_compacted else "strict" if is_hidden else "plain"]
        answer, conversation = self.ask(case, stream, f"{endmark.origin}/u/{upstream}")
        found = list(conversation.problems)
        if case.harm and not conversation.is_harmed:
            found.append("the reply was not harmed")
        if is_hidden:
            return [*found, *([] if answer.get("error") else [f"no error: {brief(answer)}"])]
        if case.is_compacted and not any("[Endmark: " in request for request in conversation.requests):
            found.append("nothing was condensed")
        if not is_whole(case, answer):
            found.append(f"not whole: {brief(answer)}")
        return [f"{problem}\n      last request: {(conversation.requests or ['none'])[-1][:9000]}" for problem in found]

    def alone(self, case: Case, stream: bool) -> str:
        """Describes what the framework does with the same reply without Endmark."""
        answer, _ = self.ask(case, stream, self.model.origin)
        if answer.get("error"):
            return f"raises {answer['error']}"
        return "has all of it" if is_whole(case, answer) else "takes the part for all of it"


def brief(answer: dict) -> str:
    """Shortens an answer. Calls are shown by their paths."""
    calls = [arguments.get("path") for _, arguments in answer.get("calls", [])]
    return json.dumps({**answer, "calls": calls} if calls else answer)[:600]


def is_whole(case: Case, answer: dict) -> bool:
    if answer.get("error"):
        return False
    turns = scripted.TURNS[case.kind]
    if case.kind == "document":
        return answer["value"] == json.loads(scripted.DOCUMENT)
    calls = [[name, json.loads(arguments)] for turn in turns for name, arguments in turn.calls]
    # Tools that are called together may run in any order.
    return answer["text"] == turns[-1].text and sorted(map(repr, answer["calls"])) == sorted(map(repr, calls))


def document(results: dict[Sdk, dict[Case, str]]) -> None:
    """Writes the table into the page."""
    lines = ["| | " + " | ".join(case.name for case in CASES) + " |", "|---" * (len(CASES) + 1) + "|"]
    for sdk, cells in results.items():
        package, file = PACKAGES.get(sdk.name) or PACKAGES[sdk.name.partition(",")[0]]
        version = re.search(rf'{re.escape(package)}(?:\[.*\])?(?:==|": "(?:npm:ai@)?)([0-9.]+)', (SOURCES / file).read_text())[1]
        lines.append(f"| {sdk.name} ({version}) | " + " | ".join(cells[case] for case in CASES) + " |")
    marked = re.compile(r"(<!-- frameworks: written by tests/sdk -->\n).*?(<!-- end -->)", re.DOTALL)
    DOCUMENT.write_text(marked.sub(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], DOCUMENT.read_text()))


def tried(sdk: Sdk, model: scripted.Model, served: dict[str, Gateway], asks_directly: bool) -> dict[Case, str]:
    """Returns the marks of each case for the table. Prints problems, and what the framework does without Endmark."""
    cells = {}
    with Library(sdk, CERTIFICATE, FOLDER) as library:
        trial = Trial(library, model, served)
        for case in CASES:
            cells[case] = ""
            for stream in case.streams:
                begun = time.monotonic()
                found = trial.problems(case, stream)
                did = f"; alone: {trial.alone(case, stream)}" if asks_directly and case.harm else ""
                cells[case] += "✗" if found else "✓"
                kind, took = "streamed" if stream else "whole", time.monotonic() - begun
                print(f"{'FAIL' if found else 'ok  '}  {sdk.name}: {case.name}, {kind} ({took:.1f} s{did})", flush=True)
                for problem in found:
                    print(f"      {problem}", flush=True)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, help="the endmark to test, instead of the release build")
    parser.add_argument("--only", action="append", metavar="NAME", help="only frameworks whose name contains this; may be repeated")
    parser.add_argument("--cut-at", type=float, default=0.7, metavar="SHARE", help="the share of a reply before its cut (0.7)")
    parser.add_argument("--through", action="store_true", help="do not ask directly, without Endmark")
    parser.add_argument("--document", action="store_true", help="write the table into docs/compatibility.md")
    given = parser.parse_args()
    if given.program:
        gateway.program = lambda: given.program.resolve()
    try:
        chosen = [sdk for sdk in FRAMEWORKS if any(name in sdk.name for name in given.only or [""])]
        install(chosen)
        folder = FOLDER / f"gateways-{os.getpid()}"
        results = {}
        with scripted.Model(given.cut_at) as model:
            upstreams = {
                name: {"format": name, "base_url": model.origin + version, "prefill": "never"} for name, version in VERSIONS.items()
            }
            # The window holds a few steps of the long conversation.
            window = {"enabled": True, "trigger_tokens": 1500, "budget_tokens": 2000}
            with (
                Gateway(folder / "plain", upstreams) as plain,
                Gateway(folder / "strict", upstreams, disclose={"incomplete": "error"}) as strict,
                Gateway(folder / "window", upstreams, **{"compact.window": window}) as condensing,
            ):
                served = {"plain": plain, "strict": strict, "window": condensing}
                for sdk in chosen:
                    results[sdk] = tried(sdk, model, served, not given.through)
        shutil.rmtree(folder)
    except SetUpError as problem:
        print(problem, file=sys.stderr)
        return 1
    if given.document:
        document(results)
    failed = sum(cell.count("✗") for cells in results.values() for cell in cells.values())
    print(f"\n{failed} failed" if failed else "\nAll as expected.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
