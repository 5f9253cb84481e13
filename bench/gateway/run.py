#!/usr/bin/env python3
"""Measures the latency that a gateway adds to a request. Every round measures each gateway once, so that other load
affects all of them equally.

    python3 bench/gateway/run.py                          Endmark, no gateway, and a minimal proxy
    python3 bench/gateway/run.py --install --peers        also LiteLLM, Portkey, headroom and crabllm
    python3 bench/gateway/run.py --before PROGRAM         also an earlier Endmark, with and without a session budget
    python3 bench/gateway/run.py --page                   also Endmark while its pages are open
    python3 bench/gateway/run.py --gate                   exit 1 if a bar in the last lines of the table is missed

Needs cargo and wrk. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import peers as others
from open_pages import OpenPages
from servers import Server, built, endmark, free_port, have, measuring

HERE = Path(__file__).resolve().parent
BENCH = HERE.parent / "Cargo.toml"
PROJECT = HERE.parent.parent / "Cargo.toml"

DIRECT, BARE = "no gateway", "bare hyper proxy"

# The first program again, while its pages are open in a browser.
WATCHED = "Endmark, pages open"

# The settings of each measured Endmark. The first one has the settings of a plain `endmark serve`.
ENDMARKS = {"Endmark": ""}
GATED = "Endmark"
EARLIER = "earlier Endmark"
# A budget that no run exhausts. Every request is held and settled, and no request is refused.
BUDGETED = ("Endmark, session budget", "[budget]\nsession_tokens = 1000000000000\n")

BAR_ADDED = 1.5
BAR_STREAM_MS = 0.5
BAR_REQUESTS = 10_000
BAR_IDLE_MB = 20


@dataclass
class Sample:
    p50: float
    p99: float
    rate: float
    cpu: float


def load(server: Server, kind: str, connections: int, seconds: int) -> Sample:
    before = server.cpu_seconds()
    headers = [f"{name}={value}" for name, value in server.headers.items()]
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(HERE / "load.lua")]
    command += [f"http://127.0.0.1:{server.port}", "--", kind, *headers]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result = json.loads(printed.strip().splitlines()[-1])
    if not result["requests"] and not result["errors"] and seconds < 60:
        # No request finished, so each needs longer than the whole measurement.
        return load(server, kind, connections, seconds * 5)
    if result["errors"] or not result["requests"]:
        raise RuntimeError(f"{server.name}, {kind}, c = {connections}: {result['errors']} errors in {result['requests']}")
    requests = result["requests"]
    cpu = (server.cpu_seconds() - before) / requests * 1e6
    return Sample(result["p50_us"] / 1e3, result["p99_us"] / 1e3, requests / result["seconds"], cpu)


def median(samples: list[Sample], what: str) -> float:
    return statistics.median(getattr(sample, what) for sample in samples)


def added(samples: dict, name: str, key: tuple[str, int]) -> float:
    """Returns the added p50 in ms: the median over the rounds of the difference to the sample without a gateway in
    the same round.
    """
    pairs = zip(samples[name, *key], samples[DIRECT, *key], strict=True)
    return statistics.median(with_it.p50 - without.p50 for with_it, without in pairs)


def table(names: list[str], samples: dict, kind: str, connections: list[int]) -> str:
    lines = [f"| {'streams of 50 chunks' if kind == 'stream' else 'whole replies'} | c | p50 ms | added p50 ms | p99 ms | requests/s | its CPU µs a request |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|"]
    for count in connections:
        for name in names:
            of = samples[name, kind, count]
            extra = "" if name == DIRECT else f"{added(samples, name, (kind, count)):.3f}"
            cpu = "" if name == DIRECT else f"{median(of, 'cpu'):.0f}"
            lines.append(
                f"| {name} | {count} | {median(of, 'p50'):.3f} | {extra} | {median(of, 'p99'):.2f} "
                f"| {median(of, 'rate'):,.0f} | {cpu} |"
            )
    return "\n".join(lines)


def against_earlier(samples: dict, connections: list[int]) -> str:
    """Returns the added latency relative to that of the earlier Endmark in the same round."""
    lines = ["| added p50, earlier Endmark = 1 | c | Endmark | with a session budget |", "|---|--:|--:|--:|"]
    for kind in ("whole", "stream"):
        for count in connections:
            key = (kind, count)
            ratios = [added(samples, name, key) / added(samples, EARLIER, key) for name in (GATED, BUDGETED[0])]
            lines.append(f"| {kind} | {count} | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |")
    return "\n".join(lines)


def memory_table(idle: dict[str, int], busy: dict[str, int]) -> str:
    lines = ["| memory | idle MB | after the load MB |", "|---|--:|--:|"]
    lines += [f"| {name} | {idle[name] / 1e6:.1f} | {busy[name] / 1e6:.1f} |" for name in idle]
    return "\n".join(lines)


def bars(samples: dict, idle: dict[str, int]) -> list[tuple[str, str, bool]]:
    """Returns what Endmark is required to achieve: the claim, the measured value, and whether it is met."""
    ours, bare = (added(samples, name, ("whole", 1)) for name in (GATED, BARE))
    stream = added(samples, GATED, ("stream", 1))
    rate = median(samples[GATED, "whole", 8], "rate")
    megabytes = idle[GATED] / 1e6
    return [
        (f"added p50 at c = 1 at most {BAR_ADDED} × the bare proxy's", f"{ours / bare:.2f} ×", ours <= BAR_ADDED * bare),
        (f"a stream of 50 chunks at most {BAR_STREAM_MS} ms", f"{stream:.3f} ms", stream <= BAR_STREAM_MS),
        (f"at least {BAR_REQUESTS:,} requests/s at c = 8", f"{rate:,.0f}", rate >= BAR_REQUESTS),
        (f"idle under {BAR_IDLE_MB} MB", f"{megabytes:.1f} MB", megabytes < BAR_IDLE_MB),
    ]


def start(server: Server, running: list[Server]) -> None:
    running.append(server)
    server.start()


def with_peers(options: argparse.Namespace, folder: Path, upstream: int, running: list[Server]) -> list[str]:
    """Starts the other gateways. Returns those that could not be started, each with the reason."""
    missing = []
    for peer in others.PEERS:
        installed = others.folder_of(peer, options.peers_folder)
        try:
            if options.install:
                peer.install(installed)
            start(peer.server(peer.name, installed, folder / installed.name, upstream), running)
        except Exception as problem:  # noqa: BLE001
            running[:] = [server for server in running if server.name != peer.name]
            missing.append(f"{peer.name}: {problem}")
            print(f"\n!!! {peer.name} IS NOT MEASURED: {problem}\n", file=sys.stderr)
    return missing


def measure(options: argparse.Namespace, folder: Path, running: list[Server]) -> bool:
    scripted = Server(DIRECT, [], free_port(), folder / "scripted")
    scripted.command = [str(built("scripted_server", BENCH, "gateway")), str(scripted.port)]
    bare = Server(BARE, [], free_port(), folder / "bare")
    bare.command = [str(built("bare_proxy", BENCH, "gateway")), str(bare.port), str(scripted.port)]
    program = options.program or built("endmark", PROJECT, "endmark-cli")
    start(scripted, running)
    start(bare, running)
    for number, (name, settings) in enumerate(ENDMARKS.items()):
        start(endmark(name, program, folder / f"endmark-{number}", scripted.port, settings), running)
    if options.before:
        start(endmark(EARLIER, options.before, folder / "earlier", scripted.port, ""), running)
        start(endmark(BUDGETED[0], program, folder / "budgeted", scripted.port, BUDGETED[1]), running)
    pages = None
    if options.page:
        watched = endmark(WATCHED, program, folder / "endmark-watched", scripted.port, ENDMARKS[GATED])
        start(watched, running)
        pages = OpenPages(watched.port)
    missing = with_peers(options, folder, scripted.port, running) if options.peers else []
    idle = {server.name: server.resident_bytes() for server in running if server is not scripted}

    samples: dict[tuple[str, str, int], list[Sample]] = defaultdict(list)
    for server in running:
        load(server, "whole", 1, 1)
    for round_number in range(options.rounds):
        for kind in ("whole", "stream"):
            for count in options.connections:
                # Reverse the order in every other round.
                for server in running if round_number % 2 == 0 else reversed(running):
                    # Request the pages only while their own gateway is measured.
                    with pages.open() if pages and server.name == WATCHED else nullcontext():
                        samples[server.name, kind, count].append(load(server, kind, count, options.seconds))
        print(f"round {round_number + 1} of {options.rounds}", file=sys.stderr)

    names = [server.name for server in running]
    busy = {server.name: server.resident_bytes() for server in running if server is not scripted}
    print(f"{options.rounds} rounds of {options.seconds} s each; {os.cpu_count()} processors, shared by wrk, the")
    print(f"scripted server and the gateway; load average {os.getloadavg()[0]:.1f} at the end.\n")
    for kind in ("whole", "stream"):
        print(table(names, samples, kind, options.connections), end="\n\n")
    if options.before:
        print(against_earlier(samples, options.connections), end="\n\n")
    print(memory_table(idle, busy), end="\n\n")
    if pages:
        print(f"The pages were asked for {pages.answered} times, in {pages.median_ms():.0f} ms each (median).\n")
    for line in missing:
        print(f"NOT MEASURED: {line}\n")
    held = True
    print("| asked of Endmark | measured | |\n|---|--:|---|")
    for claim, figure, holds in bars(samples, idle):
        print(f"| {claim} | {figure} | {'holds' if holds else 'MISSED'} |")
        held &= holds
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each measurement")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--program", type=Path, help="this Endmark, instead of the release build")
    parser.add_argument("--before", type=Path, help="an earlier Endmark, to be measured in the same rounds")
    parser.add_argument("--page", action="store_true", help="measure Endmark also while its pages are open")
    parser.add_argument("--peers", action="store_true", help="measure other gateways, too")
    parser.add_argument("--install", action="store_true", help="install them first: 1.6 GB, ten minutes")
    parser.add_argument("--peers-folder", type=Path, default=HERE / "peers", help="where they are installed")
    parser.add_argument("--gate", action="store_true", help="exit 1 where a bar is missed")
    options = parser.parse_args()
    if not have("wrk"):
        parser.error("wrk is missing: apt-get install wrk")
    with measuring() as (folder, running):
        held = measure(options, folder, running)
    return 0 if held or not options.gate else 1


if __name__ == "__main__":
    sys.exit(main())
