"""What every verb says of one network, against its regions as rational arithmetic finds them.

A check returns what is wrong, in words, or None.  What holds with a confidence is not wrong if it fails: it is noted as a miss, for its rate to be looked at.
"""

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

import tessella
from fuzz.drawing import Prey
from helpers.brute_force import count_regions, fractions, region_patterns
from tessella.compressing.points import spread_points

_CONFIDENCE = 0.9  # of probable bounds: lower than the default, so that their rates are seen sooner
_POINTS = 4  # at which preactivations are compared with their bounds
_SECONDS = 20.0  # for a count; these networks have a few hundred regions


class Hunt(NamedTuple):
    """One network, its domain, its true patterns, and a seed for what is random."""

    prey: Prey
    network: tessella.Network
    domain: tessella.Domain
    truth: set
    seed: int

    @property
    def true(self):
        return len(self.truth)

    @property
    def rng(self):
        return np.random.default_rng([7, self.seed])


class Seen(NamedTuple):
    """What a check saw: what is wrong, and whether a probable bound was missed (None if it claims none)."""

    wrong: str | None = None
    missed: bool | None = None


def values_at(layers, point):
    """All preactivations at a point, exactly."""
    values, found = fractions(point), []
    for weight, bias, rectified, *rest in layers:
        slopes = rest[0] if rest else np.zeros(len(bias))
        sums = [
            sum((w * value for w, value in zip(fractions(row), values, strict=True)), Fraction(float(b)))
            for row, b in zip(weight, bias, strict=True)
        ]
        found.append(sums)
        values = [
            total if (relu and total > 0) or (not relu and slope == 0.0) else total * Fraction(float(slope))
            for total, relu, slope in zip(sums, rectified, slopes, strict=True)
        ]
    return found


def pattern_at(layers, point):
    """Which rectified units are positive at a point, exactly."""
    values = values_at(layers, point)
    return tuple(
        value > 0 for sums, layer in zip(values, layers, strict=True) for value, on in zip(sums, layer[2], strict=True) if on
    )


def counted(hunt):
    found = tessella.count(hunt.network, hunt.domain, workers=1, seconds=_SECONDS)
    if not found.lower <= hunt.true <= found.upper:
        return Seen(f"between {found.lower} and {found.upper} regions, and there are {hunt.true}")
    return Seen(
        None if found.exact == hunt.true else f"not counted in {_SECONDS:g} s: {found.lower} to {found.upper} of {hunt.true}"
    )


def listed(hunt):
    patterns = []
    for region in tessella.regions(hunt.network, hunt.domain):
        pattern = tuple(region.pattern.tolist())
        patterns.append(pattern)
        if region.point is not None and not hunt.domain.contains(region.point) and hunt.prey.case.matrix is None:
            return Seen(f"the point {region.point} lies outside of the domain")
        if region.point is not None and pattern_at(hunt.prey.case.layers, region.point) != pattern:
            return Seen(f"the point {region.point} lies in another region")
    missing, wrong = len(hunt.truth - set(patterns)), len(set(patterns) - hunt.truth)
    if missing or wrong or len(patterns) > len(set(patterns)):
        return Seen(f"{len(patterns)} regions listed, {missing} missing, {wrong} that are not there")
    return Seen()


def stable(hunt):
    """Every method: units called stable, bounds against values at points, and tighter methods inside the others."""
    lower, upper = hunt.domain.box.lower, hunt.domain.box.upper
    low, high = np.where(np.isinf(lower), np.minimum(upper, 9.0) - 10.0, lower), np.where(np.isinf(upper), 9.0, upper)
    high = np.maximum(low, high)
    points = [np.where(hunt.rng.random(len(lower)) < 0.5, low, high) for _ in range(_POINTS)]
    points += [np.clip(low + (high - low) * hunt.rng.random(len(low)), low, high)]
    points = [point for point in points if hunt.domain.contains(point)]
    exact, states = [values_at(hunt.prey.case.layers, point) for point in points], np.array(sorted(hunt.truth))
    for method in ("interval", "linear", "lp", "milp") if hunt.domain.bounded else ("linear",):
        found = tessella.stability(hunt.network, hunt.domain, method=method, seconds_per_unit=2.0)
        inactive = np.concatenate(
            [part[layer.rectified] for part, layer in zip(found.inactive, hunt.network.layers, strict=True)]
        )
        if states[:, inactive].any():
            return Seen(f"{method}: unit {np.flatnonzero(states.any(axis=0) & inactive)[0]} is not always inactive")
        for values in exact:
            for number, sums in enumerate(values):
                ends = zip(found.bounds.lower[number].tolist(), sums, found.bounds.upper[number].tolist(), strict=True)
                if not all(least <= value <= most for least, value, most in ends):
                    return Seen(f"{method}: a value of layer {number + 1} lies outside of its bounds")
    return Seen()


def bounded_above(hunt):
    for method in ("linear", "milp") if hunt.domain.bounded else ("linear",):
        found = tessella.upper_bounds(hunt.network, hunt.domain, method=method)
        if not hunt.true <= found.empirical <= found.configuration <= found.montufar <= found.raghu:
            return Seen(f"{method}: {found} for {hunt.true}")
    found = tessella.upper_bounds(hunt.network, hunt.domain, method="linear", seconds=2.0)
    if not hunt.true <= found.cellwise <= found.empirical:
        return Seen(f"cellwise: {found} for {hunt.true}")
    return Seen()


def estimated(hunt):
    probes = int(hunt.rng.choice([5, 20, 80]))
    found = tessella.estimate(
        hunt.network, hunt.domain, probes=probes, counting=False, workers=1, rng=hunt.seed, confidence=_CONFIDENCE
    )
    if found.exact is not None:
        return Seen(None if found.exact == hunt.true else f"exactly {found.exact}, and there are {hunt.true}")
    return Seen(missed=found.lower > hunt.true or (found.upper is not None and found.upper < hunt.true))


def drawn(hunt):
    for one in tessella.sample_regions(hunt.network, hunt.domain, 5, rng=hunt.seed):
        if tuple(one.region.pattern.tolist()) not in hunt.truth:
            return Seen("a region was drawn that is not there")
    return Seen()


def searched(hunt):
    found = tessella.mipbound(
        hunt.network,
        hunt.domain,
        parity_size=2,
        repetitions=12,
        rng=hunt.seed,
        confidence=_CONFIDENCE,
        workers=1,
        seconds=_SECONDS,
    )
    return Seen(missed=found.lower > hunt.true)


def analysed(hunt):
    found = tessella.analyze(hunt.network, hunt.domain, seconds=2.0, workers=1, rng=hunt.seed, confidence=_CONFIDENCE)
    if not found.proved_lower <= hunt.true <= found.upper:
        return Seen(f"between {found.proved_lower} and {found.upper} regions, and there are {hunt.true}")
    return Seen(missed=found.probable_lower > hunt.true if found.exact is None else None)


def outlined(hunt):
    """Polygons of one or two free inputs; of more, those of a slice, which has no more regions than the whole."""
    network, domain, truth = hunt.network, hunt.domain, hunt.truth
    if not domain.bounded or not domain.free_dim:
        return Seen()
    if domain.free_dim > 2:
        axes = np.sort(hunt.rng.choice(np.flatnonzero(domain.box.free), 2, replace=False)).tolist()
        cut = tessella.slice(network, domain=domain, axes=axes)
        network, domain = cut.network, cut.domain
        layers = [(layer.dense(), layer.bias, layer.rectified, layer.slope) for layer in network.layers]
        walls = (domain.matrix, domain.offset) if isinstance(domain, tessella.Polytope) else (None, None)
        truth = region_patterns(layers, domain.box.lower, domain.box.upper, *walls)
        if count_regions(layers, domain.box.lower, domain.box.upper, *walls) > hunt.true:
            return Seen("a slice has more regions than the whole")
    found = tessella.polygons(network, domain)
    patterns = [tuple(row) for row in found.patterns.tolist()]
    if len(patterns) != len(truth) or set(patterns) != truth:
        return Seen(f"{len(patterns)} polygons, and there are {len(truth)}")
    return Seen()


def compressed(hunt):
    """Outputs of the smaller network, exactly, against the proved bound on their difference."""
    found = tessella.compress(hunt.network, hunt.domain, method="linear")
    layers = [(layer.dense(), layer.bias, layer.rectified, layer.slope) for layer in found.network.layers]
    for point in spread_points(hunt.domain, _POINTS, hunt.rng):
        if not hunt.domain.contains(point):
            continue
        pairs = zip(outputs_at(hunt.prey.case.layers, point), outputs_at(layers, point), strict=True)
        apart = max(abs(one - other) for one, other in pairs)
        if np.isfinite(found.error) and apart > Fraction(found.error):
            return Seen(f"outputs are {float(apart):g} apart at {point}, and {found.error:g} was proved")
    return Seen()


def outputs_at(layers, point):
    """Outputs at a point, exactly."""
    _, _, rectified, *rest = layers[-1]
    slopes = rest[0] if rest else np.zeros(len(rectified))
    return [
        value if (relu and value > 0) or (not relu and slope == 0.0) else value * Fraction(float(slope))
        for value, relu, slope in zip(values_at(layers, point)[-1], rectified, slopes, strict=True)
    ]


CHECKS: dict[str, Callable[[Hunt], Seen]] = {
    "count": counted,
    "regions": listed,
    "stability": stable,
    "upper_bounds": bounded_above,
    "estimate": estimated,
    "sample_regions": drawn,
    "mipbound": searched,
    "polygons": outlined,
    "compress": compressed,
    "analyze": analysed,
}


def look(name, hunt):
    """One check; what it raises is wrong, too, but for refusals of a line that say what to do."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return CHECKS[name](hunt)
    except tessella.TessellaError as refusal:
        return Seen("a refusal of more than a line") if "\n" in str(refusal) else None
    except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
        return Seen(f"{type(error).__name__}: {error}")
