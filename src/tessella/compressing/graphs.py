"""An ONNX graph whose constants can be exchanged, one use at a time."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Array = npt.NDArray[Any]


class Graph:
    """A copy of a model, who reads what in it, and what its constants are.

    Parameters
    ----------
    model
        The model; it is not changed.
    """

    def __init__(self, model: "ModelProto") -> None:
        """Copy it, and look at who reads what."""
        from onnx import ModelProto, numpy_helper  # noqa: PLC0415  heavy

        self._model = ModelProto()
        self._model.CopyFrom(model)
        graph = self._model.graph
        self.nodes = list(graph.node)
        self._stored: dict[str, Any] = {item.name: item for item in graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self._stored[node.output[0]] = node.attribute[0].t
        self._array = numpy_helper.to_array
        self._readers: dict[str, list[NodeProto]] = {}
        for node in self.nodes:
            for name in {*node.input, *_read_inside(node)}:
                self._readers.setdefault(name, []).append(node)
        self._ends = {item.name for item in graph.output}
        self._changed: dict[tuple[int, int], tuple[NodeProto, Array]] = {}

    def only_reader(self, name: str) -> "NodeProto | None":
        """The operator that reads a tensor, if it is one alone, and the tensor is no output."""
        readers = self._readers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self._ends and list(readers[0].input).count(name) == 1 else None

    def ends_behind(self, name: str) -> bool:
        """Whether a tensor is an output, and nothing else."""
        return name in self._ends and not self._readers.get(name)

    def weight(self, node: "NodeProto", slot: int) -> Array | None:
        """The constant that an operator reads in some place, as it is now; None if it reads none there."""
        place = id(node), slot
        if place in self._changed:
            return self._changed[place][1]
        stored = self._stored.get(node.input[slot]) if slot < len(node.input) else None
        return None if stored is None else self._array(stored)

    def put(self, node: "NodeProto", slot: int, value: Array) -> None:
        """Let an operator read another constant."""
        self._changed[id(node), slot] = node, value

    def take(self, node: "NodeProto", slot: int, kept: Array, axis: int) -> None:
        """Leave only some entries of a constant, unless it is one number for all."""
        value = self.weight(node, slot)
        if value is not None and value.ndim and value.shape[axis] > 1:
            self.put(node, slot, np.ascontiguousarray(np.take(value, kept, axis=axis)))

    def written(self) -> "ModelProto":
        """The model with what was changed, and without what nobody reads any more."""
        from onnx import numpy_helper  # noqa: PLC0415  heavy

        graph = self._model.graph
        taken = {*self._stored, *self._readers, *self._ends, *(name for node in self.nodes for name in node.output)}
        for (_, slot), (node, value) in self._changed.items():
            name = next(new for number in range(len(taken) + 1) if (new := f"{node.input[slot]}.{number}") not in taken)
            taken.add(name)
            node.input[slot] = name
            graph.initializer.append(numpy_helper.from_array(value, name))
        reads = Counter(name for node in graph.node for name in (*node.input, *_read_inside(node)))
        items: Any
        for items in (graph.initializer, graph.input):
            for item in [
                item for item in items if not reads[item.name] and item.name in self._stored and item.name not in self._ends
            ]:
                items.remove(item)
        for node in [node for node in graph.node if node.op_type == "Constant" and not reads[node.output[0]]]:
            if node.output[0] not in self._ends:
                graph.node.remove(node)
        del graph.value_info[:]  # shapes that are others now
        return self._model


def attribute(node: "NodeProto", name: str, default: int) -> int:
    """A whole number that an operator has, or what it means if it is left out."""
    return next((int(item.i) for item in node.attribute if item.name == name), default)


def _read_inside(node: "NodeProto") -> set[str]:
    """What the graphs inside an operator read, of those outside, too."""
    inner = [item.g for item in node.attribute if item.HasField("g")] + [
        graph for item in node.attribute for graph in item.graphs
    ]
    return {name for graph in inner for one in graph.node for name in {*one.input, *_read_inside(one)}}
