#!/usr/bin/env python3
"""Compares the latency that the gateway adds in each wire format with the latency that it adds in Chat Completions.
Each round measures every format.

    python3 bench/gateway/formats.py [--gate]             exit 1 if a format adds more than the bar allows

Needs cargo and wrk. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from run import BENCH, DIRECT, PROJECT, Sample, load, start
from servers import Server, built, endmark, free_port, have, measuring

FORMATS = {"chat": "Chat Completions", "responses": "Responses", "messages": "Messages", "gemini": "Gemini"}
KINDS = {"whole": "whole replies", "stream": "streams of 50 chunks"}
# Maximum ratio to the latency that is added in Chat Completions.
BAR = 1.3


def upstreams(port: int) -> str:
    """Returns the settings for the other providers, which the same server plays. The first upstream is OpenAI."""
    return "\n".join(
        f'[upstreams.{name}]\nformat = "{name}"\nbase_url = "http://127.0.0.1:{port}/{version}"\n'
        for name, version in (("anthropic", "v1"), ("gemini", "v1beta"))
    )


def measured(options: argparse.Namespace, folder: Path, running: list[Server]) -> dict[tuple[str, str, str], list[Sample]]:
    """Returns the samples of each server, kind and format, with one sample for each round."""
    scripted = Server(DIRECT, [], free_port(), folder / "scripted")
    scripted.command = [str(built("scripted_server", BENCH, "gateway")), str(scripted.port)]
    start(scripted, running)
    program = options.program or built("endmark", PROJECT, "endmark-cli")
    start(endmark("Endmark", program, folder / "endmark", scripted.port, upstreams(scripted.port)), running)
    rows = [(server, kind, name) for kind in KINDS for name in FORMATS for server in running]
    samples: dict[tuple[str, str, str], list[Sample]] = defaultdict(list)
    for server in running:
        load(server, "whole:chat", 1, 1)
    for number in range(options.rounds):
        # Reverse the order in every other round, so that other load affects all of them equally.
        for server, kind, name in rows if number % 2 == 0 else reversed(rows):
            sample = load(server, f"{kind}:{name}", options.connections, options.seconds)
            samples[server.name, kind, name].append(sample)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    return samples


def shown(samples: dict[tuple[str, str, str], list[Sample]], options: argparse.Namespace) -> bool:
    """Prints the table. Returns whether every format is within the bar."""
    print(f"{options.rounds} rounds of {options.seconds} s each, c = {options.connections}; {os.cpu_count()} processors, ", end="")
    print(f"shared by wrk, the\nscripted server and the gateway; load average {os.getloadavg()[0]:.1f} at the end.\n")
    print("| | p50 ms, no gateway | added p50 ms | × Chat's | its CPU µs a request | × Chat's | |\n|---|--:|--:|--:|--:|--:|---|")
    held = True
    for kind, title in KINDS.items():
        base: tuple[float, float] | None = None
        for name, format in FORMATS.items():
            direct, through = samples[DIRECT, kind, name], samples["Endmark", kind, name]
            pairs = zip(through, direct, strict=True)
            added = statistics.median(with_it.p50 - without.p50 for with_it, without in pairs)
            cpu = statistics.median(sample.cpu for sample in through)
            base = base or (added, cpu)
            times, work = added / base[0], cpu / base[1]
            holds = times <= BAR
            held &= holds
            p50 = statistics.median(sample.p50 for sample in direct)
            print(
                f"| {title}, {format} | {p50:.3f} | {added:.3f} | {times:.2f} | {cpu:.0f} | {work:.2f} "
                f"| {'' if name == 'chat' else 'holds' if holds else 'MISSED'} |"
            )
    print(f"\nAsked: none more than {BAR} × Chat Completions'.")
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=1, help="of each measurement")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--program", type=Path, help="this Endmark, instead of the release build")
    parser.add_argument("--gate", action="store_true", help="exit 1 where a format is above the bar")
    options = parser.parse_args()
    if not have("wrk"):
        parser.error("wrk is missing: apt-get install wrk")
    with measuring() as (folder, running):
        held = shown(measured(options, folder, running), options)
    return 0 if held or not options.gate else 1


if __name__ == "__main__":
    sys.exit(main())
