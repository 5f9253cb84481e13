#!/usr/bin/env python3
"""Installs, uses and removes every package of `cargo xtask dist` in an environment without Rust.

    cargo xtask dist
    python3 tests/packages/test_packages.py [--dist target/dist] [--only NAME]

The wheel by pip in a new environment, npm's packages by npm from files, the Debian package by dpkg in a system made by
debootstrap (and read by lintian), the image's layer as the only file system there is, the tarball as it is. In each:
the version, `endmark demo`, `endmark serve`, one request whose reply is cut, `endmark doctor --serving`; then it is
removed, and nothing of it is left. Also: the sums, the list of what it is built from, and the same packages made again.
Needs root (for chroot), pip, npm, debootstrap and lintian.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The PATH contains no toolchain.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WHOLE = json.dumps({"title": "The sea", "lines": ["The harbour was quiet.", "Nobody slept.", "The ships came home."]})
CUT_AT = 60
NOBODY = 65532
# Whether a program gets huge pages only on request. With huge pages, an idle gateway used 8 MB more.
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
NOTICES = "THIRD-PARTY-NOTICES.txt"


class Model(http.server.BaseHTTPRequestHandler):
    """Stops inside its document, and continues if the request contains the start of the document."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = body["messages"][-1]
        goes_on = last["role"] == "assistant"
        text, why = (WHOLE[len(last["content"]) :], "stop") if goes_on else (WHOLE[:CUT_AT], "length")
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": why}
        usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
        reply = {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        answer = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def must(holds: object, words: str) -> None:
    if not holds:
        raise AssertionError(words)


def run(command: list, **more) -> str:
    environment = {"PATH": PATH, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", **more.pop("env", {})}
    done = subprocess.run([str(word) for word in command], env=environment, text=True, capture_output=True, **more)
    must(done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_served(command: list, address: str, upstream: str, **more) -> None:
    """Starts the gateway with this command, and sends a request whose reply is cut."""
    environment = {"PATH": PATH, **more.pop("env", {})}
    health = [*command, "doctor", "--serving", "--set", f"listen={address}"]
    refused = subprocess.run(health, env=environment, capture_output=True, **more)
    must(refused.returncode == 1, "doctor --serving says that it is served before it is")
    serve = [*command, "serve", "--listen", address, "--upstream", upstream]
    process = subprocess.Popen(serve, env=environment, stderr=subprocess.PIPE, text=True, **more)
    try:
        for line in process.stderr:
            if "listens on" in line:
                break
        else:
            raise AssertionError("it ended before it listened")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        question = {"model": "m", "messages": [{"role": "user", "content": "A poem."}], "response_format": {"type": "json_object"}}
        request = urllib.request.Request(f"http://{address}/v1/chat/completions", json.dumps(question).encode())
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as response:
            reply = json.load(response)
            must(response.headers["x-endmark-outcome"] == "resumed", str(response.headers))
        must(reply["choices"][0]["message"]["content"] == WHOLE, str(reply))
        run(health, env=environment, **more)
        memory = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        if "[madvise]" in HUGE_PAGES.read_text():
            must(re.search(r"^AnonHugePages: +0 kB", memory, re.MULTILINE) is not None, f"it asks for huge pages:\n{memory}")
    finally:
        process.terminate()
        must(process.wait(60) in (0, 143), f"it ended with {process.returncode}")


def is_used(command: list, version: str, upstream: str, **more) -> None:
    """Runs all checks of an installed program."""
    must(run([*command, "--version"], **more).split() == ["endmark", version], "another version")
    must("resumed" in run([*command, "demo"], **more), "the demo shows nothing")
    is_served(command, f"127.0.0.1:{free_port()}", upstream, **more)


def has_notices(text: str) -> None:
    """Checks for the licences of linked crates, of code copied into the repository, and of C code."""
    for name in ["tokio 1.", "libmimalloc-sys", "ring 0.17"]:
        must(f"\n{name}" in text, f"no licence of {name}")
    must("GNU GENERAL PUBLIC LICENSE" not in text, "the text of a licence that nothing in the program has")


class Packages:
    def __init__(self, dist: Path, upstream: str, place: Path):
        self.dist, self.upstream, self.place = dist, upstream, place
        self.machine = platform.machine()
        self.version = next(dist.glob("*.whl")).name.split("-")[1]

    def one(self, pattern: str) -> Path:
        found = sorted(self.dist.glob(pattern))
        must(len(found) == 1, f"{pattern}: {found}")
        return found[0]

    def used(self, command: list, **more) -> None:
        home = self.place / "home"
        home.mkdir(exist_ok=True)
        more["env"] = {"HOME": str(home), **more.get("env", {})}
        is_used(command, self.version, self.upstream, **more)

    def sums(self) -> None:
        run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=self.dist)
        listed = {line.split()[1] for line in (self.dist / "SHA256SUMS").read_text().splitlines()}
        made = {path.name for path in self.dist.iterdir()} - {"SHA256SUMS"}
        must(listed == made, f"{listed ^ made} are listed or there, not both")
        document = json.loads(self.one(f"*{self.machine}*.cdx.json").read_text())
        names = {component["name"] for component in document["components"]}
        must({"tokio", "rusqlite", "endmark-gateway"} <= names and "proptest" not in names, str(sorted(names)))

    def wheel(self) -> None:
        environment = self.place / "venv"
        run([sys.executable, "-m", "venv", environment])
        pip = [environment / "bin/pip", "--disable-pip-version-check", "--no-cache-dir"]
        run([*pip, "install", "--no-index", "--find-links", self.dist, "endmark"])
        if list(self.dist.glob(f"*-cp310-abi3-*_{self.machine}.whl")):
            detected = run([environment / "bin/python", "-c", "import endmark; print(endmark.detect('[1,', 'json').verdict)"])
            must(detected.strip() == "truncated", "the module")
        has_notices(next(environment.rglob("licenses/" + NOTICES)).read_text())
        self.used([str(environment / "bin/endmark")])
        must(self.version in run([environment / "bin/python", "-m", "endmark", "--version"]), "python -m endmark")
        run([*pip, "uninstall", "--yes", "endmark"])
        left = [path for path in environment.rglob("*endmark*")]
        must(not left, f"pip left {left}")

    def npm(self) -> None:
        folder = self.place / "npm"
        folder.mkdir()
        (folder / "package.json").write_text("{}")
        node = {"x86_64": "x64", "aarch64": "arm64"}[self.machine]
        files = [self.one(f"endmark-linux-{node}-*.tgz"), self.one(f"endmark-{self.version}.tgz")]
        npm = ["npm", "--offline", "--no-audit", "--no-fund", "--cache", folder / "cache"]
        home = {"HOME": str(folder)}
        run([*npm, "install", *files], cwd=folder, env=home)
        for package in ["endmark", f"@endmark/linux-{node}"]:
            has_notices((folder / "node_modules" / package / NOTICES).read_text())
        self.used([str(folder / "node_modules/.bin/endmark")])
        must(self.version in run(["npx", "--offline", "endmark", "--version"], cwd=folder, env=home), "npx endmark")
        if (folder / "node_modules/endmark/dist").exists():
            detected = run(["node", "-p", "require('endmark').detect('[1,', 'json').verdict"], cwd=folder)
            must(detected.strip() == "truncated", "the addon")
        run([*npm, "uninstall", "endmark", f"@endmark/linux-{node}"], cwd=folder, env=home)
        must(not list(folder.glob("node_modules/*endmark*/*")), "npm left something")

    def tarball(self) -> None:
        folder = self.place / "tarball"
        run(["tar", "--extract", "--file", self.one(f"*-{self.machine}-linux.tar.gz"), "--one-top-level=" + str(folder)])
        inside = next(folder.iterdir())
        has_notices((inside / NOTICES).read_text())
        self.used([str(inside / "endmark")])
        run(["bash", "-n", inside / "completions/endmark.bash"])
        must((inside / "man/endmark-serve.1").read_text().count(".SH") > 2, "no page for serve")

    def debian(self) -> None:
        package = self.one(f"*_{ {'x86_64': 'amd64', 'aarch64': 'arm64'}[self.machine] }.deb")
        done = subprocess.run(["lintian", "--allow-root", "--tag-display-limit", "0", package], capture_output=True, text=True)
        print("\n".join(f"    {line}" for line in done.stdout.splitlines()))
        must(done.returncode == 0 and "E: " not in done.stdout, done.stdout + done.stderr)
        system = self.place / "system"
        run(["debootstrap", "--variant=minbase", "bookworm", system, *mirror()])
        within = ["chroot", system]
        must(subprocess.run([*within, "sh", "-c", "command -v cargo rustc"], stdout=subprocess.PIPE).returncode != 0, "Rust is there")
        shutil.copy(package, system / "tmp/endmark.deb")
        run([*within, "dpkg", "--install", "/tmp/endmark.deb"])
        has_notices(run([*within, "zcat", f"/usr/share/doc/endmark/{NOTICES}.gz"]))
        self.used([*within, "/usr/bin/endmark"], env={"HOME": "/root"})
        must("DynamicUser=yes" in (system / "lib/systemd/system/endmark.service").read_text(), "no unit")
        run([*within, "/usr/bin/endmark", "config", "check", "--config", "/etc/endmark/endmark.toml"])
        run([*within, "dpkg", "--purge", "endmark"])
        left = run([*within, "find", "/usr", "/etc", "/lib", "/var/lib/dpkg/info", "-name", "*endmark*"])
        must(not left, f"dpkg left {left}")
        if shutil.which("systemd-analyze"):
            unit = ROOT / "xtask/dist/debian/endmark.service"
            read = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
            # The only allowed complaint is the missing program, because it has been removed.
            faults = [line for line in read.stderr.splitlines() if "endmark" in line and "is not executable" not in line]
            must(not faults, "\n".join(faults))
        else:
            print("SKIPPED: systemd-analyze is missing, so the unit was not checked")

    def image(self) -> None:
        layout = self.place / "layout"
        with tarfile.open(self.one(f"*-{self.machine}-oci.tar")) as archive:
            archive.extractall(layout, filter="fully_trusted")
        blob = lambda described: layout / "blobs" / described["digest"].replace(":", "/")  # noqa: E731
        manifest = json.loads(blob(json.loads((layout / "index.json").read_text())["manifests"][0]).read_text())
        config = json.loads(blob(manifest["config"]).read_text())["config"]
        must(config["User"] == f"{NOBODY}:{NOBODY}", "it runs as root")
        must(config["Healthcheck"]["Test"] == ["CMD", "/endmark", "doctor", "--serving"], "another health check")
        root = self.place / "image"
        with tarfile.open(blob(manifest["layers"][0])) as archive:
            archive.extractall(root, filter="fully_trusted")
        has_notices((root / "licenses" / NOTICES).read_text())
        # Run it as an operator would: with only the image's file system, user and variables.
        variables = dict(variable.split("=", 1) for variable in config["Env"])
        command = ["chroot", f"--userspec={config['User']}", str(root), *config["Entrypoint"]]
        self.used(command, env=variables)
        must((root / "var/lib/endmark/endmark.db").exists(), "its store is elsewhere")
        if shutil.which("skopeo"):
            run(["skopeo", "inspect", f"oci-archive:{self.one(f'*-{self.machine}-oci.tar')}"])

    def again(self) -> None:
        """Checks that the same programs and the same time yield the same bytes."""
        with tarfile.open(self.one(f"*-{self.machine}-linux.tar.gz")) as archive:
            member = next(member for member in archive if member.name.endswith("/endmark"))
            program = self.place / "program"
            program.write_bytes(archive.extractfile(member).read())
            program.chmod(0o755)
        out = self.place / "again"
        target = f"{self.machine}-unknown-linux-musl={program}"
        pack = [sys.executable, ROOT / "xtask/dist/pack.py", "--out", out, "--target", target]
        node = {"x86_64": "x64", "aarch64": "arm64"}[self.machine]
        with tarfile.open(self.one(f"endmark-linux-{node}-*.tgz")) as archive:
            if "package/endmark.node" in archive.getnames():
                addon = self.place / "endmark.node"
                addon.write_bytes(archive.extractfile("package/endmark.node").read())
                pack += ["--addon", f"{self.machine}-unknown-linux-musl={addon}"]
        run(pack, env={**os.environ, "SOURCE_DATE_EPOCH": str(int(member.mtime)), "PYTHONDONTWRITEBYTECODE": "1"})
        only = [path for path in out.iterdir() if path.name != "SHA256SUMS"]
        # The platform-independent npm package lists the supported platforms.
        compared = [path for path in only if path.name != f"endmark-{self.version}.tgz"]
        different = [path.name for path in compared if path.read_bytes() != (self.dist / path.name).read_bytes()]
        must(len(compared) >= 6 and not different, f"made again, {different} are different")


def mirror() -> list[str]:
    """Returns the package mirror of this machine."""
    found = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True).stdout.split()
    return [uri for uri in found if "security" not in uri][:1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dist", type=Path, default=ROOT / "target/dist")
    parser.add_argument("--only", action="append")
    arguments = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="endmark-packages-") as place:
        # The user of the image must be able to enter the folder.
        Path(place).chmod(0o755)
        packages = Packages(arguments.dist.resolve(), f"http://127.0.0.1:{server.server_port}/v1", Path(place))
        for path in sorted(packages.dist.iterdir()):
            print(f"{path.stat().st_size:>12,}  {path.name}")
        for name in ["sums", "again", "tarball", "wheel", "npm", "image", "debian"]:
            if arguments.only and name not in arguments.only:
                continue
            begun = time.monotonic()
            try:
                getattr(packages, name)()
                print(f"ok      {name} ({time.monotonic() - begun:.1f} s)", flush=True)
            except (AssertionError, OSError, tarfile.TarError) as problem:
                failed += 1
                print(f"FAILED  {name}: {problem}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
