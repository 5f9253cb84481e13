"""Describes what the program is built from as a CycloneDX document. Cargo reports it for the target and the features
of the program.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
import uuid
from pathlib import Path

PRODUCT = "endmark"
# The package from which the program is built.
PACKAGE = "endmark-cli"
# The libraries of packages for other languages, by their folder in `bindings/`.
LIBRARIES = {"python": "endmark-python", "node": "endmark-node"}


def closure(metadata: dict, product: str) -> list[dict]:
    """Returns the packages with which a product is linked or built, without the product itself."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    own = next(id for id, package in packages.items() if package["name"] == product and id in metadata["workspace_members"])
    seen, waiting = set(), [own]
    while waiting:
        id = waiting.pop()
        if id not in seen:
            seen.add(id)
            edges = nodes[id]["deps"]
            waiting += [edge["pkg"] for edge in edges if any(kind["kind"] != "dev" for kind in edge["dep_kinds"])]
    return sorted((packages[id] for id in seen - {own}), key=lambda package: (package["name"], package["version"]))


def component(package: dict, sums: dict[tuple[str, str], str]) -> dict:
    name, version = package["name"], package["version"]
    made = {"type": "library", "name": name, "version": version, "bom-ref": f"{name}@{version}"}
    if package["license"]:
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package["source"]:
        made["purl"] = f"pkg:cargo/{name}@{version}"
    if digest := sums.get((name, version)):
        made["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return made


def locked(root: Path) -> dict[tuple[str, str], str]:
    """Returns the checksums of packages from cargo's lock file."""
    sums, package = {}, {}
    for line in (root / "Cargo.lock").read_text().splitlines():
        if line == "[[package]]":
            package = {}
        elif " = " in line:
            key, value = line.split(" = ", 1)
            package[key] = value.strip('"')
            if key == "checksum":
                sums[package["name"], package["version"]] = package["checksum"]
    return sums


def packages(root: Path, machine) -> list[dict]:
    """Returns the packages of the program for this machine, as cargo describes them."""
    return described(root / "crates" / PACKAGE / "Cargo.toml", machine.triple, PACKAGE)


def library_packages(root: Path, machine) -> list[dict]:
    """Returns the packages of the libraries for other languages, which are linked to glibc."""
    triple = machine.triple.replace("-musl", "-gnu")
    return [
        package
        for folder, product in LIBRARIES.items()
        for package in described(root / "bindings" / folder / "Cargo.toml", triple, product)
    ]


def described(manifest: Path, triple: str, product: str) -> list[dict]:
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", triple]
    command += ["--manifest-path", str(manifest)]
    return closure(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout), product)


def made(root: Path, packages: list[dict], release, program: bytes) -> dict:
    sums = locked(root)
    digest = hashlib.sha256(program).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)),
            "component": {
                "type": "application",
                "name": PRODUCT,
                "version": release.version,
                "bom-ref": f"{PRODUCT}@{release.version}",
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
        },
        "components": [component(package, sums) for package in packages],
    }
