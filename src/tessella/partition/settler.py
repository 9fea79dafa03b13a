"""Thin prefixes settled: what lies below a prefix that floating-point arithmetic could not decide.

Exact arithmetic may be slow and cannot be interrupted.  So a prefix that may hold more than a few regions is not counted in one go: if its cell is
there, its two sides wait to be settled in its place.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tessella.partition.local import LocalBound
from tessella.partition.tree import Tree

if TYPE_CHECKING:
    from tessella.partition.exact import Exact

FEW = 16  # regions below a prefix, at most, that exact arithmetic counts in one go


class Settled(NamedTuple):
    """What settling brought."""

    regions: int  # regions counted
    waiting: tuple[bytes, ...]  # prefixes that are left: none if all was settled
    cells: int  # how many cells exact arithmetic looked at


def _never() -> bool:
    return False


def _any(_prefix: bytes) -> bool:
    return True


@dataclass
class Settler:
    r"""Settles thin prefixes of one tree; serves one thread.

    Examples
    --------
    >>> from tessella import Box, Network, stability
    >>> network = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None)], relu_output=True)
    >>> tree = Tree.of(stability(network, Box(-1, 1, dim=2), method="interval"))
    >>> Settler(tree).settle([b"\0", b"\1"])
    Settled(regions=6, waiting=(), cells=2)
    >>> Settler(tree, split_above=1, most_cells=2).settle([b"\1\1"])
    Settled(regions=1, waiting=(b'\x01\x01\x00',), cells=2)
    """

    tree: Tree
    bound: LocalBound | None = None  # the most regions that there can be below a prefix; None to make one when it is needed
    split_above: int = FEW  # regions: a prefix that may hold more is split into its two sides
    most_cells: int | None = None  # cells that exact arithmetic looks at, from one `renew` to the next
    given_up: int = 0
    _cells: int = field(default=0, init=False)

    @cached_property
    def exact(self) -> "Exact":
        """The arithmetic itself."""
        from tessella.partition.exact import Exact  # noqa: PLC0415  loads the compiler

        return Exact(self.tree)

    def renew(self) -> None:
        """From now on, count cells anew, and those that were given up."""
        self._cells = self.given_up = 0

    def holds_few(self, prefix: bytes) -> bool:
        """Whether no more regions can lie below a prefix than are counted in one go."""
        self.bound = self.bound or LocalBound(self.tree)
        return self.bound(prefix) <= self.split_above

    def settle(self, prefixes: Sequence[bytes], stopped: Callable[[], bool] = _never) -> Settled:
        """Count the regions below prefixes until all are settled, no further cell may be looked at, or it is stopped.

        Parameters
        ----------
        prefixes
            Which; the last one is settled first.
        stopped
            Asked after each cell whether to end.
        """
        self.bound = bound = self.bound or LocalBound(self.tree)
        waiting, regions, before = list(prefixes), 0, self._cells
        while waiting and self._may_look():
            prefix = waiting.pop()
            if bound(prefix) <= self.split_above:
                regions += self.exact.count(prefix)
            elif self.exact.exists(prefix):
                waiting += _sides(prefix)
            if stopped():
                break
        return Settled(regions, tuple(waiting), self._cells - before)

    def leaves(
        self, waiting: list[bytes], allowed: Callable[[bytes], bool] = _any, stopped: Callable[[], bool] = _never
    ) -> Iterator[bytes]:
        """The regions below prefixes, one by one; where no further cell may be looked at, a prefix is given up.

        Parameters
        ----------
        waiting
            The prefixes; emptied on the way.
        allowed
            Says of a prefix whether what lies below it is wanted.
        stopped
            Asked before each cell whether to end.
        """
        while waiting and not stopped():
            prefix = waiting.pop()
            if not allowed(prefix):
                continue
            if not self._may_look():
                self.given_up += 1
            elif self.exact.exists(prefix):
                if len(prefix) == self.tree.units:
                    yield prefix
                else:
                    waiting += _sides(prefix)

    def _may_look(self) -> bool:
        if self.most_cells is not None and self._cells >= self.most_cells:
            return False
        self._cells += 1
        return True


def _sides(prefix: bytes) -> list[bytes]:
    return [prefix + b"\0", prefix + b"\1"]
