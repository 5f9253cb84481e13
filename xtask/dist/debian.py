"""Builds a Debian package with a systemd unit. Installing the package does not start the unit."""

from __future__ import annotations

import hashlib
from email.utils import formatdate
from pathlib import Path

import notices
from archive import Entry, archived_with_ar, compressed, tar, with_folders

FILES = Path(__file__).parent / "debian"
UNIT = FILES / "endmark.service"
MAINTAINER = "The Endmark authors <endmark@example.org>"


def file(name: str) -> bytes:
    return (FILES / name).read_bytes()


def changelog(release) -> bytes:
    when = formatdate(release.epoch)
    return f"endmark ({release.version}) stable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- {MAINTAINER}  {when}\n".encode()


def contents(release, program: bytes) -> list[Entry]:
    documents = "usr/share/doc/endmark"
    completions = {
        "endmark.bash": "usr/share/bash-completion/completions/endmark",
        "_endmark": "usr/share/zsh/vendor-completions/_endmark",
        "endmark.fish": "usr/share/fish/vendor_completions.d/endmark.fish",
    }
    return with_folders(
        [
            Entry("usr/bin/endmark", program, 0o755),
            Entry("lib/systemd/system/endmark.service", UNIT.read_bytes()),
            Entry("etc/endmark/endmark.toml", file("endmark.toml")),
            Entry(f"{documents}/copyright", file("copyright")),
            Entry(f"{documents}/changelog.gz", compressed(changelog(release))),
            Entry(f"{documents}/{notices.NAME}.gz", compressed(release.licences[notices.NAME])),
            Entry("usr/share/lintian/overrides/endmark", file("overrides")),
            *(Entry(completions[name], script) for name, script in release.completions.items()),
            *(Entry(f"usr/share/man/man1/{name}.gz", compressed(page)) for name, page in release.manual.items()),
        ]
    )


def control(release, machine, entries: list[Entry]) -> list[Entry]:
    size = sum(len(entry.content or b"") for entry in entries)
    fields = [
        "Package: endmark",
        f"Version: {release.version}",
        f"Architecture: {machine.debian}",
        f"Maintainer: {MAINTAINER}",
        f"Installed-Size: {-(-size // 1024)}",
        "Recommends: ca-certificates",
        "Section: net",
        "Priority: optional",
        "Description: gateway that keeps the work of language-model agents whole",
        " It stands between an application and a model's API, notices when a reply",
        " was cut off, asks the model for the rest, joins it where it belongs, and",
        " says where that could not be done.",
        " .",
        " The service is not started when the package is installed.",
    ]
    sums = [f"{hashlib.md5(entry.content).hexdigest()}  {entry.path}\n" for entry in entries if entry.content is not None]
    return [
        Entry("./control", ("\n".join(fields) + "\n").encode()),
        Entry("./md5sums", "".join(sums).encode()),
        Entry("./conffiles", b"/etc/endmark/endmark.toml\n"),
        *(Entry(f"./{name}", file(name), 0o755) for name in ["postinst", "prerm", "postrm"]),
    ]


def pack(release, machine, program: bytes) -> tuple[str, bytes]:
    entries = contents(release, program)
    rooted = [Entry(f"./{entry.path}", entry.content, entry.mode) for entry in entries]
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", compressed(tar(control(release, machine, entries), release.epoch))),
        ("data.tar.gz", compressed(tar(rooted, release.epoch))),
    ]
    return f"endmark_{release.version}_{machine.debian}.deb", archived_with_ar(members, release.epoch)
