"""What the `onnx` package's own evaluator says: of operators on constants, and of whole models."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tessella.errors import UnsupportedModel
from tessella.importers.linear_maps import check_size
from tessella.importers.onnx_corrections import corrections
from tessella.importers.onnx_node import Array, Node, Value

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

# operators that are evaluated where all their inputs are constants, besides those that can be read
FOLDED = frozenset(
    {
        *(
            "And",
            "Ceil",
            "Constant",
            "ConstantOfShape",
            "CumSum",
            "DequantizeLinear",
            "Equal",
            "Erf",
            "Exp",
            "Floor",
            "IsInf",
            "IsNaN",
        ),
        *(
            "Log",
            "Mod",
            "NonZero",
            "Or",
            "QuantizeLinear",
            "Range",
            "Reciprocal",
            "ReduceL2",
            "ReduceProd",
            "Round",
            "ScatterND",
            "Sigmoid",
        ),
        *("Sign", "Softmax", "Sqrt", "Tanh", "Trilu", "Xor"),
    }
)


def fold(node: Node) -> Sequence[Value]:
    """Evaluate an operator on constants."""
    _check_folded_size(node)
    # the evaluator takes a lone operator for one of the newest set, so it gets a model
    try:
        evaluator = _evaluator([node.proto], node.opset)
    except RuntimeError as error:
        msg = f"operator set {node.opset} cannot be evaluated; convert the model with onnx.version_converter"
        raise UnsupportedModel(msg) from error
    feed: dict[str, Any] = {name: value for name, value in zip(node.proto.input, node.inputs, strict=True) if name}
    try:
        with np.errstate(all="ignore"):
            results = evaluator.run(None, feed)
    except Exception as error:
        msg = f"cannot be evaluated on its constants ({type(error).__name__}: {str(error).partition(chr(10))[0]:.120}); is the model complete?"
        raise UnsupportedModel(msg) from error
    return [np.asarray(result) for result in results]


def _evaluator(
    nodes: "Sequence[NodeProto]", opset: int, initializers: "Sequence[TensorProto]" = (), names: Sequence[str] = ()
) -> Any:
    """The evaluator of some operators, which gives some tensors, or all results of the last operator."""
    from onnx import helper  # noqa: PLC0415  heavy
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  heavy

    made, stored = {name for node in nodes for name in node.output}, {item.name for item in initializers}
    entries = sorted({name for node in nodes for name in node.input if name} - made - stored)
    ends = names or [name for name in nodes[-1].output if name]
    before, after = ([helper.make_empty_tensor_value_info(name) for name in group] for group in (entries, ends))
    graph = helper.make_graph(list(nodes), "part", before, after, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model, new_ops=corrections(opset))


def _check_folded_size(node: Node) -> None:
    """Refuse operators that make large arrays of small ones, before they do."""
    kind = node.proto.op_type
    if kind in {"ConstantOfShape", "Expand", "Tile"}:
        sizes = node.constant(len(node.inputs) - 1).astype(np.float64)
        factor = 1.0 if kind == "ConstantOfShape" else max(node.constant(0).size, 1)
        check_size(int(min(factor * np.prod(np.abs(sizes) + 1.0), 1e18)), "a constant")
    if kind == "Range":
        start, limit, step = (float(node.constant(position).ravel()[0]) for position in range(3))
        check_size(int(min(abs(limit - start) / max(abs(step), 1e-18), 1e18)), "a constant")
    if kind == "Pad":
        check_size(
            int(min(np.prod([size + 1e9 for size in node.constant(0).shape]), 1e18)) if node.optional(1) is None else 0,
            "a constant",
        )


class Reference:
    """The part of a model that leads to some of its tensors, evaluated in the model's own precision.

    Parameters
    ----------
    graph
        The model's graph.
    nodes
        The operators that lead there, each after those that it reads.
    names
        The tensors to evaluate.
    opset
        The operator set.
    """

    def __init__(self, graph: "GraphProto", nodes: "Sequence[NodeProto]", names: Sequence[str], opset: int) -> None:
        """Look every operator up."""
        read = {name for node in nodes for name in node.input} | set(names)
        try:
            self._evaluator = _evaluator(nodes, opset, [item for item in graph.initializer if item.name in read], names)
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0][:160]
            msg = f"the onnx package cannot evaluate it in operator set {opset} ({reason}); export it again, or convert it with onnx.version_converter"
            raise UnsupportedModel(msg) from error
        self._names = list(names)

    def __call__(self, feed: Mapping[str, Array]) -> Array:
        """The tensors' elements, one after the other."""
        with np.errstate(all="ignore"):
            values = self._evaluator.run(self._names, dict(feed))
        return np.concatenate([np.ravel(value) for value in values])
