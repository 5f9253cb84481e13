#!/usr/bin/env python3
"""The pages at /endmark/ in a real browser, on what a cut reply, hostile words and a supervised run left behind.

    cargo build --release --package endmark
    python3 tests/page/test_page.py [--program target/debug/endmark] [--pictures docs/page]

Each page is opened in light and dark, wide and 400 pixels narrow: without an error on the console, without a request to
another host, without a serious finding of axe-core. Numbers are those that the command answers with `--json`. A run that
begins while the fleet is watched appears by itself. Needs Chromium (Debian's package `chromium`) and npm.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import new_environment, run  # noqa: E402

FOLDER = ROOT / ".page"
PYTHON = FOLDER / "venv" / "bin" / "python"
WORDS = "one two three four five six seven eight nine ten".split(" ")
HOSTILE = "<script>document.title='taken'</script>\u202e\"'&" + "<img src=x onerror=alert(1)>"


def install() -> None:
    """Sets the driver of the browser and axe-core up in one folder that can be deleted at any time."""
    wanted = (HERE / "requirements.txt").read_bytes() + (HERE / "package.json").read_bytes()

    def fill(place: Path) -> None:
        run([*new_environment(place / "venv"), "-r", str(HERE / "requirements.txt")])
        shutil.copy(HERE / "package.json", place)
        run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(place)])

    installed(FOLDER, wanted, fill)
    if Path(sys.prefix).resolve() != (FOLDER / "venv").resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])


class Model(BaseHTTPRequestHandler):
    """Says the words that are not yet in the conversation, as many as the request's limit lets it."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = "".join(message["content"] for message in asked["messages"] if message["role"] == "assistant")
        if asked["model"] == "long":
            rest, limit = ["x" * 1_000_000], 1
        else:
            rest, limit = WORDS[len(said.split()) :], asked.get("max_tokens", 100)
        text = (" " if said else "") + " ".join(rest[:limit])
        stop = "length" if limit < len(rest) else "stop"
        usage = {"prompt_tokens": 7, "completion_tokens": min(limit, len(rest)), "total_tokens": 7 + min(limit, len(rest))}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": stop}
        body = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": asked["model"], "choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


class Place:
    """A gateway in a folder of its own."""

    def __init__(self, program: Path, folder: Path, upstream: int) -> None:
        self.program, self.folder = program, folder
        (folder / "endmark.toml").write_text("[budget]\nsession_tokens = 400000\n[store_policy]\nkeep_text = true\n")
        (folder / "criteria.yaml").write_text("min_lines: 1\n")
        (folder / "artifact.md").write_text("# Done\n\nAll of it is here.\n")
        self.environment = {"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        arguments = [program, "serve", "--listen", "127.0.0.1:0", "--upstream", f"http://127.0.0.1:{upstream}/v1"]
        self.gateway = subprocess.Popen(arguments, cwd=folder, env=self.environment, stderr=subprocess.PIPE, text=True)
        self.origin = ""
        while not self.origin:
            line = self.gateway.stderr.readline()
            assert line, "the gateway ended before it listened"
            found = re.search(r"listens on (http://[0-9.:]+\d)", line)
            self.origin = found.group(1) if found else ""
        threading.Thread(target=self.gateway.stderr.read, daemon=True).start()

    def ask(self, model: str, limit: int, said: str = "Count.") -> None:
        body = json.dumps({"model": model, "max_tokens": limit, "messages": [{"role": "user", "content": said}]}).encode()
        headers = {"content-type": "application/json", "x-endmark-resume": "on"}
        urllib.request.urlopen(urllib.request.Request(f"{self.origin}/v1/chat/completions", body, headers)).read()

    def command(self, *arguments: str) -> dict:
        done = subprocess.run([self.program, *arguments, "--json"], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["data"]

    def supervise(self, words: str) -> None:
        line = [self.program, "run", "--template", "criteria.yaml", "--artifact", "artifact.md", "--", "/bin/sh", "-c", words]
        subprocess.run(line, cwd=self.folder, env=self.environment, capture_output=True, check=True)

    def stop(self) -> None:
        self.gateway.terminate()
        assert self.gateway.wait(60) == 0


class Watched:
    """A page of the browser that is held to be quiet."""

    def __init__(self, context, origin: str) -> None:
        self.page, self.origin, self.trouble = context.new_page(), origin, []
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.trouble.append(said.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", lambda asked: asked.url.startswith(origin) or self.trouble.append(f"request to {asked.url}"))

    def open(self, path: str) -> None:
        self.page.goto(self.origin + path, wait_until="load")

    def check(self, path: str, axe: str) -> None:
        self.page.evaluate(axe)
        found = self.page.evaluate("axe.run().then(result => result.violations)")
        serious = [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in ("serious", "critical")]
        assert not serious, f"{path}: {serious}"
        assert not self.trouble, f"{path}: {self.trouble}"
        assert self.page.title().endswith("· Endmark"), self.page.title()
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is {wide} pixels wider than its window"


def numbers(watched: Watched, place: Place) -> None:
    """What the overview and the list of usage say is what the commands say."""
    watched.open("/endmark/")
    report = place.command("report", "--since", "7d")
    for key in ("requests", "replies", "cut", "interrupted"):
        assert watched.page.text_content(f"#{key}") == str(report[key]), key
    recovered = sum(cut["replies"] for cut in report["cuts"] if cut["outcome"] in ("resumed", "corrected"))
    assert watched.page.text_content("#recovered") == str(recovered) and recovered > 0
    assert len(watched.page.query_selector_all(".plot canvas")) == 2, "each table of days is plotted"
    watched.open("/endmark/usage?by=model")
    usage = place.command("usage", "--by", "model")
    names = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "estimated_calls")
    for line, row in zip(watched.page.query_selector_all("tbody tr"), usage["rows"], strict=True):
        cells = [cell.text_content() for cell in line.query_selector_all("td")]
        assert cells == [row["model"], *[str(row[name]) for name in names], row["usd"] or "no price"], cells


def browse(place: Place, pictures: Path | None) -> None:
    from playwright.sync_api import sync_playwright

    axe = (FOLDER / "node_modules" / "axe-core" / "axe.min.js").read_text()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1100, "height": 800})
        first = Watched(context, place.origin)
        first.open("/endmark/")
        assert f"export OPENAI_BASE_URL={place.origin}/v1" in first.page.text_content("pre")
        first.check("first run", axe)
        for model, limit in (("gpt-5", 3), ("gpt-5", 100), (HOSTILE, 4), ("long", 5)):
            place.ask(model, limit)
        place.supervise(f"exit 0 # {HOSTILE.replace(chr(39), '')}")
        run_id = place.command("runs")["runs"][0]["id"]
        numbers(first, place)
        pages = {
            "overview": "/endmark/",
            "recoveries": "/endmark/recoveries",
            "recovery": "/endmark/recoveries/1",
            "recovery-hostile": "/endmark/recoveries/2",
            "usage": "/endmark/usage?by=day",
            "sessions": "/endmark/usage?by=session",
            "budgets": "/endmark/budgets",
            "compactions": "/endmark/compactions",
            "fleet": "/endmark/runs",
            "run": f"/endmark/runs/{run_id}",
            "login": "/endmark/login",
        }
        for scheme in ("light", "dark"):
            for width in (1100, 400):
                shaped = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
                watched = Watched(shaped, place.origin)
                for name, path in pages.items():
                    watched.open(path)
                    watched.check(path, axe)
                    if pictures and width == 1100 and name in ("overview", "recovery", "usage", "budgets", "fleet"):
                        watched.page.screenshot(path=str(pictures / f"{name}-{scheme}.png"))
                shaped.close()
        watched = Watched(context, place.origin)
        watched.open("/endmark/recoveries?model=gpt-5&status=resolved")
        assert len(watched.page.query_selector_all("tbody tr")) == 1
        watched.open("/endmark/runs")
        assert len(watched.page.query_selector_all("tbody tr")) == 1
        place.supervise("exit 0")
        watched.page.locator("tbody tr").nth(1).wait_for(timeout=30_000)
        plain = Watched(browser.new_context(java_script_enabled=False), place.origin)
        plain.open("/endmark/")
        assert plain.page.text_content("#cut") == str(place.command("report", "--since", "7d")["cut"])
        assert not watched.trouble and not first.trouble, (watched.trouble, first.trouble)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "endmark")
    parser.add_argument("--pictures", type=Path, help="a folder to put pictures of the pages into")
    arguments = parser.parse_args()
    assert shutil.which("chromium"), "Chromium is missing: `apt-get install chromium`"
    install()
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(arguments.program.resolve(), Path(folder), model.server_address[1])
        try:
            browse(place, arguments.pictures)
            place.stop()
        finally:
            place.gateway.kill()
    print("every page: no error, no request elsewhere, no serious finding, the numbers of the commands")


if __name__ == "__main__":
    main()
