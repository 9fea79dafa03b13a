"""Regions by the method of the paper: all assignments of the formulation's binaries, found by SCIP in one branch-and-bound tree.

This is a second counter that shares nothing with the others but the formulation and exact arithmetic, to check them by; it is
slower by orders of magnitude.  A solver's word is not taken: tolerances multiply with H, so that it finds patterns that do not
exist (at 784 inputs every solver does).  Each pattern is therefore confirmed by a point whose signs are certain, or by exact
arithmetic.  So the count is a proved lower bound.  It is the number of regions unless the solver missed one.  It does miss
those in which no input gives all active units more than 1e-6 of their range, because an active unit that is 0 cannot be told
from an inactive one otherwise.
"""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

import numpy as np

from tessella.domain import Box, Domain, Polytope
from tessella.formulation import formulate
from tessella.methods import Method
from tessella.network import Floats, Layer, Network
from tessella.options import check_seconds
from tessella.partition.tree import Tree
from tessella.partition.witness import Proof, prefix_of, walls
from tessella.preactivation import PreactivationBounds
from tessella.solvers.scip import SCIP
from tessella.tightening import tighten

POSITIVE = 1e-6
"""By which part of its range an active unit must be active.

At 1e-7 it found 8,334 instead of 8,312 of 8,338 regions of a network with 784 inputs, and SCIP met numerical trouble more often.
"""

_LEAST = 1e-4  # of the sum of its terms: a smaller range is left small, for a solver cannot cancel so exactly


def count_by_milp(tree: Tree, *, seconds: float | None = None, on_found: Callable[[int], None] | None = None) -> tuple[int, bool]:
    """Count regions with a MILP solver.

    Parameters
    ----------
    tree
        The network and its domain.
    seconds
        Stop after this time; None to go on to the end.
    on_found
        Called with the number of regions after each that is confirmed.

    Returns
    -------
    How many regions are confirmed, and whether the search came to its end.  Ctrl-C ends it early.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None)], relu_output=True)
    >>> count_by_milp(Tree(network, Box(-1, 1, dim=2)))
    (6, True)
    """
    check_seconds(seconds, "a count")
    start = perf_counter()
    hurry = 10.0 if seconds is None else seconds / (4 * max(tree.units, 1))
    method = Method.LP if tree.is_small else Method.LINEAR
    bounds = tighten(tree.network, tree.domain, method=method, seconds_per_unit=hurry)
    if bounds.interrupted:
        raise KeyboardInterrupt
    network, domain, scaled = of_size_one(tree.network, tree.domain, bounds)
    formulation = formulate(network, domain, scaled)
    lower = formulation.model.lower.copy()
    lower[formulation.positivity] = POSITIVE
    prove, found = Proof(tree.network, tree.domain), set[bytes]()

    def visit(solution: Floats) -> None:
        pattern = formulation.pattern(solution)
        proved = prove(pattern, *walls(tree.network, pattern))
        if proved is not None and (region := prefix_of(proved[0])) not in found:
            found.add(region)
            if on_found is not None:
                on_found(len(found))

    model = replace(formulation.model, lower=lower)
    left = None if seconds is None else max(seconds - (perf_counter() - start), 1e-3)
    finished = SCIP().assignments(model, formulation.binary_columns.tolist(), visit, seconds=left)
    return len(found), finished


def of_size_one(network: Network, domain: Domain, bounds: PreactivationBounds) -> tuple[Network, Domain, PreactivationBounds]:
    """The same network with inputs and units divided by powers of two, so that ranges are about 1.

    A solver's tolerances are absolute; this changes no sign, and rounds nothing.
    """
    box = domain.box
    first = scale = _power_of_two(box.upper - box.lower)
    layers, lower, upper, reach = list[Layer](), list[Floats](), list[Floats](), np.maximum(np.abs(box.lower), np.abs(box.upper))
    for number, (layer, low, high) in enumerate(zip(network.layers, bounds.lower, bounds.upper, strict=True)):
        terms = np.asarray(abs(layer.weight) @ reach) + np.abs(layer.bias)
        own = _power_of_two(np.maximum(high - low, _LEAST * terms))
        layers.append(Layer(layer.dense() * scale / own[:, None], layer.bias / own, layer.rectified, layer.slope))
        lower.append(low / own)
        # an H below what f must be would keep f out of reach for all units
        upper.append(np.where(high > 0.0, np.maximum(high / own, 2.0 * POSITIVE), high / own))
        scale, reach = own, np.maximum(*np.abs(bounds.outputs(network, number)))
    scaled: Domain = Box(box.lower / first, box.upper / first)
    if isinstance(domain, Polytope):
        scaled = replace(domain, matrix=domain.matrix * first, box=scaled)
    return replace(network, layers=tuple(layers)), scaled, replace(bounds, lower=tuple(lower), upper=tuple(upper))


def _power_of_two(sizes: Floats) -> Floats:
    return np.exp2(np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0))))
