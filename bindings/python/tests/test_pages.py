"""Runs the framework examples of `docs/python.md` with the scripted model of `tests/sdk`."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPOSITORY / "tests" / "sdk"))

import scripted  # noqa: E402

PAGE = (REPOSITORY / "docs" / "python.md").read_text()
BLOCKS = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if re.search(r"^from endmark\.\w+", block, re.MULTILINE)]
MODULES = {
    "langchain": "langchain_openai", "adk": "google.adk", "adk_window": "google.adk", "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai", "litellm": "litellm", "claude_agent": "claude_agent_sdk",
}  # fmt: skip


def read_log(path: str) -> str:
    """Reads a log."""
    return "used 97 %"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: re.search(r"from endmark\.(\w+)", block)[1])
def test_every_framework_example_runs(block, monkeypatch, capsys):
    name = re.search(r"from endmark\.(\w+)", block)[1]
    pytest.importorskip(MODULES[name])
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    for key in ["OPENAI_API_KEY", "GOOGLE_API_KEY"]:
        monkeypatch.setenv(key, "not-needed")
    tool = read_log
    if name == "openai_agents":
        tool = importlib.import_module("agents").function_tool(read_log)
    with scripted.Model() as model:
        key, conversation = model.open("text", "limit")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{model.origin}/v1")
        monkeypatch.setenv("OPENAI_API_BASE", f"{model.origin}/v1")
        described = {"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}
        names = {"read_log": tool, "search": tool, "query_logs": tool, "run_command": tool, "tools": [described], "run": SimpleNamespace}
        exec(block.replace("Why is the disk full?", f"{key}: why is the disk full?"), names)
        assert not conversation.problems, conversation.problems
        if "disk full" in block:
            assert len(conversation.requests) == 2 and scripted.TEXT in capsys.readouterr().out


def test_every_component_has_an_example():
    shown = {re.search(r"from endmark\.(\w+)", block)[1] for block in BLOCKS}
    assert shown == set(MODULES)


def test_the_table_lists_the_tested_frameworks():
    for module in MODULES.values():
        pytest.importorskip(module)
    script = Path(__file__).with_name("side_by_side.py")
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
