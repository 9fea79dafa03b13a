"""The proof that an import went well: the network and its source agree at seeded points."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.errors import ConversionMismatch, NetworkError, UnsupportedModel
from tessella.network import Floats, Network, Source
from tessella.tolerances import DEFAULT, Tolerances

POINTS = 8  # the origin, and Gaussian ones of growing size


def checked(
    network: Network,
    source: Source,
    forward: Callable[[Floats], Floats],
    *,
    tolerances: Tolerances = DEFAULT,
    after: Callable[[Floats], Floats] | None = None,
) -> Network:
    """Compare a network with its source and note the largest difference, or raise.

    Parameters
    ----------
    network
        What was read.
    source
        What it was read from; the result carries it, with the difference filled in.
    forward
        The source's own forward pass for one flat input, giving a flat output.
    tolerances
        How much they may differ.
    after
        What the source makes of a batch of the network's outputs, if that was left off and its results are all that can be compared.
    """
    rng = np.random.default_rng(20200207)
    spread = np.linspace(0.0, 2.0, POINTS)[:, None]
    inputs = spread * rng.standard_normal((POINTS, network.input_dim))
    expected = np.stack([np.asarray(forward(point), dtype=np.float64).ravel() for point in inputs])
    if not np.isfinite(expected).all():
        value = expected[~np.isfinite(expected)][0]
        msg = f"{source.name}: the {source.kind} model itself gives {value:g} for inputs of about 1, so its numbers pass what its precision can hold; look at its weights, or at what it divides by"
        raise UnsupportedModel(msg)
    found = network(inputs) if after is None else after(network(inputs))
    if found.shape != expected.shape:
        msg = f"{source.name}: the network read has {found.shape[1]} outputs, the {source.kind} model {expected.shape[1]}"
        raise ConversionMismatch(msg)
    scale = 1.0 + np.abs(expected).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        difference = float((np.abs(found - expected) / scale).max())
    if not difference <= tolerances.conversion:
        msg = (
            f"{source.name}: the network read differs from the {source.kind} model by {difference:.2g} (relative) at seeded points; "
            f"at most {tolerances.conversion:g} is accepted. Please report this model."
        )
        raise ConversionMismatch(msg)
    traced = network.source or source
    source = replace(source, points=POINTS, difference=difference, units=traced.units, notes=traced.notes, details=traced.details)
    return replace(network, source=source)


@contextmanager
def naming_what_is_not_finite(weights: Callable[[], Iterable[tuple[str, npt.NDArray[Any]]]]) -> Generator[None]:
    """Where a network has numbers that are not finite, say which of its source's weights brought them in.

    Parameters
    ----------
    weights
        Gives the source's weights with their names; asked only then.
    """
    try:
        yield
    except NetworkError as error:
        for name, array in weights():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                found = array[~np.isfinite(array)].ravel()[0]
                msg = f"its weights {name!r} hold {found}; every number must be finite: go back to weights from before training diverged, or replace them"
                raise NetworkError(msg) from error
        raise
