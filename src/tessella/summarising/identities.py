"""Which regions have the same affine map, decided without rounding: weights are whole numbers times powers of two, and are taken modulo primes.

The map of a region is an affine function with rational coefficients.  A random combination of its outputs, modulo a prime, is a list of numbers: equal maps have equal lists.  So
regions whose lists differ have different maps, and that is proved.  Different maps have equal lists with a chance of about one in 2^31 for each of two primes.
"""

import numpy as np
import numpy.typing as npt

from tessella.domain import Domain
from tessella.network import Mask, Network, Weight
from tessella.partition.integers import whole_numbers

_PRIMES = (2147483629, 2147483587)  # below 2^31
_HALF = 16  # bits: a product with one half of a number, summed over a layer, stays below 2^63
_AT_ONCE = 2**20  # numbers held

Ints = npt.NDArray[np.int64]


def _residues(values: npt.ArrayLike, prime: int) -> Ints:
    """Floating-point numbers modulo a prime."""
    given = np.asarray(values, dtype=np.float64)
    numbers, exponent = whole_numbers(given.ravel())
    scale = pow(2, exponent, prime)
    return np.array([int(number) * scale % prime for number in numbers], dtype=np.int64).reshape(given.shape)


def _times(values: Ints, matrix: Ints, prime: int) -> Ints:
    """The product of two matrices of residues."""
    high, low = matrix >> _HALF, matrix & ((1 << _HALF) - 1)
    return ((values @ high % prime << _HALF) + values @ low) % prime


def _dense(weight: Weight) -> npt.NDArray[np.float64]:
    return weight if isinstance(weight, np.ndarray) else weight.toarray()  # pyright: ignore[reportUnnecessaryIsInstance]


def same_maps(network: Network, domain: Domain, patterns: Mask) -> Ints:
    """A number for each pattern: equal for those with the same affine map of the free inputs.

    Examples
    --------
    >>> from tessella import Box
    >>> net = Network.from_arrays([([[1.0], [1.0], [2.0]], [0.0, 0.0, -1.0]), ([[0.1, -0.1, 0.0]], [0.5])])
    >>> same_maps(net, Box(-1, 1, dim=1), np.array([[0, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)).tolist()
    [0, 0, 0]
    """
    lists = np.concatenate([_lists(network, domain, patterns, prime) for prime in _PRIMES], axis=1)
    return np.unique(lists, axis=0, return_inverse=True)[1].ravel().astype(np.int64)


def _lists(network: Network, domain: Domain, patterns: Mask, prime: int) -> Ints:
    """The coefficients of the free inputs and the constant of a random combination of the outputs, from the outputs back to the inputs."""
    rng = np.random.default_rng(prime)
    matrices = [_residues(_dense(layer.weight), prime) for layer in network.layers]
    biases = [_residues(layer.bias, prime) for layer in network.layers]
    slopes = [_residues(layer.slope, prime) for layer in network.layers]
    given = rng.integers(1, prime, network.output_dim)
    fixed, parts = _residues(np.where(domain.box.free, 0.0, domain.box.lower), prime), list[Ints]()
    step = max(1, _AT_ONCE // max(layer.units for layer in network.layers))
    for first in range(0, len(patterns), step):
        some = patterns[first : first + step]
        values, constant, end = np.tile(given, (len(some), 1)), np.zeros(len(some), dtype=np.int64), network.relus
        for layer, matrix, bias, slope in zip(network.layers[::-1], matrices[::-1], biases[::-1], slopes[::-1], strict=True):
            factors = np.tile(slope, (len(some), 1))
            factors[:, layer.rectified] = np.where(some[:, end - layer.relus : end], 1, factors[:, layer.rectified])
            end -= layer.relus
            values = values * factors % prime
            constant = (constant + _times(values, bias[:, None], prime)[:, 0]) % prime
            values = _times(values, matrix, prime)
        constant = (constant + _times(values, fixed[:, None], prime)[:, 0]) % prime
        parts.append(np.column_stack([values[:, domain.box.free], constant]))
    return np.concatenate(parts)


def pieces(maps: Ints, pairs: Ints) -> int:
    """How many connected pieces there are of regions with the same map.

    Parameters
    ----------
    maps
        What `same_maps` gave.
    pairs
        Which regions share a wall.

    Examples
    --------
    >>> pieces(np.array([0, 0, 1, 0]), np.array([[0, 1], [1, 2], [2, 3]]))
    3
    """
    from scipy.sparse import csr_array  # noqa: PLC0415  heavy
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    one, other = pairs[maps[pairs[:, 0]] == maps[pairs[:, 1]]].T
    joined = csr_array((np.ones(len(one)), (one, other)), shape=(len(maps), len(maps)))
    return int(connected_components(joined, directed=False)[0])
