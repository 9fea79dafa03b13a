"""Damaging files, for fuzz tests."""

import random
from collections.abc import Sequence


def damage(data: bytes, rng: random.Random, words: Sequence[bytes] = ()) -> bytes:
    """Flip, delete, double, insert, overwrite or cut bytes; several times over."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice([1, 1, 4, 30]))
        kind = rng.randrange(6)
        if kind == 0:
            data = data[:start] + bytes(byte ^ (1 << rng.randrange(8)) for byte in data[start:end]) + data[end:]
        elif kind == 1:
            data = data[:start] + data[end:]
        elif kind == 2:
            data = data[:end] + data[start:]
        elif kind == 3:
            data = data[:start] + rng.choice([rng.randbytes(end - start), *words]) + data[start:]
        elif kind == 4:
            word = rng.choice(words or [rng.randbytes(end - start)])
            data = data[:start] + word + data[start + len(word) :]
        elif rng.random() < 0.5:
            data = data[:start]
    return data
