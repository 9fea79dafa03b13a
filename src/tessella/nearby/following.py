"""Regions where the data are, while a network is trained: what is known of them at one moment."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tessella.domain import Box, Domain
from tessella.errors import OptionError
from tessella.lines.along import Along, along
from tessella.nearby.local import Local, local
from tessella.network import Network
from tessella.result import Status

SCALARS = ("local_regions_at_least", "local_regions_at_most", "local_distance", "path_breaks")  # what `Near.scalars` may hold


@dataclass(frozen=True, slots=True)
class Near:
    """What was found around data at the end of one epoch.

    Parameters
    ----------
    epoch
        Which.
    balls
        The regions around each example, and how far its nearest wall is.
    path
        The regions along the lines from each example to the next; None for a single example.
    """

    epoch: int
    balls: Local
    path: Along | None

    @property
    def breaks(self) -> tuple[int, ...]:
        """How many breaks floating-point arithmetic sees from each example to the next; proved where ``path.regions`` is not None."""
        if self.path is None:
            return ()
        last = len(self.path.path) - 1
        return tuple(np.bincount(np.minimum(self.path.breaks.astype(np.int64), last - 1), minlength=last).tolist())

    @property
    def scalars(self) -> dict[str, float]:
        """What is drawn over epochs: medians over the examples, and the mean number of breaks from one to the next."""
        found = {
            "local_regions_at_least": float(np.median(np.array(self.balls.lower, dtype=np.float64))),
            "local_regions_at_most": float(np.median(np.array(self.balls.upper, dtype=np.float64))),
            "local_distance": float(np.median(self.balls.distances)),
        }
        if self.path is not None:
            found["path_breaks"] = float(np.mean(self.breaks))
        return {name: value for name, value in found.items() if np.isfinite(value)}


def look_near(epoch: int, network: Network, domain: Domain, data: npt.ArrayLike, radius: float | None, **options: Any) -> Near:
    """Look around examples; the domain, if it is a box, cuts off what lies outside.

    Parameters
    ----------
    epoch
        When.
    network, domain
        Whose regions, and where.
    data
        The examples.
    radius
        Of the balls.
    options
        Those of `tessella.local`.
    """
    if radius is None:
        msg = "data needs a radius: track(model, box, data=X, radius=0.01)"
        raise OptionError(msg)
    balls = local(network, data, radius, domain=domain if isinstance(domain, Box) and domain.bounded else None, **options)
    path = along(network, balls.points, seconds=options.get("seconds")) if len(balls) > 1 else None
    if Status.INTERRUPTED in {balls.status, path.status if path else None}:
        raise KeyboardInterrupt  # which was meant for the training
    return Near(epoch, balls, path)
