"""The cell that a walk over corners begins with: the domain, scaled to the cube [-1, 1]^d and cut by its inequalities."""

import numpy as np

from tessella.domain import Polytope
from tessella.network import Floats
from tessella.numerics import LOST_OF_PRODUCTS, ROUNDOFF, THIN
from tessella.partition.tree import Tree, reach_of
from tessella.vertices.corners import cut, keep_side
from tessella.vertices.errors import worst_ratio
from tessella.vertices.state import IS_APEX, Walk

FUNCTIONS = (worst_ratio, cut, keep_side)  # compiled code called from here


def place_root(tree: Tree, walk: Walk) -> bool:
    """Make cell 0 the domain; False if its corners are not clear."""
    cells, planes = walk.cells, walk.planes
    dim, central = cells.points.shape[1], _central(tree)
    for c in range(dim):
        for side, sign in enumerate((-1.0, 1.0)):
            plane = 2 * c + side + 1
            planes.normals[plane, c], planes.constants[plane], planes.sizes[plane] = sign, 1.0, 2.0
            cells.plane_of[0, plane - 1] = plane
        for v in range(2**dim):
            upper = v >> c & 1
            cells.points[0, c, v] = 2.0 * upper - 1.0
            cells.walls[0, v] |= 1 << (2 * c + 1 - upper)
    cells.corners[0], cells.cuts[0], cells.central[0] = 2**dim, 2 * dim, central
    for v in range(2**dim):
        if central and not cells.walls[0, v] & ~central:
            cells.points[0, :, [0, v]] = cells.points[0, :, [v, 0]]
            cells.walls[0, [0, v]] = cells.walls[0, [v, 0]]
            cells.walls[0, 0] |= IS_APEX
            cells.apex[0] = 1
    cells.ratio[0] = worst_ratio(0, cells, planes)
    return all(_keep(walk, *each) for each in _inequalities(tree))


def _keep(walk: Walk, row: Floats, error: float, through_apex: bool) -> bool:
    """Cut the root with an inequality of the domain; False if what is left is not clear."""
    cells, planes, dim = walk.cells, walk.planes, walk.cells.points.shape[1]
    values = row[:dim] @ cells.points[0, :, : cells.corners[0]] + row[dim]
    exact = float(2.0 * (error + cells.ratio[0] * np.ptp(values)))
    if values.min() > exact:
        return True
    if not values.max() > exact:
        return False
    if cells.apex[0] and not through_apex and values[0] <= exact:  # it may be cut off, or have other corners beside it
        cells.walls[0, 0] &= ~IS_APEX
        cells.apex[0] = cells.central[0] = 0
    plane = cells.cuts[0] + 1
    planes.normals[plane], planes.constants[plane] = row[:dim], row[dim]
    planes.errors[plane], planes.sizes[plane] = error, np.abs(row).sum()
    added = cut(0, exact, False, cells, planes, walk.sides)
    if added >= 0:
        keep_side(0, 0, 1.0, added, exact, cells, planes, walk.sides)
    return added >= 0 and bool(cells.ratio[0] < THIN)


def _central(tree: Tree) -> int:
    """Which walls of the box go through the apex, where all preactivations are exactly 0; 0 if there is no such point in the box."""
    box = tree.domain.box
    if any(layer.bias.any() for layer in tree.network.layers) or not box.contains(np.zeros(box.dim)):
        return 0
    ends = np.stack([box.upper[box.free], box.lower[box.free]], axis=1).ravel()
    return IS_APEX + sum(1 << slot for slot in np.flatnonzero(ends == 0.0).tolist())


def _inequalities(tree: Tree) -> list[tuple[Floats, float, bool]]:
    """The domain's inequalities that read a free input: coefficients and constant, error, and whether the origin lies on them, exactly."""
    domain, scaled = tree.domain, tree.scaled
    if not isinstance(domain, Polytope):
        return []
    ends = reach_of(domain.box)
    errors = (domain.dim + 32) * ROUNDOFF * (np.abs(domain.matrix) @ ends + np.abs(domain.offset)) + LOST_OF_PRODUCTS
    rows = np.column_stack([scaled.normals, scaled.constants])
    return [
        (row, float(error), bool(offset == 0.0))
        for row, error, offset in zip(rows, errors, domain.offset, strict=True)
        if row[:-1].any()
    ]
