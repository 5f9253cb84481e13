#!/usr/bin/env python3
"""Tests the pages at /endmark/ in a real browser: without data, on the first day, with a week of data, and with hostile texts.

    cargo build --package endmark-cli
    python3 tests/page/test_page.py [--program target/debug/endmark] [--pictures docs/page]

Each page is opened in light and dark, wide and 390 pixels narrow. It must have no console error, no request to another host,
no finding of axe-core, no raw character that changes the direction of a text, and must not be wider than its window. The
numbers must equal those that the command prints with `--json`. A run that begins while the fleet is watched appears by
itself, and so does a stream that is resumed while its list is watched. A kept output is paged and searched, a budget is
raised by its form, and a gateway that other machines reach asks for its key. Needs Chromium (Debian's package `chromium`)
and npm.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import new_environment, run  # noqa: E402

import week  # noqa: E402

FOLDER = ROOT / ".page"
PYTHON = FOLDER / "venv" / "bin" / "python"
WORDS = "one two three four five six seven eight nine ten".split(" ")
ADMIN_KEY = "the key of the pages"
# Set to release the rest of a watched stream.
GO_ON = threading.Event()
HOSTILE = "<script>document.title='taken'</script>\u202e\"'&" + "<img src=x onerror=alert(1)>"
SHOWN = HOSTILE.replace("\u202e", "\\u{202e}")


def install() -> None:
    """Installs the browser driver and axe-core in one folder, which can be deleted at any time."""
    wanted = (HERE / "requirements.txt").read_bytes() + (HERE / "package.json").read_bytes()

    def fill(place: Path) -> None:
        run([*new_environment(place / "venv"), "-r", str(HERE / "requirements.txt")])
        shutil.copy(HERE / "package.json", place)
        run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(place)])

    installed(FOLDER, wanted, fill)
    if Path(sys.prefix).resolve() != (FOLDER / "venv").resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])


class Model(BaseHTTPRequestHandler):
    """Replies with the words that the conversation does not contain yet, up to the request's limit."""

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
        if asked.get("stream"):
            self.stream(asked["model"], text, stop, is_rest=bool(said))
            return
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": stop}
        body = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": asked["model"], "choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def stream(self, model: str, text: str, stop: str, is_rest: bool) -> None:
        if is_rest:
            assert GO_ON.wait(60), "the rest was never released"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for delta, reason in (({"role": "assistant", "content": text}, None), ({}, stop)):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            event = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class Place:
    """A gateway in its own folder."""

    def __init__(self, program: Path, folder: Path, upstream: int, settings: str = "", listen: str = "127.0.0.1:0", session_tokens: int = 400_000) -> None:
        self.program, self.folder = program, folder
        (folder / "endmark.toml").write_text(f"{settings}[budget]\nsession_tokens = {session_tokens}\n[store_policy]\nkeep_text = true\n")
        (folder / "criteria.yaml").write_text("min_lines: 1\n")
        (folder / "artifact.md").write_text("# Done\n\nAll of it is here.\n")
        self.environment = {"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        arguments = [program, "serve", "--listen", listen, "--upstream", f"http://127.0.0.1:{upstream}/v1"]
        self.gateway = subprocess.Popen(arguments, cwd=folder, env=self.environment, stderr=subprocess.PIPE, text=True)
        self.origin = ""
        while not self.origin:
            line = self.gateway.stderr.readline()
            assert line, "the gateway ended before it listened"
            found = re.search(r"listens on (http://[0-9.:]+\d)", line)
            self.origin = found.group(1).replace("0.0.0.0", "127.0.0.1") if found else ""
        threading.Thread(target=self.gateway.stderr.read, daemon=True).start()

    def ask(self, model: str, limit: int, said: str = "Count.") -> None:
        body = json.dumps({"model": model, "max_tokens": limit, "messages": [{"role": "user", "content": said}]}).encode()
        headers = {"content-type": "application/json", "x-endmark-resume": "on"}
        urllib.request.urlopen(urllib.request.Request(f"{self.origin}/v1/chat/completions", body, headers)).read()

    def ask_for_stream(self) -> str:
        """Returns the words of a stream after it has ended."""
        asked = {"model": "watched", "max_tokens": 3, "stream": True, "messages": [{"role": "user", "content": "Count."}]}
        headers = {"content-type": "application/json", "x-endmark-resume": "on"}
        request = urllib.request.Request(f"{self.origin}/v1/chat/completions", json.dumps(asked).encode(), headers)
        said = ""
        with urllib.request.urlopen(request, timeout=60) as events:
            for line in events:
                if line.startswith(b"data: {"):
                    for choice in json.loads(line[6:]).get("choices", []):
                        said += choice["delta"].get("content") or ""
        return said

    def command(self, *arguments: str, given: str | None = None) -> dict:
        line = [self.program, *arguments, "--json"]
        done = subprocess.run(line, input=given, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["data"]

    def supervise(self, words: str) -> None:
        line = [self.program, "run", "--template", "criteria.yaml", "--artifact", "artifact.md", "--", "/bin/sh", "-c", words]
        subprocess.run(line, cwd=self.folder, env=self.environment, capture_output=True, check=True)

    def stop(self) -> None:
        self.gateway.terminate()
        assert self.gateway.wait(60) == 0


class Watched:
    """A browser page that must not report errors."""

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
        findings = [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]
        assert not findings, f"{path}: {findings}"
        assert not self.trouble, f"{path}: {self.trouble}"
        assert self.page.title().endswith("· Endmark"), self.page.title()
        # Options and inputs keep their values unescaped. Visible text and text for screen readers must not contain them.
        texts = self.page.evaluate("""[document.documentElement.textContent, ...[...document.querySelectorAll('[title], [aria-label], [alt]')]
            .flatMap(one => [one.title, one.ariaLabel, one.alt])].join(' ')""")
        assert not re.search("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", texts), f"{path}: a raw control character"
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is {wide} pixels wider than its window"


def numbers(watched: Watched, place: Place) -> None:
    """The figures on the overview and the usage page equal those that the commands print."""
    # Every two minutes a call becomes older than seven days, possibly between the page and the command.
    for attempt in range(3):
        watched.open("/endmark/")
        report = place.command("report", "--since", "7d")
        recovered = sum(cut["replies"] for cut in report["cuts"] if cut["outcome"] in ("resumed", "restarted", "corrected"))
        usage = place.command("usage", "--since", "7d")
        expected = {"cut": str(report["cut"]), "whole": str(recovered), "usd": usage["total"]["usd_at_least"]}
        shown = {name: watched.page.get_attribute(f"#{name}", "data-value") for name in expected}
        if shown == expected:
            break
    assert shown == expected and recovered > 0, (shown, expected)
    watched.open("/endmark/usage?by=model")
    usage = place.command("usage", "--by", "model")
    names = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "estimated_calls")
    for line, row in zip(watched.page.query_selector_all("tbody tr"), usage["rows"], strict=True):
        cells = [cell.text_content() for cell in line.query_selector_all("td")]
        assert cells[1:-1] == [f"{row[name]:,}" for name in names], cells


def session(watched: Watched, place: Place) -> None:
    """The newest session is first in the list, and its usage equals that of the command."""
    watched.open("/endmark/sessions")
    watched.page.locator("tbody tr a").first.click()
    watched.page.wait_for_url("**/endmark/sessions/*")
    used = watched.page.url.rsplit("/", 1)[1]
    row = next(row for row in place.command("usage", "--by", "session")["rows"] if row["session"] == used)
    total = [cell.text_content() for cell in watched.page.query_selector_all("tfoot td")]
    names = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "estimated_calls")
    assert total[:-1] == [f"{row[name]:,}" for name in names], (total, row)


def reader(watched: Watched, place: Place, axe: str) -> None:
    """A kept output can be found by its handle, paged and searched, and is shown unchanged."""
    lines = [f"line {number} {HOSTILE if number == 4_000 else ''}" for number in range(1, 7_001)]
    handle = place.command("cap", "--max-tokens", "200", given="\n".join(lines))["handle"]
    watched.open("/endmark/compactions")
    watched.page.fill("#handle", handle)
    watched.page.click("text=Read >> nth=-1")
    assert "Page 1 of 3" in watched.page.text_content("main"), watched.page.text_content("main")[:400]
    assert watched.page.text_content("pre").startswith("line 1 \nline 2 ")
    watched.page.click("text=Next page")
    assert "Page 2 of 3" in watched.page.text_content("main")
    watched.page.fill("#search", "<script>")
    watched.page.click("text=Search")
    assert watched.page.text_content("[role=status]") == "1 line"
    shown = watched.page.text_content("pre")
    assert shown == f"4000:line 4000 {SHOWN}\n", shown
    watched.check("a kept output, searched", axe)


def refused(watched: Watched, place: Place, axe: str) -> None:
    """A refused request is listed in chronological order, and can be found by outcome and model."""
    with contextlib.suppress(urllib.error.HTTPError):
        place.ask("too-much", 90_000_000)
    place.ask("gpt-5", 100)
    # The row is committed shortly after the reply.
    watched.page.wait_for_timeout(500)
    watched.open("/endmark/requests")
    first = [row.locator("td").all_text_contents() for row in watched.page.locator("#rows tbody tr").all()[:2]]
    assert first[0][0] == "whole" and first[1][0] == "refused" and "too-much" in first[1][2], first
    assert first[1][1].startswith("Refused by the gateway with 402") and "budget" in first[1][1], first
    watched.open("/endmark/requests?outcome=refused&model=too-much")
    assert watched.page.locator("#rows tbody tr").count() == 1
    watched.check("refused requests", axe)
    watched.open("/endmark/requests?outcome=refused&model=gpt-5")
    assert watched.page.locator("#rows tbody tr").count() == 0
    watched.open("/endmark/")
    watched.page.click("text=1 request was refused in the last hour")
    assert watched.page.locator("#rows tbody tr").count() == 1


def worth_a_look(watched: Watched) -> None:
    """The link in the status line leads to the number of requests that it states."""
    for span in ("24h", "7d", "30d"):
        watched.open(f"/endmark/?span={span}")
        link = watched.page.locator("h1.state a")
        if not link.count():
            continue
        count = int(link.text_content().split()[0])
        link.click()
        assert f"since={span}" in watched.page.url, watched.page.url
        assert watched.page.locator("#rows tbody tr").count() == min(count, 50), (span, count)


def raise_budget(watched: Watched, place: Place) -> None:
    """The form raises the budget by the entered amount, and the command shows it."""

    def extra() -> int:
        return sum(row["extra"] for row in place.command("budget")["rows"])

    before = extra()
    watched.open("/endmark/budgets")
    watched.page.locator("text=Add tokens").first.click()
    watched.page.locator("input[name=by]").first.fill("1_500")
    watched.page.locator("form[action$=raise] button").first.click()
    watched.page.wait_for_url("**/endmark/budgets")
    assert extra() == before + 1_500, (before, extra())
    shown = watched.page.locator(".sums [title='401500']").all_text_contents()
    assert shown, watched.page.text_content("main")


def revoke_key(watched: Watched, place: Place, axe: str) -> None:
    """A key is listed without its secret, and is rejected after its form was submitted."""
    secret = place.command("keys", "add", "tester", "--models", "gpt-*")["secret"]
    watched.open("/endmark/keys")
    watched.check("keys", axe)
    line = watched.page.locator("tbody tr")
    cells = line.locator("td").all_text_contents()
    assert cells == ["tester", "valid", "gpt-*", "none", "never", "Revoke"], cells
    assert secret not in watched.page.content()
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{place.origin}/endmark/keys/revoke", b"name=tester")
    assert place.command("keys", "list")["keys"][0]["state"] == "valid", "a form without the token changes nothing"
    watched.page.click("text=Revoke >> nth=-1")
    watched.page.wait_for_url("**/endmark/keys")
    assert line.locator("td").nth(1).text_content() == "revoked"
    assert place.command("keys", "list")["keys"][0]["state"] == "revoked"


def resumed_while_watched(watched: Watched, plain: Watched, place: Place) -> None:
    """The open list shows a stream as resumed only after it is complete."""
    watched.open("/endmark/requests?model=watched")
    plain.open("/endmark/requests?model=watched")
    said: list[str] = []
    asking = threading.Thread(target=lambda: said.append(place.ask_for_stream()))
    asking.start()
    watched.page.wait_for_timeout(4_000)
    assert watched.page.locator("#rows .chip.resumed").count() == 0, "its outcome is not known yet"
    GO_ON.set()
    asking.join(60)
    assert said == [" ".join(WORDS)], said
    watched.page.locator("#rows .chip.resumed").wait_for(timeout=30_000)
    plain.page.reload()
    assert "resumed" in plain.page.text_content("#rows tbody tr")


def filtered(watched: Watched) -> None:
    """A list can be filtered by existing values, and by a link."""
    watched.open("/endmark/requests?outcome=resumed&model=gpt-5")
    rows = watched.page.locator("#rows tbody tr")
    assert rows.count() == 1, watched.page.text_content("#rows")
    watched.page.select_option("#model", "gpt-5-mini")
    watched.page.wait_for_url("**model=gpt-5-mini**")
    assert "outcome=resumed" in watched.page.url and rows.count() == 1
    watched.page.click("text=Clear")
    watched.page.wait_for_url("**/endmark/requests")
    assert rows.count() > 2
    watched.page.locator("td.what a").first.click()
    assert "/endmark/requests/em_" in watched.page.url, watched.page.url


def seam(watched: Watched, place: Place) -> None:
    """The page of a resumed request shows the received parts, and the client's text with the marked seam."""
    watched.open("/endmark/requests?outcome=resumed&model=gpt-5")
    watched.page.locator("td.what a").first.click()
    watched.page.wait_for_url("**/endmark/requests/em_*")
    texts = watched.page.locator(".seam pre").all_text_contents()
    assert texts[0] == "one two three∎" and texts[-1] == "one two three∎" + " " + " ".join(WORDS[3:]), texts
    assert watched.page.locator(".course tbody tr").count() >= 4


def log_in(browser, place: Place, axe: str) -> None:
    """A gateway that other machines can reach shows nothing without the admin key."""
    watched = Watched(browser.new_context(), place.origin)
    for path in ("/endmark/", "/endmark/requests", "/endmark/outputs/out_x"):
        watched.open(path)
        assert watched.page.url.endswith("/endmark/login"), watched.page.url
    watched.check("login", axe)
    watched.page.fill("#key", "another key than that")
    watched.page.click("text=Log in >> nth=-1")
    assert watched.page.text_content("[role=alert]") == "That is not the admin key."
    # The browser itself reports the refused request, so do not count it.
    watched.trouble = [line for line in watched.trouble if "401" not in line]
    watched.page.fill("#key", ADMIN_KEY)
    watched.page.click("text=Log in >> nth=-1")
    watched.page.wait_for_url("**/endmark/")
    cookie = next(one for one in watched.page.context.cookies() if one["name"] == "endmark_admin")
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and ADMIN_KEY not in cookie["value"], cookie
    watched.page.click("text=Log out")
    watched.open("/endmark/")
    assert watched.page.url.endswith("/endmark/login") and not watched.trouble, watched.trouble


# The pictures in docs/page/, each with its state, page, width and colour scheme.
KEPT = {
    "empty-overview-1280-light", "day-one-overview-1280-light", "hostile-requests-1280-light", "hostile-request-390-dark",
    "week-overview-1280-light", "week-overview-1280-dark", "week-overview-390-light", "week-requests-390-dark", "week-request-1280-light",
    "week-session-1280-dark", "week-budgets-1280-light", "week-fleet-1280-dark",
}


def screens(browser, state: str, origin: str, pages: dict[str, str], axe: str, pictures: Path | None) -> None:
    """Opens each page in each width and colour scheme, checks it, and takes the pictures."""
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            shaped = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce")
            watched = Watched(shaped, origin)
            for name, path in pages.items():
                watched.open(path)
                watched.check(f"{state}: {path}", axe)
                picture = f"{state}-{name}-{width}-{scheme}"
                if pictures and picture in KEPT:
                    # The start of a long list is sufficient.
                    height = min(2_400, watched.page.evaluate("document.documentElement.scrollHeight"))
                    clip = {"x": 0, "y": 0, "width": width, "height": height}
                    # The README shows this picture.
                    file = "overview-light" if picture == "week-overview-1280-light" else picture
                    watched.page.screenshot(path=str(pictures / f"{file}.png"), full_page=True, clip=clip)
            shaped.close()


EVERYWHERE = {
    "overview": "/endmark/", "month": "/endmark/?span=30d", "requests": "/endmark/requests", "look": "/endmark/requests?outcome=look",
    "sessions": "/endmark/sessions", "usage": "/endmark/usage?by=day", "by-session": "/endmark/usage?by=session", "budgets": "/endmark/budgets",
    "keys": "/endmark/keys", "compactions": "/endmark/compactions", "fleet": "/endmark/runs", "login": "/endmark/login",
}


def browse(place: Place, closed: Place, full: Place, pictures: Path | None) -> None:
    from playwright.sync_api import sync_playwright

    axe = (FOLDER / "node_modules" / "axe-core" / "axe.min.js").read_text()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        first = Watched(context, place.origin)
        first.open("/endmark/")
        assert f"export OPENAI_BASE_URL={place.origin}/v1" in first.page.text_content("main")
        screens(browser, "empty", place.origin, EVERYWHERE, axe, pictures)
        for model, limit in (("gpt-5", 100), ("gpt-5", 3), ("gpt-5-mini", 6), ("gpt-5", 100), ("gpt-5-mini", 100)):
            place.ask(model, limit)
        first.page.locator(".figures").wait_for(timeout=30_000)
        numbers(first, place)
        session(first, place)
        filtered(first)
        seam(first, place)
        screens(browser, "day-one", place.origin, EVERYWHERE, axe, pictures)
        for model, limit in ((HOSTILE, 4), ("long", 5)):
            place.ask(model, limit)
        place.supervise(f"exit 0 # {HOSTILE.replace(chr(39), '')}")
        calls = "/endmark/requests?outcome=any-cut"
        first.open(calls)
        hostile = first.page.locator("td.what a").first.get_attribute("href")
        run_id = place.command("runs")["runs"][0]["id"]
        session_id = place.command("usage", "--by", "session")["rows"][0]["session"]
        of_one = {"request": hostile, "session": f"/endmark/sessions/{session_id}", "run": f"/endmark/runs/{run_id}"}
        screens(browser, "hostile", place.origin, EVERYWHERE | of_one, axe, pictures)
        a_week(browser, full, axe, pictures)
        watched = Watched(context, place.origin)
        watched.open("/endmark/runs")
        assert watched.page.locator("li.run").count() == 1
        place.supervise("exit 0")
        watched.page.locator("li.run").nth(1).wait_for(timeout=30_000)
        plain = Watched(browser.new_context(java_script_enabled=False), place.origin)
        plain.open("/endmark/")
        assert plain.page.get_attribute("#cut", "data-value") == str(place.command("report", "--since", "7d")["cut"])
        reader(watched, place, axe)
        refused(watched, place, axe)
        raise_budget(watched, place)
        revoke_key(watched, place, axe)
        resumed_while_watched(watched, plain, place)
        log_in(browser, closed, axe)
        assert not watched.trouble and not first.trouble, (watched.trouble, first.trouble)
        browser.close()


def a_week(browser, full: Place, axe: str, pictures: Path | None) -> None:
    """Checks the pages of a team that has used the gateway for two weeks."""
    for name, limit in (("ci-nightly", "20"), ("app-prod", "20"), ("research", "100"), ("notebook", None)):
        period = "month" if name == "research" else "day"
        full.command("keys", "add", name, *(["--budget-usd", limit, "--per", period] if limit else []))
    store = next(full.folder.rglob("*.db"))
    session_id = week.fill(store)
    for _ in range(12):
        full.ask("gpt-5-mini", 100)
    with contextlib.closing(sqlite3.connect(store)) as connection:
        sql = "SELECT request_id FROM recoveries WHERE outcome = 'resumed' AND request_id IN (SELECT request_id FROM usage WHERE call = 3) ORDER BY log_id DESC"
        request = connection.execute(sql).fetchone()[0]
        run_id = connection.execute("SELECT id FROM runs").fetchone()[0]
    watched = Watched(browser.new_context(), full.origin)
    numbers(watched, full)
    worth_a_look(watched)
    watched.open("/endmark/")
    assert re.search(r"Added latency[\d.]+ / [\d.]+ ms", watched.page.text_content(".figures")), "the pictures show a latency"
    of_one = {"request": f"/endmark/requests/{request}", "session": f"/endmark/sessions/{session_id}", "run": f"/endmark/runs/{run_id}"}
    screens(browser, "week", full.origin, EVERYWHERE | of_one, axe, pictures)


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
        program, port = arguments.program.resolve(), model.server_address[1]
        folders = [Path(folder) / name for name in ("open", "closed", "full")]
        for one in folders:
            one.mkdir()
        places = [Place(program, folders[0], port)]
        try:
            places.append(Place(program, folders[1], port, f'admin_key = "{ADMIN_KEY}"\n', "0.0.0.0:0"))
            places.append(Place(program, folders[2], port, session_tokens=850_000))
            browse(*places, arguments.pictures)
            for place in places:
                place.stop()
        finally:
            for place in places:
                place.gateway.kill()
    print("every page in four states: no error, no request elsewhere, no finding of axe, the numbers of the commands")


if __name__ == "__main__":
    main()
