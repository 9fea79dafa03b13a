"""What repetitions say of the number of solutions, and how sure that is.

Of N solutions, each survives j random parity constraints with probability 2**-j, so some do with probability at most N / 2**j.  If N is at
most 2**j, then after j + 1 constraints a repetition stays feasible with probability at most 1/2, and that it does so in a share
1/2 + delta of all repetitions has a probability that Chernoff's bound limits.  This is the main result on MBound (Gomes, Sabharwal and Selman 2006)
with slack 1, as Algorithm 1 has it.

The largest j whose probability reaches a confidence is as sure as any fixed j: probabilities fall with j, so it is wrong only if that of the
smallest j with N <= 2**j, which does not depend on the repetitions, is too high.
"""

import math
from collections.abc import Sequence

from tessella.options import check_confidence

ALL_FEASIBLE = 0.995  # the paper repeats until this would be the probability if all repetitions stayed feasible


def chernoff(feasible: int, repetitions: int) -> float | None:
    """The probability that there are more than 2**j solutions if so many repetitions are feasible after j + 1 constraints.

    None if they are not more than half: then nothing is said.

    Examples
    --------
    >>> round(chernoff(28, 28), 4), chernoff(14, 28)
    (0.9955, None)
    """
    delta = feasible / repetitions - 0.5 if repetitions else 0.0
    if delta <= 0.0:
        return None
    beta = 2.0 * delta
    return -math.expm1(repetitions / 2.0 * (beta - (1.0 + beta) * math.log1p(beta)))


def feasible_after(draws: Sequence[int], variables: int) -> tuple[int, ...]:
    """How many repetitions were feasible after j constraints, for j from 0 to the number of variables; f in Algorithm 1.

    Parameters
    ----------
    draws
        How many constraints each repetition drew until it was infeasible.
    variables
        How many binary variables there are.

    Examples
    --------
    >>> feasible_after([2, 3, 0], 3)
    (2, 2, 1, 0)
    """
    return tuple(sum(drawn > j for drawn in draws) for j in range(variables + 1))


def probabilities(feasible: Sequence[int], repetitions: int) -> tuple[float, ...]:
    """The probability that there are more than 2**j solutions, for j = 0, 1, ... as long as more than half the repetitions say so.

    Examples
    --------
    >>> [round(p, 3) for p in probabilities([4, 4, 3, 2, 0], 4)]
    [0.538, 0.195]
    """
    found = list[float]()
    for after in feasible[1:]:
        probability = chernoff(after, repetitions)
        if probability is None:
            break
        found.append(probability)
    return tuple(found)


def repetitions_for(confidence: float) -> int:
    """The fewest repetitions that reach a confidence, if all of them stay feasible.

    Examples
    --------
    >>> repetitions_for(0.995), repetitions_for(0.95)
    (28, 16)
    """
    check_confidence(confidence, "a probable bound")
    count = max(1, math.floor(2.0 * math.log1p(-confidence) / (1.0 - 2.0 * math.log(2.0))))
    while (chernoff(count, count) or 0.0) < confidence:
        count += 1
    return count
