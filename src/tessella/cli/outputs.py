"""The ranges of a network's outputs, as a person sees them."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from tessella.cli.drawing import console, table
from tessella.methods import Method
from tessella.result import Side
from tessella.stability import Stability

_DIGITS = 7
_MOST = 30  # outputs that are listed


def format_end(value: float, side: Side) -> str:
    """An end of a range in a few digits, rounded outward: a lower end down, an upper one up.

    Examples
    --------
    >>> format_end(0.12345678, Side.LOWER), format_end(0.12345678, Side.UPPER), format_end(-2.0, Side.UPPER)
    ('0.1234567', '0.1234568', '-2')
    """
    if math.isinf(value):
        return "-infinite" if value < 0 else "infinite"
    rounding = ROUND_FLOOR if side is Side.LOWER else ROUND_CEILING
    rounded = Context(prec=_DIGITS, rounding=rounding).create_decimal_from_float(value)
    return f"{float(rounded):.{_DIGITS}g}"


def print_outputs(found: Stability) -> None:
    """One line per output: the smallest and the largest value that is possible, and how sure that is."""
    lower, upper = found.outputs
    drawn = table("\nOutputs", [("output", True), ("at least", True), ("at most", True)])
    for number, (low, high) in enumerate(zip(lower.tolist()[:_MOST], upper.tolist()[:_MOST], strict=True)):
        drawn.add_row(str(number), format_end(low, Side.LOWER), format_end(high, Side.UPPER))
    out = console()
    out.print(drawn)
    if len(lower) > _MOST:
        out.print(f"... and {len(lower) - _MOST:,} more (--json has all)")
    exact = found.bounds.method is Method.MILP and not found.bounds.unproved
    out.print(
        "\nThese ranges are exact, but for rounding outward." if exact else "\nThese ranges hold; they need not be the smallest."
    )
