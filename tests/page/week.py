"""Fills a store with two weeks of a team that uses the gateway, as test data for the pages."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

DAYS = 14
REQUESTS_OF_A_WORKDAY = 800
UPSTREAMS = {"gpt-5-mini": "openai", "gpt-5": "openai", "claude-sonnet-4-5": "anthropic", "gemini-2.5-flash": "gemini", "qwen3-32b-awq": "local"}
KEYS = ["key:app-prod", "key:ci-nightly", "key:research", "key:notebook"]
OWN_LIMIT = "the reply reached the limit that the client set itself, which the mode `auto` takes for what the client wants"
INSERT = """INSERT INTO usage (request_id, call, purpose, session, credential, upstream, format, model, answered_model, streamed, mode,
  started_at, ended_at, http_status, ending, stop, verdict, cut_kind, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens,
  total_tokens, sent_bytes, received_bytes, first_byte_ms, total_ms) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"""
FIRST = """{
  "lines": [
    {
      "line": 41,
      "text": "Berth fees, north quay, 3 nights",
      "net": 1180.00
    },
    {
      "line": 42,
      "text": "Pilotage inbound, vessel over 90 m, ni"""
PREAMBLE = "Here is the rest of the document:\n\n"
REST = """ght surcharge",
      "net": 640.00
    },
    {
      "line": 43,
      "text": "Waste reception, 6 cubic metres",
      "net": 84.50
    }
  ],
  "total": 18442.10
}"""


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03}"


def sha(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


@dataclass
class Week:
    """A store that is being filled."""

    store: sqlite3.Connection
    now: datetime
    chance: random.Random
    number: int = 0
    logged: int = 0

    def call(self, request: str, call: int, at: datetime, model: str, key: str, session: str, **given: object) -> datetime:
        seconds = given.get("seconds", self.chance.uniform(1.5, 22))
        prompt, output = given.get("prompt", 4_000), given.get("output", 600)
        status = given.get("status", 200)
        verdict = given.get("verdict", "whole")
        end = at + timedelta(seconds=seconds)
        self.store.execute(INSERT, (
            request, call, given.get("purpose", "reply"), session, key, UPSTREAMS[model], "openai_chat", model, model, 1, "auto",
            text(at), text(end), status, given.get("ending", "clean"), given.get("stop", "stop"), verdict, given.get("kind"),
            prompt, output, given.get("cached"), None, (prompt or 0) + (output or 0), (prompt or 900) * 4, (output or 20) * 4, 400.0 if status == 200 else None,
            seconds * 1000))
        return end

    def cut(self, request: str, at: datetime, model: str, session: str, kind: str, outcome: str, reason: str, style: str | None) -> None:
        self.logged += 1
        whole = outcome in ("resumed", "restarted", "corrected")
        self.store.execute("INSERT INTO partial_completion_log VALUES (?,?,?,?,?,?,?,?)",
                           (self.logged, session, 3, len(FIRST) - 2, len(FIRST), 0 if outcome == "cut" else 1, "RESOLVED" if whole else "EXHAUSTED", text(at)[:19]))
        self.store.execute("INSERT INTO recoveries VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                           (self.logged, request, "choice 0, text", model, UPSTREAMS[model], kind, outcome, style, 900, 80, reason))
        rest = PREAMBLE + REST
        pieces = [(0, "initial", len(FIRST), "clean", "length", "limit", "a string is open", None, None, 0, None, FIRST)]
        if outcome == "resumed":
            pieces.append((1, "user_turn", len(rest), "clean", "stop", "whole", "the JSON ends", len(FIRST), "preamble", len(PREAMBLE), 0.998, rest))
        for ordinal, strategy, length, ending, stop, judged, why, seam, seam_style, dropped, sure, said in pieces:
            self.store.execute("INSERT INTO recovery_pieces VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                               (self.logged, ordinal, strategy, length, ending, stop, judged, why, seam, seam_style, dropped, sure, sha(said), said))

    def request(self, at: datetime, cut_share: float) -> None:
        chance = self.chance
        self.number += 1
        request = f"em_{self.number:06x}{chance.getrandbits(80):020x}"
        model = chance.choices(list(UPSTREAMS), [8, 3, 5, 3, 2])[0]
        key = chance.choice(KEYS)
        session = sha(f"{at:%Y-%m-%d} {key} {self.number // 9}")
        what = {"prompt": chance.randrange(700, 40_000), "output": chance.randrange(60, 2_400)}
        if chance.random() > cut_share:
            odd = chance.random()
            if odd < 0.006:
                self.call(request, 1, at, model, key, session, status=529, verdict=None, seconds=0.2, prompt=None, output=None)
            elif odd < 0.012:
                self.call(request, 1, at, model, key, session, ending="cancelled", verdict=None, **what)
            elif odd < 0.03:
                end = self.call(request, 1, at, model, key, session, status=529, verdict=None, seconds=0.2, prompt=None, output=None)
                self.call(request, 2, end + timedelta(seconds=1), model, key, session, purpose="retry", **what)
            else:
                self.call(request, 1, at, model, key, session, **what)
            return
        kind = chance.choices(["limit", "dropped", "format", "empty"], [7, 4, 1, 1])[0]
        outcome = chance.choices(["resumed", "restarted", "corrected", "own", "cut", "exhausted"], [76, 9, 7, 4, 2, 2])[0]
        end = self.call(request, 1, at, model, key, session, verdict="cut", kind=kind, stop="length" if kind == "limit" else None,
                        ending="dropped" if kind == "dropped" else "clean", **what)
        if outcome in ("own", "cut"):
            reason = OWN_LIMIT if outcome == "own" else "the mode is `warn`, which only watches and reports"
            self.cut(request, end, model, session, kind, "cut", reason, None)
            return
        purpose = "correction" if outcome == "corrected" else "resume"
        if chance.random() < 0.2:
            end = self.call(request, 2, end, model, key, session, purpose=purpose, status=529, verdict=None, seconds=0.18, prompt=None, output=None)
            end = self.call(request, 3, end + timedelta(seconds=1.2), model, key, session, purpose=purpose, prompt=what["prompt"] + what["output"], output=180, seconds=3.5)
        else:
            end = self.call(request, 2, end, model, key, session, purpose=purpose, prompt=what["prompt"] + what["output"], output=180, seconds=3.5)
        reason = {"exhausted": "two continuations did not fit the text"}.get(outcome, "the text is whole")
        self.cut(request, end, model, session, kind, outcome, reason, "preamble" if outcome == "resumed" else None)

    def session(self) -> str:
        """A long conversation, condensed twice, with tool results that were capped."""
        session, at, prompt = sha("the long session"), self.now - timedelta(hours=3), 9_000
        for turn in range(1, 35):
            if turn in (14, 27):
                before, prompt = prompt, 56_000
                self.store.execute("INSERT INTO compactions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                                   ("client:key:research", sha(f"c{turn}"), 40, sha(f"d{turn}"), "[]", "window", before, prompt, None, 700_000, 30, text(at)[:19], 0))
                self.store.execute("INSERT INTO compaction_sessions VALUES (?,?,?,?,?,?)",
                                   ("client:key:research", sha(f"c{turn}"), 40, sha(f"d{turn}"), session, "turns 41\ncalls 18\nresults 6"))
            request = f"em_5e55{turn:04x}{self.chance.getrandbits(64):016x}"
            output = self.chance.randrange(300, 2_600)
            self.call(request, 1, at, "claude-sonnet-4-5", "key:research", session, prompt=prompt, output=output, cached=prompt * 7 // 10)
            prompt += self.chance.randrange(2_000, 17_000)
            at += timedelta(minutes=5)
        return session

    def runs(self) -> None:
        rows = [
            ("harbour-report", "succeeded", None, "claude", "harbour.md", 2, 386_000, 116_000, 0, "2.41", 72),
            ("test-plan", "succeeded", None, "gemini", "plan.md", 1, 174_000, 104_000, 0, None, 38),
            ("risk-register", "succeeded", None, "claude", "register.md", 2, 240_000, 116_000, 0, "1.74", 41),
            ("legacy-audit", "released", "the context is full: sections are empty", "claude", "audit.md", 3, 702_000, 192_000, 1, "4.62", 128),
            ("smoke-notes", "failed", "the process ended by a signal", "sh", "notes.md", 2, 0, None, 0, None, 2),
        ]
        for at, (name, state, reason, agent, artifact, attempt, used, largest, risk, cost, minutes) in enumerate(rows):
            began = self.now - timedelta(hours=4 * at + 3)
            values = {
                "id": f"run_{at}{sha(name)[:10]}", "owner": "o", "state": state, "reason": reason, "agent": agent, "command": json.dumps([agent]),
                "folder": "/srv/work", "artifact": artifact, "attempt": attempt, "max_attempts": 3, "input_tokens": used, "output_tokens": used // 20,
                "largest_call_tokens": largest, "limit_tokens": 200_000 if largest else None, "context_exhaustion_risk": risk,
                "cost_nanodollars": int(float(cost) * 1e9) if cost else None, "evidence": "", "started_at": text(began), "updated_at": text(began),
                "ended_at": text(began + timedelta(minutes=minutes))}
            task = (values["id"], name, None, minutes * 60, 0, 0)
            self.store.execute(f"INSERT INTO runs ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", list(values.values()))
            self.store.execute("INSERT INTO run_tasks VALUES (?,?,?,?,?,?)", task)

    def budgets(self, session: str) -> None:
        today, month = f"{self.now:%Y-%m-%d}", f"{self.now:%Y-%m}"
        passed = (self.now.hour * 60 + self.now.minute + 1) / 1440
        rows = [
            ("key", "key:ci-nightly", today, "nano_usd", 18_800_000_000, 340_000_000, 0, 0),
            ("key", "key:app-prod", today, "nano_usd", int(14e9 * passed), 410_000_000, 0, 0),
            ("key", "key:research", month, "nano_usd", 61_400_000_000, 920_000_000, 0, 0),
            ("session", session, "ever", "tokens", 708_000, 24_000, 0, 0),
            ("session", sha("another session"), "ever", "tokens", 851_000, 0, 0, 1),
            ("session", sha("a third session"), "ever", "tokens", 214_000, 0, 0, 0),
        ]
        for scope, subject, window, unit, spent, held, extra, closed in rows:
            self.store.execute("INSERT OR REPLACE INTO budgets (scope, subject, window, unit, spent, held, extra, is_closed) VALUES (?,?,?,?,?,?,?,?)",
                               (scope, subject, window, unit, spent, held, extra, closed))


def fill(path: Path) -> str:
    """Fills the store at this path, which a gateway created. Returns the session with a long conversation."""
    store = sqlite3.connect(path, timeout=30)
    week = Week(store, datetime.now(timezone.utc).replace(tzinfo=None), random.Random(11))
    for back in range(DAYS - 1, -1, -1):
        day = (week.now - timedelta(days=back)).replace(hour=0, minute=0, second=0, microsecond=0)
        count = REQUESTS_OF_A_WORKDAY if day.weekday() < 5 else REQUESTS_OF_A_WORKDAY // 4
        moments = sorted(day + timedelta(seconds=week.chance.triangular(0, 86_400, 52_000)) for _ in range(count))
        for at in moments:
            if at < week.now - timedelta(seconds=40):
                week.request(at, 0.045 if back >= 7 else 0.034 + 0.004 * (back % 3))
    session = week.session()
    for back in (2, 9, 31, 80, 190, 400):
        week.request(week.now - timedelta(minutes=back), 1.0 if back != 190 else 0.0)
    week.runs()
    week.budgets(session)
    store.commit()
    store.close()
    return session
