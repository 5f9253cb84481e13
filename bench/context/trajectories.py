#!/usr/bin/env python3
"""Converts trajectories of SWE-agent (MIT) to conversations for recall.py. Each action becomes a call of `bash`, or
the recorded tool calls are used.

    git clone https://github.com/SWE-agent/SWE-agent
    python3 bench/context/trajectories.py SWE-agent/trajectories SWE-agent/tests/test_data > coding.json
    python3 bench/context/recall.py --data coding.json --words --shares 0.35,0.22
"""

import json
import pathlib
import sys


def text_of(content):
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def conversation(trajectory):
    history = trajectory.get("history") or []
    steps = trajectory.get("trajectory") or []
    asked = [text_of(message.get("content")) for message in history if message.get("role") == "user" and not message.get("is_demo")]
    messages = [{"role": "user", "content": asked[0] if asked else "Mend the issue."}]
    for number, step in enumerate(steps):
        calls = next((m["tool_calls"] for m in history if m.get("tool_calls") and m.get("action") == step["action"]), None)
        if calls:
            calls = [dict(call, id=f"c{number}") for call in calls[:1]]
            for call in calls:
                if not isinstance(call["function"]["arguments"], str):
                    call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
        else:
            arguments = json.dumps({"command": step["action"]})
            calls = [{"id": f"c{number}", "type": "function", "function": {"name": "bash", "arguments": arguments}}]
        messages.append({"role": "assistant", "content": step.get("thought") or "", "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": step.get("observation") or ""})
    return messages


def main():
    found = []
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).rglob("*.traj")):
            messages = conversation(json.loads(path.read_text(encoding="utf-8")))
            if len(messages) > 4:
                found.append({"name": path.name, "traj": messages})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
