"""Packages by others, installed once for all copies of this repository.

`ENDMARK_TEST_CACHE` names the folder in which they are kept, each set under the hash of what is in it. Without it they
are installed beside the tests. Either can be deleted at any time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

# What package managers make, and what programs look for beside themselves.
FOLDERS = ("venv", "node_modules")


def installed(folder: Path, wanted: bytes, fill: Callable[[Path], None]) -> None:
    """Provides `wanted` in `folder`: reused from an earlier run, or created by `fill` in the folder it receives."""
    # An environment belongs to the Python that made it.
    wanted_hash = hashlib.sha256(b"\0".join([wanted, sys.version.encode(), platform.machine().encode()])).hexdigest()
    cache = os.environ.get("ENDMARK_TEST_CACHE")
    kept = Path(cache) / f"{folder.name.removeprefix('.')}-{wanted_hash[:16]}" if cache else folder
    folder.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    stamp = kept / "installed"
    with (kept / "lock").open("w") as lock:
        # Two runs of the tests may want it at the same time.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted_hash and is_usable(kept)):
            stamp.unlink(missing_ok=True)
            for name in FOLDERS:
                remove(kept / name)
            fill(kept)
            stamp.write_text(wanted_hash)
        if kept == folder:
            return
        for name in FOLDERS:
            link = folder / name
            if link.is_symlink() and link.readlink() == kept / name:
                continue
            # Left of another version, or of a time without the cache.
            remove(link)
            if (kept / name).exists():
                link.symlink_to(kept / name)


def is_usable(kept: Path) -> bool:
    """Returns whether the installation is intact: no link into a cache, and its Python still exists."""
    environment = kept / "venv"
    links = any((kept / name).is_symlink() for name in FOLDERS)
    return not links and (not environment.exists() or (environment / "bin" / "python").exists())


def remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
