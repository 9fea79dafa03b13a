"""A smaller network, as a person sees it."""

from typing import TYPE_CHECKING

import numpy as np

from tessella.cli.drawing import console, table
from tessella.result import format_share

if TYPE_CHECKING:
    from tessella.compressing.result import Compression
    from tessella.compressing.rewriting import Rewritten
    from tessella.network import Network

_MOST = 60  # layers that are listed
_KINDS = ("inactive", "active", "merged", "constant", "unread")
_WHY = {
    "inactive": "inactive: never active on the domain, so nothing is left of them (of a leaky one, a linear unit)",
    "active": "active: never inactive there, so they are affine",
    "merged": "merged: multiples of another unit of the layer",
    "constant": "constant: they read nothing that varies",
    "unread": "unread: no output depends on them",
}


def print_compression(title: str, found: "Compression") -> None:
    """One line per layer, what the kinds mean, and what is guaranteed."""
    columns = ["layer", "ReLUs", "left", *_KINDS, "linear", "linear units now"]
    drawn = table(title, [(head, True) for head in columns])
    for one in found.removed[:_MOST]:
        now = "no layer" if one.gone else str(one.carried)
        cells = one.layer, one.relus, one.kept, *(getattr(one, kind) for kind in _KINDS), one.linear, now
        drawn.add_row(*map(str, cells))
    total = found.totals()
    linear = sum(one.linear for one in found.removed), sum(one.carried for one in found.removed)
    drawn.add_row("all", *(str(total[name]) for name in ("relus", "kept", *_KINDS)), *map(str, linear))
    out = console()
    out.print(drawn)
    if len(found.removed) > _MOST:
        out.print(f"... and {len(found.removed) - _MOST:,} more layers (--json has all)")
    out.print()
    if not found.is_smaller:
        out.print(f"Nothing can be removed: {_why_nothing(found)}.")
        return
    for kind in _KINDS:
        if total[kind]:
            out.print(f"{_WHY[kind]}.")
    if found.constant_outputs:
        many = len(found.constant_outputs)
        some = ", ".join(map(str, found.constant_outputs[:10])) + (", ..." if many > 10 else "")
        out.print(f"Constant on the domain: output{'' if many == 1 else 's'} {some}.")
    before, after = found.original.parameters, found.network.parameters
    left = f"{found.network.relus:,} of {found.original.relus:,} ReLUs are left"
    out.print(f"\n{left} ({format_share(found.share)} less): {found.network.shape}, {after:,} of {before:,} weights and biases.")
    out.print(found.guarantee)
    out.print(
        f"At {found.points:,} random points, computed in double precision, they differ by {found.difference:.2g} at most{_rounded(found)}."
    )


def print_operators(found: "Compression", kept: "Rewritten") -> None:
    """What became of each convolution and dense layer of a file that has the operators of the original."""
    drawn = table(
        "In the file operators stay what they are",
        [(head, True) for head in ("operator", "kind", "units", "left", "inactive", "unread", "")],
    )
    for one in kept.operators[:_MOST]:
        drawn.add_row(
            one.name, one.kind, *map(str, (one.units, one.kept, one.inactive, one.unread)), one.why and f"all stay: {one.why}"
        )
    out = console()
    out.print()
    out.print(drawn)
    if len(kept.operators) > _MOST:
        out.print(f"... and {len(kept.operators) - _MOST:,} more operators (--json has all)")
    out.print(
        f"\nUnits of a convolution are its channels. {kept.parameters:,} of {kept.before:,} numbers are left, each as it was, so outputs are the same."
    )
    out.print(f"At {kept.points:,} random points, computed in double precision, they differ by {kept.difference:.2g} at most.")
    if found.network.relus < kept.network.relus:
        out.print(f"The file has {kept.network.relus:,} ReLUs; --dense writes the {found.network.relus:,} above.")


def _why_nothing(found: "Compression") -> str:
    if not found.original.relus:
        return "there are no ReLUs"
    if not found.domain.bounded:
        return "no unit is proved to keep its state, and units are put together on bounded domains only"
    return "no unit is proved to keep its state on the domain, and none is a multiple of another"


def _rounded(found: "Compression") -> str:
    """Why a difference may be larger than what is proved: that is of exact outputs, this of computed ones."""
    return ", as computing outputs rounds, too" if found.difference > found.error else ""


def stored_sparsely(network: "Network") -> bool:
    """Whether any of its weights are sparse matrices."""
    return any(not isinstance(layer.weight, np.ndarray) for layer in network.layers)
