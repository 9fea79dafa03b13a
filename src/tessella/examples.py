"""Examples on a picture: where they lie, which classes they have, and where the network's decision changes.

The decision is the largest output, or the sign of a single one.  On a region every output is an affine function, so the boundary there is made of straight pieces, and is
computed exactly up to rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tessella.domain import Domain
from tessella.errors import OptionError
from tessella.listing.polygons import Polygons
from tessella.network import Floats, Network
from tessella.seeds import generator
from tessella.slicing import Slice
from tessella.slicing import slice as make_slice

MOST = 2000  # examples that are drawn; more hide what is below
_NEAR = 1e-6  # of the size of the examples: how far from a slice one may lie that is on it
_CLASSES = 50  # that are told apart


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Inputs of a network, and what they are."""

    inputs: Floats  # one row per example
    labels: tuple[str, ...] | None = None  # the class of each, as text; None if they are not known

    @property
    def classes(self) -> list[str]:
        """The classes there are, in order."""
        return sorted(set(self.labels or ()), key=lambda name: (len(name), name))

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The number of each example's class; 0 without classes."""
        if self.labels is None:
            return np.zeros(len(self.inputs), dtype=np.int64)
        place = {name: number for number, name in enumerate(self.classes)}
        return np.array([place[name] for name in self.labels], dtype=np.int64)

    def on(self, chosen: Slice | None, free: npt.NDArray[np.bool_]) -> tuple["Examples", Floats]:
        """Those that lie on a slice, or all if there is none, at most `MOST`; and where they are on the picture.

        Parameters
        ----------
        chosen
            The slice.
        free
            Without one, the inputs that are drawn.
        """
        places = self.inputs[:, free] if chosen is None else chosen.coordinates(self.inputs)
        kept = np.arange(len(self.inputs))
        if chosen is not None:
            away = np.abs(chosen.lift(places) - self.inputs).max(axis=1)
            kept = np.flatnonzero(away <= _NEAR * (1.0 + np.abs(self.inputs).max()))
        if len(kept) > MOST:
            kept = np.sort(generator(0).permutation(kept)[:MOST])
        labels = None if self.labels is None else tuple(self.labels[number] for number in kept.tolist())
        return Examples(self.inputs[kept], labels), places[kept]

    def plane(self, network: Network, domain: Domain) -> tuple[Slice, str]:
        """The plane through three examples, and which they are in words."""
        numbers = self.three()
        names = [f"{number}{'' if self.labels is None else f' (class {self.labels[number]})'}" for number in numbers]
        words = f"The plane through examples {', '.join(names[:2])} and {names[2]} of the data"
        return make_slice(network, self.inputs[numbers], domain), words

    def three(self) -> list[int]:
        """Three examples that span a plane, of different classes as far as there are any: the first of each."""
        first = [int(np.argmax(self.numbers == number)) for number in range(len(self.classes))]
        order = [*first, *(number for number in range(len(self.inputs)) if number not in set(first))]
        chosen = order[:1]
        for number in order[1:]:
            steps = self.inputs[[*chosen[1:], number]] - self.inputs[chosen[0]]
            scale = float(np.abs(steps).max())
            if scale > 0.0 and np.linalg.matrix_rank(steps / scale, tol=_NEAR) == len(steps):
                chosen.append(number)
            if len(chosen) == 3:
                return chosen
        msg = f"the {len(self.inputs)} examples span no plane: three are needed that do not lie on one line"
        raise OptionError(msg)


def examples(network: Network, data: npt.ArrayLike, labels: npt.ArrayLike | None) -> Examples:
    """Check examples that a caller gives.

    Parameters
    ----------
    network
        Reads them.
    data
        One row per example; images are flattened row by row.
    labels
        One per example, or None.
    """
    try:
        rows = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"data cannot be read as numbers: {error!s:.80}"
        raise OptionError(msg) from error
    if rows.ndim < 2 or not len(rows) or rows.size != len(rows) * network.input_dim:
        msg = f"data has shape {rows.shape}; one row per example was expected, with {network.input_dim} inputs each"
        raise OptionError(msg)
    if not np.isfinite(rows).all():
        msg = "data has entries that are not finite; leave those examples out"
        raise OptionError(msg)
    rows = rows.reshape(len(rows), -1)
    if labels is None:
        return Examples(rows)
    names = np.asarray(labels).reshape(-1)
    if len(names) != len(rows):
        msg = f"there are {len(rows)} examples and {len(names)} labels; give one each"
        raise OptionError(msg)
    if names.dtype.kind == "f" and (names == np.rint(names)).all():
        names = names.astype(np.int64)  # files of points hold floating-point numbers
    found = Examples(rows, tuple(map(str, names.tolist())))
    if len(found.classes) > _CLASSES:
        msg = f"there are {len(found.classes)} different labels; a picture tells at most {_CLASSES} classes apart"
        raise OptionError(msg)
    return found


def boundary(found: Polygons) -> Floats:
    """Where the network's decision changes inside regions.

    Returns
    -------
    Straight pieces of shape (pieces, 2, 2); on a line, points of shape (pieces, 1, 1).

    Examples
    --------
    >>> from tessella.domain import Box
    >>> from tessella.listing.polygons import polygons
    >>> net = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0]], None)])
    >>> boundary(polygons(net, Box(0, 1, dim=2))).tolist()
    [[[0.0, 0.0], [1.0, 1.0]]]
    """
    pieces = list[Floats]()
    matrices, offsets = found.affine_maps()
    for i in range(len(found)):
        corners = found[i]
        values = corners @ matrices[i].T + offsets[i]
        if values.shape[1] == 1:
            values = np.column_stack([values, np.zeros(len(values))])
        if len(np.unique(np.argmax(values, axis=1))) > 1:
            pieces.extend(_pieces(corners, values))
    size = (1, 1) if found.dim == 1 else (2, 2)
    return np.array(pieces).reshape(-1, *size)


def _pieces(corners: Floats, values: Floats) -> Iterator[Floats]:
    """The pieces inside one region, from the outputs at its corners."""
    possible = np.flatnonzero(values.max(axis=0) >= values.min(axis=0).max())  # others are never the largest
    for one, other in combinations(possible.tolist(), 2):
        ends = _crossings(corners, values, values[:, one] - values[:, other])
        if len(ends) < corners.shape[1]:
            continue
        places, at = ends[:, : corners.shape[1]], ends[:, corners.shape[1] :]
        rest = at[:, [one]] - np.delete(at, [one, other], axis=1)  # at least 0 where no third output is larger
        if corners.shape[1] == 1:
            if (rest >= 0.0).all():
                yield places[:1]
            continue
        low, high = 0.0, 1.0
        for start, end in rest.T.tolist():
            if start < 0.0 and end < 0.0:
                low, high = 1.0, 0.0
            elif start < 0.0 or end < 0.0:
                cut = start / (start - end)
                low, high = (max(low, cut), high) if start < 0.0 else (low, min(high, cut))
        if low < high:
            yield np.stack([places[0] + share * (places[1] - places[0]) for share in (low, high)])


def _crossings(corners: Floats, values: Floats, heights: Floats) -> Floats:
    """Where an affine function is 0 on the outline of a region: places and outputs there, the two that are farthest apart."""
    both, after = np.column_stack([corners, values]), np.roll(np.arange(len(corners)), -1)
    changes = np.flatnonzero((heights > 0.0) != (heights[after] > 0.0))
    share = (heights[changes] / (heights[changes] - heights[after[changes]]))[:, None]
    return (both[changes] + share * (both[after[changes]] - both[changes]))[:2]
