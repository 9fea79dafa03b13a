"""About how many regions a count will find, asked of random descents in another process while it runs."""

from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

import tessella
from tessella.kernel.deadline import default_memory

if TYPE_CHECKING:
    from tessella.domain import Domain
    from tessella.estimating.estimate import Estimate, EstimateProgress
    from tessella.network import Network

_PATIENCE = 3.0  # seconds of counting after which somebody may want to know
_SECONDS = 5.0  # of random descents
_PROBES = 16  # descents, before which an estimate is mostly too low


class Forecast:
    """An estimate that is made once, if a count takes longer than a moment; nobody waits for it.

    Parameters
    ----------
    network, domain
        What is counted, and where.
    """

    def __init__(self, network: "Network", domain: "Domain") -> None:
        """Nothing is asked yet."""
        self._network, self._domain = network, domain
        self._thread: Thread | None = None
        self._over = False
        self.power: float | None = None

    def __enter__(self) -> Self:
        """A count begins."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """The count has ended, so nobody asks any more."""
        self._over = True
        if self._thread:
            self._thread.join(timeout=1.0)

    def at(self, seconds: float) -> float | None:
        """Log2 of about how many regions there are, asked after so many seconds; None while nobody knows."""
        if self._thread is None and seconds >= _PATIENCE:
            self._thread = Thread(target=self._ask, daemon=True)
            self._thread.start()
        return self.power

    def _ask(self) -> None:
        from tessella.analysis.estimating_process import EstimatingProcess  # noqa: PLC0415  loads the compiler
        from tessella.analysis.memory import memory_to_walk  # noqa: PLC0415

        try:
            known = tessella.stability(self._network, self._domain, method="linear", seconds=_SECONDS)
            if memory_to_walk(known) <= default_memory():
                with EstimatingProcess() as process:
                    ended = process.estimate(known, seconds=_SECONDS, tell=self._take, workers=1)
                    self._take(ended)
        except tessella.TessellaError:
            return  # then it is not known

    def _take(self, now: "EstimateProgress | Estimate | None") -> bool:
        """Take in how the estimate stands; whether it is enough."""
        if now is not None and now.maps_interval is not None and now.probes >= _PROBES:
            self.power = now.maps
        return self._over
