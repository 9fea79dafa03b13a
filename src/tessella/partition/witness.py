"""Points that prove that a region is there, and what is left to say of a pattern without one."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from tessella.domain import Domain, Polytope
from tessella.inequalities import holds
from tessella.kernel.program import Program
from tessella.network import Floats, Mask, Network
from tessella.numerics import LOST_OF_PRODUCTS, ROUNDOFF
from tessella.partition.exact import Exact
from tessella.partition.tree import Tree
from tessella.stability import Stability
from tessella.unbounded import homogeneous

_INWARD = (2.0**-6, 2.0**-20, 2.0**-40)  # how far from the faces of the box a point is looked for, in parts of its width
_FEW = 16  # inputs; with more, the faces of the box would be most of the walls
_FARTHEST = 1e100  # what is taken of a wall's distance
_REACH = 4.0  # the largest margin asked for where the box is scaled to [-1, 1]


class Witness:
    """Says of points which region they prove to have an interior.

    A point of the domain where every ReLU has a strict sign has a neighbourhood of the same pattern, and that meets the domain's
    interior.  Signs are decided in floating-point arithmetic with a bound on its error, and where that does not
    suffice in rational arithmetic.

    Examples
    --------
    >>> from tessella.domain import Box
    >>> witness = Witness(Network.from_arrays([([[1.0], [1.0]], [0.0, 1e-30])], relu_output=True), Box(-1, 1, dim=1))
    >>> witness.pattern([0.5]), witness.pattern([0.0])
    (array([ True,  True]), None)
    """

    def __init__(self, network: Network, domain: Domain) -> None:
        """Remember both."""
        self.network, self.domain = network, domain
        self._sizes = [abs(layer.weight) for layer in network.layers]

    def pattern(self, point: Floats | Sequence[float]) -> Mask | None:
        """The pattern of the region that a point lies in; None if it lies outside of the domain, or on a border."""
        place = np.asarray(point, dtype=np.float64)
        if not self._contains(place):
            return None
        quick = self._by_floats(place)
        return self._by_fractions(place) if quick is None else quick

    def quick(self, point: Floats) -> Mask | None:
        """The same by floating-point arithmetic alone: None also where that does not suffice."""
        return self._by_floats(point) if self._contains(point) else None

    def _contains(self, point: Floats) -> bool:
        box = self.domain.box
        if not ((point >= box.lower) & (point <= box.upper)).all():
            return False
        if not isinstance(self.domain, Polytope):
            return True
        held = self.domain.matrix[:, box.free].any(axis=1)  # a row without free inputs holds, or there is no domain
        return holds(self.domain.matrix[held], self.domain.offset[held], point, strictly=False)

    def _by_floats(self, point: Floats) -> Mask | None:
        values, error, parts = point, np.zeros(len(point)), list[Mask]()
        for layer, size in zip(self.network.layers, self._sizes, strict=True):
            before = np.asarray(layer.weight @ values) + layer.bias
            # a sum of n products is off by at most about n roundings of the sum of their sizes, and by what underflows
            rounding = (layer.inputs + 4) * ROUNDOFF * (np.asarray(size @ np.abs(values)) + np.abs(layer.bias)) + LOST_OF_PRODUCTS
            error = (1.0 + 4.0 * ROUNDOFF) * np.asarray(size @ error) + rounding
            unsure = layer.rectified & ~(np.abs(before) > error)
            if unsure.any():
                return None
            active = (before > 0.0)[layer.rectified]
            factors = layer.factors(active)
            values, error = factors * before, np.abs(factors) * error
            if not layer.is_plain:  # these products round
                error = (1.0 + 4.0 * ROUNDOFF) * error + ROUNDOFF * np.abs(values) + LOST_OF_PRODUCTS
            parts.append(active)
        return np.concatenate(parts)

    def _by_fractions(self, point: Floats) -> Mask | None:
        values, states = _fractions(point), list[bool]()
        for number, layer in enumerate(self.network.layers):
            weight, outputs = layer.dense(), list[Fraction]()
            for unit, (rectified, slope) in enumerate(zip(layer.rectified.tolist(), layer.slope.tolist(), strict=True)):
                value = _dot(weight[unit], values) + Fraction(float(layer.bias[unit]))
                if rectified:
                    if not value and any(self._row(states, number, unit)[0]):
                        return None
                    states.append(value > 0)
                outputs.append(value if rectified and value > 0 else Fraction(slope) * value)
            values = outputs
        return np.array(states, dtype=np.bool_)

    def settled(self, pattern: Mask) -> Mask:
        """The same pattern, but for units that are constant where the units before have their states.

        These are active if the constant is positive.  Whoever calls a unit stable because it is nowhere negative calls it
        active also where it is 0.
        """
        states, given = list[bool](), pattern.tolist()
        for number, layer in enumerate(self.network.layers):
            own = list[bool]()
            for unit in np.flatnonzero(layer.rectified):
                normal, constant = self._row(states, number, int(unit))
                own.append(given[len(states) + len(own)] if any(normal) else constant > 0)
            states += own
        return np.array(states, dtype=np.bool_)

    def _row(self, states: Sequence[bool], number: int, unit: int) -> tuple[list[Fraction], Fraction]:
        """A unit's preactivation as an affine function of the free inputs, where the layers before have these states."""
        layer = self.network.layers[number]
        normal, constant = _fractions(layer.dense()[unit]), Fraction(float(layer.bias[unit]))
        for before, start in zip(self.network.layers[:number][::-1], self._starts[:number][::-1], strict=True):
            weight = before.dense()
            terms = [Fraction(0)] * before.inputs
            passes = before.factors(np.array(states[start : start + before.relus], dtype=np.bool_)).tolist()
            for column, (own, slope) in enumerate(zip(normal, passes, strict=True)):
                factor = own * Fraction(slope)
                if factor:
                    constant += factor * Fraction(float(before.bias[column]))
                    terms = [term + factor * Fraction(entry) for term, entry in zip(terms, weight[column].tolist(), strict=True)]
            normal = terms
        box = self.domain.box
        fixed = sum((normal[column] * Fraction(float(box.lower[column])) for column in np.flatnonzero(~box.free)), Fraction(0))
        return [normal[column] for column in np.flatnonzero(box.free)], constant + fixed

    @cached_property
    def _starts(self) -> list[int]:
        """Where each layer's ReLUs begin in a pattern."""
        return [sum(layer.relus for layer in self.network.layers[:number]) for number in range(len(self.network.layers))]


class Patterns(NamedTuple):
    """Makes the pattern of a region from the decisions on its unstable units."""

    states: Mask  # one state per ReLU: what stable ones have
    unstable: Mask  # which ReLUs are decided

    @classmethod
    def of(cls, known: Stability) -> Self:
        """Those of a network on a domain."""
        layers = zip(known.network.layers, known.active, known.unstable, strict=True)
        states, unstable = np.concatenate([np.stack([on, may])[:, layer.rectified] for layer, on, may in layers], axis=1)
        return cls(states, unstable)

    def __call__(self, prefix: bytes) -> Mask:
        """The pattern with these decisions, one byte each."""
        pattern = self.states.copy()
        pattern[self.unstable] = np.frombuffer(prefix, dtype=np.bool_)
        return pattern

    def agree(self, one: Mask, other: Mask) -> bool:
        """Whether two patterns have the same decisions."""
        return bool(np.array_equal(one[self.unstable], other[self.unstable]))


class Proof:
    """Says of patterns whether their regions are there.

    On an unbounded domain this is asked of the homogeneous network.
    """

    def __init__(self, network: Network, domain: Domain) -> None:
        """Nothing is computed yet."""
        self._whole = Witness(network, domain)
        self._homogeneous = None if domain.bounded else homogeneous(network, domain)
        known = self._homogeneous
        self.domain, self.witness = (
            (domain, self._whole) if known is None else (known.domain, Witness(known.network, known.domain))
        )

    @cached_property
    def _exact(self) -> Exact:
        return Exact(Tree(self.witness.network, self.domain))

    def __call__(
        self, pattern: Mask, normals: Floats | None = None, constants: Floats | None = None
    ) -> tuple[Mask, Floats | None] | None:
        """The pattern of the region and a point in it; None if there is no such region.

        Parameters
        ----------
        pattern
            One state per ReLU.  Units that are 0 all over the region may be called active; what is returned does not.
        normals, constants
            ``normals @ x + constants >= 0`` says of the inputs of a tree what the pattern does, if that is known.

        Returns
        -------
        The point is None if exact arithmetic had to prove the region.
        """
        if normals is None or constants is None:
            normals, constants = walls(self.witness.network, pattern)
        found = self._proved(pattern, normals, constants)
        if found is None or found[1] is None or self._homogeneous is None:
            return found
        return found[0], self._on_whole(found[1], found[0])

    def point(self, pattern: Mask) -> Floats | None:
        """A point that proves the region of a pattern; None if floating-point numbers show none, which proves nothing."""
        for place in deep_points(self.domain, *walls(self.witness.network, pattern)):
            seen = self.witness.pattern(place)
            if seen is not None and np.array_equal(seen, pattern):
                return place if self._homogeneous is None else self._on_whole(place, pattern)
        return None

    def _on_whole(self, place: Floats, pattern: Mask) -> Floats | None:
        """The input that a point of the homogeneous network stands for; it is rounded, so it is looked at again."""
        found = self._homogeneous.point(place) if self._homogeneous else None
        seen = None if found is None else self._whole.pattern(found)
        return found if seen is not None and np.array_equal(seen, pattern) else None

    def _proved(self, pattern: Mask, normals: Floats, constants: Floats) -> tuple[Mask, Floats | None] | None:
        others = list[tuple[Mask, Floats]]()
        for point in deep_points(self.domain, normals, constants):
            seen = self.witness.pattern(point)
            if seen is not None:
                if np.array_equal(seen, pattern):
                    return seen, point
                others.append((seen, point))
        settled = self.witness.settled(pattern)
        for seen, point in others:
            if np.array_equal(seen, settled):
                return seen, point
        return (settled, None) if self._exact.exists(prefix_of(settled)) else None


def prefix_of(pattern: Mask) -> bytes:
    """A pattern as bytes, as `Tree` has them."""
    return pattern.astype(np.uint8).tobytes()


def walls(network: Network, pattern: Mask) -> tuple[Floats, Floats]:
    """What the units say of a region's inputs: ``normals @ x + constants >= 0``, one row per ReLU in layer order."""
    normals, constants, start = list[Floats](), list[Floats](), 0
    matrix, offset = network.layers[0].dense(), network.layers[0].bias
    for number, layer in enumerate(network.layers):
        if number:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is looked at exactly
                matrix, offset = np.asarray(layer.weight @ matrix), np.asarray(layer.weight @ offset) + layer.bias
        active = pattern[start : start + layer.relus]
        signs = np.where(active, 1.0, -1.0)
        normals.append(signs[:, None] * matrix[layer.rectified])
        constants.append(signs * offset[layer.rectified])
        passes = layer.factors(active)
        with np.errstate(over="ignore", invalid="ignore"):
            matrix, offset = passes[:, None] * matrix, passes * offset
        start += layer.relus
    return np.vstack(normals), np.concatenate(constants)


def deep_points(domain: Domain, normals: Floats, constants: Floats) -> Iterator[Floats]:
    """Points inside the domain with ``normals @ x + constants > 0``, as far from these walls as possible.

    The box is scaled to [-1, 1], and its faces are walls, too.  Where these would be too many, points are looked for in a box
    that is a little smaller, and then in one that is less so.  This is floating-point arithmetic, and proves nothing.

    Parameters
    ----------
    domain
        Where; the inequalities of a polytope are walls, too.
    normals, constants
        The others.
    """
    box = domain.box
    free, centre, radius = box.free, box.lower / 2.0 + box.upper / 2.0, box.upper / 2.0 - box.lower / 2.0
    if isinstance(domain, Polytope):
        normals, constants = np.vstack([normals, -domain.matrix]), np.concatenate([constants, domain.offset])
    with np.errstate(over="ignore", invalid="ignore"):
        rows, limits = normals[:, free] * radius[free], constants + normals @ centre
    if not (np.isfinite(rows).all() and np.isfinite(limits).all()):
        return
    moves = rows.any(axis=1)
    rows, limits = rows[moves], limits[moves]
    exponents = -np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1]  # squares may underflow, or overflow
    with np.errstate(over="ignore"):
        rows, limits = np.ldexp(rows, exponents[:, None]), np.clip(np.ldexp(limits, exponents), -_FARTHEST, _FARTHEST)
    sizes = np.sqrt((rows**2).sum(axis=1))
    rows, limits = rows / sizes[:, None], limits / sizes
    if not len(rows):
        yield centre
        return
    dim = rows.shape[1]
    few = dim <= _FEW
    if few:
        rows, limits = np.vstack([rows, np.eye(dim), -np.eye(dim)]), np.concatenate([limits, np.ones(2 * dim)])
    program, objective = Program(np.column_stack([rows, -np.ones(len(rows))])), np.append(np.zeros(dim), 1.0)
    most = np.abs(rows).sum(axis=1) + np.abs(limits) + _REACH + 1.0
    for inward in (0.0,) if few else _INWARD:
        ends = np.append(np.full(dim, 1.0 - inward), _REACH)
        found = program.maximise(objective, -ends, ends, -limits, most)
        if found.x[-1] > 0.0:
            point = centre.copy()
            point[free] += radius[free] * np.clip(found.x[:-1], -ends[:-1], ends[:-1])
            yield point


def _fractions(values: Floats) -> list[Fraction]:
    return [Fraction(value) for value in values.tolist()]


def _dot(row: Floats, values: Sequence[Fraction]) -> Fraction:
    return sum(
        (Fraction(entry) * value for entry, value in zip(row.tolist(), values, strict=True) if entry and value), Fraction(0)
    )
