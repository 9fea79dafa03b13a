"""The door: a network and a domain become a smaller network."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tessella import options
from tessella.compressing.building import Building, Fate, Made
from tessella.compressing.pruning import largest_error, pruned
from tessella.compressing.result import Compression, Removed, compared
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import ConversionMismatch
from tessella.executors import ExecutorLike
from tessella.kernel import meter
from tessella.methods import Method
from tessella.network import COMPARISON, Layer, Network, Source
from tessella.progress import units, with_bar
from tessella.stability import Stability, check_stability
from tessella.stability import stability as find_stability


@with_bar(units)
def compress(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    *,
    stability: Stability | None = None,
    method: Method | str = Method.MILP,
    seconds_per_unit: float = 10.0,
    seconds: float | None = None,
    executor: ExecutorLike | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
) -> Compression:
    """Make a network smaller without changing what it computes on a domain.

    Units that are never active are removed.  Those that are never inactive are affine: later layers read what they are made of, or as few linear units as can carry it on, and a layer without
    unstable units is left out.  Units that are multiples of each other are merged, of opposite ones, too; units that nobody reads, and constants, are removed.  What is merged or left out is
    decided in exact arithmetic (Serra, Kumar and Ramalingam, "Lossless compression of deep neural networks", CPAIOR 2020, has the first two for plain ReLUs).

    Fewer ReLUs come first, then fewer weights.  The outputs stay, in their order.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.  On unbounded domains units are only
        removed, not put together, as the rounding of weights would have no bound there.
    stability
        Which units are stable, if that is known.
    method, seconds_per_unit, seconds, executor, progress
        How stable units are found, as in `tessella.stability`.

    Examples
    --------
    >>> import tessella
    >>> found = tessella.compress([([[1.0, 1.0], [1.0, 0.0], [2.0, 0.0], [-1.0, -1.0]], [0, -0.5, -1, 0]), ([[1.0, 1.0, -3.0, 1.0]], None)], (0, 1))
    >>> found.network.shape, [one.kept for one in found.removed], found.error < 1e-15
    ('2-1+1-1', [1, 0], True)
    >>> found.network([[1.0, 0.5]]).tolist(), found.original([[1.0, 0.5]]).tolist()
    ([[-1.0]], [[-1.0]])
    """
    start = meter.clock()
    network, domain = enter(network, domain)
    check_stability(stability, network, domain, "a compression")
    options.chosen(Method, method, "method", "a compression")
    known = stability or find_stability(
        network,
        domain,
        method=method,
        seconds_per_unit=seconds_per_unit,
        seconds=seconds,
        executor=executor,
        progress=progress,
    )
    building = Building.on(known)
    for number in range(len(network.layers) - 1):
        building.add(number)
    building.finish()
    box = domain.box
    error = largest_error(building.made, np.maximum(np.abs(box.lower), np.abs(box.upper)))
    layers = pruned(building.made, building.fates, network.input_dim)
    smaller = Network(layers, _source(network.source))
    difference, points, agree = compared(network, smaller, domain, error)
    if not agree:
        msg = f"the smaller network's outputs differ by {difference:.2g} from those of {network!r}, more than {error:.2g}; please report this network"
        raise ConversionMismatch(msg)
    return Compression(
        smaller,
        network,
        domain,
        _removed(network, building, layers),
        tuple(np.flatnonzero(np.asarray(abs(layers[-1].weight).sum(axis=1)).ravel() == 0.0).tolist()),
        error,
        difference,
        points,
        known.bounds.method,
        meter.clock() - start,
        known.bounds.interrupted,
        known,
    )


def _removed(network: Network, building: Building, layers: tuple[Layer, ...]) -> tuple[Removed, ...]:
    """What became of each layer; the smaller network's last layers are those that were made last."""
    late = building.made[len(building.made) - len(layers) :]
    place: dict[int, tuple[Made, Layer]] = {one.number: (one, layer) for one, layer in zip(late, layers, strict=True)}
    found = list[Removed]()
    for number, (layer, fates) in enumerate(zip(network.layers, building.fates, strict=True)):
        of_relus = fates[layer.rectified]
        kinds = {fate.name.lower(): int((of_relus == fate).sum()) for fate in Fate}
        made = place.get(number)
        carried = made[1].linear_units if made else 0
        found.append(Removed(number + 1, layer.relus, linear=layer.linear_units, carried=carried, gone=made is None, **kinds))
    return tuple(found)


def _source(source: Source | None) -> Source | None:
    """Where it came from: what was said of the original's units and its check does not hold for it."""
    if source is None:
        return None
    units = tuple((kind, count) for kind, count in source.units if kind == COMPARISON)
    return replace(source, points=0, difference=0.0, units=units, notes=(), details=())
