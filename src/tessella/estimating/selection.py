"""Chance: numbers from a seed, and who stays where there are too many; logarithms of sums."""

import numpy as np

from tessella.kernel.functions import compiled, inlined
from tessella.kernel.record import Bytes, Keys, Vector

_MIXED = 0.02  # part of the choice that does not listen to predictions


@compiled
def uniform(seed: Keys) -> float:
    """The next number between 0 and 1 (splitmix64); the seed moves on."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    z = seed[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def plus(one: float, two: float) -> float:
    """The logarithm of a sum, from logarithms."""
    top, low = max(one, two), min(one, two)
    return top if low == -np.inf else top + np.log1p(np.exp(low - top))


@inlined
def _share_out(size: int, most: int, chances: Vector, certain: Bytes) -> tuple[float, int]:
    """Mark the candidates that are drawn with certainty; what to multiply the chances of the others by, and how many are certain."""
    count, factor = 0, 0.0
    while True:
        rest, more = 0.0, 0
        for i in range(size):
            rest += chances[i] if certain[i] == 0 else 0.0
        factor = (most - count) / rest
        for i in range(size):
            if certain[i] == 0 and factor * chances[i] >= 1.0:
                certain[i] = 1
                more += 1
        count += more
        if more == 0 or count >= most:
            return factor, count


@inlined
def select(size: int, most: int, scores: Vector, chances: Vector, certain: Bytes, seed: Keys) -> None:
    """Draw ``most`` of so many candidates by systematic sampling, with probabilities in proportion to the exponentials of their scores.

    Their probabilities are put into ``chances``, and 0 for those that are not drawn; ``certain`` marks those that had to be.
    """
    top, total = scores[0], 0.0
    for i in range(size):
        top = max(top, scores[i])
    for i in range(size):
        chances[i] = np.exp(scores[i] - top)
        total += chances[i]
    for i in range(size):
        chances[i] = (1.0 - _MIXED) * chances[i] / total + _MIXED / size
        certain[i] = 0
    factor, count = _share_out(size, most, chances, certain)
    spot, reached = uniform(seed), 0.0
    for i in range(size):
        chance = 1.0 if certain[i] else factor * chances[i] if count < most else 0.0
        reached += chance
        chances[i] = 0.0
        if reached > spot:
            chances[i] = chance
            spot += 1.0
