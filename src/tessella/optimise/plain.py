"""Bounds as files, for all others: a table of units as CSV, or all of a stability as JSON."""

import csv
import io
import os
from typing import Any

from tessella.errors import OptionError
from tessella.files import writing
from tessella.optimise.neurons import neurons
from tessella.stability import Stability

FORMATS = (".csv", ".json")


def rows(stability: Stability) -> list[dict[str, Any]]:
    """One row per unit, in the order of layers: its number from 0, its kind, its state, and the ends of its preactivation and of what it passes on.

    Parameters
    ----------
    stability
        What `tessella.stability` found.

    Examples
    --------
    >>> import tessella
    >>> found = tessella.stability([([[1.0], [-1.0]], [0.0, -0.5]), ([[1.0, 1.0]], None)], (0, 1), units="all")
    >>> for row in tessella.optimise.plain.rows(found)[:2]:
    ...     print(row["layer"], row["unit"], row["kind"], row["state"], round(row["lower"], 6), round(row["upper"], 6))
    1 0 relu active 0.0 1.0
    1 1 relu inactive -1.5 -0.5
    """
    found = list[dict[str, Any]]()
    for number, one in enumerate(neurons(stability), start=1):
        for unit in range(one.layer.units):
            rectified, slope = bool(one.layer.rectified[unit]), float(one.layer.slope[unit])
            kind = "linear" if not rectified else "relu" if slope == 0.0 else "leaky"
            state = "active" if one.active[unit] else "inactive" if one.inactive[unit] else "open" if rectified else ""
            ends = {"lower": one.lower, "upper": one.upper, "output_lower": one.least, "output_upper": one.most}
            known = {name: float(values[unit]) for name, values in ends.items()}
            found.append({"layer": number, "unit": unit, "kind": kind, "state": state, **known})
    return found


def write(stability: Stability, path: str | os.PathLike[str]) -> None:
    """Write the bounds of all units to a file: ``.csv`` has the columns of `rows`, ``.json`` is what ``stability.to_json()`` gives.

    Numbers are written so that reading them gives the same double; whoever reads single precision must round outward.

    Parameters
    ----------
    stability
        What `tessella.stability` found.
    path
        The file, under exactly this name; an existing one is replaced.
    """
    name = os.fspath(path)
    if name.lower().endswith(".json"):
        content = stability.to_json()
    elif name.lower().endswith(".csv"):
        table, text = rows(stability), io.StringIO()
        writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
        content = text.getvalue()
    else:
        msg = f"{name}: bounds are written as .csv or .json; give a name that ends so"
        raise OptionError(msg)
    with writing(path) as file:
        file.write(content.encode())
