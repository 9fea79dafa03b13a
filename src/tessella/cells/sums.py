"""Sums of rows times numbers, four rows at a time so that sums are written back a quarter as often; compiled into their callers."""

from typing import Any

from tessella.kernel.functions import inlined


@inlined
def sum_rows(rows: Any, factors: Any, sums: Any, start: Any, kind: Any) -> None:
    """Put ``start`` and the sum of all rows times their factors into ``sums``, in numbers of this kind."""
    p, n = rows.shape
    c, first = 0, kind(start)
    if p >= 4:
        r0, r1, r2, r3 = kind(factors[0]), kind(factors[1]), kind(factors[2]), kind(factors[3])
        for j in range(n):
            sums[j] = first + r0 * rows[0, j] + r1 * rows[1, j] + r2 * rows[2, j] + r3 * rows[3, j]
        c = 4
    else:
        for j in range(n):
            sums[j] = first
    while c + 4 <= p:
        r0, r1, r2, r3 = kind(factors[c]), kind(factors[c + 1]), kind(factors[c + 2]), kind(factors[c + 3])
        for j in range(n):
            sums[j] += r0 * rows[c, j] + r1 * rows[c + 1, j] + r2 * rows[c + 2, j] + r3 * rows[c + 3, j]
        c += 4
    while c < p:
        r0 = kind(factors[c])
        for j in range(n):
            sums[j] += r0 * rows[c, j]
        c += 1
