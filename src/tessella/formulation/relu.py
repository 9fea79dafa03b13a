"""The mixed-integer formulation of a network over a domain (Serra and Ramalingam 2020, section 3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tessella.domain import Domain, Polytope, check_bounded
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.formulation.model import Model
from tessella.network import Floats, Mask, Network, Sparse
from tessella.preactivation import PreactivationBounds

Columns: TypeAlias = npt.NDArray[np.intp]
Entries: TypeAlias = tuple[npt.NDArray[np.intp], Columns, Floats]  # rows of one block, columns, coefficients


@dataclass(frozen=True, slots=True, eq=False)
class UnitColumns:
    """Where the units of one layer are among a model's columns; -1 where a unit has no such column."""

    # preactivation, output: g and h; the same column for linear and stably active units
    preactivation: Columns
    output: Columns
    complement: Columns  # the output of the fictitious complement (h-bar), of unstable units only
    binary: Columns  # z, of unstable units only
    # what the next layer reads of the columns `output` and `complement`: so many times each.  Of a leaky unit the complement
    # counts minus its slope times, and where it is stably inactive its only column counts slope times
    factors: tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Formulation:
    """A network over a domain as a model, and the way back from its solutions.

    A value of the binary variables that can be extended to a solution is an activation pattern: one variable for each unstable unit, 1 where it is active.

    Parameters
    ----------
    network, domain
        Of what, and where.
    bounds
        The proved bounds that became H and H-bar.
    model
        The problem.
    inputs
        Columns of the inputs.
    layers
        Columns of the units, one record per layer.
    binaries
        Layer and unit (both from 0) of each binary variable, in the order of the columns.
    binary_columns
        Where they are.
    positivity
        The column of f, or None.
    """

    network: Network
    domain: Domain
    bounds: PreactivationBounds
    model: Model
    inputs: Columns
    layers: tuple[UnitColumns, ...]
    binaries: tuple[tuple[int, int], ...]
    binary_columns: Columns
    positivity: int | None

    def pattern(self, solution: npt.ArrayLike) -> Mask:
        """Which ReLUs are active in a solution, in the order of `Network.patterns`.

        Stable units are filled in.  A unit that is proved to be at least 0 counts as active everywhere, also where it is 0:
        that cuts no region that an earlier unit has not cut already.
        """
        values, parts = self._checked(solution), list[Mask]()
        for number, (layer, columns) in enumerate(zip(self.network.layers, self.layers, strict=True)):
            active = (self.bounds.lower[number] >= 0.0) & (self.bounds.upper[number] > 0.0)
            switched = columns.binary >= 0
            active[switched] = values[columns.binary[switched]] > 0.5
            parts.append(active[layer.rectified])
        return np.concatenate(parts)

    def point(self, solution: npt.ArrayLike) -> Floats:
        """The input of a solution, moved into the box where a solver's tolerance left it outside."""
        return np.clip(self._checked(solution)[self.inputs], self.domain.box.lower, self.domain.box.upper)

    def _checked(self, solution: npt.ArrayLike) -> Floats:
        values = np.asarray(solution, dtype=np.float64)
        if values.shape != (len(self.model.names),):
            msg = f"the solution has shape {values.shape}; expected one number for each of the {len(self.model.names)} columns"
            raise OptionError(msg)
        return values

    def __repr__(self) -> str:
        """One line a person can read."""
        return f"Formulation({self.network.shape} on {self.domain.describe()}, {len(self.binaries)} binaries, {self.model!r})"


def formulate(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    bounds: PreactivationBounds,
    *,
    positivity: bool = True,
    valid_inequalities: bool = True,
    outputs: bool = False,
) -> Formulation:
    """Formulate a network over a domain as a mixed-integer linear problem.

    Equations (1) to (4) of the paper, with H and H-bar as the bounds give them: ``W h + b = g``, ``g = h - hbar``,
    ``h <= H z``, ``hbar <= Hbar (1 - z)`` for unstable units.  Stably active and linear units are one column with the first
    equation; stably inactive ones are left out, and so are units that no unstable unit (nor output, if asked for) depends on.
    A leaky unit passes ``h - slope hbar`` on; where it is stably inactive it is one column like a linear one, and passes slope times that on.
    For the smallest H and H-bar the linear relaxation of a unit is the convex hull of its graph (Lemma 1).

    Columns are named ``x0``, ...; ``g_1_0``, ``h_1_0``, ``hbar_1_0``, ``z_1_0``, ... (layer from 1, unit from 0; a linear unit
    is ``g``, a stably active one ``h``); and ``f``.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    bounds
        Proved bounds on the preactivations over the domain.
    positivity
        Whether to maximise f, which is at most ``h + (1 - z) M`` for every unstable unit, with the largest H as M: a solution
        with f > 0 has only active units with positive outputs.  The paper has each unit's own H here; then a unit with a very
        small H, true or from rounding, keeps f that small in every solution.  Without positivity the objective is 0.
    valid_inequalities
        Whether to add that a unit without a positive bias is active only with an active unit behind a positive weight, and
        one with a positive bias is inactive only with an active unit behind a negative weight.  They hold where a unit is
        called active only if its output is positive, and are left out where a linear unit can take that part.
    outputs
        Whether all units of the last layer get a column, for an objective of one's own.

    Examples
    --------
    >>> import tessella
    >>> from tessella import formulation
    >>> net, box = tessella.load([([[1.0], [-1.0]], [0.0, 2.0]), ([[1.0, 1.0]], None)]), tessella.Box(-1, 1, dim=1)
    >>> formulation.formulate(net, box, tessella.stability(net, box).bounds).model.names
    ('x0', 'g_1_0', 'h_1_0', 'hbar_1_0', 'z_1_0', 'f')
    """
    network, domain = enter(network, domain)
    check_bounded(domain, "a formulation")
    unstable = _unstable(network, bounds)
    kept = _kept(network, bounds, unstable, outputs=outputs)
    parts = _Parts()
    inputs = parts.columns([f"x{number}" for number in range(domain.dim)], domain.box.lower, domain.box.upper)
    if isinstance(domain, Polytope):
        names = [f"domain_{number}" for number in range(len(domain.offset))]
        # solvers ignore rows whose entries are all tiny; dividing by powers of two changes nothing else
        sizes = np.abs(domain.matrix).max(axis=1, initial=0.0)
        odd = (sizes > 0.0) & ((sizes < 1e-3) | (sizes > 1e3))
        norms = np.exp2(np.round(np.log2(np.where(odd, sizes, 1.0))))
        rows = [_product(domain.matrix / norms[:, None], inputs)]
        parts.rows(names, rows, np.full(len(names), -np.inf), domain.offset / norms)
    layers, read = list[UnitColumns](), [(inputs, np.ones(len(inputs)))]
    for number in range(len(network.layers)):
        layers.append(_add_layer(parts, network, bounds, number, read, (unstable[number], kept[number])))
        if valid_inequalities and number:
            _add_valid_inequalities(parts, network, bounds, number, (layers[-2], layers[-1]))
        read = list(zip((layers[-1].output, layers[-1].complement), layers[-1].factors, strict=True))
    objective_column = _add_positivity(parts, bounds, layers) if positivity else None
    binaries = [(number, int(unit)) for number, columns in enumerate(layers) for unit in np.flatnonzero(columns.binary >= 0)]
    return Formulation(
        network,
        domain,
        bounds,
        parts.model(objective_column, "relu_" + re.sub(r"\W+", "_", network.shape)),
        inputs,
        tuple(layers),
        tuple(binaries),
        np.array([layers[number].binary[unit] for number, unit in binaries], dtype=np.intp),
        objective_column,
    )


@dataclass(slots=True)
class _Parts:
    """Columns and blocks of rows, as they are added."""

    names: list[str] = field(default_factory=list[str])
    lower: list[Floats] = field(default_factory=list[Floats])
    upper: list[Floats] = field(default_factory=list[Floats])
    integer: list[Mask] = field(default_factory=list[Mask])
    fixed: dict[int, float] = field(default_factory=dict[int, float])
    entries: list[Entries] = field(default_factory=list[Entries])
    row_names: list[str] = field(default_factory=list[str])
    row_lower: list[Floats] = field(default_factory=list[Floats])
    row_upper: list[Floats] = field(default_factory=list[Floats])

    def columns(self, names: Sequence[str], lower: Floats, upper: Floats, *, integer: bool = False) -> Columns:
        start = len(self.names)
        self.names += names
        self.lower.append(lower)
        self.upper.append(upper)
        self.integer.append(np.full(len(names), integer))
        return np.arange(start, start + len(names), dtype=np.intp)

    def rows(self, names: Sequence[str], blocks: Sequence[Entries], lower: Floats, upper: Floats) -> None:
        start = len(self.row_names)
        self.row_names += names
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        self.entries += [(rows + start, columns, values) for rows, columns, values in blocks]

    def model(self, maximized: int | None, name: str) -> Model:
        from scipy.sparse import coo_array  # noqa: PLC0415  heavy, and only problems need it

        lower, upper = np.concatenate(self.lower), np.concatenate(self.upper)
        for column, value in self.fixed.items():
            lower[column] = upper[column] = value
        objective = np.zeros(len(self.names))
        if maximized is not None:
            objective[maximized] = 1.0
        none: Entries = (np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))
        rows, columns, values = (np.concatenate(part) for part in zip(none, *self.entries, strict=True))
        return Model(
            tuple(self.names),
            lower,
            upper,
            np.concatenate(self.integer),
            objective,
            coo_array((values, (rows, columns)), shape=(len(self.row_names), len(self.names))),
            tuple(self.row_names),
            np.concatenate([np.zeros(0), *self.row_lower]),
            np.concatenate([np.zeros(0), *self.row_upper]),
            maximize=maximized is not None,
            name=name,
        )


def _csr(weight: Floats | Sparse) -> Sparse:
    from scipy.sparse import csr_array  # noqa: PLC0415  heavy, and only problems need it

    return csr_array(weight)  # zeros of a dense array are not stored


def _product(weight: Floats | Sparse, columns: Columns, factors: Floats | None = None) -> Entries:
    """The coefficients of ``weight @ (factors * columns)``; a column of -1 is a zero."""
    matrix = _csr(weight)
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.intp), np.diff(matrix.indptr))
    there = columns[matrix.indices] >= 0
    if factors is not None:
        there &= factors[matrix.indices] != 0.0
    read = matrix.indices[there]
    return rows[there], columns[read], matrix.data[there] * (1.0 if factors is None else factors[read])


def _one_each(columns: Columns, values: float | Floats) -> Entries:
    """One coefficient in each row."""
    return np.arange(len(columns), dtype=np.intp), columns, np.array(np.broadcast_to(values, columns.shape), dtype=np.float64)


def _unstable(network: Network, bounds: PreactivationBounds) -> list[Mask]:
    """Per layer, the ReLUs that may be active or not; their bounds must be finite."""
    if not bounds.matches(network):
        msg = f"the bounds are for layers of {[len(low) for low in bounds.lower]} units, but the network is {network.shape}"
        raise OptionError(msg)
    masks = list[Mask]()
    for number, (layer, low, high) in enumerate(zip(network.layers, bounds.lower, bounds.upper, strict=True), start=1):
        mask = layer.rectified & (low < 0.0) & (high > 0.0)
        endless = mask & ~(np.isfinite(low) & np.isfinite(high))
        if endless.any():
            unit = int(np.argmax(endless))
            msg = f"layer {number}, unit {unit}: the bounds {low[unit]} and {high[unit]} are no H and H-bar; give finite ones"
            raise OptionError(msg)
        masks.append(mask)
    return masks


def _kept(network: Network, bounds: PreactivationBounds, unstable: list[Mask], *, outputs: bool) -> list[Mask]:
    """Per layer, the units that get columns: the unstable ones, and what they depend on."""
    read = np.full(network.output_dim, outputs)
    kept = list[Mask]()
    for layer, high, mask in zip(network.layers[::-1], bounds.upper[::-1], unstable[::-1], strict=True):
        inactive = layer.rectified & (high <= 0.0) & ~layer.leaky
        kept.append(mask | (read & ~inactive))
        read = np.zeros(layer.inputs, dtype=np.bool_)
        read[_csr(layer.weight)[kept[-1]].indices] = True
    return kept[::-1]


def _add_layer(  # noqa: PLR0913, PLR0917  what a layer consists of
    parts: _Parts,
    network: Network,
    bounds: PreactivationBounds,
    number: int,
    read: list[tuple[Columns, Floats]],
    masks: tuple[Mask, Mask],
) -> UnitColumns:
    """Columns and rows of one layer, which reads the columns `read`, so many times each."""
    layer, low, high = network.layers[number], bounds.lower[number], bounds.upper[number]
    unstable, kept = np.flatnonzero(masks[0]), np.flatnonzero(masks[1])
    preactivation, output, complement, binary = (np.full(layer.units, -1, dtype=np.intp) for _ in range(4))
    labels = [f"{number + 1}_{unit}" for unit in range(layer.units)]
    own = [labels[unit] for unit in unstable]
    stays = layer.rectified & ~masks[0] & (high > 0.0)  # stably active: all of it is output
    titles = [f"{'h' if stays[unit] else 'g'}_{labels[unit]}" for unit in kept]
    preactivation[kept] = parts.columns(titles, low[kept], high[kept])
    single = kept[~masks[0][kept]]
    output[single] = preactivation[single]
    most, least = high[unstable], -low[unstable]  # H and H-bar
    zeros, ones = np.zeros(len(own)), np.ones(len(own))
    output[unstable] = parts.columns([f"h_{label}" for label in own], zeros, most)
    complement[unstable] = parts.columns([f"hbar_{label}" for label in own], zeros, least)
    binary[unstable] = parts.columns([f"z_{label}" for label in own], zeros, ones, integer=True)

    right = -layer.bias[kept]
    affine = [*(_product(_csr(layer.weight)[kept], *part) for part in read), _one_each(preactivation[kept], -1.0)]
    parts.rows([f"affine_{labels[unit]}" for unit in kept], affine, right, right)
    g, h = _one_each(preactivation[unstable], 1.0), _one_each(output[unstable], -1.0)
    parts.rows([f"split_{label}" for label in own], [g, h, _one_each(complement[unstable], 1.0)], zeros, zeros)
    below = np.full(len(own), -np.inf)
    switch = binary[unstable]
    parts.rows([f"active_{label}" for label in own], [_one_each(output[unstable], 1.0), _one_each(switch, -most)], below, zeros)
    parts.rows(
        [f"inactive_{label}" for label in own], [_one_each(complement[unstable], 1.0), _one_each(switch, least)], below, least
    )
    factors = np.where(stays | masks[0], 1.0, layer.slope), np.where(masks[0], -layer.slope, 0.0)
    return UnitColumns(preactivation, output, complement, binary, factors)


def _add_valid_inequalities(
    parts: _Parts, network: Network, bounds: PreactivationBounds, number: int, columns: tuple[UnitColumns, UnitColumns]
) -> None:
    """Rows that tie the binaries of a layer to those of the layer before it, or fix them."""
    layer, (before, here) = network.layers[number], columns
    low, high = bounds.outputs(network, number - 1)
    weight, binaries = _csr(layer.weight), np.where(network.layers[number - 1].leaky, -1, before.binary)
    for unit in np.flatnonzero(here.binary >= 0):
        span = slice(int(weight.indptr[unit]), int(weight.indptr[unit + 1]))
        read, coefficients = weight.indices[span], weight.data[span]
        leaning = -1.0 if layer.bias[unit] > 0.0 else 1.0  # which sign of a contribution changes the state
        push = leaning * coefficients
        helpers = binaries[read[((push > 0.0) & (high[read] > 0.0)) | ((push < 0.0) & (low[read] < 0.0))]]
        column = int(here.binary[unit])
        if (helpers < 0).any():  # a stably active, linear or leaky unit can always help: nothing to say
            continue
        if helpers.size == 0:  # nothing can change the state: the bounds were loose
            parts.fixed[column] = 0.0 if leaning > 0.0 else 1.0
            continue
        own = np.zeros(1, dtype=np.intp), np.array([column], dtype=np.intp), np.ones(1)
        others = np.zeros(len(helpers), dtype=np.intp), helpers, np.full(len(helpers), -leaning)
        ends = (-np.inf, 0.0) if leaning > 0.0 else (1.0, np.inf)
        parts.rows([f"valid_{number + 1}_{unit}"], [own, others], np.array(ends[:1]), np.array(ends[1:]))


def _add_positivity(parts: _Parts, bounds: PreactivationBounds, layers: Sequence[UnitColumns]) -> int:
    """The column f and its rows ``f <= h + (1 - z) M``; without unstable units f is 1, for the one pattern."""
    high = np.concatenate([ends[columns.binary >= 0] for ends, columns in zip(bounds.upper, layers, strict=True)])
    most = float(high.max()) if high.size else 1.0
    (f,) = parts.columns(["f"], np.zeros(1), np.array([most]))
    for number, columns in enumerate(layers, start=1):
        units = np.flatnonzero(columns.binary >= 0)
        blocks = [
            _one_each(np.full(len(units), f), 1.0),
            _one_each(columns.output[units], -1.0),
            _one_each(columns.binary[units], most),
        ]
        ends = np.full(len(units), -np.inf), np.full(len(units), most)
        parts.rows([f"positive_{number}_{unit}" for unit in units], blocks, *ends)
    return int(f)
