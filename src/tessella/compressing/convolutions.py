"""Convolutions that stay convolutions: an ONNX model without channels that are never active on a domain, or that nobody reads.

The operators of the model stay, and so does their order; only weights become smaller.  A channel goes if each of its positions is proved inactive or is read with zero weights: behind its ReLU there
is nothing but 0 then, pooled or not, and what reads it reads nothing.  Units of dense layers go in the same way.  Nothing is added up or rounded, so outputs are the same in real arithmetic.

Only plain chains are changed: a convolution or a dense layer, a ReLU, pooling, and one operator that reads it.  All else (branches, groups, other activations) stays as it was.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tessella.compressing.graphs import Graph, attribute
from tessella.importers.onnx import Place
from tessella.network import Mask
from tessella.stability import Stability

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_Vector: TypeAlias = "tuple[NodeProto, int, int]"
_LINEAR: Final = frozenset({"Conv", "Gemm", "MatMul"})
_POOLS: Final = frozenset({"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"})
_NOTHING: Final = frozenset({"Identity", "Dropout"})  # what they pass on is what they read


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What became of a convolution or a dense layer.

    Parameters
    ----------
    name
        The operator, by its name if it has one, else by what it makes.
    kind
        ``"Conv"``, ``"Gemm"`` or ``"MatMul"``.
    units
        Channels or units that it had.
    kept
        Those that it has now.
    inactive
        Those that went because they are never active.
    unread
        Those that went because nobody reads them, or not where they are active.
    why
        Why it could not be looked at; empty if it was.
    """

    name: str
    kind: str
    units: int
    kept: int
    inactive: int = 0
    unread: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """An operator with weights, its ReLU, and who reads that.

    Parameters
    ----------
    node
        The operator.
    place
        The units that the ReLU became.
    vectors
        Constants of one number per unit: operator, slot, axis.
    reader
        The operator that reads what comes out in the end.
    shapes
        Operators that flatten it to a written size: operator, slot.
    pooled
        Whether positions are put together before that.
    """

    node: "NodeProto"
    place: Place
    vectors: "tuple[_Vector, ...]"
    reader: "NodeProto"
    shapes: tuple[tuple["NodeProto", int], ...]
    pooled: bool


def has_convolutions(model: "ModelProto") -> bool:
    """Whether any operator is a convolution."""
    return any(node.op_type == "Conv" for node in model.graph.node)


def narrowed(model: "ModelProto", stability: Stability, places: Mapping[str, Place]) -> tuple["ModelProto", tuple[Narrowed, ...]]:
    """A smaller copy of a model, whose network has this stability, and what became of each convolution and dense layer in it; ``places`` has the units that its ReLUs became."""
    graph = Graph(model)
    found = list[Narrowed]()
    for node in reversed(graph.nodes):
        if node.op_type in _LINEAR and graph.weight(node, 1) is not None:
            step = _step(graph, node, places)
            found.append(_unchanged(graph, node, step) if isinstance(step, str) else _narrow(graph, step, stability))
    return graph.written(), tuple(reversed(found))


def _unchanged(graph: Graph, node: "NodeProto", why: str) -> Narrowed:
    weight = graph.weight(node, 1)
    units = 0 if weight is None else weight.shape[_axes(node)[0]]
    return Narrowed(node.name or node.output[0], node.op_type, units, units, why=why)


def _axes(node: "NodeProto") -> tuple[int, int]:
    """Which axis of an operator's weights counts its units, and which what it reads."""
    return (0, 1) if node.op_type == "Conv" or (node.op_type == "Gemm" and attribute(node, "transB", 0)) else (1, 0)


def _step(graph: Graph, node: "NodeProto", places: Mapping[str, Place]) -> _Step | str:
    """An operator with what follows it, or why it is left as it is."""
    weight = graph.weight(node, 1)
    dims = 2 if weight is None or node.op_type != "Conv" else weight.ndim
    if weight is None or weight.ndim != dims or (node.op_type == "Conv" and attribute(node, "group", 1) != 1):
        return "it has groups, or its weights are no matrix"
    units = weight.shape[_axes(node)[0]]
    found = _relu(graph, node, units, dims)
    if isinstance(found, str):
        return found
    tensor, vectors = found
    place = places.get(tensor)
    if place is None or len(place.shape) != dims or place.shape[:2] != (1, units):
        return "its ReLU is not one of the network's, unit by unit"
    end = _end(graph, tensor, dense=node.op_type != "Conv")
    if isinstance(end, str):
        return end
    step = _Step(node, place, vectors, *end)
    return step if all(_keeps_rows(graph, step, *reshape) for reshape in step.shapes) else "Reshape reads it"


def _relu(graph: Graph, node: "NodeProto", units: int, dims: int) -> tuple[str, tuple[_Vector, ...]] | str:
    """What the ReLU behind an operator passes on, and the constants of one number per unit up to there; or why there is none."""
    vectors: list[_Vector] = [(node, 2, -1)] if len(node.input) > 2 and node.input[2] else []
    for follower in _followers(graph, node.output[0]):
        if follower.op_type == "Relu":
            return follower.output[0], tuple(vectors)
        more = _vectors(graph, follower, units, dims)
        if more is None:
            return f"no ReLU follows it, but {follower.op_type}"
        vectors += more
    return "its units are outputs" if graph.ends_behind(node.output[0]) else "no ReLU reads it alone"


def _followers(graph: Graph, tensor: str) -> Iterator["NodeProto"]:
    """The operators behind a tensor, as long as each has the only reader, but for those that do nothing."""
    while (reader := graph.only_reader(tensor)) is not None:
        if reader.op_type not in _NOTHING:
            yield reader
        tensor = reader.output[0]


def _vectors(graph: Graph, node: "NodeProto", units: int, dims: int) -> list[_Vector] | None:
    """The constants of an operator that does something to each channel alone; None if it is not of this kind."""
    if node.op_type == "BatchNormalization" and len([name for name in node.output if name]) == 1:
        return (
            [(node, slot, -1) for slot in range(1, 5)]
            if all(_sized(graph, node, slot, units, -1) for slot in range(1, 5))
            else None
        )
    if node.op_type == "Add":
        axis = 1 - dims
        slots = [slot for slot in range(2) if graph.weight(node, slot) is not None]
        if len(slots) == 1 and _sized(graph, node, slots[0], units, axis):
            return [(node, slots[0], axis)]
    return None


def _sized(graph: Graph, node: "NodeProto", slot: int, units: int, axis: int) -> bool:
    array = graph.weight(node, slot)
    return array is not None and array.ndim >= -axis and array.shape[axis] == units == array.size


def _end(graph: Graph, tensor: str, *, dense: bool) -> tuple["NodeProto", tuple[tuple["NodeProto", int], ...], bool] | str:
    """Who reads what a ReLU passes on, what flattens it on the way, and whether it is pooled; or why this cannot be followed."""
    shapes, pooled, flat = list[tuple["NodeProto", int]](), False, dense
    for node in _followers(graph, tensor):
        kind = node.op_type
        if kind in _LINEAR:
            return (node, tuple(shapes), pooled) if _reads(graph, node, flat=flat) else f"{kind} reads it in another way"
        if kind in _POOLS and not flat and len([name for name in node.output if name]) == 1:
            pooled = True
        elif kind == "Flatten" and not flat and attribute(node, "axis", 1) == 1:
            flat = True
        elif kind == "Reshape" and not flat and _flattens(graph, node):
            shapes.append((node, 1))
            flat = True
        else:
            return f"{kind} reads it"
    return "it is read in several places, or is an output"


def _reads(graph: Graph, node: "NodeProto", *, flat: bool) -> bool:
    weight = graph.weight(node, 1)
    if weight is None or graph.weight(node, 0) is not None:
        return False
    if node.op_type == "Conv":
        return not flat and attribute(node, "group", 1) == 1
    return flat and weight.ndim == 2 and not attribute(node, "transA", 0)


def _flattens(graph: Graph, node: "NodeProto") -> bool:
    """Whether a tensor of one example becomes a row."""
    shape = graph.weight(node, 1)
    return shape is not None and shape.shape == (2,) and int(shape[0]) in {-1, 0, 1} and not attribute(node, "allowzero", 0)


def _keeps_rows(graph: Graph, step: _Step, node: "NodeProto", slot: int) -> bool:
    """Whether what is flattened is one row, and not several."""
    shape = graph.weight(node, slot)
    return shape is not None and (
        int(shape[0]) >= 0 or int(shape[1]) < 0 or (not step.pooled and int(shape[1]) == int(np.prod(step.place.shape)))
    )


def _narrow(graph: Graph, step: _Step, stability: Stability) -> Narrowed:
    """Drop the channels or units of an operator that nobody needs."""
    place, (out, _) = step.place, _axes(step.node)
    units = place.shape[1]
    size = int(np.prod(place.shape))
    inactive = stability.inactive[place.layer][place.start : place.start + size].reshape(units, -1)
    unread = _unread(graph, step, units, inactive.shape[1])
    never, gone = np.asarray(inactive.all(axis=1)), np.asarray((inactive | unread).all(axis=1))
    if gone.all():
        gone[0] = False  # an operator without channels is none
    kept = np.flatnonzero(~gone)
    if gone.any():
        graph.take(step.node, 1, kept, out)
        for node, slot, axis in step.vectors:
            graph.take(node, slot, kept, axis)
        _take_columns(graph, step, units, kept)
    name = step.node.name or step.node.output[0]
    return Narrowed(name, step.node.op_type, units, len(kept), int((gone & never).sum()), int((gone & ~never).sum()))


def _unread(graph: Graph, step: _Step, units: int, positions: int) -> Mask:
    """Which positions of which channels are read with zero weights only."""
    weight = _read_weight(graph, step)
    zero = np.moveaxis(weight == 0.0, _axes(step.reader)[1], 0)
    if step.reader.op_type == "Conv" or step.pooled:  # positions are no longer told apart
        return np.broadcast_to(zero.reshape(units, -1).all(axis=1)[:, None], (units, positions))
    return zero.reshape(units, positions, -1).all(axis=2)


def _read_weight(graph: Graph, step: _Step) -> Any:
    """The weights of the reader, which has some."""
    return graph.weight(step.reader, 1)


def _take_columns(graph: Graph, step: _Step, units: int, kept: Any) -> None:
    """Let the reader read what is left."""
    reads = _axes(step.reader)[1]
    each = 1 if step.reader.op_type == "Conv" else _read_weight(graph, step).shape[reads] // units
    columns = (kept[:, None] * each + np.arange(each)).ravel()
    graph.take(step.reader, 1, columns, reads)
    for node, slot in step.shapes:
        shape = graph.weight(node, slot)
        if shape is not None and int(shape[1]) > 0:
            graph.put(node, slot, np.array([shape[0], len(columns)], dtype=shape.dtype))
