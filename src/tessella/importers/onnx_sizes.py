"""How large the matrices of an ONNX model would be, found from shapes alone: what is too large is refused before anything is computed."""

import shlex
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from tessella.errors import UnsupportedModel
from tessella.importers.linear_maps import LARGEST_MATRIX
from tessella.importers.onnx_plan import Plan

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

Shape = tuple[int, ...]
_SMALL = 1024  # elements: larger constants are no shapes, and only their own shapes matter
_SPELLED_OUT = frozenset({"Range"})  # whose values the inference of shapes writes down one by one, however many there are


def check_sizes(graph: "GraphProto", plan: Plan, entries: Mapping[str, Shape], opset: int) -> None:
    """Refuse a model of which one operator would make a matrix that is too large.

    Parameters
    ----------
    graph
        The graph, with its constants.
    plan
        The operators that would run.
    entries
        The shapes of the inputs.
    opset
        The operator set.
    """
    shapes = _shapes(graph, plan, entries, opset)
    for proto, label in zip(plan.nodes, plan.labels, strict=True):
        count = _entries(proto, shapes)
        if count > LARGEST_MATRIX:
            cut = next(
                (name for name in proto.input if name not in entries and name not in {item.name for item in graph.initializer}),
                None,
            )
            advice = "make the model's input smaller" + (
                ""
                if cut is None
                else f", or read the network up to there by output={cut!r} (--output-name {shlex.quote(cut)} in a shell)"
            )
            msg = f"{label} would become a matrix of {count:.3g} numbers; at most {LARGEST_MATRIX:.3g} can be read; {advice}"
            raise UnsupportedModel(msg)


def _entries(proto: "NodeProto", shapes: Mapping[str, Shape]) -> int:
    """How many numbers an operator's matrix holds; 0 if that is not known."""
    known = [shapes.get(name) for name in (*proto.input[:2], *proto.output[:1])]
    if len(known) < 3 or any(shape is None for shape in known):
        return 0
    left, right, result = (shape or () for shape in known)
    if proto.op_type in {"Conv", "ConvTranspose"}:
        places = result if proto.op_type == "Conv" else left
        return prod(places[:1]) * prod(places[2:]) * prod(right)
    if proto.op_type == "MatMul" and len(left) > 1:
        return prod(result) * left[-1]
    return 0


def _shapes(graph: "GraphProto", plan: Plan, entries: Mapping[str, Shape], opset: int) -> dict[str, Shape]:
    """The shapes of all tensors that are known without computing."""
    from onnx import TensorProto, helper, shape_inference  # noqa: PLC0415  heavy

    read = {name for proto in plan.nodes for name in proto.input}
    stored = [item for item in graph.initializer if item.name in read]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in entries.items()]
    infos += [helper.make_tensor_value_info(item.name, item.data_type, item.dims) for item in stored if prod(item.dims) > _SMALL]
    kept = [item for item in stored if prod(item.dims) <= _SMALL]
    ends = [helper.make_empty_tensor_value_info(name) for name in plan.kept]
    nodes = [proto for proto in plan.nodes if proto.op_type not in _SPELLED_OUT]
    light = helper.make_model(helper.make_graph(nodes, "part", infos, ends, kept), opset_imports=[helper.make_opsetid("", opset)])
    try:
        found = shape_inference.infer_shapes(light, data_prop=True).graph
    except Exception:  # noqa: BLE001  whatever is wrong with the model is said where it is run
        return {}
    shapes = {item.name: tuple(item.dims) for item in stored}
    for info in [*infos, *found.value_info, *found.output]:
        kind = info.type.tensor_type
        if kind.HasField("shape") and all(size.dim_value > 0 for size in kind.shape.dim):
            shapes[info.name] = tuple(size.dim_value for size in kind.shape.dim)
    return shapes
