"""All regions of a network on a domain, one after the other.

The units are walked in layer order, depth first, so memory does not grow with the number of regions.  Below a prefix of
decisions every preactivation of the next layer is an affine function, computed in floating-point arithmetic with a bound on its
error.  A side of a unit is passed over only if a linear program proves that it is empty, with all rows relaxed by their
errors.  Where the program's answer is within tolerance, exact arithmetic decides.  At a leaf the region is proved by a point,
or exactly, so what is listed exists, and everything that exists is listed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tessella.domain import Polytope
from tessella.door import DomainLike, NetworkLike, enter
from tessella.kernel.program import EMPTY, Basis, Outcome, Program
from tessella.methods import Method
from tessella.network import Floats, Layer, Mask
from tessella.numerics import LOST_OF_PRODUCTS, ROUNDOFF
from tessella.partition.exact import Exact
from tessella.partition.region import Region
from tessella.partition.tree import Tree
from tessella.partition.witness import Patterns, Proof
from tessella.stability import Stability, check_stability, stability_to_go_on_with

_STRICT = 1e-9  # of a row's range: what a linear program finds nearer to 0 is decided exactly


def regions(network: NetworkLike, domain: DomainLike, *, stability: Stability | None = None) -> Iterator[Region]:
    """List the regions of a network on a domain: the patterns whose inputs have an interior.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    stability
        Which units are stable, if that is known already; the more are, the faster it goes.

    Examples
    --------
    >>> import tessella
    >>> network = tessella.Network.from_arrays([([[1.0], [1.0]], [0.0, -0.5]), ([[2.0, -4.0]], [-0.5])], relu_output=True)
    >>> for region in sorted(tessella.regions(network, tessella.Box(-1, 1, dim=1)), key=lambda region: region.point[0]):
    ...     print(region.point.round(3), region.pattern.astype(int), region.affine_map[0].ravel())
    [-0.5] [0 0 0] [0.]
    [0.125] [1 0 0] [0.]
    [0.375] [1 0 1] [2.]
    [0.625] [1 1 1] [-2.]
    [0.875] [1 1 0] [-0.]
    """
    network, domain = enter(network, domain)
    check_stability(stability, network, domain, "a list of regions")
    return listed(stability or stability_to_go_on_with(network, domain, method=Method.LP))


def listed(known: Stability) -> Iterator[Region]:
    """The same, from what is known of the units."""
    network, domain = known.network, known.domain
    patterns, prove = Patterns.of(known), Proof(network, domain)
    for leaf in _Walk(Tree.of(known)).leaves():
        pattern = patterns(leaf.prefix)
        found = prove(pattern, leaf.normals, leaf.constants)
        if found is not None and patterns.agree(found[0], pattern):  # not another leaf's region
            yield Region(network, domain, *found)


class _Cell(NamedTuple):
    """Inputs of the domain with ``normals @ x + constants >= 0``, up to the rows' errors, below a prefix of decisions."""

    prefix: bytes
    normals: Floats
    constants: Floats
    errors: Floats
    point: Floats


class _Affine(NamedTuple):
    """Affine functions of the inputs, and by how much they may be off anywhere in the box."""

    matrix: Floats
    offset: Floats
    error: Floats


@dataclass(slots=True)
class _Frame:
    """A layer inside a cell: a linear program of the cell's rows and the layer's, whose ends change as units are decided."""

    program: Program  # the rows: `first` of the cell, then one for each ReLU
    first: int
    # low, high: what they may be
    low: Floats
    high: Floats
    units: _Affine  # the preactivations of the ReLUs
    # least, most: ends of their ranges in the box, moved outward by what rounding may do
    least: Floats
    most: Floats
    strict: Floats  # how far from 0 a linear program must find them to be believed
    cut: list[bool]  # which units have both states below the decisions made
    basis: Basis = field(default=EMPTY)


class _Walk:
    """The leaves of a tree."""

    def __init__(self, tree: Tree) -> None:
        box = tree.domain.box
        self._tree, self._exact, self._layers = tree, Exact(tree), tree.network.layers
        self._lower, self._upper = np.array(box.lower), np.array(box.upper)
        self._reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        self._lost = LOST_OF_PRODUCTS * (1.0 + float(self._reach.sum()))  # by underflow, in a row's value anywhere
        self._centre, self._half = box.lower / 2.0 + box.upper / 2.0, box.upper / 2.0 - box.lower / 2.0

    def leaves(self) -> Iterator[_Cell]:
        """Cells of all prefixes that decide every unit; a few of them may have no interior."""
        domain, own = self._tree.domain, 0
        start = _Cell(b"", np.zeros((0, domain.dim)), np.zeros(0), np.zeros(0), self._centre)
        if isinstance(domain, Polytope):
            own = len(domain.offset)
            start = _Cell(b"", -domain.matrix, np.array(domain.offset), np.zeros(own), domain.centre)
        for cell in self._below(0, None, start):
            yield cell._replace(normals=cell.normals[own:], constants=cell.constants[own:])

    def _below(self, number: int, inputs: _Affine | None, cell: _Cell) -> Iterator[_Cell]:
        """The leaves below a cell, where a layer reads these functions."""
        if number == len(self._layers):
            yield cell
            return
        layer = self._layers[number]
        values = self._composed(layer, inputs)
        rectified = np.flatnonzero(layer.rectified)
        frame = self._frame(cell, _Affine(*(part[rectified] for part in values)))
        for prefix, point in self._units(frame, 0, cell.prefix, cell.point):
            active = np.frombuffer(prefix[len(cell.prefix) :], dtype=np.bool_)
            outputs = self._outputs(layer, values, active)
            yield from self._below(number + 1, outputs, _part(cell, frame, prefix, active, point))

    def _composed(self, layer: Layer, inputs: _Affine | None) -> _Affine:
        """The preactivations of a layer as functions of the inputs."""
        if inputs is None:
            return _Affine(layer.dense(), layer.bias, np.zeros(layer.units))
        sizes = np.asarray(abs(layer.weight) @ (np.abs(inputs.matrix) @ self._reach + np.abs(inputs.offset)))
        given = inputs.matrix.any(axis=1) | (inputs.offset != 0.0) | (inputs.error > 0.0)  # the others are 0, exactly
        reads = np.asarray(abs(layer.weight) @ given) > 0.0
        rounding = np.where(reads, (layer.inputs + 4) * ROUNDOFF * (sizes + np.abs(layer.bias)) + self._lost, 0.0)
        error = 2.0 * (np.asarray(abs(layer.weight) @ inputs.error) + rounding)
        return _Affine(np.asarray(layer.weight @ inputs.matrix), np.asarray(layer.weight @ inputs.offset) + layer.bias, error)

    def _outputs(self, layer: Layer, values: _Affine, active: Mask) -> _Affine:
        """What the units pass on where the ReLUs have these states."""
        passes = layer.factors(active)
        matrix, offset, error = values.matrix * passes[:, None], values.offset * passes, values.error * np.abs(passes)
        if not layer.is_plain:  # these products round
            size = np.abs(matrix) @ self._reach + np.abs(offset)
            error = error + 4.0 * ROUNDOFF * (error + size) + self._lost * (passes != 0.0)
        return _Affine(matrix, offset, error)

    def _frame(self, cell: _Cell, units: _Affine) -> _Frame:
        rows = np.vstack([cell.normals, units.matrix])
        middle, spread = rows @ self._centre, np.abs(rows) @ self._half
        aside = np.where(spread > 0.0, spread, 1.0)
        low, high, first = middle - spread - aside, middle + spread + aside, len(cell.constants)
        low[:first] = -cell.constants - cell.errors
        value, reach = middle[first:] + units.offset, spread[first:]
        sizes = np.abs(units.matrix) @ self._reach + np.abs(units.offset)
        lost = np.where(units.matrix.any(axis=1), self._lost * (1.0 + np.abs(units.matrix).sum(axis=1)), 0.0)
        doubt = units.error + (len(self._reach) + 4) * ROUNDOFF * sizes + lost
        outward, strict = reach + doubt, _STRICT * reach + 4.0 * doubt
        return _Frame(Program(rows), first, low, high, units, value - outward, value + outward, strict, [False] * len(value))

    def _units(self, frame: _Frame, unit: int, prefix: bytes, point: Floats) -> Iterator[tuple[bytes, Floats]]:
        """Decide the units of a layer from this one on."""
        if unit == len(frame.cut):
            yield prefix, point
            return
        sides, row = self._sides(frame, unit, prefix, point), frame.first + unit
        frame.cut[unit] = len(sides) == 2
        before = float(frame.low[row]), float(frame.high[row])
        zero, error = -frame.units.offset[unit], frame.units.error[unit]
        for state, there in sides:
            if frame.cut[unit]:
                frame.low[row], frame.high[row] = (zero - error, before[1]) if state else (before[0], zero + error)
            yield from self._units(frame, unit + 1, prefix + bytes([state]), there)
        frame.low[row], frame.high[row] = before

    def _sides(self, frame: _Frame, unit: int, prefix: bytes, point: Floats) -> list[tuple[bool, Floats]]:
        """The states of a unit in a cell that has an interior, each with a point of the closed cell on that side."""
        if frame.most[unit] <= 0.0:
            return [(False, point)]
        if frame.least[unit] > 0.0:
            return [(True, point)]
        active = self._reached(frame, unit, prefix, point, state=True)
        if active is None:  # nowhere positive: inactive, also if it is 0 everywhere
            return [(False, point)]
        inactive = self._reached(frame, unit, prefix, point, state=False)
        return [(True, point)] if inactive is None else [(True, active), (False, inactive)]

    def _reached(self, frame: _Frame, unit: int, prefix: bytes, point: Floats, *, state: bool) -> Floats | None:
        """A point of the closed cell where a unit has this state strictly; None if there is none."""
        sign = 1.0 if state else -1.0
        normal, constant, error = sign * frame.units.matrix[unit], sign * frame.units.offset[unit], frame.units.error[unit]
        if normal @ point + constant > frame.strict[unit]:
            return point
        none = -constant - error
        found = frame.program.maximise(normal, self._lower, self._upper, frame.low, frame.high, frame.basis, none)
        frame.basis = found.basis
        if found.bound <= none:
            return None
        sure = self._is_shown(frame, found, float(normal @ found.x) + constant - frame.strict[unit])
        return found.x if sure or self._exact.exists(prefix + bytes([state])) else None

    def _is_shown(self, frame: _Frame, found: Outcome, above: float) -> bool:
        """Whether a linear program's point shows that a side is there: it lies clearly on it, and behind no wall by as much."""
        behind = max((frame.low - found.rows).max(initial=0.0), (found.rows - frame.high).max(initial=0.0))
        return above > behind


def _part(cell: _Cell, frame: _Frame, prefix: bytes, active: Mask, point: Floats) -> _Cell:
    """A part of a cell after all units of a layer are decided; only those that cut it are walls."""
    cut = np.flatnonzero(frame.cut)
    signs = np.where(active[cut], 1.0, -1.0)
    return _Cell(
        prefix,
        np.vstack([cell.normals, signs[:, None] * frame.units.matrix[cut]]),
        np.concatenate([cell.constants, signs * frame.units.offset[cut]]),
        np.concatenate([cell.errors, frame.units.error[cut]]),
        point,
    )
