"""Every upper bound is one: against an exact count by an independent, slow walk."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from helpers.seeds import seeds
from tessella import Box, Layer, Network, Polytope, stability, upper_bounds
from tessella.upper.empirical import empirical

THINNEST = 1e-9


def random_domain(rng, dim):
    kind = rng.integers(6)
    if kind == 0:
        return Box.cube(0, 1, dim)
    low, high = -rng.uniform(0.5, 3, dim), rng.uniform(0.5, 3, dim)
    if kind == 1 and dim > 1:  # an input is fixed
        low[0] = high[0]
    box = Box(low, high)
    if kind < 4:
        return box
    rows = rng.standard_normal((rng.integers(1, 4), dim))
    return Polytope(rows, rows @ box.sample(1, rng)[0] + rng.uniform(0.1, 1, len(rows)), box)


def random_network(rng):
    sizes = [int(rng.integers(1, 4)), *(int(size) for size in rng.integers(2, 7, rng.integers(1, 4)))]
    whole_numbers, no_biases, skips = rng.random(3) < 0.3
    layers = []
    for before, units in itertools.pairwise(sizes):
        weight, bias = rng.standard_normal((units, before)), rng.standard_normal(units) * rng.choice([0.3, 0.6, 1.0])
        if whole_numbers:  # much is parallel, equal, or meets in one point
            weight, bias = np.round(weight), np.round(bias)
        if no_biases:
            bias[:] = 0.0
        if rng.random() < 0.2:
            weight[-1], bias[-1] = weight[0], bias[0]
        if rng.random() < 0.1:
            bias[rng.integers(units)] = -100.0
        if rng.random() < 0.1:
            weight[rng.integers(units)] = 0.0
        layers.append(Layer(weight, bias, rng.random(units) < 0.7 if skips else np.ones(units, dtype=bool)))
    return Network(tuple(layers))


class Walk:
    """Depth first over units in layer order; a region counts if a point keeps a distance from all its walls."""

    def __init__(self, network, domain):
        self.network, self.free, self.count = network, domain.box.free, 0
        self.start = domain.box.lower * ~self.free
        dim = int(self.free.sum())
        rows, limits = [*np.eye(dim), *-np.eye(dim)], [*domain.box.upper[self.free], *-domain.box.lower[self.free]]
        if isinstance(domain, Polytope):
            rows += list(domain.matrix[:, self.free])
            limits += list(domain.offset - domain.matrix @ self.start)
        walls = [(-np.asarray(row), limit) for row, limit in zip(rows, limits, strict=True) if np.linalg.norm(row) > 0]
        self.walls = [(row / np.linalg.norm(row), limit / np.linalg.norm(row)) for row, limit in walls]

    def run(self):
        """The number of regions: walls are (row, constant) with row @ x + constant >= 0."""
        point = self.inside(self.walls)
        if point is not None:
            self.layer(0, (np.eye(len(self.free))[:, self.free], self.start), (self.walls, point))
        return self.count

    def inside(self, walls):
        """A point that is far from all walls, or None."""
        rows, constants = np.array([row for row, _ in walls]), np.array([constant for _, constant in walls])
        dim = rows.shape[1] if len(walls) else 0
        if not dim:
            return np.zeros(0)
        matrix = np.hstack([-rows, np.ones((len(rows), 1))])
        found = linprog(np.append(np.zeros(dim), -1.0), A_ub=matrix, b_ub=constants, bounds=[(None, None)] * dim + [(None, 9.0)])
        point = found.x[:-1] if found.status == 0 else None
        return point if point is not None and (rows @ point + constants).min() > THINNEST else None

    def layer(self, number, values, region):
        """Go on behind a layer's input, which is matrix @ x + offset in a region with these walls and this point."""
        if number == len(self.network.layers):
            self.count += 1
            return
        layer, (matrix, offset) = self.network.layers[number], values
        self.unit(number, 0, (layer.dense() @ matrix, layer.dense() @ offset + layer.bias), region)

    def unit(self, number, unit, values, region):
        """Decide the state of a unit, and of those after it."""
        layer, (matrix, offset), (walls, point) = self.network.layers[number], values, region
        if unit == layer.units:
            self.layer(number + 1, values, region)
        elif not layer.rectified[unit]:
            self.unit(number, unit + 1, values, region)
        elif (size := np.linalg.norm(matrix[unit])) < 1e-12:  # constant on the region: it cuts nothing
            self.unit(number, unit + 1, values if offset[unit] > 0 else self.without(unit, values), region)
        else:
            for sign in (1.0, -1.0):
                wall = (sign * matrix[unit] / size, sign * offset[unit] / size)
                known = wall[0] @ point + wall[1] > THINNEST
                there = point if known else self.inside([*walls, wall])
                if there is not None:
                    after = values if sign > 0 else self.without(unit, values)
                    self.unit(number, unit + 1, after, ([*walls, wall], there))

    @staticmethod
    def without(unit, values):
        """The values where a unit's output is 0."""
        kept = np.arange(len(values[1])) != unit
        return values[0] * kept[:, None], values[1] * kept


def test_the_walk_counts_what_is_known():
    lines = Network.from_arrays([(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0.0, 0.0, -0.5])], relu_output=True)
    assert Walk(lines, Box.cube(-1, 1, 2)).run() == 7
    assert Walk(lines, Box.cube(0, 1, 2)).run() == 2
    assert Walk(lines, Box([-1, 0.25], [1, 0.25])).run() == 3
    assert Walk(lines, Box.cube(1, 1, 2)).run() == 1
    assert Walk(lines, Polytope([[1.0, 0.0]], [-0.5], Box.cube(-1, 1, 2))).run() == 2
    equal = Network.from_arrays([([[1.0]] * 3, [0.0] * 3), ([[1.0, -1.0, 0.0]], [0.0])], relu_output=True)
    assert Walk(equal, Box.cube(-1, 1, 1)).run() == 2
    tent = Network.from_arrays([([[1.0], [1.0]], [0.0, -0.5]), ([[2.0, -4.0]], [-0.5])], relu_output=True)
    assert Walk(tent, Box.cube(-1, 1, 1)).run() == 5  # cuts at 0, 0.25, 0.5 and 0.75


@pytest.mark.parametrize("seed", seeds(200, quick=70))
def test_count_empirical_configuration_montufar_raghu(seed):
    rng = np.random.default_rng([2020, seed])
    network = random_network(rng)
    domain = random_domain(rng, network.input_dim)
    count = Walk(network, domain).run()
    values = []
    for method in ("interval", "linear", "lp", "milp"):
        known = stability(network, domain, method=method)
        found = upper_bounds(network, domain, stability=known)
        assert count <= found.empirical <= found.configuration <= found.montufar <= found.raghu
        assert found.empirical <= empirical(network, domain, known, effort=0).value
        values.append(found.empirical)
    assert values == sorted(values, reverse=True)
    assert 0.0 <= found.gap_closed(count) <= 1.0
