"""Reads real files, from which documents are made."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from chance import Chance

_LANGUAGES = {
    ".py": "python", ".rs": "rust", ".js": "javascript", ".ts": "typescript", ".go": "go", ".java": "java",
    ".c": "c", ".h": "c", ".cpp": "cpp", ".rb": "ruby", ".sh": "bash", ".css": "css", ".sql": "sql",
    ".toml": "toml", ".yml": "yaml", ".yaml": "yaml", ".md": "markdown", ".txt": "text",
}  # fmt: skip
_SKIPPED = {".git", "target", "node_modules", "__pycache__", "site-packages", ".real-model"}
_LARGEST = 300_000
_KEPT_TEXTS = 64


class Sources:
    """The files of some folders. They are read on demand, and a few of them are kept in memory."""

    def __init__(self, folders: list[Path]):
        self._paths = sorted(path for folder in folders for path in _files(folder))
        self._texts: dict[Path, str] = {}

    def __len__(self) -> int:
        return len(self._paths)

    def piece(self, chance: Chance, size: int, markdown: bool = False) -> tuple[str, str] | None:
        """Returns about `size` characters of one file in whole lines, and its language. Returns None if no file is
        suitable.
        """
        for _ in range(8):
            if not self._paths:
                return None
            path = chance.pick(self._paths)
            language = _LANGUAGES[path.suffix]
            if (language == "markdown") != markdown:
                continue
            text = self._text(path)
            if len(text) < 200:
                continue
            start = chance.below(max(1, len(text) - size))
            start = text.rfind("\n", 0, start) + 1
            end = text.find("\n", min(len(text), start + size))
            piece = text[start : len(text) if end < 0 else end + 1]
            if len(piece) >= 150:
                return piece, language
        return None

    def _text(self, path: Path) -> str:
        if path not in self._texts:
            if len(self._texts) >= _KEPT_TEXTS:
                self._texts.pop(next(iter(self._texts)))
            try:
                self._texts[path] = path.read_bytes().decode("utf-8", "strict").replace("\x00", "")
            except (OSError, UnicodeDecodeError):
                self._texts[path] = ""
        return self._texts[path]


def _files(folder: Path) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for path in (Path(where, name) for name in sorted(names)):
            if path.suffix in _LANGUAGES and path.is_file() and path.stat().st_size <= _LARGEST:
                found.append(path)
    return found


def usual_folders() -> list[Path]:
    """Returns the folder of this repository and that of Python's standard library."""
    return [Path(__file__).resolve().parents[2], Path(sysconfig.get_paths()["stdlib"])]
