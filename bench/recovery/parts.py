"""Splits the cases: weights and rules may be fitted on one half, and the other half is only counted.

The hash of a case's id decides, in the same way for all sets. Look only at `fit` and at sums of `held` when you
change the stitcher.
"""

from __future__ import annotations

import hashlib

PARTS = ("fit", "held")


def part_of(identity: str) -> str:
    """Returns `fit` or `held`, each with the same probability."""
    return PARTS[hashlib.sha256(identity.encode()).digest()[0] & 1]
