"""Populations of particles that move (`tessella.estimating.swarm`), made ready for a tree.

A population's estimate X has a mean of at most N, the number of regions.  With M particles that are spread evenly over the cells, each decision adds about 0.11 / M to the relative variance of X.  How near one comes to that depends on
how often particles move between two decisions.  Nothing is learned, so all populations of one size are alike.
"""

import math

import numpy as np

from tessella.cells.primal import raise_row
from tessella.cells.state import Layers, Space
from tessella.cells.vertex import Primal, refresh
from tessella.estimating.crossing import Swarm
from tessella.estimating.descents import Batch, Records, Shape, find_vertex, most_rows, most_tight
from tessella.estimating.swarm import go_down
from tessella.estimating.wide import Answered
from tessella.network import Floats
from tessella.partition.tree import Tree

_MEMORY = 1 << 29  # bytes that one population may take
_SEED = 0xD1342543DE82EF95
_PIVOT, _PIVOT_EACH = 1e-6, 3e-10  # seconds that a step takes: always, and per number that it reads
_LIGHT = 4  # as many numbers of an input's prices, in single precision, are read in the time of one


class MovingParticles:
    """Populations of particles that move; one object serves one thread.

    Parameters
    ----------
    tree
        The tree; it has a unit, and its domain a free input.
    population
        How many particles there are.
    """

    functions = (go_down, raise_row, refresh)  # the compiled code that populations call

    def __init__(self, tree: Tree, population: int) -> None:
        """Lay out the network in plain arrays and find the root's vertex."""
        scaled = tree.scaled
        first, inputs = scaled.weights[0].shape
        normals = np.vstack([scaled.weights[0], scaled.normals])
        space, layers = Space.of(normals, in_inputs=len(normals) >= inputs), Layers.of(scaled)
        rows, widest = space.rows_of(normals), int(layers.width.max())
        room = max(min(population, room_for(tree)), 1)
        primal = Primal.of(space, nodes=2 * room, rows=most_rows(tree), most_tight=most_tight(tree, space), widest=widest, ring=1)
        self.shape, self.answers = Shape.of(tree), Answered(0, 0)
        self.starts, base = find_vertex(primal, 0, rows[first:], scaled.constants, tree.domain_errors)
        self._swarm = Swarm.of(layers, primal, base, room)
        self._swarm.combined[:, :first] = np.column_stack([rows[:first], scaled.biases[0]])
        self._swarm.errors[:, :first] = tree.errors
        primal.rows[:room, :base] = primal.rows[0, :base]
        vertices = primal.vertices
        self._root = int(vertices.size[0]), vertices.tight[0].copy(), vertices.basic[0].copy(), vertices.sides[0].copy()

    def rounds(self, first: int, count: int, base: int, theta: Floats) -> Batch:
        """Some populations, by their numbers and what seeds are made from; the same of both give the same results.

        Parameters
        ----------
        first, count, base
            As other descents have them.
        theta
            How many walls each particle tries to cross between two decisions, and the steps of linear programs after which a population is given up: its estimate is then 0.
        """
        self._swarm.moves, self._swarm.limit = int(theta[0, 0]), int(min(theta[0, 1], 2.0**60))
        found = np.array([self._go(first + number, base) if self.starts else -math.inf for number in range(count)])
        lost = int(np.isneginf(found).sum())
        self.answers = Answered(self.answers.asked + lost, self.answers.given_up + lost)
        nothing = Records(np.zeros((0, 1), dtype=np.float32), np.zeros((0, 3), dtype=np.int64), np.zeros(0))
        return Batch(found, nothing)

    def _go(self, number: int, base: int) -> float:
        """One population."""
        swarm, vertices = self._swarm, self._swarm.primal.vertices
        vertices.size[0], vertices.tight[0], vertices.basic[0], vertices.sides[0] = self._root
        if not refresh(swarm.primal, 0, swarm.base):
            return -math.inf
        swarm.seed[0] = np.uint64(base & (2**64 - 1)) ^ np.uint64((number + 1) * _SEED & (2**64 - 1))
        swarm.primal.tally.iterations = 0
        found = float(go_down(swarm))
        return -math.inf if math.isnan(found) else found


def steered(moves: int, limit: float = math.inf) -> Floats:
    """What populations are steered by: how often particles move, and when to give up."""
    return np.array([[float(moves), limit]])


def room_for(tree: Tree) -> int:
    """How many particles there is memory for."""
    units, n = sum(map(len, tree.scaled.biases)), tree.scaled.weights[0].shape[1]
    rows = most_rows(tree)
    p = min(n, len(tree.scaled.biases[0]) + len(tree.scaled.constants))
    tight = min(p, n, rows) + 1
    return int(_MEMORY / (8 * ((rows + units) * (p + 3) + 2 * tight * tight + 4 * units * tight) + 16 * n))


def seconds_per_pivot(tree: Tree) -> float:
    """About how long one step of a linear program takes."""
    n = tree.scaled.weights[0].shape[1]
    p = min(n, len(tree.scaled.biases[0]) + len(tree.scaled.constants))
    return _PIVOT + _PIVOT_EACH * (most_rows(tree) * p + p * p + (n * p / _LIGHT if n > p else 0))
