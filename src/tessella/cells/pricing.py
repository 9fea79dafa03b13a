"""Inputs priced in single precision, and the long-step ratio test over them; compiled with Numba.

Prices choose the path of a simplex method and prove nothing.  Loops over inputs are plain, so that they are vectorised: what is mixed is not.
"""

import numpy as np

from tessella.cells.state import Pricing
from tessella.cells.sums import sum_rows
from tessella.kernel.functions import compiled, inlined
from tessella.kernel.record import SingleMatrix, Singles, Vector

_FEW = 16  # breakpoints that are put in order


@compiled
def price(light: SingleMatrix, combination: Vector, rates: Singles) -> None:
    """Put a combination of the frame's rows in single precision into ``rates``."""
    sum_rows(light, combination, rates, 0.0, np.float32)


@compiled
def _breakpoints(pricing: Pricing, costs: Singles) -> None:
    """Put the steps after which costs change their sign into ``pricing`` (infinite where they never do), and what the dual function's slope changes by there."""
    rates, steps, weights, none = pricing.rates, pricing.steps, pricing.weights, np.float32(np.inf)
    for j in range(len(costs)):
        step = -costs[j] / rates[j]
        steps[j] = step if step > np.float32(0.0) else none
        weights[j] = np.float32(2.0) * abs(rates[j])


@inlined
def _as_bits(pricing: Pricing, number: float) -> int:
    """The integer behind a number in single precision: integers behind positive numbers are ordered as these are, and compared faster."""
    pricing.cut[0] = np.float32(number)
    return int(pricing.cut_bits[0])


@inlined
def _as_number(pricing: Pricing, bits: int) -> float:
    """The number in single precision behind an integer."""
    pricing.cut_bits[0] = np.int32(bits)
    return float(pricing.cut[0])


@inlined
def _before(pricing: Pricing, bits: int) -> tuple[float, float]:
    """What the slope changes by before a step, which is given as bits, and how many breakpoints lie there."""
    step_bits, weights, edge, zero, one = pricing.step_bits, pricing.weights, np.int32(bits), np.float32(0.0), np.float32(1.0)
    total, count = zero, zero
    for j in range(len(weights)):
        inside = step_bits[j] < edge
        total += weights[j] if inside else zero
        count += one if inside else zero
    return float(total), float(count)


@compiled
def _guess(pricing: Pricing, costs: Singles, need: float) -> float:
    """The step after which the slope has changed by as much as is needed, if costs were drawn from one distribution."""
    weights, size, square = pricing.weights, np.float32(0.0), np.float32(0.0)
    for j in range(len(costs)):
        size += abs(costs[j])
    for j in range(len(costs)):
        square += weights[j] * weights[j]
    return float(np.float32(4.0 * need * size / (len(costs) * square)))


@inlined
def _interval(pricing: Pricing, need: float, guess: float, end: int, total: float, number: float) -> tuple[int, int, float]:
    """Between which steps, as bits, the slope has changed by as much as is needed, with few breakpoints between; and what it changes by before the first.

    It does so before ``end``: in all by ``total``, at ``number`` breakpoints.  Where to cut is guessed, then interpolated; every other time halved.
    """
    low, high, least, most, below, above, tries = 0, end, 0.0, number, 0.0, total, 0
    cut = np.float32(guess)
    while most - least > _FEW and high - low > 1:
        middle = _as_bits(pricing, cut)
        if not low < middle < high:
            middle = (low + high) // 2
        part, count = _before(pricing, middle)
        if part >= need:
            high, most, above = middle, count, part
        else:
            low, least, below = middle, count, part
        tries += 1
        if tries == 1:
            cut *= np.float32(need / max(part, 1e-30)) * (np.float32(0.9) if part >= need else np.float32(1.1))
        elif tries % 2:
            cut = np.float32(0.0)
        else:
            first = np.float32(_as_number(pricing, low))
            width = np.float32(_as_number(pricing, high)) - first
            cut = first + width * np.float32((need - below) / (np.float32(above) - np.float32(below)))
    return low, high, below


@compiled
def _list(pricing: Pricing, bits: int) -> None:
    """List the inputs with a breakpoint before a step in ``order``, and put their number behind them, in place n."""
    step_bits, order, edge, found = pricing.step_bits, pricing.order, np.int32(bits), 0
    n = len(step_bits)
    for j in range(n):  # no branch: half of the guesses would be wrong
        order[found] = j
        found += 1 if step_bits[j] < edge else 0
    order[n] = found


@compiled
def _pick(pricing: Pricing, start: float, below: float, need: float) -> int:
    """Of the listed inputs with a breakpoint from ``start`` on, the one where the slope, changed by ``below`` before these, has changed by as much as is needed."""
    steps, weights, order, part = pricing.steps, pricing.weights, pricing.order, np.float32(below)
    n = len(steps)
    first, last, begin = n + 1, n + 1, np.float32(start)
    for i in range(order[n]):
        order[last] = order[i]
        last += 1 if steps[order[i]] >= begin else 0
    while first < last:
        best = first
        for i in range(first + 1, last):
            if steps[order[i]] < steps[order[best]]:
                best = i
        order[first], order[best] = order[best], order[first]
        part += weights[order[first]]
        if part >= need:
            return order[first]
        first += 1
    return order[last - 1] if last > n + 1 else -1


@compiled
def turning(pricing: Pricing, costs: Singles, need: float, limit: float) -> int:
    """The input at which the falling dual function turns: breakpoints before it add up to less than is needed; -1 if none before the limit.

    ``rates`` of ``pricing`` are given; its steps, weights and order are overwritten.  All inputs with a breakpoint up to there are listed in ``order``, and some beyond.
    """
    _breakpoints(pricing, costs)
    end = _as_bits(pricing, limit)
    total, number = _before(pricing, end)
    turns = total >= need and number > 0.0
    low, high, below = 0, end, 0.0
    if turns:
        low, high, below = _interval(pricing, need, _guess(pricing, costs, need), end, total, number)
    _list(pricing, high)
    return _pick(pricing, _as_number(pricing, low), below, need) if turns else -1
