"""ONNX models: the graph's operators run on traced tensors, the reference evaluator checks the outcome."""

import gzip
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tessella.errors import FileError, UnknownShape, UnsupportedModel, UnsupportedOperator
from tessella.importers.check import checked
from tessella.importers.door import existing_file, reading
from tessella.importers.onnx_operators import FOLDED, OPERATORS, Node, fold
from tessella.importers.trace import Tensor, Trace
from tessella.network import Floats, Network, Source
from tessella.tolerances import DEFAULT

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

Value = Tensor | npt.NDArray[Any]

_LARGEST_FILE = 2**31  # bytes; the format's own limit for one message
_REAL_TYPES = {1: "float32", 10: "float16", 11: "float64"}
_DOMAINS = {"", "ai.onnx"}
_ROUNDINGS = 16  # of the source's own precision, which may be half


def read_onnx(path: str | os.PathLike[str], input_shape: Sequence[int] | None = None, output: str | None = None) -> Network:
    """Read an ONNX file.

    Parameters
    ----------
    path
        The file, or a gzipped one; weights stored beside it are found.
    input_shape
        Shape of one input without its batch axis; needed only where the file leaves a size open.
    output
        The output to keep; needed only where there are several.
    """
    place = existing_file(path)
    with reading(str(path), "an ONNX model"):
        import onnx  # noqa: PLC0415  heavy
        from onnx.external_data_helper import load_external_data_for_model  # noqa: PLC0415

        with gzip.open(place) if place.suffix == ".gz" else place.open("rb") as file:
            content = file.read(_LARGEST_FILE)
        if len(content) == _LARGEST_FILE:
            msg = "is larger than 2 GB, the limit of the format; store the weights as external data"
            raise FileError(msg)
        model = onnx.load_model_from_string(content)
        load_external_data_for_model(model, str(place.parent.resolve()))
    return from_model(model, name=place.name, input_shape=input_shape, output=output)


def from_model(
    model: "ModelProto", *, name: str = "ModelProto", input_shape: Sequence[int] | None = None, output: str | None = None
) -> Network:
    """Read an ONNX model that is in memory.

    Parameters
    ----------
    model
        The model.
    name
        What to call it in messages.
    input_shape
        Shape of one input without its batch axis; needed only where the model leaves a size open.
    output
        The output to keep; needed only where there are several.
    """
    with reading(name, "an ONNX model"):
        from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  heavy

        graph = model.graph
        if not graph.node:
            msg = "holds no operators; is it an ONNX model?"
            raise FileError(msg)
        constants = _initializers(graph)
        entry = _single_input(graph, constants)
        shape = _input_shape(entry, input_shape)
        exit_name = _chosen_output(graph, output)
        trace = Trace(shape)
        values: dict[str, Value] = {**constants, entry.name: trace.input}
        opsets = {item.domain: item.version for item in model.opset_import}
        _run(graph, exit_name, trace, values, opsets)
        result = values.get(exit_name)
        if not isinstance(result, Tensor):
            msg = f"output {exit_name!r} does not depend on the input {entry.name!r}"
            raise UnsupportedModel(msg)
        network = trace.network(result)
        try:
            evaluator = ReferenceEvaluator(model)
        except RuntimeError as error:
            msg = f"operator set {opsets.get('', 1)} cannot be checked ({str(error)[:80]}...); convert it with onnx.version_converter"
            raise UnsupportedModel(msg) from error
        kind = _REAL_TYPES[entry.type.tensor_type.elem_type]

        def forward(point: Floats) -> Floats:
            with np.errstate(all="ignore"):
                (value,) = evaluator.run([exit_name], {entry.name: point.reshape(shape).astype(kind)})
                return np.asarray(value)

        one = shape[1:] if len(shape) > 1 and shape[0] == 1 else shape
        rounding = _ROUNDINGS * float(np.finfo(kind).eps)
        tolerances = replace(DEFAULT, conversion=max(DEFAULT.conversion, rounding))
        return checked(network, Source("onnx", name, input_shape=one), forward, tolerances=tolerances)


def _initializers(graph: "GraphProto") -> dict[str, npt.NDArray[Any]]:
    from onnx.numpy_helper import to_array  # noqa: PLC0415  heavy

    if graph.sparse_initializer:
        msg = "stores sparse initializers, which are not read; save it with dense ones"
        raise UnsupportedModel(msg)
    return {item.name: to_array(item) for item in graph.initializer}


def _single_input(graph: "GraphProto", constants: dict[str, Any]) -> "ValueInfoProto":
    entries = [item for item in graph.input if item.name not in constants]
    if len(entries) != 1:
        msg = f"has {len(entries)} inputs ({', '.join(repr(item.name) for item in entries[:5])}); a network of one input is expected"
        raise UnsupportedModel(msg)
    kind = entries[0].type.tensor_type.elem_type
    if kind not in _REAL_TYPES:
        msg = f"input {entries[0].name!r} has element type {kind}; floating-point numbers are expected ({', '.join(_REAL_TYPES.values())})"
        raise UnsupportedModel(msg)
    return entries[0]


def _input_shape(entry: "ValueInfoProto", given: Sequence[int] | None) -> tuple[int, ...]:
    kind = entry.type.tensor_type
    stated = [item.dim_value if item.dim_value > 0 else None for item in kind.shape.dim] if kind.HasField("shape") else None
    if given is not None:
        wanted = [int(size) for size in given]
        if stated is None or len(stated) == len(wanted) + 1:
            wanted = [stated[0] if stated and stated[0] else 1, *wanted]
        if stated is not None and (
            len(stated) != len(wanted) or any(size not in {None, asked} for size, asked in zip(stated, wanted, strict=True))
        ):
            msg = f"input {entry.name!r} has shape {_written(stated)}, which input_shape={tuple(given)} does not fit"
            raise UnsupportedModel(msg)
        return tuple(wanted)
    if stated and stated[0] is None:
        stated[0] = 1  # the batch
    if stated is None or any(size is None for size in stated):
        where = "no shape" if stated is None else f"shape {_written(stated)}"
        msg = f"input {entry.name!r} has {where}; say what one input looks like, as in input_shape=(3, 32, 32)"
        raise UnknownShape(msg)
    return tuple(size for size in stated if size is not None)


def _written(shape: Sequence[int | None]) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"


def _chosen_output(graph: "GraphProto", output: str | None) -> str:
    names = [item.name for item in graph.output]
    if output is not None and output not in names:
        msg = f"has no output {output!r}; it has {', '.join(map(repr, names[:8]))}"
        raise UnsupportedModel(msg)
    if output is None and len(names) != 1:
        msg = f"has {len(names)} outputs ({', '.join(map(repr, names[:8]))}); name one of them, as in output={(names or ['y'])[0]!r}"
        raise UnsupportedModel(msg)
    return names[0] if output is None else output


def _needed(graph: "GraphProto", output: str) -> list[tuple[int, "NodeProto"]]:
    """The operators that an output depends on, with their positions in the file."""
    wanted, nodes = {output}, list[tuple[int, "NodeProto"]]()
    for position, proto in reversed(list(enumerate(graph.node))):
        if wanted.intersection(proto.output):
            wanted.update(proto.input)
            nodes.append((position, proto))
    return nodes[::-1]


def _run(graph: "GraphProto", output: str, trace: Trace, values: dict[str, Value], opsets: dict[str, int]) -> None:
    """Run every operator that the output needs, constants in numpy and the rest traced."""
    for position, proto in _needed(graph, output):
        label = f"node {proto.name or '#' + str(position)!r} ({proto.op_type})"
        missing = [name for name in proto.input if name and name not in values]
        if missing:
            msg = f"{label} reads {missing[0]!r}, which nothing before it defines"
            raise FileError(msg)
        inputs = [values[name] if name else None for name in proto.input]
        traced = any(isinstance(value, Tensor) for value in inputs)
        known = OPERATORS if traced else OPERATORS.keys() | FOLDED
        if proto.op_type not in known or proto.domain not in _DOMAINS:
            where = f" of domain {proto.domain!r}" if proto.domain not in _DOMAINS else ""
            msg = f"{label} is a {proto.op_type}{where}; only these piecewise-linear operators can be read: {', '.join(sorted(OPERATORS))}"
            raise UnsupportedOperator(msg)
        node = Node(proto, trace, inputs, opsets.get("", opsets.get("ai.onnx", 1)))
        try:
            results = OPERATORS[proto.op_type](node) if traced else fold(node)
        except UnsupportedModel as error:
            msg = f"{label}: {error}"
            raise type(error)(msg) from error
        values.update((name, result) for name, result in zip(proto.output, results, strict=False) if name)
