"""Tests the hooks of the Claude Agent SDK, called by the SDK. The real program `claude` would need its provider."""

import asyncio
import json

import pytest

pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport  # noqa: E402
from endmark.claude_agent import EndmarkHooks  # noqa: E402

OUTPUT = "".join(f"row {row}: {'error: disk full' if row == 31_000 else 'ok'}\n" for row in range(200_000))


class Claude(Transport):
    """Simulates the program: calls the hooks by the ids that the SDK gave them."""

    def __init__(self):
        self.lines = asyncio.Queue()
        self.answers = {}
        self.hooks = {}

    async def connect(self):
        pass

    async def write(self, data):
        message = json.loads(data)
        if message["type"] == "control_request":
            self.hooks = message["request"].get("hooks") or self.hooks
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            await self.lines.put({"type": "control_response", "response": response})
        elif message["type"] == "control_response":
            response = message["response"]
            self.answers[response["request_id"]].set_result(response)

    def read_messages(self):
        async def messages():
            while (line := await self.lines.get()) is not None:
                yield line

        return messages()

    async def close(self):
        await self.lines.put(None)

    def is_ready(self):
        return True

    async def end_input(self):
        pass

    async def request(self, request):
        id = f"r{len(self.answers)}"
        self.answers[id] = asyncio.get_running_loop().create_future()
        await self.lines.put({"type": "control_request", "request_id": id, "request": request})
        answer = await asyncio.wait_for(self.answers[id], 20)
        assert answer["subtype"] == "success", answer
        return answer["response"]

    async def hook(self, event, **fields):
        [callback] = self.hooks[event][0]["hookCallbackIds"]
        given = {"session_id": "s", "transcript_path": "/nothing", "cwd": "/", "hook_event_name": event, **fields}
        return await self.request({"subtype": "hook_callback", "callback_id": callback, "input": given, "tool_use_id": "t"})


def converse(hooks, conversation):
    async def run():
        claude = Claude()
        options = ClaudeAgentOptions(hooks=hooks.hooks(), mcp_servers={"endmark": hooks.server()})
        async with ClaudeSDKClient(options, transport=claude):
            return await conversation(claude)

    return asyncio.run(run())


def test_a_capped_result_keeps_its_structure_and_can_be_read():
    async def conversation(claude):
        async def use(name, response):
            return await claude.hook("PostToolUse", tool_name=name, tool_input={}, tool_response=response, tool_use_id="t")

        short = await use("Bash", {"stdout": "ok", "stderr": "", "interrupted": False})
        long = await use("Bash", {"stdout": OUTPUT, "stderr": "", "interrupted": False})
        files = await use("Glob", {"filenames": [f"file-{number}.txt" for number in range(10_000)], "numFiles": 10_000})
        picture = await use("Read", {"type": "image", "file": {"base64": "A" * 50_000}})
        capped = long["hookSpecificOutput"]["updatedToolOutput"]
        handle = capped["stdout"].partition("endmark_read ")[2].split("\n")[0].strip(" ]")
        call = {"name": "endmark_read", "arguments": {"handle": handle, "grep": "error"}}
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude", "version": "1"}}
        messages = [
            {"id": 1, "method": "initialize", "params": begin}, {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ]  # fmt: skip
        for message in messages:
            read = await claude.request({"subtype": "mcp_message", "server_name": "endmark", "message": {"jsonrpc": "2.0", **message}})
        again = await use("mcp__endmark__endmark_read", OUTPUT)
        return short, capped, files["hookSpecificOutput"]["updatedToolOutput"], picture, read, again

    short, capped, files, picture, read, again = converse(EndmarkHooks(max_result_chars=3_000), conversation)
    assert short == picture == again == {}
    assert set(capped) == {"stdout", "stderr", "interrupted"} and capped["interrupted"] is False
    assert len(capped["stdout"]) <= 3_000 and "row 31000: error: disk full" in capped["stdout"]
    assert files["numFiles"] == 10_000 and sum(map(len, files["filenames"])) <= 3_000
    assert "result" in read["mcp_response"], read
    assert read["mcp_response"]["result"]["content"][0]["text"] == "31001:row 31000: error: disk full\n"


def test_an_agent_with_a_cut_report_must_continue_and_is_then_reported(tmp_path):
    transcript = tmp_path / "agent.jsonl"
    rows = [{"type": "assistant", "message": {"stop_reason": "max_tokens"}}, {"type": "user", "message": {}}]
    transcript.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"type": "assis')
    subagent = {"stop_hook_active": False, "agent_id": "a1", "agent_type": "auditor", "agent_transcript_path": str(transcript)}

    async def conversation(claude):
        cut = [await claude.hook("SubagentStop", **subagent, last_assistant_message="# Findings\n\nThe disk") for _ in range(3)]
        other = {**subagent, "agent_id": "a2", "agent_transcript_path": "/nothing"}
        return [
            *cut, await claude.hook("SubagentStop", **other, last_assistant_message="# Findings\n\nThe disk is full.\n"),
            await claude.hook("SubagentStop", **other, last_assistant_message="# Summary\n\nThe disk is full.\n"),
            await claude.hook("SubagentStop", **other), await claude.hook("Stop", stop_hook_active=False, last_assistant_message="Done."),
            await claude.hook("Stop", stop_hook_active=False, last_assistant_message="```python\nx = 1"),
        ]  # fmt: skip

    first, second, third, whole, without, empty, done, fence = converse(EndmarkHooks(required_sections=["Findings"]), conversation)
    for blocked, why in [(first, "limit of tokens"), (second, "limit of tokens"), (without, "Findings"), (empty, "empty"), (fence, "```")]:
        assert blocked["decision"] == "block" and why in blocked["reason"], blocked
    assert "decision" not in third and "a1 is not whole" in third["systemMessage"]
    assert whole == done == {}


def test_a_subclass_can_define_other_criteria():
    class Hooks(EndmarkHooks):
        def problem(self, text, stop, *, is_subagent):
            return None if text.endswith("END") else "it does not end in END"

    async def conversation(claude):
        return [await claude.hook("Stop", stop_hook_active=False, last_assistant_message=text) for text in ["Done.", "Done. END"]]

    blocked, whole = converse(Hooks(), conversation)
    assert "END" in blocked["reason"] and whole == {}
