"""Where random numbers come from: the one reading of ``rng``."""

from numbers import Integral

import numpy as np

from tessella.errors import OptionError


def generator(rng: object) -> np.random.Generator:
    """The generator that was given, or one of the seed that was given.

    Examples
    --------
    >>> generator(7).random() == np.random.default_rng(7).random()
    True
    """
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(entropy(rng)[0])


def entropy(rng: object) -> tuple[int, ...]:
    """What seeds come from: a number, or the next numbers of a generator.

    Examples
    --------
    >>> entropy(7)
    (7,)
    """
    if isinstance(rng, np.random.Generator):
        return tuple(int(part) for part in rng.integers(2**63, size=2))
    if not isinstance(rng, bool) and isinstance(rng, Integral) and int(rng) >= 0:
        return (int(rng),)
    msg = f"rng is {rng!r:.40}; it takes a whole number from 0 on, or a numpy.random.Generator"
    raise OptionError(msg)
