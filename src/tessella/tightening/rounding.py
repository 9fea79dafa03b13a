"""How wrong floating-point sums can be, so that bounds can be moved outward by that much."""

from typing import Any

import numpy as np

from tessella.numerics import ROUNDOFF

_TINY = 2.0**-1070  # what one product that underflows may have lost, with room to spare
_SAFE = 2.0**-960  # products of at least this size do not underflow


def gamma(terms: int) -> float:
    """Largest relative error of a sum of so many products, with room to spare (Higham, 2002, section 3.1)."""
    return 1.01 * (terms + 4) * ROUNDOFF


def lost(terms: int, *factors: Any) -> float:
    """Largest absolute error of a sum of so many products of these factors by underflow; 0 if none can underflow.

    Parameters
    ----------
    terms
        How many products are summed.
    factors
        Arrays, dense or sparse, or numbers; one of each is multiplied.
    """
    smallest = 1.0
    for factor in factors:
        sizes = np.abs(np.asarray(factor.data if hasattr(factor, "indptr") else factor))
        sizes = sizes[sizes > 0.0]
        if not sizes.size:
            return 0.0  # every product is exactly 0
        smallest *= min(float(sizes.min()), 1.0)
    return 0.0 if smallest >= _SAFE else (terms + 4) * _TINY
