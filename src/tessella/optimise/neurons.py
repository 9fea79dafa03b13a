"""What all adapters share: bounds per layer, and the checks that a model of another package is one of the same network on the same inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from tessella.domain import Polytope
from tessella.errors import DomainError, MissingPackage, OptionError
from tessella.network import Floats, Layer, Mask
from tessella.preactivation import passed_on
from tessella.stability import Stability

_CLOSE = 1e-5  # relative difference of weights that single precision may make
_SLACK = 1e-9  # how far inputs may reach out, relative to the box: what writing decimals may do


@dataclass(frozen=True, slots=True)
class Handed:
    """What was handed over.

    Parameters
    ----------
    units
        Units whose bounds were set.
    active, inactive
        ReLUs among them that are stable: no binary variable is left open for these.
    """

    units: int
    active: int
    inactive: int


@dataclass(frozen=True, slots=True, eq=False)
class Neurons:
    """A layer's proved bounds."""

    layer: Layer
    # lower, upper: of the preactivations
    lower: Floats
    upper: Floats
    # least, most: of what the units pass on
    least: Floats
    most: Floats
    # active, inactive: which are stable
    active: Mask
    inactive: Mask


def neurons(stability: Stability) -> list[Neurons]:
    """The bounds of all layers.

    Parameters
    ----------
    stability
        What `tessella.stability` found.
    """
    if not isinstance(stability, Stability):  # pyright: ignore[reportUnnecessaryIsInstance]  callers may be untyped
        msg = f"stability is a {type(stability).__name__}; bounds for optimisers are made of what tessella.stability returns"
        raise OptionError(msg)
    found = list[Neurons]()
    for number, layer in enumerate(stability.network.layers):
        lower, upper = stability.bounds.lower[number], stability.bounds.upper[number]
        ends = passed_on(layer, lower, upper)
        found.append(Neurons(layer, lower, upper, *ends, stability.active[number], stability.inactive[number]))
    return found


def handed(layers: Sequence[Neurons]) -> Handed:
    """How many bounds there are."""
    return Handed(
        sum(one.layer.units for one in layers),
        sum(int(one.active.sum()) for one in layers),
        sum(int(one.inactive.sum()) for one in layers),
    )


def check_inputs(stability: Stability, lower: Floats, upper: Floats, *, trusted: bool) -> None:
    """Raise if a model's inputs may lie where the bounds do not hold.

    Parameters
    ----------
    stability
        Knows where they hold.
    lower, upper
        What the model's input variables may be.
    trusted
        Whether the caller vouches that inputs lie in the domain.
    """
    domain = stability.domain
    if len(lower) != domain.dim:
        msg = f"the model has {len(lower)} inputs, but the network of the bounds reads {domain.dim}; give the stability of the same network"
        raise OptionError(msg)
    if trusted:
        return
    if isinstance(domain, Polytope):
        msg = f"the bounds hold on {domain.describe()}, and nobody can see whether the model has these inequalities; add them to it, and pass trusted=True"
        raise DomainError(msg)
    slack = _SLACK * (1.0 + np.maximum(np.abs(domain.lower), np.abs(domain.upper)))
    out = (lower < domain.lower - slack) | (upper > domain.upper + slack)
    if out.any():
        where = int(np.argmax(out))
        msg = (
            f"input {where} of the model may be {lower[where]:g} to {upper[where]:g}, but the bounds hold from {domain.lower[where]:g} to "
            f"{domain.upper[where]:g}; set the variable's bounds, find the stability of its box, or pass trusted=True if constraints of yours keep it inside"
        )
        raise DomainError(msg)


@dataclass(frozen=True, slots=True)
class Step:
    """An affine map of another package, and the variables before and behind its ReLU."""

    weight: Any  # one column per unit
    bias: Any
    before: Any
    behind: Any  # None if it has no ReLU
    extra: Any = None  # variables that the ReLU needs besides
    rows: Any = None  # its rows, if those are binary: behind - preactivation <= (1 - binary) M, and behind <= binary M


def matched(stability: Stability, steps: Sequence[Step], who: str) -> list[tuple[Step, Neurons]]:
    """The steps whose preactivations Tessella knows, the last ones of runs without a ReLU between, with their bounds; raises if these are not the network's layers."""
    weights = [np.asarray(step.weight).T for step in steps]
    known = check_same(stability, weights, [step.bias for step in steps], [step.behind is not None for step in steps], who)
    last = [step for number, step in enumerate(steps) if step.behind is not None or number == len(steps) - 1]
    return list(zip(last, known, strict=True))


def check_same(
    stability: Stability, weights: Sequence[Any], biases: Sequence[Any], bends: Sequence[bool], who: str
) -> list[Neurons]:
    """The bounds of layers, if another package's layers are those of the network; raises if not.

    Layers there that have no ReLU before the next one are multiplied together first, as Tessella reads them.

    Parameters
    ----------
    stability
        The bounds.
    weights, biases
        Of the other package's layers, one row per unit.
    bends
        Which of them have a ReLU.
    who
        That package.
    """
    found = list[tuple[Floats, Floats, bool]]()
    for weight, bias, bend in zip(weights, biases, bends, strict=True):
        matrix, constants = (
            np.asarray(weight, dtype=np.float64),
            np.broadcast_to(np.asarray(bias, dtype=np.float64), np.shape(weight)[:1]),
        )
        if found and not found[-1][2]:
            before, more, _ = found.pop()
            matrix, constants = matrix @ before, matrix @ more + constants
        found.append((matrix, constants, bool(bend)))
    layers = stability.network.layers
    theirs = [f"{len(constants)}{' ReLU' if bend else ''}" for _, constants, bend in found]
    if len(found) != len(layers):
        msg = f"the {who} model has layers of {', '.join(theirs)} units, but the bounds are those of {stability.network!r}; give the stability of the same network"
        raise OptionError(msg)
    for number, (layer, (matrix, constants, bend)) in enumerate(zip(layers, found, strict=True), start=1):
        plain = layer.is_plain and bool((layer.rectified == bend).all())
        if (
            not plain
            or matrix.shape != (layer.units, layer.inputs)
            or not (_alike(matrix, layer.dense()) and _alike(constants, layer.bias))
        ):
            msg = f"layer {number} of the {who} model is not that of {stability.network!r}, whose bounds these are; give the stability of the same network"
            raise OptionError(msg)
    return neurons(stability)


def _alike(one: Floats, other: Floats) -> bool:
    return bool(np.abs(one - other).max(initial=0.0) <= _CLOSE * (1e-30 + np.abs(other).max(initial=0.0)))


def package(name: str, module: str) -> Any:
    """An optional package, or what to install.

    Parameters
    ----------
    name
        Its name on PyPI.
    module
        Its name in Python.
    """
    try:
        return import_module(module)
    except ImportError as error:
        msg = f"this needs the package {name} ({error}): pip install {name}"
        raise MissingPackage(msg) from error
