"""The dual simplex over a box: iterations, until an end."""

import numpy as np

from tessella.kernel.functions import apart
from tessella.kernel.simplex.costs import begin, is_final, perturbed_anew
from tessella.kernel.simplex.exchange import exchange, restore
from tessella.kernel.simplex.point import find_leaving, find_multipliers, find_point
from tessella.kernel.simplex.proof import proved_bound, proves_empty
from tessella.kernel.simplex.ratio import find_direction, find_entering
from tessella.kernel.simplex.state import INFEASIBLE, OPTIMAL, PRUNED, STOPPED, Simplex

_REFACTOR_EVERY = 40  # iterations


@apart
def solve(simplex: Simplex) -> int:
    """Maximise, from the state's basis, which changes.

    OPTIMAL: the state's point is, up to tolerances.  PRUNED: the bound passed the cutoff.  INFEASIBLE: no point satisfies all rows.  STOPPED: neither, when iterations were used up or
    rounding allowed no further one.  Whichever it is, ``bound`` is proved.
    """
    problem, state, costs, step, work = simplex.problem, simplex.state, simplex.costs, simplex.step, simplex.work
    simplex.iterations, status = 0, STOPPED
    begin(problem, costs)
    restore(problem, state, work)
    while True:
        find_multipliers(problem, costs.perturbed, state, work)
        find_point(problem, state, work)
        if state.value < simplex.cutoff and proved_bound(problem, problem.costs, state.multipliers, work) <= simplex.cutoff:
            status = PRUNED
            break
        find_leaving(problem, state, step)
        if step.leaving < 0 and is_final(costs):
            status = OPTIMAL
            break
        if simplex.iterations >= simplex.most:
            break
        simplex.iterations += 1
        state.age += 1
        if perturbed_anew(problem, costs, state.value, step.leaving):
            continue
        find_direction(problem, state, step, work)
        find_entering(problem, state, step, work)
        if step.entering < 0:
            if proves_empty(problem, state, step, work):
                simplex.bound = -np.inf
                return INFEASIBLE
            break
        exchange(problem, state, step, work)
        if state.age >= _REFACTOR_EVERY:
            restore(problem, state, work)
    simplex.bound = proved_bound(problem, problem.costs, state.multipliers, work)
    return status
