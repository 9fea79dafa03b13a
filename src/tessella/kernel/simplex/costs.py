"""Perturbed costs: where many bases have the same value, the dual simplex would go round in circles."""

import numpy as np

from tessella.kernel.functions import compiled
from tessella.kernel.simplex.state import Costs, Problem

_NOISE = 1e-10  # of the largest cost
_MOST_NOISE = 1e4  # times that
_PATIENCE = 60  # iterations without progress


@compiled
def perturb(problem: Problem, costs: Costs, perturbation: float) -> None:
    """Take the true costs and so much of the noise; progress is measured anew."""
    costs.perturbation, costs.best, costs.stalled = perturbation, np.inf, 0
    for j in range(len(costs.noise)):
        costs.perturbed[j] = problem.costs[j] + perturbation * costs.noise[j]


@compiled
def begin(problem: Problem, costs: Costs) -> None:
    """Perturb as little as possible."""
    largest = 0.0
    for j in range(len(problem.costs)):
        largest = max(largest, abs(problem.costs[j]))
    costs.smallest = _NOISE * largest if largest > 0.0 else _NOISE
    costs.cleaned = False
    perturb(problem, costs, costs.smallest)


@compiled
def is_final(costs: Costs) -> bool:
    """Whether what is optimal for these costs is the end."""
    return costs.perturbation <= costs.smallest or costs.cleaned


@compiled
def perturbed_anew(problem: Problem, costs: Costs, value: float, leaving: int) -> bool:
    """Whether costs were changed: back to the smallest perturbation where nobody leaves, so that the point is optimal for a larger one; or to a larger one where the dual function no longer falls."""
    if value < costs.best - 1e-12 * abs(costs.best):
        costs.best, costs.stalled = value, 0
    else:
        costs.stalled += 1
    optimal = leaving < 0
    if not optimal and costs.stalled < _PATIENCE:
        return False
    costs.cleaned = optimal
    perturb(problem, costs, costs.smallest if optimal else min(100.0 * costs.perturbation, _MOST_NOISE * costs.smallest))
    return True
