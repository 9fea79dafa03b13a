"""Patterns of all ReLUs of a network from those of the unstable ones, for many regions at once."""

import numpy as np

from tessella.network import Floats, Mask
from tessella.partition.witness import Patterns, Witness
from tessella.stability import Stability

_ZERO = 1e-9  # of the size of a preactivation: what may be 0 all over a region, and is looked at exactly


def settled(known: Stability, decided: Mask, places: Floats) -> Mask:
    """The patterns of all ReLUs.

    A unit that is nowhere negative is called stably active; in a region where it is 0 it is not.

    Parameters
    ----------
    known
        Which units are stable.
    decided
        One row per region: the states of the unstable ReLUs.
    places
        A point in each region; where it is not finite, exact arithmetic looks at all units.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> net = Network.from_arrays([([[1.0]], [0.0]), ([[2.0]], [0.0])], relu_output=True)
    >>> known = stability(net, Box(-1, 1, dim=1), method="linear")
    >>> settled(known, np.array([[False], [True]]), np.array([[-0.5], [0.5]])).astype(int).tolist()
    [[0, 0], [1, 1]]
    """
    network, patterns = known.network, Patterns.of(known)
    whole = np.tile(patterns.states, (len(decided), 1))
    whole[:, patterns.unstable] = decided
    lower = np.concatenate([low[layer.rectified] for layer, low in zip(network.layers, known.bounds.lower, strict=True)])
    doubtful = np.flatnonzero(patterns.states & ~patterns.unstable & (lower <= 0.0))
    if not len(doubtful):
        return whole
    finite: Mask = np.logical_and.reduce(np.isfinite(places), axis=1)
    values = network.preactivations(np.where(finite[:, None], places, 0.0))
    small = [
        (np.abs(part) <= _ZERO * (1.0 + np.abs(part).max(axis=1, keepdims=True)))[:, layer.rectified]
        for layer, part in zip(network.layers, values, strict=True)
    ]
    witness = Witness(network, known.domain)
    for number in np.flatnonzero(np.concatenate(small, axis=1)[:, doubtful].any(axis=1) | ~finite):
        whole[number] = witness.settled(whole[number])
    return whole
