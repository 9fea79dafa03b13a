"""Small odd networks on unbounded domains: all of space, half-infinite boxes, unbounded polytopes, with and without fixed inputs."""

import numpy as np

from helpers.odd_networks import Case, random_box, random_layers, random_sizes, random_walls

HUGE = 2.0**900  # further out than all vertices of the networks here


def endless_case(seed, largest=300, most_inputs=4, thin=True) -> Case:
    """A network and an unbounded domain; see `odd_networks.random_case`."""
    rng = np.random.default_rng(seed)
    while True:
        lower, upper, inside = random_box(rng, int(rng.integers(1, most_inputs + 1)))
        if np.array_equal(inside * 64, np.round(inside * 64)) and (lower < upper).any():  # few digits
            break
    sizes = random_sizes(rng, int((lower < upper).sum()), largest)
    layers = random_layers(rng, lower, upper, inside, sizes, 12 if thin else 8)
    matrix = offset = None
    if rng.random() < 0.3:
        matrix, offset = random_walls(rng, lower, upper, inside)
        matrix = np.round(4.0 * matrix) / 4.0
        offset = matrix @ inside + np.where(np.abs(matrix).sum(axis=1) > 0.0, 1.0, 0.25) * rng.choice(
            [0.0625, 0.25, 1.0], len(offset)
        )
    free, share = lower < upper, rng.choice([0.5, 1.0, 1.0])
    down, up = (free & (rng.random(len(free)) < share) for _ in range(2))
    if not (down | up).any():
        down[np.flatnonzero(free)[0]] = True
    return Case(layers, np.where(down, -np.inf, lower), np.where(up, np.inf, upper), matrix, offset)


def within_reach(case: Case) -> Case:
    """The same network on a domain that is cut off where there is nothing any more: it has the same patterns."""
    return case._replace(lower=np.maximum(case.lower, -HUGE), upper=np.minimum(case.upper, HUGE))
