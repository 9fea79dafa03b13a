"""Who counts a tree: the one place that decides, for the command line, for what is compiled beforehand, and for the count itself."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tessella.partition.tree import Tree, Walker

if TYPE_CHECKING:
    from tessella.kernel.functions import Apart

_FEW_INPUTS = 6  # free inputs up to which cells are held by their vertices
_MANY_INPUTS = 128  # inputs from which on points are used: up to nine times as fast with 100, half as fast with 16, but longer to compile, once


class Cells(StrEnum):
    """How a walk knows the cell that it is in."""

    VERTICES = "vertices"
    POINTS = "points"
    PROGRAMS = "linear programs"


@dataclass(frozen=True)
class Walk:
    """How a tree is walked to count it."""

    tree: Tree  # what is counted
    cells: Cells  # how its cells are known

    def walker(self) -> Walker:
        """A walker of the tree; the compiled code that it needs is loaded, or compiled."""
        return self._kind(self.tree)

    @property
    def functions(self) -> "tuple[Apart, ...]":
        """The compiled functions that its walkers call."""
        return self._kind.functions(self.tree)

    @property
    def _kind(self) -> Any:
        """The class of its walkers; its module loads the compiler."""
        match self.cells:
            case Cells.VERTICES:
                from tessella.counting.by_vertices import ByVertices  # noqa: PLC0415

                return ByVertices
            case Cells.POINTS:
                from tessella.counting.by_points import ByPoints  # noqa: PLC0415

                return ByPoints
            case Cells.PROGRAMS:
                from tessella.counting.by_programs import ByPrograms  # noqa: PLC0415

                return ByPrograms


def walk_for(tree: Tree) -> Walk:
    """The fastest way to count a tree: by vertices where inputs are few, by points where they are many, else by linear programs."""
    inputs, units, inequalities = tree.breadth
    if inputs <= _FEW_INPUTS:
        return Walk(tree, Cells.VERTICES)
    if units < inputs >= _MANY_INPUTS and not inequalities:
        return Walk(tree, Cells.POINTS)
    return Walk(tree, Cells.PROGRAMS)


def walker_for(tree: Tree) -> Walker:
    """A walker of the fastest kind."""
    return walk_for(tree).walker()
