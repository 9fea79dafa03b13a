"""A network on an unbounded domain as one on a bounded domain, region by region: all of space, half-infinite boxes, unbounded polytopes.

Give the network one more input t, carry it along as a linear unit, and multiply every bias by it.  The new network is homogeneous: with y = t x its
units are t times what they were at x, for t > 0.  A bound l <= x_i <= u becomes l t <= y_i <= u t, an inequality a.x <= b becomes a.y <= b t.
Nothing is rounded: weights and biases only change their places.  The bounded domain consists of the (y, t) with these inequalities in a box: |y_i| <= s_i
where x_i has no end (any s_i > 0 will do), y_i between 0 and l or u where it has, and 0 <= t <= 1.

**Theorem.**  Let D be the domain, of dimension n in its free inputs, C the set of all (y, t) with t > 0 and y / t in D, and B the bounded domain above.  Then
the patterns that have an interior in D are those that have an interior in B.

*Proof.*  For t > 0 every preactivation at (y, t) is t times that at x = y / t: by induction over the layers, since t relu(g) = relu(t g), and the same
holds for any function with t f(g) = f(t g), such as a ReLU with a slope on its other side.  So (y, t) and x have the same pattern, also where units
are 0.  The map (y, t) -> (y / t, t) is a homeomorphism of C to D times (0, inf).  If a pattern has an open set U of D, then {(y, t): y / t in U, t > 0} is an open cone of that
pattern.  With a point it has all positive multiples of the point, and small ones lie inside the box: there 0 is inside of every interval, or is the end at which
the inequality of the cone is the same as the box's.  So the pattern has an interior in B.  If, conversely, a pattern has an interior in B, this has points with t > 0 (t = 0 has no
interior), and the image of a small neighbourhood under y / t is open in D.  QED.

So counts, lists, samples, and bounds of one are those of the other.  The dimension is n + 1 instead of n, but upper bounds may use n: they are theorems about the
network on D, bounded or not.  Each region of B lies in the cone over a region of D, so a point (y, t) in it stands for the input y / t.

**Fixed inputs.**  Where x_i is fixed to l, y_i = l t: the input y_i is fixed to 0, and a first layer of linear units adds l t.  (Folding l into biases would
round.)  In an inequality of a polytope there is no such layer: a.l is folded into the coefficient of t where that is exact, and refused where it is not.

**Narrow inputs.**  Where l <= x_i <= u with ends that are close to each other, the inequalities would leave next to nothing of the box.  The same layer makes
y_i of y_i - l t, which lies between 0 and (u - l) t; u - l is exact there, because u <= 2 l or l >= 2 u (Sterbenz).  Inputs that inequalities of a polytope read
stay as they are.

**Scale.**  The s_i say how large y is beside t, which is all that they do: they are powers of two of about the size of |bias| / |weight| in the first layer, so that regions around the
origin do not become thin.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tessella.domain import Box, Domain, Polytope
from tessella.errors import DomainError
from tessella.network import Floats, Layer, Network, Weight

_NARROW = 2.0**-6  # inputs whose width is a smaller part of their size are narrow
_USUAL = 2.0**300  # what weights and biases ask for is no larger than that, and no smaller than its inverse
_FARTHEST = 2.0**1021  # ends that are farther away leave less of t than from 0 to 1
_LARGE = 1_000_000  # entries of a first layer that is stored as sparse


@dataclass(frozen=True, slots=True)
class Homogeneous:
    """A homogeneous network on a bounded domain, and what it stands for."""

    # network, domain: the network with one more input, the last one, and the bounded domain
    network: Network
    domain: Domain
    # whole, within: the network and the unbounded domain that they stand for
    whole: Network
    within: Domain

    def point(self, place: Floats) -> Floats | None:
        """The input that a point stands for; it is rounded, and moved into the box where that led out of it.  None where it is too large."""
        box = self.within.box
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            found = np.clip(place[:-1] / place[-1] + _shift(self.within), box.lower, box.upper)
        return found if np.isfinite(found).all() else None


def homogeneous(network: Network, domain: Domain) -> Homogeneous:
    """A network on a bounded domain with the same regions as one on an unbounded domain; the top of the file says why.

    Examples
    --------
    >>> net = Network.from_arrays([([[1.0], [1.0]], [0.5, -0.5]), ([[1.0, 1.0]], [0.25])])
    >>> found = homogeneous(net, Box(-np.inf, np.inf, dim=1))
    >>> found.network, found.domain
    (Network(2-2+1-1, 2 ReLUs, 13 parameters), Box([-0.5, 0.5] x [0, 1]))
    >>> found.network([3.0, 1.0]), net([3.0])
    (array([6.25]), array([6.25]))
    """
    scale = _scale(network, domain)
    return Homogeneous(_network(network, _shift(domain)), _domain(domain, scale), network, domain)


def as_bounded(network: Network, domain: Domain) -> tuple[Network, Domain]:
    """A network and a bounded domain with the same regions: themselves, if the domain is bounded."""
    if domain.bounded:
        return network, domain
    found = homogeneous(network, domain)
    return found.network, found.domain


def _shift(domain: Domain) -> Floats:
    """What a first layer adds to each input, times t."""
    box = domain.box
    largest = np.maximum(np.abs(box.lower), np.abs(box.upper))
    with np.errstate(invalid="ignore"):
        narrow = np.isfinite(largest) & (box.upper - box.lower < _NARROW * largest)
    if isinstance(domain, Polytope):
        narrow &= ~domain.matrix.any(axis=0)
    return np.where(narrow | ~box.free, box.lower, 0.0)


def _network(network: Network, shift: Floats) -> Network:
    layers = list[Layer]()
    last = len(network.layers) - 1
    for number, layer in enumerate(network.layers):
        weight = _beside(layer.weight, layer.bias)
        units = layer.units
        if number < last:
            carry = np.zeros((1, layer.inputs + 1))
            carry[0, -1] = 1.0
            weight, units = _above(weight, carry), units + 1
        rectified, slope = layer.rectified, layer.slope
        if number < last:
            rectified, slope = np.append(rectified, False), np.append(slope, 1.0)  # noqa: FBT003  t is linear
        layers.append(Layer(weight, np.zeros(units), rectified, slope))
    if shift.any():
        layers.insert(0, Layer(_shear(shift), np.zeros(len(shift) + 1), np.array(False)))  # noqa: FBT003  no ReLUs
    return replace(network, layers=tuple(layers))


def _shear(shift: Floats) -> Weight:
    """The map (y, t) -> (y + shift t, t)."""
    size = len(shift) + 1
    if size * size > _LARGE:
        from scipy.sparse import csr_array, eye_array, hstack, vstack  # noqa: PLC0415  only where it is large

        last = csr_array(np.append(np.zeros(size - 1), 1.0)[None, :])
        return vstack([hstack([eye_array(size - 1), csr_array(shift[:, None])]), last], format="csr")
    matrix = np.eye(size)
    matrix[:-1, -1] = shift
    return matrix


def _beside(weight: Weight, column: Floats) -> Weight:
    """A weight with one more column."""
    if isinstance(weight, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]  or sparse
        return np.column_stack([weight, column])
    from scipy.sparse import csr_array, hstack  # noqa: PLC0415  it is loaded: the weight is one of its arrays

    return hstack([weight, csr_array(column[:, None])], format="csr")


def _above(weight: Weight, row: Floats) -> Weight:
    """A weight with one more row."""
    if isinstance(weight, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]  or sparse
        return np.vstack([weight, row])
    from scipy.sparse import csr_array, vstack  # noqa: PLC0415  as above

    return vstack([weight, csr_array(row)], format="csr")


def _scale(network: Network, domain: Domain) -> Floats:
    """How far y goes where x has no end: a power of two for each input."""
    first, box = network.layers[0], domain.box
    sizes = abs(first.weight)
    fixed = np.where(box.free, 0.0, box.lower)
    weights, biases = np.asarray(sizes.sum(axis=0)), float((np.abs(first.bias) + sizes @ np.abs(fixed)).sum())
    typical = biases / np.where(weights > 0.0, weights, np.inf)
    far = [np.abs(np.where(np.isfinite(end), end, 0.0)) for end in (box.lower, box.upper)]
    if isinstance(domain, Polytope):
        far.append(np.abs(domain.centre))
    sizes = np.maximum(np.minimum(typical, _USUAL), 2.0 * np.minimum(np.max(far, axis=0), _FARTHEST))
    return np.exp2(np.round(np.log2(np.maximum(np.where(sizes > 0.0, sizes, 1.0), 1.0 / _USUAL))))


def _domain(domain: Domain, scale: Floats) -> Domain:
    shift = _shift(domain)
    first, last = (
        domain.box.lower - shift,
        domain.box.upper - shift,
    )  # exact: both are 0, or they are close, or nothing is taken off
    low = np.where(np.isfinite(first), np.minimum(first, 0.0), -scale)
    high = np.where(np.isfinite(last), np.maximum(last, 0.0), scale)
    around = Box(np.append(low, 0.0), np.append(high, 1.0))
    unit = np.eye(domain.dim)
    rows = [
        np.append(sign * unit[column], -sign * ends[column])
        for sign, ends in ((-1.0, first), (1.0, last))
        for column in np.flatnonzero(np.isfinite(ends) & (ends != 0.0))
    ]
    if isinstance(domain, Polytope):
        rows += _walls(domain)
    if not rows:
        return around
    given: dict[str, Any] = {"tolerances": domain.tolerances} if isinstance(domain, Polytope) else {}
    return Polytope(np.array(rows), np.zeros(len(rows)), around, **given)


def _walls(domain: Polytope) -> list[Floats]:
    """The inequalities of a polytope, with what fixed inputs contribute."""
    box = domain.box
    rows = np.column_stack([np.where(box.free, domain.matrix, 0.0), -domain.offset])
    fixed = np.flatnonzero(~box.free & (box.lower != 0.0))
    for number in np.flatnonzero(domain.matrix[:, fixed].any(axis=1)):
        known = zip(domain.matrix[number, fixed].tolist(), box.lower[fixed].tolist(), strict=True)
        exact = sum((Fraction(a) * Fraction(x) for a, x in known), -Fraction(float(domain.offset[number])))
        rows[number, -1] = float(exact)
        if Fraction(float(rows[number, -1])) != exact:
            msg = (
                f"inequality {number} of the polytope reads fixed inputs, and what they contribute is no floating-point number; "
                "leave them out of the inequality, or give a box with finite ends"
            )
            raise DomainError(msg)
    kept = rows[:, :-1].any(axis=1)  # what reads no free input holds, or there would be no polytope
    return list(rows[kept])
