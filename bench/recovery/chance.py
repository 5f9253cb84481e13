"""Reproducible chance: the same choices for the same seed on every version of Python.

Only `random.Random.random()` is used, whose sequence Python promises to keep; `choice`, `sample` and the others have
changed between versions.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Chance:
    """A source of choices, named by what it is for: `Chance(seed, "case", 17)`."""

    def __init__(self, *name: object):
        digest = hashlib.sha256("/".join(map(str, name)).encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big"))

    def unit(self) -> float:
        """A number from 0 up to, not including, 1."""
        return self._random.random()

    def maybe(self, probability: float) -> bool:
        """True with this probability."""
        return self.unit() < probability

    def below(self, limit: int) -> int:
        """A whole number from 0 up to, not including, `limit`."""
        return int(self.unit() * limit)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def magnitude(self, low: int, high: int) -> int:
        """A whole number between the two whose logarithm is evenly spread: small ones are the most."""
        return int(low * math.exp(self.unit() * math.log(high / low)))

    def pick(self, items: Sequence[Item]) -> Item:
        """One of them, all equally probable."""
        return items[self.below(len(items))]

    def weighted(self, weights: Mapping[Item, float]) -> Item:
        """One of the keys, as probable as its weight says."""
        left = self.unit() * sum(weights.values())
        for item, weight in weights.items():
            left -= weight
            if left < 0:
                return item
        return next(reversed(weights))
