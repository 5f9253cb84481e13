"""An agent that investigates a machine for a long time within a token budget. It needs `pip install "endmark[adk]"`.

    SRE_AGENT_TOKEN_BUDGET=850_000 GOOGLE_API_KEY=… python investigation.py "Why is the disk full?"

- Tool results are capped: the model sees the beginning, the end and the lines that report errors, and reads the rest with
  `endmark_read`. All full results are kept in a file.
- Above 200,000 tokens, older steps are condensed. Above 850,000 tokens, any request is condensed.
- Cut replies are completed and logged.
- The agent and all its subagents share the budget. When it is used up, the last call asks for a summary of the findings.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import endmark
from endmark.adk import EndmarkLlm, EndmarkPlugin
from endmark.adk_window import EndmarkWindow
from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

READ_ONLY = {"cat", "df", "dmesg", "du", "find", "free", "grep", "head", "journalctl", "ls", "lsof", "ps", "ss", "stat", "tail", "uptime"}
INSTRUCTION = """You find the cause of an incident on this machine. Use the tools, one step after the other, and change nothing.
A result may be shortened: read the rest with endmark_read where it matters. End with a report: the cause, the evidence with the
commands that show it, what is not known, and the next step."""


def run_command(command: str) -> dict[str, str]:
    """Runs a read-only command without a shell for at most a minute. Returns its output."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return {"error": str(error)}
    if not words or words[0] not in READ_ONLY:
        return {"error": f"only these programs may run: {', '.join(sorted(READ_ONLY))}"}
    if words[0] == "find" and any(word in ("-delete", "-exec", "-execdir", "-ok", "-okdir") or word.startswith("-fprint") for word in words):
        return {"error": "`find` may not change anything"}
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    return {"result": f"{done.stdout}{done.stderr}\n(exit code {done.returncode})"}


@dataclass(frozen=True)
class Settings:
    folder: Path
    model: str = "gemini-2.5-flash"
    base_url: str | None = None
    max_result_chars: int = 20_000
    window_tokens: int = 200_000


def make_runner(settings: Settings, meter: endmark.Meter) -> InMemoryRunner:
    settings.folder.mkdir(parents=True, exist_ok=True)
    results = EndmarkPlugin(
        max_result_chars=settings.max_result_chars, outputs=endmark.Outputs(str(settings.folder / "results.db"))
    )
    model = EndmarkLlm(
        wrapped=Gemini(model=settings.model, base_url=settings.base_url), meter=meter, brake_tokens=850_000,
        log=endmark.Log(str(settings.folder / "replies.db")), task_id="investigation",
    )  # fmt: skip
    agent = LlmAgent(name="investigator", model=model, instruction=INSTRUCTION, tools=[run_command, results.read_tool()])
    plugins = [results, EndmarkWindow(trigger_tokens=settings.window_tokens)]
    return InMemoryRunner(app=App(name="investigation", root_agent=agent, plugins=list(plugins)))


async def investigate(question: str, settings: Settings, meter: endmark.Meter) -> str:
    """Returns the agent's report. Raises `NotAdmitted` if the budget is already used up."""
    runner = make_runner(settings, meter)
    session = await runner.session_service.create_session(app_name="investigation", user_id="sre")
    asked = types.Content(role="user", parts=[types.Part(text=question)])
    report = ""
    async for event in runner.run_async(user_id="sre", session_id=session.id, new_message=asked):
        parts = (event.content.parts if event.content else None) or []
        for part in parts:
            if part.function_call:
                print(f"- {part.function_call.name} {part.function_call.args}", file=sys.stderr)
        if event.is_final_response():
            report = "".join(part.text or "" for part in parts if not part.thought)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question")
    parser.add_argument("--folder", type=Path, default=Path("investigation"), help="for kept results and the log of cut replies")
    parser.add_argument("--model", default="gemini-2.5-flash")
    parser.add_argument("--base-url", help="of a gateway, or of another server with Gemini's API")
    given = parser.parse_args()
    meter = endmark.Meter.from_environment()
    try:
        print(asyncio.run(investigate(given.question, Settings(given.folder, given.model, given.base_url), meter)))
    except (endmark.NotAdmitted, endmark.ResumeExhausted) as problem:
        print(f"stopped: {problem}", file=sys.stderr)
        return 3
    finally:
        used = meter.usage()
        print(f"{used.calls} calls, {used.tokens.prompt} prompt and {used.tokens.completion} completion tokens, ${used.usd}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
