#!/usr/bin/env python3
"""Checks that the manifests in docs/manifests are valid, and that the gateway accepts their configuration and paths.

    python3 tests/manifests/test_manifests.py --command target/release/endmark

Nothing is deployed. `docker-compose` (Debian's package) resolves the compose file, kubernetes-validate checks the
Kubernetes manifests against the schemas of two versions, and the command checks both configurations.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "real_model"))

from installed import installed  # noqa: E402
from model_server import DIRECT, free_port, new_environment, run, stop_process, wait_until_ready  # noqa: E402

FOLDER = ROOT / ".manifests"
PYTHON = FOLDER / "venv" / "bin" / "python"
MANIFESTS = ROOT / "docs" / "manifests"
VERSIONS = ["1.29", "1.34"]
SECRETS = {"POSTGRES_PASSWORD": "secret", "OPENAI_API_KEY": "key"}


def install() -> None:
    """Installs the packages in one folder, unless they are installed already. The folder can be deleted at any time."""
    requirements = HERE / "requirements.txt"
    fill = lambda place: run([*new_environment(place / "venv"), "-r", str(requirements)])  # noqa: E731
    installed(FOLDER, requirements.read_bytes(), fill)


if __name__ == "__main__" and Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
    try:
        install()
    except Exception as problem:  # noqa: BLE001
        sys.exit(str(problem))
    os.execv(PYTHON, [str(PYTHON), *sys.argv])

import kubernetes_validate  # noqa: E402
import yaml  # noqa: E402


def seconds(span: str) -> int:
    """Parses a duration in the format of Compose: `10m20s`."""
    return sum(int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in re.findall(r"(\d+)([hms])", span))


def check_configuration(command: Path, text: str, store: str) -> dict:
    """Checks a configuration with the command, and returns the effective values."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "endmark.toml"
        path.write_text(text)
        environment = {"HOME": folder, "ENDMARK_STORE": store, **SECRETS}
        arguments = [command, "--config", path, "config", "check"]
        checked = subprocess.run(arguments, env=environment, capture_output=True, text=True)  # noqa: S603
        assert checked.returncode == 0, checked.stdout + checked.stderr
    return tomllib.loads(text)


def check_compose(command: Path) -> None:
    environment = {**os.environ, **SECRETS}
    arguments = ["docker-compose", "--file", MANIFESTS / "compose.yaml", "config"]
    resolved = subprocess.run(arguments, env=environment, capture_output=True, text=True)  # noqa: S603
    assert resolved.returncode == 0, resolved.stderr
    services = yaml.safe_load(resolved.stdout)["services"]
    gateways = [service for name, service in services.items() if name.startswith("gateway-")]
    assert len(gateways) == 2
    configuration = (MANIFESTS / "gateway.toml").read_text()
    settings = check_configuration(command, configuration, gateways[0]["environment"]["ENDMARK_STORE"])
    volumes = [str(volume) for gateway in gateways for volume in gateway["volumes"] if "/var/lib/endmark" in str(volume)]
    assert len(set(volumes)) == 2, "each gateway has a journal of its own"
    assert settings["journal"].startswith("/var/lib/endmark/")
    for gateway in gateways:
        assert seconds(gateway["stop_grace_period"]) > settings["limits"]["drain_seconds"] >= 600
        assert gateway["read_only"] and gateway["user"] == "65532:65532"
    balanced = (MANIFESTS / "nginx.conf").read_text()
    assert all(f"server {name}:4141" in balanced for name in services if name.startswith("gateway-"))


def check_kubernetes(command: Path) -> list[str]:
    """Returns the paths of the probes."""
    documents = list(yaml.safe_load_all((MANIFESTS / "kubernetes.yaml").read_text()))
    for version in VERSIONS:
        for document in documents:
            kubernetes_validate.validate(document, version, strict=True)
    of = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    store = of["Secret", "endmark"]["stringData"]["ENDMARK_STORE"]
    settings = check_configuration(command, of["ConfigMap", "endmark"]["data"]["endmark.toml"], store)
    workload = of["StatefulSet", "endmark"]["spec"]
    pod = workload["template"]["spec"]
    container = pod["containers"][0]
    assert pod["terminationGracePeriodSeconds"] > settings["limits"]["drain_seconds"] >= 600
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    claim = workload["volumeClaimTemplates"][0]["metadata"]["name"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert settings["journal"].startswith(mounted[claim] + "/")
    labels = workload["template"]["metadata"]["labels"]
    assert workload["selector"]["matchLabels"] == labels
    for kind, name in of:
        if kind == "Service":
            assert of[kind, name]["spec"]["selector"] == labels
    assert of["PodDisruptionBudget", "endmark"]["spec"]["selector"]["matchLabels"] == labels
    assert ("Service", workload["serviceName"]) in of
    return [container[probe]["httpGet"]["path"] for probe in ("readinessProbe", "livenessProbe")]


def check_probes(command: Path, paths: list[str]) -> None:
    """Checks that a gateway answers the paths of the probes."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        arguments = [command, "serve", "--listen", f"127.0.0.1:{port}", "--upstream", "http://127.0.0.1:9/v1"]
        environment = {"HOME": folder}
        log = Path(folder) / "log"
        with log.open("wb") as written:
            process = subprocess.Popen(arguments, env=environment, cwd=folder, stderr=written)  # noqa: S603
        try:
            wait_until_ready(f"http://127.0.0.1:{port}/endmark/healthz", process, log)
            for path in paths:
                with DIRECT.open(f"http://127.0.0.1:{port}{path}") as answer:
                    assert answer.status == 200, path
        finally:
            stop_process(process)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", type=Path, default=ROOT / "target" / "release" / "endmark")
    command = parser.parse_args().command.resolve()
    check_compose(command)
    check_probes(command, check_kubernetes(command))
    print(f"The manifests are valid for Compose and Kubernetes {' and '.join(VERSIONS)}. Nothing was deployed.")


if __name__ == "__main__":
    main()
