"""Runs `endmark guard --batch` over texts."""

import json
import subprocess


def judge(command, texts, names=None):
    """Returns the answers for these texts, in the same order."""
    lines = []
    for number, text in enumerate(texts):
        line = {"id": number, "text": text}
        if names:
            line["name"] = names[number]
        lines.append(json.dumps(line))
    result = subprocess.run(
        [command, "guard", "--batch"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    if result.returncode not in (0, 1):
        raise SystemExit(f"{command} guard --batch failed: {result.stderr}")
    return [json.loads(line) for line in result.stdout.splitlines()]
