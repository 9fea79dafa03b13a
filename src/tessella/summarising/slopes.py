"""How steep a network is: the norms of its affine maps, and bounds on the Lipschitz constant that hold whatever rounding did.

**Rounding.**  What composing the matrices of L layers adds to an entry is at most g times the same entry of P = |W_L| D ... D |W_1|, where D holds the largest factors of the units (1, or the size of
a slope) and g is the number of products and sums on the way, times the roundoff (Higham 2002, section 3.1).  So a norm is off by at most g times that of P.

**Upper bounds.**  An entry of the Jacobian lies between two ends that are found layer by layer, where the factor of an unstable unit is anything between its slope and 1.  The norm of the
matrix of the largest sizes is a bound; so is the product of the norms of the layers without stably inactive units.
"""

from typing import NamedTuple

import numpy as np

from tessella.domain import Domain
from tessella.network import Floats, Network
from tessella.numerics import ROUNDOFF
from tessella.stability import Stability
from tessella.tightening.rounding import lost

_OF_SVD = 1e-11  # of the Frobenius norm: more than singular values that are computed are off by
_WIDER = 1.0 + 1e-6
_LEAST = 2.0**-960  # a product that may underflow is taken for this large


class Norms(NamedTuple):
    """Norms of a matrix, or of many."""

    spectral: Floats  # from l2 to l2: the largest singular value
    frobenius: Floats  # the root of the sum of squares
    maximum: Floats  # from linf to linf: the largest sum of sizes in a row

    @classmethod
    def of(cls, matrices: Floats) -> "Norms":
        """Those of a stack of matrices."""
        scaled, exponents = _scaled(matrices)
        values = singular_values(scaled)
        found = (
            values.max(axis=-1, initial=0.0),
            np.sqrt((values**2).sum(axis=-1)),
            np.abs(scaled).sum(axis=-1).max(axis=-1, initial=0.0),
        )
        return cls(*(np.ldexp(one, exponents) for one in found))


def _scaled(matrices: Floats) -> tuple[Floats, "np.ndarray"]:
    """Matrices divided by powers of two, so that no square overflows or vanishes, and the exponents."""
    exponents = np.frexp(np.abs(matrices).max(axis=(-2, -1), initial=0.0))[1]
    return np.ldexp(matrices, -exponents[..., None, None]), exponents


def singular_values(matrices: Floats) -> Floats:
    """The singular values of a stack of matrices."""
    if not min(matrices.shape[-2:]):
        return np.zeros((*matrices.shape[:-2], 0))
    if matrices.shape[-2] == 1:
        return np.sqrt((matrices**2).sum(axis=-1))
    values: Floats = np.linalg.svd(matrices, compute_uv=False).astype(np.float64)
    return values


def ranks(matrices: Floats) -> Floats:
    """The rank of each matrix, as far as singular values in floating-point arithmetic tell."""
    values = singular_values(_scaled(matrices)[0])
    return (values > 1e-12 * values.max(axis=-1, initial=0.0, keepdims=True)).sum(axis=-1).astype(np.float64)


def rounding(network: Network, domain: Domain) -> Norms:
    """How far computed norms of affine maps of the free inputs are off, at most."""
    sizes, terms = np.abs(np.eye(domain.dim)[:, domain.box.free]), 8.0
    for layer in network.layers:
        most = np.where(layer.rectified, np.maximum(np.abs(layer.slope), 1.0), np.abs(layer.slope))
        doubt = (lost(layer.inputs, layer.weight, sizes) + lost(1, most, layer.weight, sizes)) / ROUNDOFF  # what underflow takes
        sizes = most[:, None] * np.asarray(abs(layer.weight) @ sizes) * _WIDER + max(1.0, float(most.max(initial=0.0))) * doubt
        terms += layer.inputs + 4.0
    found = Norms.of(sizes[None])
    off, frobenius = terms * ROUNDOFF * _WIDER, float(found.frobenius[0])
    spectral = np.array(1.01 * off * frobenius + _OF_SVD * frobenius)
    return Norms(spectral, spectral, np.array(2.0 * off * float(found.maximum[0])))


def upper_bounds(known: Stability) -> Norms:
    """What the norms of all affine maps on the domain are at most, proved."""
    network, domain = known.network, known.domain
    low = high = np.eye(domain.dim)[:, domain.box.free]
    products = np.ones(2)
    for layer, active, inactive in zip(network.layers, known.active, known.inactive, strict=True):
        middle, reach = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
        centre, off = np.asarray(layer.weight @ middle), np.asarray(abs(layer.weight) @ reach)
        low, high = centre - off, centre + off
        least = np.where(active | ~layer.rectified, np.where(layer.rectified, 1.0, layer.slope), layer.slope)
        most = np.where(inactive | ~layer.rectified, layer.slope, 1.0)
        ends = np.stack([least[:, None] * low, least[:, None] * high, most[:, None] * low, most[:, None] * high])
        low, high = ends.min(axis=0), ends.max(axis=0)
        factors = np.maximum(np.abs(least), np.abs(most))
        weight = factors[:, None] * layer.dense()
        weight = weight if layer is not network.layers[0] else weight[:, domain.box.free]
        own = Norms.of(weight[None])
        norms = np.array([float(own.spectral[0] + _OF_SVD * own.frobenius[0]) * _WIDER, float(own.maximum[0]) * _WIDER])
        products = np.where((products > 0.0) & (norms > 0.0), np.maximum(products * norms, _LEAST), products * norms)
    sizes, off = Norms.of(np.maximum(np.abs(low), np.abs(high))[None]), rounding(network, domain)
    spectral, frobenius, maximum = (float(one[0]) + 4.0 * float(more) for one, more in zip(sizes, off, strict=True))
    most = np.sqrt(min(network.output_dim, domain.free_dim)) * products[0] * _WIDER
    return Norms(np.array(min(spectral, products[0])), np.array(min(frobenius, most)), np.array(min(maximum, products[1])))
