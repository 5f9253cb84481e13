#!/usr/bin/env python3
"""Runs every command that the README and the docs show, with the built program.

    python3 tests/documents/test_commands.py --program target/debug/endmark

- Each `endmark …` in a block or between backticks is a command with options that the program has: it is run with `--help`
  as its last word, which reads all the others first.
- What can be run without a server is run as it stands, in a folder with the files that it names; it may find fault with
  them (exit code 1), but may not fail.
- `endmark serve` is started as it stands, but on a free port, and has to listen.
- Each `cargo xtask …`, `scripts/…` and each program of `tests` and `bench` that a line names is there. Python is parsed.
- Each link of a page leads to a file that is there, and to a heading of it.
- The README's picture is what `endmark demo` prints.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["docs/**/*.md", "bench/*.md", "bench/*/README.md", "tests/*.md", "cases/README.md", "fuzz/README.md"]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "RELEASING.md")]
PAGES += sorted(page for pattern in FOLDERS for page in ROOT.glob(pattern))
# Commands that need a server, an agent or the output of an earlier command. Other tests cover them. One or two words of each.
NOT_ALONE = ["serve", "resume", "run", "runs watch", "runs show", "hook", "mcp", "doctor", "read", "log show", "budget raise", "budget forfeit"]
CUT = '{"choices": [{"message": {"role": "assistant", "content": "{\\"a\\": [1, 2"}, "finish_reason": "length"}]}'
CONVERSATION = '{"model": "gpt-5", "messages": [{"role": "user", "content": "Hello, and good morning."}]}'
TEMPLATE = "---\nsuccessCriteria:\n  min_lines: 2\n---\n# Report\n\n## Summary\n"
FILES = {
    "reply.json": CUT, "cut.json": '{"a": [1, 2', "first.json": '{"a": [1, 2', "rest.json": ", 3]}", "answer.md": "# A\n\nText.\n",
    "request.json": CONVERSATION, "report.md": "# Report\n\n## Summary\n\nAll is well with it.\n", "stages/report.md": TEMPLATE,
    "outputs.jsonl": "", "artifacts.jsonl": "", "part-1": '{"a": [1, ', "part-2": "2]}", "round1/a1.txt": "Nothing.\n",
    "endmark.toml": "[resume]\nmode = \"auto\"\n", "Makefile": "all:\n\t@echo built\n", "task.md": "Write the report.\n",
}  # fmt: skip


def blocks(text: str) -> list[str]:
    """Returns the lines of a page's code blocks. Continued lines are joined."""
    lines, inside, language = [], False, ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            inside, language = not inside, line.strip("` ")
        elif inside and language in ("", "sh", "bash", "console"):
            lines.append(line.strip())
        elif not inside and line.startswith("    "):
            lines.append(line.strip())
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def commands(text: str) -> list[tuple[str, bool]]:
    """Returns every command of a page, verbatim, and whether it is in a block: a command that is only mentioned may lack
    its input files."""
    shown = [(line.removeprefix("$ "), True) for line in blocks(text)]
    shown += [(code, False) for code in re.findall(r"`(endmark [a-z][^`]*)`", text) if "\n" not in code]
    return [(line, block) for line, block in shown if re.search(r"(^|[\s|;&(])endmark [a-z-]", line)]


def words(line: str) -> list[list[str]]:
    """Returns the arguments of each `endmark` in a line, without variable assignments before it and without pipes and redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    found: list[list[str]] = []
    current: list[str] | None = None
    skip, start = False, True
    for word in lexer:
        if set(word) <= set("|;&<>"):
            skip = set(word) <= set("<>&") and ("<" in word or ">" in word)
            if not skip:
                current, start = None, True
            continue
        if skip:
            skip = False
            continue
        if start and word == "endmark":
            current = []
            found.append(current)
        elif current is not None:
            current.append(word)
        start = start and re.fullmatch(r"[A-Z_]+=.*", word) is not None
    return found


def is_form(arguments: list[str]) -> bool:
    # A form has a placeholder, so it is not a command.
    return any(re.search(r"^[\[<(]|…$|^\.\.\.$|\|", word) for word in arguments)


def missing_parts(line: str) -> list[str]:
    """Returns the parts of this repository that a line names but that do not exist."""
    paths = re.findall(r"(?:^|[\s=])((?:scripts|tests|bench|xtask)/[\w./-]+)", line.split(" #")[0])
    missing = [path for path in paths if not (ROOT / path).exists()]
    programs = [path for path in paths if path.startswith("scripts/") and (ROOT / path).is_file()]
    missing += [f"{path} is not executable" for path in programs if not os.access(ROOT / path, os.X_OK)]
    tasks = re.findall(r"cargo xtask (\w+)", line)
    known = (ROOT / "xtask/src/main.rs").read_text()
    missing += [f"cargo xtask {task}" for task in tasks if f'"{task}"' not in known]
    packages = re.findall(r"cargo \S+.*? (?:-p|--package) ([\w-]+)", line)
    missing += [f"the package {package}" for package in packages if not is_package(package)]
    return missing


def is_package(name: str) -> bool:
    return any((ROOT / folder / name / "Cargo.toml").exists() for folder in ("crates", "bench", "."))


def code(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class Tried:
    def __init__(self, program: Path):
        self.program, self.count, self.ran, self.wrong = program, 0, 0, []

    def environment(self, home: str) -> dict[str, str]:
        return {"PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": home, "LC_ALL": "C.UTF-8"}

    def parse(self, page: str, arguments: list[str], home: str) -> None:
        """Checks that the program has this command and these options."""
        at = arguments.index("--") if "--" in arguments else len(arguments)
        done = subprocess.run(
            [self.program, *arguments[:at], "--help"], env=self.environment(home), stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        self.count += 1
        if done.returncode != 0 or not re.search("Usage: endmark|^endmark [0-9]", done.stdout):
            self.wrong.append(f"{page}: `endmark {shlex.join(arguments)}`: {done.stderr.strip().splitlines()[:1]}")

    def run(self, page: str, line: str, place: Path) -> None:
        """Checks that the command runs unchanged."""
        for name, text in FILES.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        if line.startswith("endmark init"):
            (place / "endmark.toml").unlink()
        done = subprocess.run(
            ["sh", "-c", line], cwd=place, env=self.environment(str(place)), stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        self.ran += 1
        if done.returncode not in (0, 1):
            self.wrong.append(f"{page}: `{line}` ended with {done.returncode}: {done.stderr.strip().splitlines()[:2]}")


    def serve(self, page: str, arguments: list[str], place: Path) -> None:
        """Checks that a gateway listens with these arguments, but on another port, because the given one may be in use."""
        arguments = list(arguments)
        if "--listen" in arguments:
            at = arguments.index("--listen") + 1
            arguments[at] = arguments[at].rsplit(":", 1)[0] + ":0"
        else:
            arguments += ["--listen", "127.0.0.1:0"]
        process = subprocess.Popen(
            [self.program, *arguments], cwd=place, env=self.environment(str(place)), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        said = ""
        for line in process.stderr:
            said += line
            if "Ctrl-C stops" in line or '"message"' in line:
                break
        process.terminate()
        process.stderr.read()
        self.ran += 1
        if process.wait() != 0:
            self.wrong.append(f"{page}: `endmark {shlex.join(arguments)}` does not serve: {said.strip().splitlines()[:2]}")


def can_serve(found: list[list[str]]) -> bool:
    """Whether the command is a single gateway that needs no file and no secret."""
    words = found[0] if len(found) == 1 else []
    files = [word for word in words if re.search(r"\.(pem|toml)$", word)]
    return bool(words) and words[0] == "serve" and not files and not is_form(words) and "--help" not in words


def can_run(line: str, found: list[list[str]]) -> bool:
    """Whether all files that the command names exist, and nothing else is needed."""
    names = [word for arguments in found for word in arguments if re.search(r"\.(json|md|toml|txt|jsonl|db)$", word)]
    names += re.findall(r"< ?(\S+)", line)
    alone = all(not arguments or not (set(NOT_ALONE) & {arguments[0], " ".join(arguments[:2])}) for arguments in found)
    return alone and bool(found) and all(name in FILES for name in names) and line.startswith(("endmark ", "make "))


def headings(page: Path) -> set[str]:
    """Returns the anchors of a page, which are derived from its headings."""
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchors.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return anchors


def broken_links(page: Path) -> list[str]:
    broken = []
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        if not there.exists():
            broken.append(f"{page.relative_to(ROOT)}: {target} is not there")
        elif anchor and there.suffix == ".md" and anchor not in headings(there):
            broken.append(f"{page.relative_to(ROOT)}: {target} has no such heading")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    program = parser.parse_args().program.resolve()
    tried = Tried(program)
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "bin").mkdir()
        (Path(home) / "bin/endmark").symlink_to(program)
        # Create a store for the commands that read one.
        subprocess.run([program, "keys", "add", "first"], env=tried.environment(home), check=True, stdout=subprocess.DEVNULL)
        for page in PAGES:
            name = str(page.relative_to(ROOT))
            for line, stands_in_a_block in commands(page.read_text()):
                try:
                    found = words(line)
                except ValueError as problem:
                    tried.wrong.append(f"{name}: `{line}`: {problem}")
                    continue
                for arguments in found:
                    if not is_form(arguments):
                        tried.parse(name, arguments, home)
                if stands_in_a_block and can_serve(found):
                    tried.serve(name, found[0], Path(home))
                if stands_in_a_block and can_run(line, found) and not any(is_form(arguments) for arguments in found):
                    tried.run(name, line, Path(home))
            text = page.read_text()
            shown = blocks(text) + re.findall(r"`((?:scripts/|cargo |python3 )[^`\n]*)`", text)
            tried.wrong += [f"{name}: `{line}` names what is not there: {part}" for line in shown for part in missing_parts(line)]
            for block in code(text, "python"):
                try:
                    ast.parse(block)
                except SyntaxError as problem:
                    tried.wrong.append(f"{name}: Python: {problem}")
            tried.wrong += broken_links(page)
        missing = {f"docs/{page.relative_to(ROOT / 'docs')}" for page in PAGES if page.parent == ROOT / "docs"}
        index = (ROOT / "docs/README.md").read_text()
        tried.wrong += [f"docs/README.md does not list {page}" for page in sorted(missing) if f"({Path(page).name}" not in index and not page.endswith("/README.md")]
    if subprocess.run([ROOT / "scripts/picture", program, "--check"]).returncode != 0:
        tried.wrong.append("docs/demo.svg is another picture")
    for wrong in tried.wrong:
        print(wrong)
    # Without commands, the test would always pass.
    enough = tried.count >= 130 and tried.ran >= 30
    print(f"{tried.count} commands of {len(PAGES)} pages are the program's, {tried.ran} were run; {len(tried.wrong)} faults")
    return 0 if enough and not tried.wrong else 1


if __name__ == "__main__":
    sys.exit(main())
