"""Installs third-party packages once for all copies of this repository.

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

# Folders of package managers, and files that programs look for next to themselves.
FOLDERS = ("venv", "node_modules")


def installed(folder: Path, wanted: bytes, fill: Callable[[Path], None]) -> None:
    """Provides the packages `wanted` in `folder`. Reuses those of an earlier run, or installs them with `fill`."""
    # An environment only works with the Python that created it.
    wanted_hash = hashlib.sha256(b"\0".join([wanted, sys.version.encode(), platform.machine().encode()])).hexdigest()
    cache = os.environ.get("ENDMARK_TEST_CACHE")
    kept = Path(cache) / f"{folder.name.removeprefix('.')}-{wanted_hash[:16]}" if cache else folder
    folder.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    stamp = kept / "installed"
    with (kept / "lock").open("w") as lock:
        # Two test runs may install the packages at the same time.
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
            # A remnant of another version, or from before the cache existed.
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
