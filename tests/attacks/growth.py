#!/usr/bin/env python3
"""Checks that CPU time and memory grow at most linearly with the input.

    python3 tests/attacks/growth.py                     every case, in a small size
    python3 tests/attacks/growth.py --full              with larger inputs, and every combination of replies
    python3 tests/attacks/growth.py --only 'guard'      cases whose name contains this

Each case is measured at a size n and at 8 n: every command that reads bytes of others, and every way of a reply through
the gateway. It fails where CPU time or peak memory grows by more than 20 times: linear work was measured to grow by 8 to
13 times on shared machines, quadratic work grows by 64. A case that costs little at 8 n is not measured at n. The command
is target/debug/endmark, or the one that ENDMARK names.
"""

import argparse
import concurrent.futures
import os
import sys
import tempfile
import threading
import time

os.environ.setdefault("ENDMARK", "target/debug/endmark")

from growing import commands, gateway  # noqa: E402
from growing.measured import Cost  # noqa: E402

FACTOR, MOST_GROWTH, ATTEMPTS = 8, 20, 3
# Below these values at 8 n, growth does not matter. The peak of a child cannot be measured below that of this process.
FLOOR = Cost(0.05, 64)
# Known failures with their reasons. They are reported but do not count.
KNOWN = {}


class Result:
    def __init__(self, name, small, large, growth, trouble):
        self.name, self.small, self.large, self.growth, self.trouble = name, small, large, growth, trouble

    def row(self):
        small = f"{self.small.seconds:7.3f} s {self.small.mebibytes:6.1f} MiB" if self.small else f"{'-':>20}"
        growth = f"{self.growth[0]:5.1f} {self.growth[1]:5.1f}" if self.growth else f"{'-':>11}"
        return f"{self.name:<64} {small}  {self.large.seconds:7.3f} s {self.large.mebibytes:6.1f} MiB  {growth}  {self.trouble or ''}"


def times(large, small, floor):
    """Returns the ratio of the costs. The smaller one counts as at least its share of the floor."""
    return large / max(small, floor / FACTOR) if large >= floor else 0.0


def judged(case, size):
    """Measures a case up to ATTEMPTS times, until the minimum costs of both sizes are linear."""
    base, large = case.cost(size * FACTOR)
    if large.failed:
        return Result(case.name, None, large, None, large.failed)
    # The cost of starting the program also varies.
    floor = max(FLOOR.seconds, base.seconds)
    if large.seconds < floor and large.mebibytes < FLOOR.mebibytes:
        return Result(case.name, None, large, None, None)
    small = case.cost(size)[1]
    for attempt in range(ATTEMPTS):
        if attempt:
            # Other processes can only increase a cost, so the minimum is the most accurate value.
            large, small = least(large, case.cost(size * FACTOR)[1]), least(small, case.cost(size)[1])
        growth = (
            times(large.seconds, small.seconds, floor),
            times(large.mebibytes, small.mebibytes, FLOOR.mebibytes),
        )
        trouble = large.failed or small.failed or (f"grows by {max(growth):.0f} times" if max(growth) > MOST_GROWTH else None)
        if trouble is None:
            break
    return Result(case.name, small, large, growth, trouble)


def least(first, second):
    """Returns the smaller time and the smaller peak of two measurements."""
    return Cost(min(first.seconds, second.seconds), min(first.mebibytes, second.mebibytes), first.failed or second.failed)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--full", action="store_true")
    options.add_argument("--only", default="", help="cases whose name contains this")
    options.add_argument("--size", type=int, default=0, help="bytes of the smaller input")
    options.add_argument("--all-rows", action="store_true", help="also those below the floor")
    options = options.parse_args()
    size = options.size or (256 * 1024 if options.full else 32 * 1024)
    began, results = time.monotonic(), []
    lock = threading.Lock()

    def run(case):
        result = judged(case, size if case.is_command else size // 2)
        with lock:
            results.append(result)
            if result.trouble or result.growth or options.all_rows:
                print(result.row(), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        cases = [case for case in commands.cases(folder) if options.only in case.name]
        # Each child is measured separately, so several may run at once.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(run, cases))
        replies = [case for case in gateway.cases(options.full) if options.only in case.name]
        if replies:
            with gateway.running(folder):
                for case in replies:
                    run(case)
    failed = [result for result in results if result.trouble and result.name not in KNOWN]
    print(f"{len(results)} cases in {time.monotonic() - began:.0f} s, {sum(bool(r.growth) for r in results)} above the floor")
    for name in sorted(result.name for result in results if result.trouble and result.name in KNOWN):
        print(f"known: {name}: {KNOWN[name]}")
    if failed:
        print("These grow faster than what they are given, or failed:", file=sys.stderr)
        for result in failed:
            print(f"  {result.name}: {result.trouble}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
