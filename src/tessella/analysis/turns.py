"""A count in turns: each goes on where the last one ended."""

import math
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tessella.analysis.session import Session
from tessella.counting.count import Count, CountProgress, count
from tessella.counting.schedule import TooLarge, prepare
from tessella.errors import FileError, WorkerLost
from tessella.estimating.estimate import Estimate
from tessella.kernel import meter
from tessella.partition.tree import Tree
from tessella.result import Side, Status, format_count, format_duration
from tessella.stability import Stability

_TELLING, _MODERATE = 100, 1000.0  # regions from which on a trial tells the speed of counting; what is assumed before, a second


@contextmanager
def place_between_turns() -> Generator[Path | None]:
    """A file that lives as long as the analysis; None where no temporary folder can be made."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(TemporaryDirectory(prefix="tessella-", ignore_cleanup_errors=True))
        except OSError:
            folder = None
        yield None if folder is None else Path(folder) / "count.db"


class Counting:
    """A count that can go on where it stood.

    Parameters
    ----------
    session
        The analysis.
    known
        The units as they are known now: what is finished belongs to these.
    file
        Where the count keeps what is finished; None where nothing can be kept: each turn then begins anew.
    """

    def __init__(self, session: Session, known: Stability, file: Path | None) -> None:
        """Nothing is counted yet."""
        self._session, self._file, self._known = session, file, known
        self._seen = [(0.0, 1)]

    def go(self, seconds: float, why: str) -> bool:
        """Count for some time; whether the count is exact now."""
        session = self._session
        if session.executor is None:
            with session.off_the_clock("the counter"):
                prepare(Tree.of(self._known))
        with session.step("count", why) as found:
            begun = meter.clock()
            try:
                done = self._turn(max(seconds, 1e-3))
            except TooLarge as error:
                found.append(str(error))
                return False
            session.know(proved_lower=done.lower, upper=done.upper, count=done)
            found.append(f"{_counted(done)} in {format_duration(meter.clock() - begun)}")
        check_lost(done)
        return session.standing.exact is not None

    def _turn(self, seconds: float) -> Count:
        """Go on where the last turn ended, or begin anew where nothing can be kept."""
        session = self._session
        if self._file is None:
            self._seen = [(0.0, 1)]

        def told(now: CountProgress) -> None:
            self._seen.append((now.seconds, now.lower))
            session.know(proved_lower=now.lower, upper=now.upper)

        begun = meter.clock()
        given: dict[str, Any] = {"seconds": seconds, "workers": session.workers, "memory": session.memory}
        given |= {"executor": session.executor, "checkpoint": self._file, "progress": told, "stability": self._known}
        try:
            return count(session.standing.network, session.standing.domain, **given)
        except FileError:
            if self._file is None:
                raise
        session.say(
            f"Temporary files cannot be written in {self._file.parent.parent}, so a count that is interrupted begins anew; TMPDIR names another folder."
        )
        self._file = None
        return self._turn(max(seconds - (meter.clock() - begun), 1e-3))

    def foreseen(self, power: float) -> float | None:
        """How many seconds it would still take to count 2**power regions, at the speed of the last half or a little more: it is slower at first.

        None where nobody knows: if no more are said to be there than were counted already, and yet it did not end.

        What was counted is told in steps, so less than half would sometimes hold two steps and sometimes none.

        On a busy machine the trial may have had no time at all; where it counted next to nothing, a moderate speed is assumed.
        """
        seconds, regions = self._seen[-1]
        if power <= math.log2(regions):
            return None
        then, before = next((pair for pair in reversed(self._seen) if pair[0] <= seconds / 2.0), self._seen[0])
        speed = max((regions - before) / max(seconds - then, 1e-9), regions / max(seconds, 1e-9))
        speed = max(speed, _MODERATE) if regions < _TELLING else speed
        exponent = power - math.log2(speed)
        if exponent >= 1000.0:
            return math.inf
        return 2.0**exponent - (regions / speed if self._file else 0.0)


def check_lost(found: Count | Estimate) -> None:
    """End the analysis where nobody works any more; why is in the log."""
    if found.status is Status.LOST:
        msg = "the executor cannot go on"
        raise WorkerLost(msg)


def _counted(done: Count) -> str:
    if done.exact is not None:
        return f"exactly {format_count(done.exact)}"
    return f"at least {format_count(done.lower, Side.LOWER)}"
