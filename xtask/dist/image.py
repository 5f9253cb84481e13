"""Builds an OCI image that contains only the program and the certificate authorities of the building machine."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from archive import Entry, compressed, tar, with_folders

AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
# The user `nonroot` of other minimal images. No such user exists in the image.
USER = 65532
STATE = "var/lib/endmark"


def described(kind: str, content: bytes) -> dict:
    return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


def layer(release, program: bytes) -> bytes:
    entries = [
        Entry("endmark", program, 0o755),
        Entry("etc/ssl/certs/ca-certificates.crt", AUTHORITIES.read_bytes()),
        *(Entry(f"licenses/{name}", text) for name, text in release.licences.items()),
        Entry(STATE, None, 0o700, USER),
        Entry("tmp", None, 0o1777),
    ]
    return tar(with_folders(entries), release.epoch)


def pack(release, machine, program: bytes) -> tuple[str, bytes]:
    whole = layer(release, program)
    packed = compressed(whole)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch))
    settings = {
        "User": f"{USER}:{USER}",
        "ExposedPorts": {"4141/tcp": {}},
        "Env": [
            "ENDMARK_LISTEN=0.0.0.0:4141",
            f"ENDMARK_STORE=sqlite:/{STATE}/endmark.db",
            "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
        ],
        "Entrypoint": ["/endmark"],
        "Cmd": ["serve"],
        "Volumes": {f"/{STATE}": {}},
        "WorkingDir": f"/{STATE}",
        # The OCI specification does not define this key, but Docker reads it. Kubernetes has probes of its own.
        "Healthcheck": {"Test": ["CMD", "/endmark", "doctor", "--serving"], "Interval": 30_000_000_000, "Timeout": 5_000_000_000},
        "Labels": {
            "org.opencontainers.image.title": "endmark",
            "org.opencontainers.image.version": release.version,
            "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        },
    }
    config = {
        "created": created,
        "architecture": machine.oci,
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(whole).hexdigest()}"]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    }
    config = json.dumps(config).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("application/vnd.oci.image.config.v1+json", config),
        "layers": [described("application/vnd.oci.image.layer.v1.tar+gzip", packed)],
    }
    manifest = json.dumps(manifest).encode()
    named = described("application/vnd.oci.image.manifest.v1+json", manifest)
    named["platform"] = {"architecture": machine.oci, "os": "linux"}
    named["annotations"] = {"org.opencontainers.image.ref.name": release.version, "io.containerd.image.name": f"endmark:{release.version}"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [named]}
    entries = [Entry("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'), Entry("index.json", json.dumps(index).encode())]
    for blob in [config, packed, manifest]:
        entries.append(Entry(f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}", blob))
    return f"endmark-{release.version}-{machine.name}-oci.tar", tar(with_folders(entries), release.epoch)
