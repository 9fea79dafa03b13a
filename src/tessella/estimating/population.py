"""A round: a few weighted nodes that go down the tree together.

All are split; leaves are added up; if more than the population are left, as many are drawn, with probabilities in proportion to weight times predicted number of leaves, and their weights divided by
these.  The sum is an unbiased estimate of the number of leaves whatever is predicted (Knuth 1975; with a population: stochastic enumeration).  Weights are kept as logarithms.

**Particles.**  A large population goes down *in step*: all nodes wait until none would be split on an earlier unit, so that their weights, times what is predicted, compare like with like.  Then
the logarithm of the sum spreads far less than that of a single node's, however many units there are (sequential Monte Carlo; Del Moral 2004, Fearnhead and Clifford 2003 for the drawing).

Nodes that were scored are noted, one line of features each: predictions are learned from these (`tessella.estimating.values`).
"""

import numpy as np

from tessella.cells.state import INFEASIBLE, UNCLEAR
from tessella.cells.vertex import POINTS, REFACTOR_EVERY, keep, refresh
from tessella.estimating.features import Describer, describe
from tessella.estimating.nodes import BOTH, Descent, evaluate, make_child
from tessella.estimating.prefixes import ASK, Prefixes, known_worth
from tessella.estimating.scattering import Scatter, scatter
from tessella.estimating.selection import plus, select, uniform
from tessella.estimating.survey import settle
from tessella.kernel.functions import apart, compiled, inlined
from tessella.kernel.record import Bytes, Keys, Matrix, Record, SingleMatrix, Singles, Vector, Whole, WholeMatrix, zeros

_GOES_ON = -2.0  # instead of how many leaves there are: the node has units left


class Notes(Record):
    """The nodes that were scored: note i < ``count`` is of a node with these features."""

    features: SingleMatrix  # the last line is for nodes that there is no room for
    bucket: Whole  # the regression it belongs to
    parent: Whole  # the note of the node above it, -1 for roots
    split: Whole  # 1 if it was split, or found to be leaves
    leaves: Vector  # among its children
    count: int

    @classmethod
    def of(cls, most: int, features: int) -> "Notes":
        """No notes, and room for so many."""
        return cls(
            features=zeros(most, features, kind=np.float32),
            bucket=zeros(most, kind=np.int64),
            parent=zeros(most, kind=np.int64),
            split=zeros(most, kind=np.int64),
            leaves=zeros(most),
        )


class Crowd(Record):
    """The nodes ``members[:size]`` of a round, with the logarithms of their weights, and the candidates ``candidates[:waiting]`` among their children."""

    used: Bytes  # per node: whether it is one of these
    members: Whole
    weights: Vector
    size: int
    candidates: Whole
    scores: Vector  # logarithms of weight times leaves, as predicted or (of leaves) known
    weights_above: Vector  # logarithms of their parents' weights
    chances: Vector
    certain: Bytes
    waiting: int
    leaves: Vector  # per node: how many regions are in it, if it is a leaf that may be drawn
    predicted: Vector  # per node: the logarithm of its leaves, as predicted

    @classmethod
    def of(cls, nodes: int) -> "Crowd":
        """Nobody."""
        return cls(
            used=zeros(nodes, kind=np.int8),
            members=zeros(nodes, kind=np.int64),
            candidates=zeros(2 * nodes, kind=np.int64),
            certain=zeros(2 * nodes, kind=np.int8),
            **{name: zeros(nodes) for name in ("weights", "leaves", "predicted")},
            **{name: zeros(2 * nodes) for name in ("scores", "weights_above", "chances")},
        )


class Round(Record):
    """All that rounds are made with.  Node ``root`` holds where they begin: the domain's rows, a vertex, points, and the first units' rows."""

    descent: Descent
    describer: Describer
    scatter: Scatter
    notes: Notes
    prefixes: Prefixes
    crowd: Crowd
    buckets: WholeMatrix  # the number of the regression, for a layer and a number of units left
    theta: Matrix  # per regression: coefficients of the features, and a bound on what is predicted
    seed: Keys
    split_values: Vector  # of the unit that is split on, at the node's points
    root: int
    population: int
    lazy: bool  # whether linear programs wait until a node is chosen
    in_step: bool  # whether nodes wait until all have come to the same unit
    single: bool  # whether one leaf is drawn, instead of all being added up
    total: float  # the logarithm of the sum of leaves so far
    splits: int


@inlined
def _predict(theta: Vector, features: Singles) -> float:
    """The predicted logarithm of the number of leaves."""
    total = 0.0
    for i in range(len(features)):
        total += theta[i] * features[i]
    return min(max(total, 0.0), theta[len(features)])


@compiled
def _score(work: Round, node: int, parent: int) -> float:
    """Describe a node, note it (if there is room) as a child of a note, and predict its leaves."""
    notes, nodes = work.notes, work.descent.nodes
    at = notes.count
    if at < len(notes.leaves) - 1:
        notes.count += 1
        nodes.note[node] = at
    else:
        nodes.note[node] = -1
    bucket = work.buckets[nodes.layer[node], nodes.left[node]]
    describe(work.descent, work.describer, node, notes.features[at])
    notes.bucket[at], notes.parent[at], notes.split[at], notes.leaves[at] = bucket, parent, 0, 0.0
    return _predict(work.theta[bucket], notes.features[at])


@compiled
def _settle(work: Round, node: int, programs: bool) -> float:
    """Go on to the layer where a node has units left; how many leaves there are if there is none, else _GOES_ON; ASK if exact arithmetic is to say."""
    descent, prefixes = work.descent, work.prefixes
    found = settle(descent, node, programs, work.single)
    prefixes.length = len(descent.layers.unit_of)
    if found < 0:
        first = descent.layers.first[descent.nodes.layer[node]]
        return known_worth(prefixes, descent.layers, descent.nodes.status[node], first, -1)
    return float(found) if found else _GOES_ON


@compiled
def _wait(work: Round, node: int, score: float, weight: float) -> None:
    """Make a node a candidate."""
    crowd = work.crowd
    crowd.used[node] = 1
    crowd.candidates[crowd.waiting], crowd.scores[crowd.waiting], crowd.weights_above[crowd.waiting] = node, score, weight
    crowd.waiting += 1


@compiled
def _add_leaves(work: Round, node: int, note: int, leaves: float, weight: float) -> None:
    """Add leaves up, of a node or of its parent's note; if one leaf is to be drawn, they become a candidate."""
    if leaves <= 0.0:
        return
    if note >= 0:
        work.notes.leaves[note] += leaves
    if work.single:
        work.descent.nodes.left[node] = -1 - work.prefixes.length
        work.crowd.leaves[node] = leaves
        _wait(work, node, weight + np.log(leaves), weight)
    else:
        work.total = plus(work.total, weight + np.log(leaves))


@inlined
def _free_node(used: Bytes) -> int:
    """The first node that is not used."""
    node = 0
    while used[node]:
        node += 1
    return node


@inlined
def _split(work: Round, node: int, weight: float) -> bool:
    """Split a node on the first unit that is left: its children become candidates, or are added up; False if a prefix is to be asked about."""
    descent, nodes = work.descent, work.descent.nodes
    note, unit = nodes.note[node], descent.layers.first[nodes.layer[node]]
    while unit < nodes.status.shape[1] - 1 and nodes.status[node, unit] < BOTH:
        unit += 1
    evaluate(nodes.combined[node, unit], descent.primal.points.places[node], work.split_values)
    work.splits += 1
    if note >= 0:
        work.notes.split[note] = 1
    for side in range(1, -1, -1):
        child = _free_node(work.crowd.used)
        found = make_child(descent, node, child, unit, side, work.split_values)
        if found == INFEASIBLE:
            continue
        if found == UNCLEAR:
            leaves = known_worth(work.prefixes, descent.layers, nodes.status[node], unit, side)
        else:
            leaves = _settle(work, child, not work.lazy)
        if leaves == ASK:
            return False
        if leaves == _GOES_ON:
            if work.scatter.wanted > 0:
                scatter(descent, child, work.scatter)
            work.crowd.predicted[child] = _score(work, child, note)
            _wait(work, child, weight + work.crowd.predicted[child], weight)
        else:
            _add_leaves(work, child, note, leaves, weight)
    return True


@inlined
def _expand(work: Round, node: int, weight: float) -> bool:
    """Settle what a member was left with, and split it; False if a prefix is to be asked about."""
    nodes, is_root = work.descent.nodes, work.descent.nodes.layer[node] < 0
    if is_root or work.lazy:
        leaves = _settle(work, node, True)
        if leaves == ASK:
            return False
        note = nodes.note[node]
        if leaves != _GOES_ON:
            if note >= 0:
                work.notes.split[note] = 1
            work.crowd.used[node] = 0
            _add_leaves(work, node, note, leaves, weight)
            return True
        if is_root:
            _score(work, node, note)
    fine = _split(work, node, weight)
    work.crowd.used[node] = 0
    return fine


@inlined
def _room(work: Round) -> int:
    """How many candidates may stay."""
    crowd, descent = work.crowd, work.descent
    nodes, final = descent.nodes, len(descent.layers.first) - 1
    if work.in_step and not work.single:
        return work.population
    shallow, ending = False, False
    for i in range(crowd.waiting):
        node = crowd.candidates[i]
        layer = nodes.layer[node]
        shallow = shallow or (layer == 0 and not descent.ahead[0])
        ending = ending or (layer == final - 1 and nodes.left[node] <= 2)
    if shallow or work.single:
        return 1
    return 2 * work.population if ending else work.population


@inlined
def _choose(work: Round) -> None:
    """Let candidates become members: all, or as many as there is room for."""
    crowd, most = work.crowd, _room(work)
    if crowd.waiting <= most:
        for i in range(crowd.waiting):
            crowd.chances[i] = 1.0
    else:
        select(crowd.waiting, most, crowd.scores, crowd.chances, crowd.certain, work.seed)
    crowd.size = 0
    for i in range(crowd.waiting):
        node = crowd.candidates[i]
        if crowd.chances[i] > 0.0:
            crowd.members[crowd.size] = node
            crowd.weights[crowd.size] = crowd.weights_above[i] - np.log(crowd.chances[i])
            crowd.size += 1
        else:
            crowd.used[node] = 0
    crowd.waiting = 0


@compiled
def _next_unit(work: Round, node: int) -> int:
    """The unit that a node would be split on; -1 for the root."""
    layers, nodes = work.descent.layers, work.descent.nodes
    if nodes.layer[node] < 0:
        return -1
    unit = layers.first[nodes.layer[node]]
    while unit < nodes.status.shape[1] - 1 and nodes.status[node, unit] < BOTH:
        unit += 1
    return unit  # pyright: ignore[reportReturnType]


@inlined
def _earliest(work: Round) -> int:
    """The first of the units that members would be split on."""
    crowd, first = work.crowd, work.descent.nodes.status.shape[1]
    for member in range(crowd.size):
        first = min(first, _next_unit(work, crowd.members[member]))
    return first


@apart
def go_round(work: Round) -> float:
    """One round from the root, which is node 0: the logarithm of its sum, or not a number if a prefix is to be asked about.

    If a single leaf is to be drawn, it is left in the crowd's first member, and ``prefixes.length`` is the length of its prefix.
    """
    crowd, nodes = work.crowd, work.descent.nodes
    for node in range(len(crowd.used)):
        crowd.used[node] = 0
    crowd.used[0] = 1
    crowd.members[0], crowd.weights[0], crowd.size, crowd.waiting = 0, 0.0, 1, 0
    nodes.note[0] = -1
    work.total = -np.inf
    while crowd.size > 0:
        turn = _earliest(work) if work.in_step else 0
        for member in range(crowd.size):
            node, weight = crowd.members[member], crowd.weights[member]
            if work.in_step and _next_unit(work, node) > turn:
                _wait(work, node, weight + crowd.predicted[node], weight)
            elif not _expand(work, node, weight):
                return np.nan
        _choose(work)
        if work.single and crowd.size == 1 and nodes.left[crowd.members[0]] < 0:
            drawn = crowd.members[0]
            work.prefixes.length = -1 - nodes.left[drawn]  # pyright: ignore[reportAttributeAccessIssue]
            return crowd.weights[0] + np.log(crowd.leaves[drawn])
    return work.total


@inlined
def _begin_cell(work: Round) -> None:
    """Make node 0 the root: the domain's rows, and the first units' rows."""
    root, nodes, layers, rows = work.root, work.descent.nodes, work.descent.layers, work.descent.primal.rows
    nodes.layer[0], nodes.depth[0], nodes.left[0] = -1, nodes.depth[root], 0
    for unit in range(nodes.status.shape[1]):
        nodes.status[0, unit] = 1 if layers.slopes[unit] == 1.0 else 0
        nodes.row_of[0, unit] = -1
    for unit in range(layers.width[0]):
        nodes.errors[0, unit] = nodes.errors[root, unit]
        for c in range(nodes.combined.shape[2]):
            nodes.combined[0, unit, c] = nodes.combined[root, unit, c]
    for row in range(nodes.depth[root]):
        nodes.codes[0, row] = -1 - row
        for c in range(rows.shape[2]):
            rows[0, row, c] = rows[root, row, c]


@inlined
def _begin_points(work: Round) -> None:
    """Give node 0 the root's vertex and points."""
    root, primal, depth = work.root, work.descent.primal, work.descent.nodes.depth[work.root]
    vertices, points = primal.vertices, primal.points
    vertices.size[0], vertices.age[0] = vertices.size[root], REFACTOR_EVERY
    for q in range(vertices.size[root]):
        vertices.tight[0, q], vertices.basic[0, q] = vertices.tight[root, q], vertices.basic[root, q]
    for j in range(vertices.sides.shape[1]):
        vertices.sides[0, j] = vertices.sides[root, j]
    points.known[0], points.replaced[0] = 0, 0
    refresh(primal, 0, depth)
    keep(primal, 0)
    for point in range(points.known[root]):
        points.names[0, 1 + point] = point - POINTS
        points.known[0] += 1
        for c in range(points.places.shape[1]):
            points.places[0, c, 1 + point] = points.places[root, c, point]


@inlined
def _forget(descent: Descent) -> None:
    """Forget proofs and cuts, so that rounds do not depend on those before."""
    sizes, recalled = descent.proofs.sizes, descent.recalled
    for key in range(len(sizes)):
        sizes[key] = -1
    descent.outside.added = 0
    for key in range(recalled.shape[0]):
        for i in range(recalled.shape[1]):
            recalled[key, i] = -1


@apart
def go_rounds(work: Round, first: int, base: Keys, results: Vector) -> int:
    """Make rounds number ``first`` and following, each from a seed of its own, into ``results``; how many are done, fewer if a prefix is to be asked about."""
    for number in range(len(results)):
        work.seed[0] = base[0] ^ (np.uint64(first + number) * np.uint64(0xD1342543DE82EF95))
        uniform(work.seed)
        work.scatter.seed[0] = work.seed[0] ^ np.uint64(0x5851F42D4C957F2D)
        _begin_cell(work)
        _begin_points(work)
        _forget(work.descent)
        noted = work.notes.count
        found = go_round(work)
        if np.isnan(found):
            work.notes.count = noted
            return number
        results[number] = found
    return len(results)
