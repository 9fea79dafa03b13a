"""Which of the two forms of the linear program a cell has: tableaus where cells live in the space of the inputs, bases where they live in a frame."""

from tessella.cells import dual, tableau
from tessella.cells.state import Cell, Space
from tessella.kernel.functions import Apart, apart, one_of

_copy_tableau, _copy_basis = tableau.copy, dual.copy

solve = one_of(
    tableau.solve, dual.solve
)  # ``solve(cell.solver, cell, s, count, equal)``: only the one that a walk calls is compiled


def solver_of(space: Space) -> Apart:
    """What solves the linear programs of cells in a space; its address is the cell's ``solver``."""
    return tableau.solve if space.in_inputs else dual.solve


@apart
def copy(cell: Cell, s: int, t: int) -> None:
    """Make state t of a cell a copy of state s."""
    if cell.space.in_inputs:
        _copy_tableau(cell, s, t)
    else:
        _copy_basis(cell, s, t)
