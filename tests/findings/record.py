#!/usr/bin/env python3
"""Records the unchanged replies of a small real model to the instructions of the protocol.

    python3 tests/findings/record.py --program target/release/endmark --output /tmp/results.jsonl

Writes one JSON object a line, *without* a label: `label` is null until a person has read the line. Needs what
tests/real_model needs: Linux on x86-64 and Python 3.10 or newer with pip.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from model_server import DEFAULT_FOLDER, DIRECT, MODEL_NAME, ModelServer, install  # noqa: E402

SOURCES = {
    "login": 'def login(db, name):\n    return db.execute("select * from users where name = \'" + name + "\'")\n',
    "upload": 'app.post("/upload", (req, res) => {\n  fs.writeFileSync("/srv/" + req.body.path, req.body.data);\n});\n',
    "ping": "void ping(char *host) {\n  char cmd[64];\n  sprintf(cmd, \"ping %s\", host);\n  system(cmd);\n}\n",
    "page": '<?php echo "Hello " . $_GET["name"]; ?>\n',
    "key": 'const KEY: &[u8] = b"0123456789abcdef";\nfn seal(text: &[u8]) -> Vec<u8> { encrypt(KEY, text) }\n',
}
# The task follows the instructions. A model of this size needs detailed guidance and a started reply.
WAYS = {
    "protocol": "{protocol}\n\nAudit this file, {name}:\n\n{source}",
    "protocol behind": "Audit this file, {name}:\n\n{source}\n\n{protocol}",
    "begun": "{protocol}\n\nAudit this file, {name}:\n\n{source}",
}
BEGUN = "===AGENT_RESULT===\nagent_id: audit-1\ndimensions: injection\ndeclared_findings: 1\n\n[F001]"


def ask(server: ModelServer, prompt: str, begun: str | None, tokens: int, temperature: float, seed: int) -> tuple[str, str]:
    messages = [{"role": "user", "content": prompt}]
    if begun:
        messages.append({"role": "assistant", "content": begun})
    body = {
        "model": MODEL_NAME, "messages": messages, "max_tokens": tokens, "temperature": temperature, "seed": seed,
    }  # fmt: skip
    request = urllib.request.Request(
        server.base_url + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with DIRECT.open(request, timeout=120) as answer:
        choice = json.load(answer)["choices"][0]
    text = choice["message"]["content"]
    # This server repeats the started reply.
    if begun and not text.startswith(begun):
        text = begun + text
    return text, choice["finish_reason"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, required=True, help="the endmark whose protocol is used")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the model is kept")
    given = parser.parse_args()
    protocol = subprocess.run(
        [given.program, "findings", "protocol", "--agent", "audit-1", "--dimensions", "injection"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    with ModelServer(install(given.folder), given.folder) as server, given.output.open("w") as output:
        for name, source in SOURCES.items():
            for way, form in WAYS.items():
                for tokens, temperature in ((160, 0.0), (400, 0.7)):
                    seed = 7
                    begun = BEGUN if way == "begun" else None
                    prompt = form.format(protocol=protocol, name=name, source=source)
                    text, finish = ask(server, prompt, begun, tokens, temperature, seed)
                    line = {
                        "id": f"{name} {way} {tokens}", "max_tokens": tokens, "temperature": temperature, "seed": seed,
                        "finish_reason": finish, "text": text, "label": None,
                    }  # fmt: skip
                    output.write(json.dumps(line, ensure_ascii=False) + "\n")
                    output.flush()


if __name__ == "__main__":
    main()
