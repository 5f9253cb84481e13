"""Claude Agent SDK: caps tool results, and prevents agents from stopping with a cut report.

    from endmark.claude_agent import EndmarkHooks
    endmark = EndmarkHooks(required_sections=["Findings"])
    options = ClaudeAgentOptions(hooks=endmark.hooks(), mcp_servers={"endmark": endmark.server()}, allowed_tools=[endmark.READ_TOOL])

The program `claude` receives the model's replies, so that no hook sees their parts. To recover cut replies, set `ANTHROPIC_BASE_URL`
to an Endmark gateway. Needs `pip install "endmark[claude-agent]"`.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, cast

from claude_agent_sdk import HookContext, HookInput, HookJSONOutput, HookMatcher, create_sdk_mcp_server, tool
from claude_agent_sdk.types import HookEvent, McpSdkServerConfig

from ._context import Outputs, read_tool
from ._frameworks import READ_TOOL, ToolResults, is_cut_stop
from ._guard import guard
from ._texts import detect

__all__ = ["EndmarkHooks"]

_TAIL_BYTES = 4 << 20
_MAX_AGENTS = 1_000
# Fields whose text is an encoded file and not text for a model.
_ENCODED_FIELDS = ("base64", "data")


class EndmarkHooks:
    """Hooks for `ClaudeAgentOptions`, and the tool with which the model reads omitted parts of a result.

    `outputs` keeps the full values, by default in memory. If the last message of an agent is cut or violates the criteria, the agent must
    write it again, at most `max_attempts` times; after that, the user is informed. `required_sections` and `min_lines` are criteria for the
    last message of subagents, as in `endmark.guard`. For other criteria, override `problem`.
    """

    READ_TOOL = "mcp__endmark__endmark_read"
    """The name of the tool, if its server is named `endmark`."""

    def __init__(
        self,
        *,
        max_result_chars: int = 20_000,
        outputs: Outputs | None = None,
        max_attempts: int = 2,
        required_sections: Sequence[str] = (),
        min_lines: int | None = None,
    ) -> None:
        self._results = ToolResults(max_result_chars, outputs)
        self._max_attempts = max_attempts
        self._required_sections = tuple(required_sections)
        self._min_lines = min_lines
        self._attempts: OrderedDict[str, int] = OrderedDict()

    def hooks(self) -> dict[HookEvent, list[HookMatcher]]:
        return {
            "PostToolUse": [HookMatcher(hooks=[self.cap])],
            "Stop": [HookMatcher(hooks=[self.check])],
            "SubagentStop": [HookMatcher(hooks=[self.check])],
        }

    def server(self) -> McpSdkServerConfig:
        """Returns the MCP server with the tool `endmark_read`."""
        named = read_tool()

        async def endmark_read(arguments: Any) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": self._results.read(dict(arguments))}]}

        return create_sdk_mcp_server("endmark", tools=[tool(named["name"], named["description"], named["schema"])(endmark_read)])

    async def cap(self, given: HookInput, _id: str | None, _context: HookContext) -> HookJSONOutput:
        """PostToolUse: caps the texts of a result. Keeps its structure, because Claude Code rejects any other one."""
        if given["hook_event_name"] != "PostToolUse" or given["tool_name"].endswith(READ_TOOL):
            return {}
        result = given["tool_response"]
        capped = self._cap_value(result)
        if capped == result:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": capped}}

    async def check(self, given: HookInput, _id: str | None, _context: HookContext) -> HookJSONOutput:
        """Stop and SubagentStop: asks an agent to continue if its last message is not complete."""
        if given["hook_event_name"] == "Stop":
            agent, transcript, text = given["session_id"], given["transcript_path"], given.get("last_assistant_message")
        elif given["hook_event_name"] == "SubagentStop":
            agent, transcript, text = given["agent_id"], given["agent_transcript_path"], given.get("last_assistant_message")
        else:
            return {}
        problem = self.problem(text or "", _stop_reason(transcript), is_subagent=given["hook_event_name"] == "SubagentStop")
        if problem is None:
            self._attempts.pop(agent, None)
            return {}
        attempts = self._attempts.get(agent, 0)
        if attempts >= self._max_attempts:
            self._attempts.pop(agent, None)
            return {"systemMessage": f"Endmark: the last message of {agent} is not whole: {problem}"}
        self._attempts[agent] = attempts + 1
        while len(self._attempts) > _MAX_AGENTS:
            self._attempts.popitem(last=False)
        return {"decision": "block", "reason": f"Your last message is not whole: {problem}. Write the whole message again, shorter if needed."}

    def problem(self, text: str, stop: str | None, *, is_subagent: bool) -> str | None:
        """Returns why a last message is not complete, or None. `stop` is the stop reason, if the transcript contains it."""
        if is_cut_stop(stop):
            return "it reached the limit of tokens"
        if not text.strip():
            # The main agent may end with only a tool call.
            return "it is empty" if is_subagent else None
        found = detect(text, "markdown")
        if found.verdict != "whole":
            return f"it stops inside {' '.join(found.open)}" if found.open else "it is cut"
        if not is_subagent or (not self._required_sections and self._min_lines is None):
            return None
        report = guard(text, required_sections=self._required_sections, min_lines=self._min_lines)
        return None if report.is_whole else "; ".join(f"{finding.why} ({finding.text})" for finding in report.findings[:3])

    def _cap_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._results.shorten(value)
        if isinstance(value, list):
            values: list[Any] = cast(Any, value)
            texts = [text for text in values if isinstance(text, str)]
            if len(texts) == len(values):
                # A list of files or matches, which is long although each item is short.
                joined = "\n".join(texts)
                short = self._results.shorten(joined)
                return values if short == joined else short.split("\n")
            return [self._cap_value(item) for item in values]
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {name: item if name in _ENCODED_FIELDS and isinstance(item, str) else self._cap_value(item) for name, item in fields.items()}
        return value


def _stop_reason(transcript: str) -> str | None:
    """Returns the stop reason of the last assistant message in a transcript, if there is one. Reads only the end of a long file."""
    try:
        with open(transcript, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            row: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and cast("dict[str, Any]", row).get("type") == "assistant":
            message: Any = cast("dict[str, Any]", row).get("message")
            stop: Any = cast("dict[str, Any]", message).get("stop_reason") if isinstance(message, dict) else None
            return stop if isinstance(stop, str) else None
    return None
