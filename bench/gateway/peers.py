"""Other gateways, installed and started as their own documentation describes. Reports each one that cannot be
installed.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from servers import Server, free_port

HERE = Path(__file__).resolve().parent

LITELLM = """\
model_list:
  - model_name: gpt-4o-mini
    litellm_params:
      model: openai/gpt-4o-mini
      api_base: http://127.0.0.1:{upstream}/v1
      api_key: sk-upstream
"""

CRABLLM = """\
listen = "127.0.0.1:{port}"
[providers.openai]
api_key = "sk-upstream"
base_url = "http://127.0.0.1:{upstream}/v1"
models = ["gpt-4o-mini"]
"""

# Portkey listens on all interfaces, and has no option to change that.
LOOPBACK = """\
const net = require("net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  if (typeof port === "object") return listen.call(this, { ...port, host: "127.0.0.1" }, ...rest);
  return listen.call(this, port, "127.0.0.1", ...rest.filter((argument) => typeof argument === "function"));
};
"""

PORTKEY = '{"private":true,"dependencies":{"@portkey-ai/gateway":"1.15.2"},"overrides":{"@hono/node-server":"1.3.3"}}'


def pip(folder: Path, *packages: str) -> None:
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", *packages], check=True)


def install_litellm(folder: Path) -> None:
    pip(folder, "litellm[proxy]==1.106.2")


def install_headroom(folder: Path) -> None:
    pip(folder, "headroom-ai[proxy]==0.42.0")


def install_portkey(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(PORTKEY)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], cwd=folder, check=True)


def install_crabllm(folder: Path) -> None:
    subprocess.run(["cargo", "install", "--quiet", "--locked", "--root", str(folder), "crabllm@0.0.25"], check=True)


def litellm(name: str, installed: Path, folder: Path, upstream: int) -> Server:
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(LITELLM.format(upstream=upstream))
    command = [str(installed / "bin" / "litellm"), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    # LiteLLM does not start without a key, or with a weak one.
    key = "sk-" + secrets.token_hex(32)
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": key}
    return Server(name, command, port, folder, environment, {"Authorization": f"Bearer {key}"}, 180)


def headroom(name: str, installed: Path, folder: Path, upstream: int) -> Server:
    port = free_port()
    command = [str(installed / "bin" / "headroom"), "proxy", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--openai-api-url", f"http://127.0.0.1:{upstream}", "--no-telemetry", "--no-rate-limit"]
    return Server(name, command, port, folder, {"HEADROOM_TELEMETRY": "off"}, seconds_to_start=180)


def portkey(name: str, installed: Path, folder: Path, upstream: int) -> Server:
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "loopback.cjs").write_text(LOOPBACK)
    start = installed / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    command = ["node", "-r", str(folder / "loopback.cjs"), str(start), f"--port={port}", "--headless"]
    headers = {"x-portkey-provider": "openai", "x-portkey-custom-host": f"http://127.0.0.1:{upstream}/v1"}
    return Server(name, command, port, folder, {"TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost"}, headers, 60)


def crabllm(name: str, installed: Path, folder: Path, upstream: int) -> Server:
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "crabllm.toml").write_text(CRABLLM.format(port=port, upstream=upstream))
    return Server(name, [str(installed / "bin" / "crabllm"), "serve", "--config", "crabllm.toml"], port, folder)


@dataclass
class Peer:
    name: str
    install: Callable[[Path], None]
    server: Callable[[str, Path, Path, int], Server]


PEERS = [
    Peer("LiteLLM 1.106.2", install_litellm, litellm),
    Peer("Portkey 1.15.2", install_portkey, portkey),
    Peer("headroom 0.42.0", install_headroom, headroom),
    Peer("crabllm 0.0.25", install_crabllm, crabllm),
]


def folder_of(peer: Peer, root: Path) -> Path:
    return root / peer.name.split()[0].lower()
