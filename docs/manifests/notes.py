#!/usr/bin/env python3
"""Notes in a SQLite file: notes.py FILE add --title TITLE < body; notes.py FILE list [--limit N]; notes.py FILE show ID.

A typical tool: it cuts titles to 255 bytes without reporting it.
"""

import argparse
import json
import os
import sqlite3
import sys

MAX_TITLE_BYTES = 255


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("add").add_argument("--title", required=True)
    commands.add_parser("list").add_argument("--limit", type=int, default=20)
    commands.add_parser("show").add_argument("id", type=int)
    arguments = parser.parse_args()
    notes = sqlite3.connect(arguments.file)
    notes.execute(
        "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, title TEXT, title_bytes INTEGER,"
        " title_characters INTEGER, body TEXT, author TEXT)"
    )
    with notes:
        return COMMANDS[arguments.command](notes, arguments)


def add(notes, arguments):
    title = arguments.title.encode()
    kept = title[:MAX_TITLE_BYTES].decode(errors="ignore")
    row = (kept, len(title), len(arguments.title), sys.stdin.read(), os.environ.get("NOTES_AUTHOR", ""))
    statement = "INSERT INTO notes (title, title_bytes, title_characters, body, author) VALUES (?, ?, ?, ?, ?)"
    answer({"id": notes.execute(statement, row).lastrowid})


def list_all(notes, arguments):
    rows = notes.execute(
        "SELECT id, title, title_bytes, title_characters FROM notes ORDER BY id LIMIT ?", (arguments.limit + 1,)
    ).fetchall()
    names = ("id", "title", "title_bytes", "title_characters")
    shown = [dict(zip(names, row)) for row in rows[: arguments.limit]]
    answer({"notes": shown, "next": shown[-1]["id"] if len(rows) > arguments.limit else None})


def show(notes, arguments):
    row = notes.execute("SELECT id, title, body, author FROM notes WHERE id = ?", (arguments.id,)).fetchone()
    if row is None:
        return 4
    answer(dict(zip(("id", "title", "body", "author"), row)))


def answer(value):
    print(json.dumps(value, ensure_ascii=False))


COMMANDS = {"add": add, "list": list_all, "show": show}

if __name__ == "__main__":
    sys.exit(main())
