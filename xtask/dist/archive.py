"""Writes archives that are identical byte for byte, regardless of when and where they are made."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

QUICKLY_COMPRESSED_BYTES = 1_000_000


@dataclass(frozen=True)
class Entry:
    """A file of an archive, or a folder if it has no content."""

    path: str
    content: bytes | None
    mode: int = 0o644
    owner: int = 0


def tar(entries: list[Entry], epoch: int) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for entry in sorted(entries, key=lambda entry: entry.path):
            info = tarfile.TarInfo(entry.path)
            info.mtime, info.mode, info.uid, info.gid = epoch, entry.mode, entry.owner, entry.owner
            if entry.content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(entry.content)
                archive.addfile(info, io.BytesIO(entry.content))
    return written.getvalue()


def compressed(content: bytes) -> bytes:
    """Returns the content in gzip's format, without a name and a time. For a program, the last percent of compression
    is not worth a minute.
    """
    level = 9 if len(content) < QUICKLY_COMPRESSED_BYTES else 6
    return gzip.compress(content, compresslevel=level, mtime=0)


def archived_with_ar(members: list[tuple[str, bytes]], epoch: int) -> bytes:
    """Returns an `ar` archive, the outer format of a Debian package."""
    written = io.BytesIO(b"!<arch>\n")
    written.seek(0, io.SEEK_END)
    for name, content in members:
        written.write(f"{name:<16}{epoch:<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode())
        written.write(content + b"\n" * (len(content) % 2))
    return written.getvalue()


def wheel(entries: list[Entry], information: str, epoch: int) -> bytes:
    """Returns a wheel that includes the record of its files."""
    record = f"{information}/RECORD"
    lines = []
    for entry in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.content).digest()).rstrip(b"=").decode()
        lines.append(f"{entry.path},sha256={digest},{len(entry.content)}\n")
    entries = [*entries, Entry(record, "".join([*lines, f"{record},,\n"]).encode())]
    written = io.BytesIO()
    # The ZIP format has no time before 1980.
    when = time.gmtime(max(epoch, 315532800))[:6]
    with zipfile.ZipFile(written, "w") as archive:
        for entry in entries:
            info = zipfile.ZipInfo(entry.path, when)
            info.external_attr = (0o100000 | entry.mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry.content, compresslevel=6)
    return written.getvalue()


def below(folder: Path, prefix: str = "") -> list[Entry]:
    """Returns the files of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [Entry(prefix + str(path.relative_to(folder)), path.read_bytes()) for path in files]


def with_folders(entries: list[Entry]) -> list[Entry]:
    """Returns the entries with the folders that contain them. Each folder occurs once."""
    present = {entry.path for entry in entries}
    folders = {str(parent) for entry in entries for parent in Path(entry.path).parents} - {"."}
    return [*(Entry(folder, None, 0o755) for folder in folders if folder not in present), *entries]
