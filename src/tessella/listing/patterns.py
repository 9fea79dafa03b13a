"""Patterns of all ReLUs, and affine maps, of many regions at once."""

from collections.abc import Iterator

import numpy as np

from tessella.domain import Domain
from tessella.network import Floats, Mask, Network
from tessella.partition.witness import Patterns, Witness
from tessella.stability import Stability

_ZERO = 1e-9  # of the size of a preactivation: what may be 0 all over a region, and is looked at exactly

_CHUNK = 2**18  # numbers held while affine maps are composed


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


def affine_maps(network: Network, domain: Domain, patterns: Mask) -> Iterator[Floats]:
    """What the network is where its ReLUs have these patterns, of some regions at a time: matrices of the free inputs, with offsets in a last column."""
    chunk = max(1, _CHUNK // (max(layer.units for layer in network.layers) * (domain.free_dim + 1)))
    for first in range(0, len(patterns), chunk):
        yield _composed(network, domain, patterns[first : first + chunk])


def _composed(network: Network, domain: Domain, patterns: Mask) -> Floats:
    free, count = domain.box.free, len(patterns)
    start = np.vstack([np.eye(domain.dim)[free], np.where(free, 0.0, domain.box.lower)])
    values, place = np.broadcast_to(start, (count, *start.shape)), 0
    for number, layer in enumerate(network.layers):
        if number == 0:
            first = np.asarray(start @ layer.weight.T)
            values = np.broadcast_to(first, (count, *first.shape)).copy()
        else:
            values = np.asarray(values.reshape(-1, layer.inputs) @ layer.weight.T).reshape(count, -1, layer.units)
        values[:, -1] += layer.bias
        values *= layer.factors(patterns[:, place : place + layer.relus])[:, None]
        place += layer.relus
    return np.swapaxes(values, 1, 2)
