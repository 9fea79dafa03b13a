"""The order of an ONNX graph's operators, whatever order a file has them in."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from tessella.errors import FileError

if TYPE_CHECKING:
    from onnx import NodeProto

Makers = Mapping[str, tuple[int, int]]


def label(nodes: "Sequence[NodeProto]", position: int) -> str:
    """What to call an operator: by its name if it has one, else by its place in the file."""
    proto = nodes[position]
    return f"node {repr(proto.name) if proto.name else f'#{position}'} ({proto.op_type})"


def advice(cut: str | None) -> str:
    """What could be done about an operator that cannot be read: the tensor at which to end is None where there is none before it."""
    if cut is None:
        return "replace it, or end the model before it"
    return f"replace it, or read the network up to there by naming that tensor, output={cut!r} (--output-name {shlex.quote(cut)} in a shell)"


def makers_of(nodes: "Sequence[NodeProto]") -> Makers:
    """Which operator makes each tensor, and which of its results that is."""
    makers: dict[str, tuple[int, int]] = {}
    for position, proto in enumerate(nodes):
        for place, name in enumerate(proto.output):
            if name and name in makers:
                msg = f"{label(nodes, position)} makes {name!r}, which {label(nodes, makers[name][0])} makes, too"
                raise FileError(msg)
            makers[name] = (position, place)
    makers.pop("", None)
    return makers


def sorted_nodes(nodes: "Sequence[NodeProto]", makers: Makers, wanted: Iterable[str], known: Collection[str]) -> list[int]:
    """The operators that tensors need, each after those that it reads, otherwise in the order of the file.

    Parameters
    ----------
    nodes
        All operators.
    makers
        Which of them makes each tensor.
    wanted
        The tensors.
    known
        Tensors that need none.
    """
    before = _needed(nodes, makers, [name for name in wanted if name not in known], known)
    after: dict[int, list[int]] = {}
    for position, needs in before.items():
        for need in needs:
            after.setdefault(need, []).append(position)
    ready = [position for position, needs in before.items() if not needs]
    heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heappop(ready))
        for position in after.get(order[-1], ()):
            before[position].discard(order[-1])
            if not before[position]:
                heappush(ready, position)
    if len(order) < len(before):
        stuck = min(set(before) - set(order))
        msg = (
            f"{label(nodes, stuck)} reads what is computed from its own result, or from another such loop; a network has no loops"
        )
        raise FileError(msg)
    return order


def _needed(nodes: "Sequence[NodeProto]", makers: Makers, wanted: Iterable[str], known: Collection[str]) -> dict[int, set[int]]:
    """The operators that tensors need, each with those that it reads."""
    needed: dict[int, set[int]] = {}
    stack = [makers[name][0] for name in wanted]
    while stack:
        position = stack.pop()
        if position in needed:
            continue
        reads = [name for name in nodes[position].input if name and name not in known]
        missing = [name for name in reads if name not in makers]
        if missing:
            msg = f"{label(nodes, position)} reads {missing[0]!r}, which nothing defines"
            raise FileError(msg)
        needed[position] = {makers[name][0] for name in reads}
        stack.extend(needed[position])
    return needed
