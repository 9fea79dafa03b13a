"""The upper bound that sees the weights: Theorem 1 of Serra and Ramalingam (AAAI 2020).

The recurrence is the one of the theorem's proof (the printed sum mixes up two layers).  With R(l, k, d) the regions that layers
l, l + 1, ... make of one region of dimension d in which k ReLUs of layer l - 1 are active,

    R(l, k, d) = sum of C(I, j) R(l + 1, A - j, min(A - j + m, d)) over j = 0 .. min(I, d),

where A and I bound the units of layer l that are active, and that are cut, in such a region, and m is the number of its linear
units, which cut nothing and carry a dimension on.

A and I come from Propositions 1 and 2: outputs of ReLUs are not negative and those of inactive ones are 0, so a unit with a
bias of at most 0 can be active only if an active unit feeds it with a positive weight, and one with a positive bias can be
inactive only if an active unit feeds it with a negative weight.  Which k active units reach most is a maximum-coverage problem.
What a unit reads from elsewhere, from the inputs, from linear units or from leaky ones, is there in every region and may have any sign.
It goes into the bias, which becomes an interval; a unit whose interval has 0 inside can be cut whatever is active.

Leaky units cut, but lose nothing: they are counted in I and in m, not in A.  If e of the units that can be cut are leaky, of j inactive ones at least j - e are ReLUs
without a slope, so A - max(j - e, 0) takes the place of A - j (proof in `tessella.upper.configuration`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from typing import Any, TypeAlias

import numpy as np

from tessella.domain import Domain
from tessella.door import DomainLike, NetworkLike, enter
from tessella.executors import ExecutorLike
from tessella.methods import Method
from tessella.network import Floats, Layer, Mask, Network
from tessella.options import check_whole
from tessella.progress import units, with_bar
from tessella.stability import Stability, check_stability
from tessella.stability import stability as find_stability
from tessella.tightening.rounding import gamma, lost
from tessella.upper.configuration import Stage, configuration, is_heavy, stages
from tessella.upper.coverage import Coverage, maximum_coverage

EFFORT = 200_000
_MOST_SETS = 3000  # units of a layer, beyond which it is not asked which units of the next one they can switch
_Table: TypeAlias = list[int]  # regions below a layer, by dimension


@dataclass(frozen=True, slots=True)
class Limits:
    """What a layer can do in a region where k ReLUs of the layer before are active, for k = 0, 1, ...; the last holds for more."""

    most_active: tuple[int, ...]  # the most ReLUs that can be active
    most_unstable: tuple[int, ...]  # the most ReLUs that can cut the region
    linear: int  # units that are never lost: without a ReLU, or leaky
    leaky: int = 0  # the most units that can cut the region and are not lost

    def left(self, active: int, inactive: int) -> int:
        """How many ReLUs are active, at most, where at most so many can be and so many of those that cut are inactive."""
        return active - max(inactive - self.leaky, 0)

    def at(self, active: int) -> tuple[int, int]:
        """Both, where at most so many ReLUs of the layer before are active."""
        index = min(active, len(self.most_active) - 1)
        return self.most_active[index], self.most_unstable[index]


@dataclass(frozen=True, slots=True)
class Empirical:
    """The empirical bound and what it was made of.

    Parameters
    ----------
    value
        The bound.
    inspected
        How many subsets of units were looked at.
    exact_coverage
        Whether all maxima over subsets are exact; if not, some are bounds, and the value is still one.
    most_active, most_unstable
        Per layer, for each number k of active ReLUs in the layer before: the most ReLUs that can be active, and be cut.
    inspected_active, inspected_unstable
        How many subsets of k units were looked at for each of these.  Where both are maxima over the same sets, the same subsets give both, and `inspected` has them once.
    """

    value: int
    inspected: int
    exact_coverage: bool
    most_active: tuple[tuple[int, ...], ...]
    most_unstable: tuple[tuple[int, ...], ...]
    inspected_active: tuple[tuple[int, ...], ...] = ()
    inspected_unstable: tuple[tuple[int, ...], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the bound itself is a `Bound`'s to tell."""
        return {
            "inspected": self.inspected,
            "exact_coverage": self.exact_coverage,
            "most_active": [list(row) for row in self.most_active],
            "most_unstable": [list(row) for row in self.most_unstable],
            "inspected_active": [list(row) for row in self.inspected_active],
            "inspected_unstable": [list(row) for row in self.inspected_unstable],
        }


@with_bar(units)
def empirical_bound(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    stability: Stability | None = None,
    *,
    method: Method | str = Method.MILP,
    effort: int = EFFORT,
    executor: ExecutorLike | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
) -> int:
    """Bound the regions on a domain from above by the units that can be active and be cut there.

    The Empirical upper bound of Serra and Ramalingam (2020, Theorem 1).

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    stability
        The units that never change their state there, if they are known.
    method
        How to find them if not: ``"interval"``, ``"linear"``, ``"lp"`` or ``"milp"``.
    effort
        How many subsets of units may be looked at.
    executor, progress
        Passed on to `tessella.stability`.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0], [1.0]], [0.0, 0.5]), ([[1.0, 1.0]], None)])
    >>> tessella.empirical_bound(net, tessella.Box(-1, 1, dim=1)), tessella.empirical_bound(net, tessella.Box(1, 2, dim=1))
    (3, 1)
    """
    check_whole(effort, "effort", "the empirical bound", least=0, of="subsets of units")
    network, domain = enter(network, domain)
    if stability is None:
        stability = find_stability(network, domain, method=method, executor=executor, progress=progress)
    return empirical(network, domain, stability, effort=effort).value


def empirical(network: Network, domain: Domain, stability: Stability, *, effort: int = EFFORT) -> Empirical:
    """`empirical_bound`, with its parts.

    Parameters
    ----------
    network, domain
        The network, and where.
    stability
        The units that never change their state there.
    effort
        How many subsets of units may be looked at, in all layers together.
    """
    check_stability(stability, network, domain, "the empirical bound")
    limits: list[Limits] = []
    subsets: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    inspected, exact = 0, True
    for number, layer in enumerate(network.layers):
        share = max(effort - inspected, 0) // (2 * (len(network.layers) - number))
        linear = layer.linear_units + int(layer.leaky.sum())
        if _is_wide(stability, number):
            limits.append(_widest(stability, number, linear))
            subsets.append(((0,), (0,)))
            exact = exact and number == 0  # no ReLU comes before the first layer
            continue
        reach = _Reach.of(stability, number)
        activated, cut = reach.coverages(share)
        limits.append(reach.limits(activated, cut, linear=linear))
        subsets.append((activated.inspected, cut.inspected))
        inspected += sum(activated.inspected) + (sum(cut.inspected) if cut is not activated else 0)
        exact = exact and all(activated.exact) and all(cut.exact)
    value = _value(network, domain.free_dim, limits)
    most_active, most_unstable = tuple(part.most_active for part in limits), tuple(part.most_unstable for part in limits)
    return Empirical(value, inspected, exact, most_active, most_unstable, *zip(*subsets, strict=True))


def _value(network: Network, dim: int, limits: list[Limits]) -> int:
    """The recurrence; for networks so large that it would take long, that of layers that can always do the most they ever can."""
    most = [
        Stage(unstable, active + part.linear - unstable, part.leaky)
        for part in limits
        for active, unstable in [(part.most_active[-1], part.most_unstable[-1])]
    ]
    tables = max((len(part.most_active) for part in limits), default=1)
    if is_heavy(dim, most, times=tables):
        return configuration(dim, most)
    return min(nested(dim, limits), configuration(dim, stages(network)))


def _is_wide(stability: Stability, number: int) -> bool:
    """Whether it would take long to find which units of a layer the ones before can switch."""
    if number == 0:
        return stability.network.layers[0].parameters > _MOST_SETS * _MOST_SETS
    before = int((~stability.inactive[number - 1]).sum())
    return before > _MOST_SETS or before * int(stability.unstable[number].sum()) > _MOST_SETS * _MOST_SETS


def _widest(stability: Stability, number: int, linear: int) -> Limits:
    """What a layer can do at most, whatever is active before."""
    layer, unstable = stability.network.layers[number], stability.unstable[number]
    active = int(((stability.active[number] | unstable) & ~layer.leaky).sum())
    return Limits((active,), (int(unstable.sum()),), linear, int((unstable & layer.leaky).sum()))


def nested(dim: int, layers: Sequence[Limits]) -> int:
    """The recurrence, for a domain of this dimension.

    A layer's value depends on k only through A and I, and those stop growing at small k.  So there is one table over d for each
    pair (A, I) that can occur; these are found forwards, and the tables are filled backwards.
    """
    following = [*layers[1:], Limits((0,), (0,), 0)]  # behind the last layer a region stays as it is
    dims, pairs = [dim], [{layers[0].at(0)}]
    for layer, after in zip(layers, following, strict=True):
        dims.append(min(dims[-1], max(active for active, _ in pairs[-1]) + layer.linear))
        pairs.append(
            {after.at(layer.left(active, j)) for active, unstable in pairs[-1] for j in range(min(unstable, dims[-2]) + 1)}
        )
    below = dict.fromkeys(pairs[-1], [1] * (dims[-1] + 1))
    for number in range(len(layers) - 1, -1, -1):
        split = partial(_split, layer=layers[number], widest=dims[number], after=following[number], below=below)
        below = {pair: split(pair) for pair in pairs[number]}
    return below[layers[0].at(0)][dim]


def _split(pair: tuple[int, int], *, layer: Limits, widest: int, after: Limits, below: dict[tuple[int, int], _Table]) -> _Table:
    """Regions that one more layer makes of a region of dimension d, for d = 0..widest.

    With j of the units that cut it inactive there are at most C(unstable, j) parts, j <= d, each of dimension
    min(d, active - j + linear), leaky units aside.  While that is d, parts with the same table are taken together; beyond, a part does not depend
    on d, and one running sum serves all d.
    """
    (active, unstable), linear = pair, layer.linear
    steps = range(min(unstable, widest) + 1)
    # each binomial from the one before: wide layers would take minutes otherwise
    ways = list(accumulate(steps[:-1], lambda before, j: before * (unstable - j) // (j + 1), initial=1))
    tables = [below[after.at(layer.left(active, j))] for j in steps]
    parts = [0, *accumulate(ways)]
    runs = [list(run) for _, run in groupby(steps, key=lambda j: id(tables[j]))]
    dims = [layer.left(active, j) + linear for j in steps]
    narrowed = [way * table[dim] if dim < len(table) else 0 for way, table, dim in zip(ways, tables, dims, strict=True)]
    regions = [0, *accumulate(narrowed)]
    result: _Table = []
    for dim in range(widest + 1):
        end = min(unstable, dim) + 1
        middle = min(active + linear - dim + layer.leaky + 1, end) if dim <= active + linear else 0
        same = sum((parts[min(run[-1] + 1, middle)] - parts[run[0]]) * tables[run[0]][dim] for run in runs if run[0] < middle)
        result.append(same + regions[end] - regions[middle])
    return result


@dataclass(frozen=True, slots=True)
class _Reach:
    """Which units of a layer the ReLUs before it can switch."""

    # ReLUs without a slope that may be active whatever is active before: stably active ones, and those that lean that way or
    # freely
    always_active: int
    always_unstable: int  # units that may be cut whatever is active before
    leaky: int  # leaky units that may be cut
    cut: list[int]  # for each ReLU before that can be active: the other units that it may help to be cut, as bits
    activated: list[int]  # the same, with only those that it may help to be active

    @classmethod
    def of(cls, stability: Stability, number: int) -> "_Reach":
        """The reach of the ReLUs before this layer."""
        layer = stability.network.layers[number]
        before = np.zeros(layer.inputs, dtype=np.bool_)
        if number:
            earlier = stability.network.layers[number - 1]
            before = earlier.rectified & ~earlier.leaky
        low, high = _constant(layer, ~before, *_inputs(stability, number))
        unstable = stability.unstable[number]
        inactive_leaning = unstable & (high <= 0.0)
        active_leaning = unstable & ~inactive_leaning & (low >= 0.0)
        free = unstable & ~inactive_leaning & ~active_leaning
        can_be_active = before & ~stability.inactive[number - 1] if number else before
        signs = np.where(inactive_leaning, 1.0, np.where(active_leaning, -1.0, 0.0))
        cut = _columns(layer, signs, can_be_active)
        lifts = _bits(inactive_leaning & ~layer.leaky)
        always_active = int(((stability.active[number] | active_leaning | free) & ~layer.leaky).sum())
        leaky = int((unstable & layer.leaky).sum())
        return cls(always_active, int(free.sum()), leaky, cut, [members & lifts for members in cut])

    def coverages(self, effort: int) -> tuple[Coverage, Coverage]:
        """The most units that k ReLUs can activate, and the most that they can help to be cut."""
        activated = maximum_coverage(self.activated, effort=effort)
        return activated, activated if self.activated == self.cut else maximum_coverage(self.cut, effort=effort)

    def limits(self, activated: Coverage, cut: Coverage, *, linear: int) -> Limits:
        """Propositions 1 and 2."""
        most_active = tuple(self.always_active + value for value in activated.values)
        # what is cut is active on one side; this could fail only where coverage is not exact
        most_unstable = tuple(
            min(self.always_unstable + value, active + self.leaky) for value, active in zip(cut.values, most_active, strict=True)
        )
        return Limits(most_active, most_unstable, linear, self.leaky)


def _inputs(stability: Stability, number: int) -> tuple[Floats, Floats]:
    """Bounds on what a layer reads."""
    if number:
        return stability.bounds.outputs(stability.network, number - 1)
    return stability.domain.box.lower, stability.domain.box.upper


def _constant(layer: Layer, chosen: Mask, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds on each unit's bias and what it reads from the chosen units, moved outward by what rounding may have done.

    An end that is infinite makes the bounds infinite of all units that read it.
    """
    weight, low, high = layer.weight[:, chosen], low[chosen], high[chosen]
    down, up = np.isneginf(low), np.isposinf(high)
    low, high = np.where(down, 0.0, low), np.where(up, 0.0, high)
    size = abs(weight)
    positive, negative = (weight + size) / 2.0, (weight - size) / 2.0
    tiny, ends = lost(len(low), weight, np.concatenate([low, high])), list[Floats]()
    for outward, first, second in ((-1.0, low, high), (1.0, high, low)):
        slack = gamma(len(low)) * (positive @ np.abs(first) - negative @ np.abs(second) + np.abs(layer.bias)) + tiny
        ends.append(np.asarray(positive @ first + negative @ second + layer.bias + outward * slack))
    downward, upward = positive @ down > negative @ up, positive @ up > negative @ down
    return np.where(downward, -np.inf, ends[0]), np.where(upward, np.inf, ends[1])


def _columns(layer: Layer, signs: Floats, chosen: Mask) -> list[int]:
    """For each chosen input, the units where weight and sign agree, as bits."""
    if isinstance(layer.weight, np.ndarray):
        agree = signs[:, None] * layer.weight > 0.0
        return [_bits(agree[:, column]) for column in np.flatnonzero(chosen)]
    weight, masks = layer.weight.tocsc(), list[int]()
    for column in np.flatnonzero(chosen):
        part = slice(weight.indptr[column], weight.indptr[column + 1])
        flags = np.zeros(layer.units, dtype=np.bool_)
        units = weight.indices[part]
        flags[units] = signs[units] * weight.data[part] > 0.0
        masks.append(_bits(flags))
    return masks


def _bits(flags: Mask) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
