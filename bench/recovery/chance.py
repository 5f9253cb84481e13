"""Reproducible chance: a seed gives the same choices with every version of Python.

Only `random.Random.random()` is used, because Python guarantees its sequence. `choice`, `sample` and other functions
have changed between versions.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Chance:
    """A source of pseudo-random choices. Its arguments name its purpose: `Chance(seed, "case", 17)`."""

    def __init__(self, *name: object):
        digest = hashlib.sha256("/".join(map(str, name)).encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big"))

    def unit(self) -> float:
        """Returns a number from 0 up to but not including 1."""
        return self._random.random()

    def maybe(self, probability: float) -> bool:
        """Returns True with this probability."""
        return self.unit() < probability

    def below(self, limit: int) -> int:
        """Returns an integer from 0 up to but not including `limit`."""
        return int(self.unit() * limit)

    def between(self, low: int, high: int) -> int:
        """Returns an integer from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def magnitude(self, low: int, high: int) -> int:
        """Returns an integer between both limits. Its logarithm is evenly distributed, so small numbers are the most
        frequent.
        """
        return int(low * math.exp(self.unit() * math.log(high / low)))

    def pick(self, items: Sequence[Item]) -> Item:
        """Returns one of the items, all with the same probability."""
        return items[self.below(len(items))]

    def weighted(self, weights: Mapping[Item, float]) -> Item:
        """Returns one of the keys, with a probability in proportion to its weight."""
        left = self.unit() * sum(weights.values())
        for item, weight in weights.items():
            left -= weight
            if left < 0:
                return item
        return next(reversed(weights))
