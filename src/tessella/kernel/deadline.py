"""When work must end, and how much memory it may take: what every stage of something longer is told, and asks."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tessella.kernel import meter

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container, if there is one
_PART = 4  # the part of the machine's memory that is taken if nobody says how much


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time of `meter.clock` at which work ends with what it has.

    Examples
    --------
    >>> Deadline.after(60.0).passed, Deadline.after(None).left, Deadline.after(60.0).part(0.5).left <= 30.0
    (False, inf, True)
    """

    end: float = math.inf  # the time; infinite for work that is never stopped

    @classmethod
    def after(cls, seconds: float | None) -> Self:
        """So many seconds from now; None for never."""
        return cls(math.inf if seconds is None else meter.clock() + seconds)

    @property
    def left(self) -> float:
        """Seconds that are left; negative afterwards."""
        return self.end - meter.clock()

    @property
    def passed(self) -> bool:
        """Whether it is time."""
        return meter.clock() >= self.end

    def part(self, share: float) -> "Deadline":
        """One that comes when so much of what is left has passed."""
        return self if math.isinf(self.end) else Deadline(meter.clock() + share * max(self.left, 0.0))


NEVER = Deadline()


def default_memory() -> int:
    """Bytes that work may take if nobody says how much: a quarter of the machine's memory, or of its container's."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    for place in map(Path, _LIMITS):
        text = place.read_text().strip() if place.is_file() else "max"
        sizes += [int(text)] if text.isdigit() else []
    return max(min(sizes, default=4 << 30) // _PART, 1)
