"""A swarm: particles that go from unit to unit together and, on their way, move across the walls of their cells.

**Where they stand.**  After k units each particle is in one of the N_k cells that these cut the domain into, and all cells are equally likely: each has the same expected number of particles.  The next unit
cuts some of the cells in two.  A particle in one of these becomes two; if there are more than there is room for, as many as fit are drawn, all with the same chance.  What the number of particles was
multiplied by on the way, times those there are in the end, is an estimate of the number of regions, and its mean is that number (sequential Monte Carlo; Del Moral 2004).

**Why they move.**  Particles that came from the same few cells know only what lies below these.  So between two units each particle tries to cross walls: a unit is drawn among those decided, and if the
particle's cell has a part of this unit's border for a wall, the particle goes to the cell on the other side.  From there the same draw leads back.  So moves keep all cells equally
likely (Metropolis et al. 1953), and the estimate keeps its mean.

**What is certain.**  That there is a cell behind a wall is shown by a point, that there is no wall by a combination of rows (`tessella.cells.primal`).  Where neither can be had, the swarm's estimate is 0: as an
ideal swarm's could only be more, the mean is at most the number of regions, and lower bounds hold.
"""

import numpy as np

from tessella.cells.rows import compose, quick_sign, size_of, value
from tessella.cells.state import FEASIBLE, INFEASIBLE, UNCLEAR
from tessella.cells.vertex import copy_vertex
from tessella.estimating.crossing import Swarm, ask, compose_anew, cross, follow, is_refuted, last_layer, put_row
from tessella.estimating.selection import uniform
from tessella.kernel.functions import apart, compiled, inlined
from tessella.numerics import GOAL, TRUSTED_ROW_OF_DESCENTS

_SHOWN = 2.0 * GOAL  # of a row's size: how far on a side a vertex must lie to be left there


@apart
def move(swarm: Swarm, node: int, decided: int) -> bool:
    """Try to cross walls; False if something could not be decided."""
    layers = swarm.layers
    last = last_layer(layers, decided)
    for _ in range(swarm.moves):
        u = min(int(uniform(swarm.seed) * decided), decided - 1)
        found = cross(swarm, node, u, decided)
        if found == UNCLEAR:
            return False
        if found == FEASIBLE and layers.layer_of[u] < last and not follow(swarm, node, u, decided):
            return False
    return True


@compiled
def _split(swarm: Swarm, node: int, u: int) -> int:
    """Find out which signs the next unit has in a particle's cell: 1 or 2 of them, or -1 if it cannot be told; ``side`` says which is that of its vertex.

    The vertex for the other side is in the particle's slot, and that for the first side in the second slot.
    """
    primal, layers = swarm.primal, swarm.layers
    unit = layers.unit_of[u]
    combined = swarm.combined[node, unit]
    quick = quick_sign(combined, swarm.errors[node, unit], TRUSTED_ROW_OF_DESCENTS)
    if quick == -2 and compose_anew(swarm, node, 0, layers.layer_of[u], u):  # too much was added up
        quick = quick_sign(combined, swarm.errors[node, unit], TRUSTED_ROW_OF_DESCENTS)
    if quick == -2:
        return -1
    if quick >= 0:
        swarm.side[node] = quick
        return 1
    here = value(combined, primal.vertices.places[node])
    sign = 1 if here > 0.0 else 0
    if abs(here) < _SHOWN * size_of(combined):
        first = _ask_next(swarm, node, u, sign)
        if first == UNCLEAR:
            return -1
        if first == INFEASIBLE:
            swarm.side[node] = 1 - sign
            return 1 if _ask_next(swarm, node, u, 1 - sign) == FEASIBLE else -1
    swarm.side[node] = sign
    if is_refuted(swarm, node, unit, 1 - sign):
        return 1
    copy_vertex(primal, node, swarm.room + node)
    found = _ask_next(swarm, node, u, 1 - sign)
    if found == UNCLEAR:
        return -1
    return 2 if found == FEASIBLE else 1


@compiled
def _ask_next(swarm: Swarm, node: int, u: int, sign: int) -> int:
    """Whether the next unit can have a sign."""
    unit = swarm.layers.unit_of[u]
    put_row(swarm, node, unit, 1.0 if sign else -1.0, swarm.base + u)
    return ask(swarm, node, unit, sign, swarm.base + u, GOAL, u)


@compiled
def _decide(swarm: Swarm, node: int, u: int, sign: int) -> None:
    """Give the next unit a sign."""
    unit = swarm.layers.unit_of[u]
    swarm.signs[node, unit] = sign
    put_row(swarm, node, unit, 1.0 if sign else -1.0, swarm.base + u)


@compiled
def _copy(swarm: Swarm, node: int, child: int, decided: int) -> None:
    """Make a particle like another one, but for its vertex."""
    rows, layers = swarm.primal.rows, swarm.layers
    last = layers.layer_of[min(decided, len(layers.layer_of) - 1)]
    for row in range(swarm.base + decided):
        for c in range(rows.shape[2]):
            rows[child, row, c] = rows[node, row, c]
    for g in range(layers.first[last] + layers.width[last]):
        swarm.signs[child, g] = swarm.signs[node, g]
        swarm.errors[child, g] = swarm.errors[node, g]
        for c in range(swarm.combined.shape[2]):
            swarm.combined[child, g, c] = swarm.combined[node, g, c]


@compiled
def _free(swarm: Swarm) -> int:
    """A slot that is not used."""
    node = 0
    while swarm.used[node]:
        node += 1
    return node


@inlined
def _draw(swarm: Swarm, share: float) -> None:
    """Draw which children stay, each with the same chance, into ``staying``: 1 for the first side, 2 for the other one, 3 for both; slots of particles without any become free."""
    spot, reached = uniform(swarm.seed), 0.0
    for i in range(swarm.size):
        node, stay = swarm.members[i], 0
        for child in range(swarm.children[node]):
            reached += share
            if share == 1.0 or reached > spot:
                stay |= 1 << child
                spot += 1.0
        swarm.staying[i] = stay
        if stay == 0:
            swarm.used[node] = 0
            swarm.members[i] = -1


@inlined
def _part(swarm: Swarm, u: int) -> None:
    """Let the children that stay take the places of their parents, and free ones."""
    for i in range(swarm.size):
        node, stay = swarm.members[i], swarm.staying[i]
        if stay == 0:
            continue
        side, both = swarm.side[node], swarm.children[node] == 2
        if stay == 3:
            other = _free(swarm)
            swarm.used[other] = 1
            _copy(swarm, node, other, u)
            copy_vertex(swarm.primal, swarm.room + node, other)
            _decide(swarm, other, u, side)
            swarm.members[swarm.size + swarm.added] = other
            swarm.added += 1
        elif both and stay == 1:
            copy_vertex(swarm.primal, swarm.room + node, node)
        _decide(swarm, node, u, 1 - side if stay >= 2 else side)


@inlined
def _close_ranks(swarm: Swarm) -> None:
    """Leave out the members that are gone."""
    kept = 0
    for i in range(swarm.size + swarm.added):
        if swarm.members[i] >= 0:
            swarm.members[kept] = swarm.members[i]
            kept += 1
    swarm.size, swarm.added = kept, 0


@compiled
def _step(swarm: Swarm, u: int) -> float:
    """Split all particles on a unit and keep as many as there is room for; the logarithm of what their number is multiplied by, or not a number."""
    total = 0
    for i in range(swarm.size):
        node = swarm.members[i]
        found = _split(swarm, node, u)
        if found < 0:
            return np.nan
        swarm.children[node] = found
        total += found
    if u == len(swarm.layers.unit_of) - 1:
        return np.log(np.float64(total))
    share = min(swarm.room / total, 1.0)
    _draw(swarm, share)
    _part(swarm, u)
    _close_ranks(swarm)
    swarm.thinned = swarm.thinned or share < 1.0
    return -np.log(share)


@inlined
def _move_all(swarm: Swarm, u: int) -> bool:
    """Let all particles move; False if something could not be decided, or it takes too long."""
    for i in range(swarm.size):
        if not move(swarm, swarm.members[i], u) or swarm.primal.tally.iterations > swarm.limit:
            return False
    return True


@inlined
def _enter(swarm: Swarm, layer: int, before: int) -> None:
    """Compose the rows of a layer, and of layers before it that have no units to decide."""
    for i in range(swarm.size):
        node = swarm.members[i]
        for deep in range(max(before, 0) + 1, layer + 1):
            compose(deep, swarm.layers, swarm.signs[node], swarm.combined[node], swarm.errors[node], swarm.primal.work.sizes)


@apart
def go_down(swarm: Swarm) -> float:
    """One swarm from the root, whose vertex particle 0 has: the logarithm of its estimate, or not a number if something could not be decided, or it takes too long.

    As long as all cells have a particle there is nothing to move for.
    """
    layers = swarm.layers
    for node in range(len(swarm.used)):
        swarm.used[node] = 0
    for key in range(len(swarm.proofs.sizes)):
        swarm.proofs.sizes[key] = -1
    swarm.used[0], swarm.members[0], swarm.size, swarm.added, swarm.thinned = 1, 0, 1, 0, False
    total, before = 0.0, -1
    for u in range(len(layers.unit_of)):
        layer = layers.layer_of[u]
        _enter(swarm, layer, before)
        before = layer
        if swarm.thinned and not _move_all(swarm, u):
            return np.nan
        total += _step(swarm, u)
        if np.isnan(total):
            return np.nan
    return total
