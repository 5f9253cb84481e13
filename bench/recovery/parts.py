"""Which half of the cases weights and rules may be fitted on, and which is only counted.

By the hash of a case's id, once for all sets: whoever changes the stitcher looks at `fit`, and at sums of `held` alone.
"""

from __future__ import annotations

import hashlib

PARTS = ("fit", "held")


def part_of(identity: str) -> str:
    """`fit` or `held`, each as probable."""
    return PARTS[hashlib.sha256(identity.encode()).digest()[0] & 1]
