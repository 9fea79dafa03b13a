"""How wrong floating-point sums can be, so that bounds can be moved outward by that much."""

UNIT = 2.0**-53


def gamma(terms: int) -> float:
    """Largest relative error of a sum of so many products, with room to spare (Higham, 2002, section 3.1)."""
    return 1.01 * (terms + 4) * UNIT
