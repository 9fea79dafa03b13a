"""The door of every verb: what people have becomes a network and a domain.

A verb takes what `tessella.load` takes where it takes a network, and an interval or two arrays where it takes a domain.  Functions below the verbs take
`Network` and `Domain` only.
"""

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tessella.domain import Box, Domain, Polytope, check_fit
from tessella.errors import DomainError, TessellaError, UnknownShape
from tessella.importers import load, load_domain
from tessella.network import Network

NetworkLike: TypeAlias = object
"""A `Network`, or what `tessella.load` takes: a path, a PyTorch module, a Keras model, an ONNX ModelProto, a list ``[(W, b), ...]``, ..."""

DomainLike: TypeAlias = Domain | Sequence[Any] | npt.NDArray[Any] | str | os.PathLike[str]
"""A `Box` or `Polytope`; an interval ``(low, high)`` for every input; two arrays ``(lower, upper)``; or the path of a VNN-LIB property with one box."""

_Shape: TypeAlias = tuple[int, ...]


def enter(network: NetworkLike, domain: DomainLike) -> tuple[Network, Domain]:
    """Read a network and a domain, and check that they fit.

    Parameters
    ----------
    network
        A `Network`, or what `tessella.load` takes.
    domain
        A `Box` or `Polytope`; an interval such as ``(0, 1)``, which every input has; two arrays ``(lower, upper)``, shaped as one input or flattened;
        or the path of a VNN-LIB property that has one box.

    Examples
    --------
    >>> enter([([[1.0, 2.0]], [0.5])], (0, 1))
    (Network(2-1, 0 ReLUs, 3 parameters), Box([0, 1]^2))
    >>> enter([([[1.0, 2.0]], [0.5])], ([0, -1], [1, 2]))[1]
    Box([0, 1] x [-1, 2])
    """
    if isinstance(network, Network) and isinstance(domain, (Box, Polytope)):
        check_fit(network, domain)
        return network, domain
    made = _readable(domain)
    read = network if isinstance(network, Network) else _read(network, _told(made))
    fitting = made if isinstance(made, (Box, Polytope)) else _box(made, read)
    check_fit(read, fitting)
    return read, fitting


def enter_anywhere(network: NetworkLike, domain: DomainLike | None) -> tuple[Network, Domain | None]:
    """The same where no domain is needed: None stays None."""
    if domain is not None:
        return enter(network, domain)
    return network if isinstance(network, Network) else load(network), None


def flattened(values: npt.NDArray[Any], network: Network, name: str) -> npt.NDArray[Any]:
    """One input as the network reads it: row by row; raises where its shape shows that it is ordered in another way.

    Parameters
    ----------
    values
        One input, in its own shape or flattened.
    network
        Knows the shape of its source's input.
    name
        What to call it in messages.
    """
    ours = network.source.input_shape if network.source else ()
    given, known = ([size for size in shape if size > 1] for shape in (values.shape, ours))
    if len(given) > 1 and len(known) > 1 and given != known:
        msg = (
            f"{name} has shape {values.shape}, but the model reads inputs of shape {ours}; transpose it, or flatten it row by row"
        )
        raise DomainError(msg)
    return values.reshape(-1) if values.ndim else values


def _readable(domain: DomainLike) -> Domain | list[npt.NDArray[Any]]:
    """A domain, or the two ends of one whose number of inputs may still be open."""
    if isinstance(domain, (Box, Polytope)):
        return domain
    if isinstance(domain, (str, os.PathLike)):
        return load_domain(domain)
    if not hasattr(domain, "__len__") or not hasattr(domain, "__getitem__") or isinstance(cast("object", domain), (dict, bytes)):
        what = "None" if cast("object", domain) is None else f"an object of type {type(domain).__name__}"
    elif len(domain) != 2:
        what = f"a {type(domain).__name__} of {len(domain)}"
    else:
        ends = [_end(domain[0], "lower"), _end(domain[1], "upper")]
        if isinstance(domain, (tuple, list)) and all(isinstance(part, (tuple, list)) for part in domain):
            _refuse_intervals(*ends)
        return ends
    msg = f"a domain was expected, not {what}; give a Box, a Polytope, an interval such as (0, 1), or two arrays (lower, upper)"
    raise DomainError(msg)


def _end(values: object, name: str) -> npt.NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        msg = f"{name} is a masked array; fill in what is masked first"
        raise DomainError(msg)
    try:
        end = np.asarray(_numbers(values), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        msg = f"{name} is {str(values)[:40]!r}, which is no number and no array of numbers; a domain is an interval such as (0, 1), or two arrays (lower, upper)"
        raise DomainError(msg) from error
    return end


def _numbers(values: object) -> Any:
    """What numpy may read as numbers; it would take None for nan, and bytes for their codes."""
    if values is None or isinstance(values, (bytes, bytearray, memoryview)):
        msg = "no numbers"
        raise TypeError(msg)
    return values


def _refuse_intervals(lower: npt.NDArray[Any], upper: npt.NDArray[Any]) -> None:
    """Two lists of two numbers may be meant as an interval for each of two inputs; where they can be, somebody must say so."""
    if lower.shape == upper.shape == (2,) and lower[0] < lower[1] and upper[0] < upper[1]:
        corners, intervals = ", ".join(map(_text, (lower, upper))), ", ".join(map(_text, zip(lower, upper, strict=True)))
        msg = f"({corners}) may be two corners or two intervals; write tessella.Box({corners}) for corners, tessella.Box({intervals}) for intervals"
        raise DomainError(msg)


def _text(numbers: Iterable[float]) -> str:
    return f"[{', '.join(f'{number:g}' for number in numbers)}]"


def _told(domain: Domain | list[npt.NDArray[Any]]) -> _Shape | None:
    """What a domain says of the shape of one input."""
    if isinstance(domain, (Box, Polytope)):
        return (domain.dim,)
    return max((end.shape for end in domain), key=math.prod) or None


def _read(source: object, shape: _Shape | None) -> Network:
    """The network, whose input may have the shape of the domain where its source does not tell."""
    try:
        return load(source)
    except UnknownShape:
        if shape is None:
            raise
        try:
            return load(source, input_shape=shape)
        except TessellaError:
            pass
        raise


def _box(ends: list[npt.NDArray[Any]], network: Network) -> Box:
    lower, upper = (flattened(end, network, name) for end, name in zip(ends, ("lower", "upper"), strict=True))
    return Box(lower, upper, dim=0 if lower.ndim or upper.ndim else network.input_dim)
