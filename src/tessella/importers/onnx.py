"""ONNX models: the graph's operators run on traced tensors, the reference evaluator checks the outcome."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tessella.errors import FileError, UnknownShape, UnsupportedModel, UnsupportedOperator
from tessella.importers.check import checked, naming_what_is_not_finite
from tessella.importers.door import Wishes, existing_file, reading
from tessella.importers.onnx_file import check_numbers, read_model
from tessella.importers.onnx_graph import advice
from tessella.importers.onnx_node import OPERATORS, Array, Indicator, Node, Value, as_tensor
from tessella.importers.onnx_plan import Plan, planned
from tessella.importers.onnx_reference import Reference, fold
from tessella.importers.onnx_sizes import check_sizes
from tessella.importers.trace import Tensor, Trace, concatenate
from tessella.network import Floats, Network, Source
from tessella.tolerances import DEFAULT

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, ValueInfoProto

_REAL_TYPES = {1: "float32", 10: "float16", 11: "float64"}
_ROUNDINGS = 16  # of the source's own precision, which may be half
_PLAIN = frozenset({"Constant", "Identity"})  # nothing is said of folding these
_BATCHED = frozenset({2, 4})  # axes of what is a batch of vectors or images, most likely
_NAMED = 8  # so many operators at the end are named one by one


def read_onnx(path: str | os.PathLike[str], wishes: Wishes) -> Network:
    """Read an ONNX file.

    Parameters
    ----------
    path
        The file, or a gzipped one; weights stored beside it are found.
    wishes
        What to read of it.
    """
    place = existing_file(path)
    with reading(str(path), "an ONNX model"):
        model = read_model(place)
    return from_model(model, wishes, name=place.name)


def from_model(model: "ModelProto", wishes: Wishes, *, name: str = "ModelProto") -> Network:
    """Read an ONNX model that is in memory.

    Parameters
    ----------
    model
        The model.
    wishes
        What to read of it.
    name
        What to call it in messages.
    """
    return with_places(model, wishes, name=name)[0]


class Place(NamedTuple):
    """The units that a ReLU of a model became: so many in a row of a layer, in the order of its elements.

    Parameters
    ----------
    layer
        The layer, from 0.
    start
        The first unit.
    shape
        Of what the ReLU passes on, its batch axis included.
    """

    layer: int
    start: int
    shape: tuple[int, ...]


def with_places(model: "ModelProto", wishes: Wishes, *, name: str = "ModelProto") -> tuple[Network, dict[str, Place]]:
    """Read an ONNX model that is in memory, and say which units its operators ``Relu`` became, by the names of what they pass on.

    Parameters
    ----------
    model, wishes, name
        As in `from_model`.
    """
    with reading(name, "an ONNX model"):
        graph = model.graph
        if not graph.node:
            msg = "holds no operators; is it an ONNX model?"
            raise FileError(msg)
        if graph.sparse_initializer:
            msg = "stores sparse initializers, which are not read; save it with dense ones"
            raise UnsupportedModel(msg)
        opsets = {item.domain: item.version for item in model.opset_import}
        opset = opsets.get("", opsets.get("ai.onnx", 1))
        check_numbers(model)
        entries = _Entries(graph, wishes)
        outputs = _outputs(graph, wishes.output)
        plan = planned(graph, entries.shapes, [*entries.stored, *entries.fixed], outputs)
        check_sizes(graph, plan, entries.shapes, opset)
        reference = Reference(graph, plan.nodes, plan.kept, opset)
        trace = Trace(entries.shape)
        values: dict[str, Value] = {**_initializers(graph, plan), **entries.fixed, **entries.split(trace.input)}
        results, folded, rectified = _run(plan, trace, values, opset)
        if not any(result.terms for result in results):
            msg = f"output {plan.kept[0]!r} does not depend on the input {next(iter(entries.shapes))!r}"
            raise UnsupportedModel(msg)
        whole = results[0] if len(results) == 1 else concatenate([result.reshape((-1,)) for result in results], 0)
        with naming_what_is_not_finite(lambda: _initializers(graph, plan).items()):
            network = trace.network(whole)
        made = network.source or Source("", "")
        notes, details = (*entries.notes(), *_notes(plan, results)), (*made.details, *_details(folded))
        network = replace(network, source=replace(made, notes=notes, details=details))

        def forward(point: Floats) -> Floats:
            return reference(entries.feed(point))

        tolerances = replace(DEFAULT, conversion=max(DEFAULT.conversion, entries.rounding))
        found = {tensor: (trace.place(result), result.shape) for tensor, result in rectified.items()}
        places = {tensor: Place(*place, shape) for tensor, (place, shape) in found.items() if place is not None}
        return checked(network, Source("onnx", name, input_shape=entries.one), forward, tolerances=tolerances), places


class _Entries:
    """The inputs of a graph: those that vary, one after the other, and those that are fixed."""

    def __init__(self, graph: "GraphProto", wishes: Wishes) -> None:
        """Find out what each looks like."""
        self.stored = [item.name for item in graph.initializer]
        varying = {item.name: item for item in graph.input if item.name not in set(self.stored)}
        given = dict(wishes.inputs or {})
        for name in given:
            if name not in varying:
                msg = f"has no input {name!r}; it has {', '.join(map(repr, list(varying)[:8])) or 'none'}"
                raise UnsupportedModel(msg)
        self.fixed = {name: _fixed(varying.pop(name), value) for name, value in given.items()}
        if not varying:
            msg = "has no inputs that vary; a network of at least one is expected"
            raise UnsupportedModel(msg)
        if len(varying) > 1 and wishes.input_shape is not None:
            msg = f"has {len(varying)} inputs ({', '.join(map(repr, list(varying)[:8]))}); input_shape is for models of one: fix the others by inputs={{name: array}}"
            raise UnsupportedModel(msg)
        self.types = {name: _element_type(item) for name, item in varying.items()}
        self.shapes = {name: _input_shape(item, wishes.input_shape) for name, item in varying.items()}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the only input, or of all of them one after the other."""
        shapes = list(self.shapes.values())
        return shapes[0] if len(shapes) == 1 else (sum(map(prod, shapes)),)

    @property
    def one(self) -> tuple[int, ...]:
        """The same without a batch axis."""
        shape = self.shape
        return shape[1:] if len(shape) > 1 and shape[0] == 1 else shape

    @property
    def rounding(self) -> float:
        """What rounding in the model's own precision may do."""
        return _ROUNDINGS * max(float(np.finfo(kind).eps) for kind in self.types.values())

    def split(self, tensor: Tensor) -> dict[str, Tensor]:
        """Each input as a part of the network's."""
        if len(self.shapes) == 1:
            return dict.fromkeys(self.shapes, tensor)
        ends = np.cumsum([prod(shape) for shape in self.shapes.values()])
        parts = np.split(tensor.indices(), ends[:-1])
        return {name: tensor.take(part.reshape(shape)) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def feed(self, point: Floats) -> dict[str, Array]:
        """Each input's array, for a point of the network's."""
        ends = np.cumsum([prod(shape) for shape in self.shapes.values()])
        parts = zip(self.shapes.items(), np.split(point, ends[:-1]), strict=True)
        return {**self.fixed, **{name: part.reshape(shape).astype(self.types[name]) for (name, shape), part in parts}}

    def notes(self) -> list[str]:
        """How several inputs are read, and which are fixed."""
        listed = [f"{name} ({prod(shape):,})" for name, shape in self.shapes.items()]
        several = [f"inputs, one after the other: {', '.join(listed)}"] if len(listed) > 1 else []
        batches = [
            f"input {name} has shape {_written(shape)}: if its first axis is a batch, regions of all its {shape[0]:,} elements together are counted; export it with a batch of one"
            for name, shape in self.shapes.items()
            if len(shape) in _BATCHED and shape[0] > 1
        ]
        return several + batches + ([f"fixed inputs: {', '.join(self.fixed)}"] if self.fixed else [])


def _element_type(entry: "ValueInfoProto") -> str:
    kind = entry.type.tensor_type.elem_type
    if kind not in _REAL_TYPES:
        shown = entry.name if entry.name.isprintable() else "NAME"
        msg = (
            f"input {entry.name!r} is of type {_type_name(kind)}; floating-point numbers are expected ({', '.join(_REAL_TYPES.values())}), "
            f"or fix this input by inputs={{{entry.name!r}: array}} (--input {shown}=FILE in a shell)"
        )
        raise UnsupportedModel(msg)
    return _REAL_TYPES[kind]


def _type_name(kind: int) -> str:
    from onnx import TensorProto  # noqa: PLC0415  heavy

    return TensorProto.DataType.Name(kind).lower() if kind in TensorProto.DataType.values() else f"number {kind}"


def _fixed(entry: "ValueInfoProto", value: npt.ArrayLike) -> Array:
    from onnx.helper import tensor_dtype_to_np_dtype  # noqa: PLC0415  heavy

    array, kind = np.asarray(value), entry.type.tensor_type
    stated = [item.dim_value for item in kind.shape.dim] if kind.HasField("shape") else list(array.shape)
    if array.dtype.kind not in "biuf" or len([size for size in stated if size < 1]) > 1:
        stated = list(array.shape) if array.dtype.kind in "biuf" else [0]
    shape = [size if size > 0 else -1 for size in stated]
    known = prod(size for size in shape if size > 0)
    if (array.size != known and -1 not in shape) or array.size % known or array.dtype.kind not in "biuf":
        msg = f"input {entry.name!r} has shape {_written([size if size > 0 else None for size in stated])}; the array to fix it is {array.dtype} of shape {array.shape}"
        raise UnsupportedModel(msg)
    if array.dtype.kind == "f" and np.isnan(array).any():
        msg = f"the array to fix input {entry.name!r} holds nan; give numbers"
        raise UnsupportedModel(msg)
    return array.reshape(shape).astype(tensor_dtype_to_np_dtype(kind.elem_type))


def _initializers(graph: "GraphProto", plan: Plan) -> dict[str, Array]:
    """The stored constants that are read."""
    from onnx.numpy_helper import to_array  # noqa: PLC0415  heavy

    read = {name for proto in plan.nodes for name in proto.input} | set(plan.kept)
    return {item.name: to_array(item) for item in graph.initializer if item.name in read}


def _input_shape(entry: "ValueInfoProto", given: Sequence[int] | None) -> tuple[int, ...]:
    kind = entry.type.tensor_type
    stated = [item.dim_value if item.dim_value > 0 else None for item in kind.shape.dim] if kind.HasField("shape") else None
    if given is not None:
        wanted = [int(size) for size in given]
        if stated is not None and len(stated) == len(wanted) + 1 and (stated[0] or 1) > 1:
            msg = f"input {entry.name!r} has shape {_written(stated)}, a fixed batch of {stated[0]}; export the model with a batch of one, or with an open one"
            raise UnsupportedModel(msg)
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
        msg = f"input {entry.name!r} has {where}; say what one input looks like, as in input_shape=(3, 32, 32) (--input-shape 3,32,32 in a shell)"
        raise UnknownShape(msg)
    return tuple(size for size in stated if size is not None)


def _written(shape: Sequence[int | None]) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"


def _outputs(graph: "GraphProto", output: str | None) -> list[str]:
    """The outputs to read; a name may also be of a tensor inside."""
    names = [item.name for item in graph.output]
    inside = {name for proto in graph.node for name in proto.output if name}
    if output is None and names:
        return names
    if output is None or output not in {*names, *inside}:
        which = "outputs" if output is None else f"output {output!r}"
        there = f"it has {', '.join(map(repr, names[:8]))}, and " if names else ""
        msg = f"has no {which}; {there}output= (--output-name in a shell) may name any tensor inside"
        raise UnsupportedModel(msg)
    return [output]


def _run(
    plan: Plan, trace: Trace, values: Mapping[str, Value], opset: int
) -> tuple[list[Tensor], Counter[str], dict[str, Tensor]]:
    """Run every operator, constants by the reference evaluator and the rest traced; gives the tensors to keep, how many operators were folded, and what ReLUs pass on."""
    found, folded, rectified = dict(values), Counter[str](), dict[str, Tensor]()
    last = {name: position for position, proto in enumerate(plan.nodes) for name in proto.input}
    made = {name for proto in plan.nodes for name in proto.output}
    for position, (proto, label) in enumerate(zip(plan.nodes, plan.labels, strict=True)):
        inputs = [found[name] if name else None for name in proto.input]
        node = Node(proto, trace, inputs, opset)
        traced = any(isinstance(value, Tensor | Indicator) for value in inputs)
        try:
            results = OPERATORS[proto.op_type].run(node) if traced else fold(node)
        except UnsupportedModel as error:
            cut = next((name for name in proto.input if name in made and isinstance(found[name], Tensor)), None)
            msg = f"{label}: {error}" + (f"; {advice(cut)}" if isinstance(error, UnsupportedOperator) else "")
            raise type(error)(msg) from error
        found.update((name, result) for name, result in zip(proto.output, results, strict=False) if name)
        if proto.op_type == "Relu" and isinstance(results[0], Tensor):
            rectified[proto.output[0]] = results[0]
        if proto.op_type not in _PLAIN and all(isinstance(result, np.ndarray) for result in results):
            folded[proto.op_type] += 1
        for name in {*proto.input, *proto.output}:  # matrices can be large: what nobody reads any more is dropped
            if last.get(name, -1) <= position and name not in plan.kept:
                found.pop(name, None)
    return [_result(found[name], name) for name in plan.kept], folded, rectified


def _result(value: Value, name: str) -> Tensor:
    if isinstance(value, Indicator):
        msg = f"output {name!r} is a comparison, which is not piecewise linear"
        raise UnsupportedModel(msg)
    return as_tensor(value)


def _details(folded: Mapping[str, int]) -> tuple[str, ...]:
    listed = ", ".join(f"{count:,} {kind}" for kind, count in sorted(folded.items()))
    return (f"computed beforehand, as they do not depend on the input: {listed}",) if folded else ()


def _notes(plan: Plan, results: Sequence[Tensor]) -> list[str]:
    """What was left off, and where several outputs are."""
    notes: list[str] = []
    if plan.left_off:
        more = len(plan.left_off) - _NAMED
        named = ", ".join(plan.left_off[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        notes.append(f"left off at the end, which changes no region of what is read ({', '.join(map(repr, plan.kept))}): {named}")
    if len(results) > 1:
        sizes = (f"{name} ({result.size:,})" for name, result in zip(plan.kept, results, strict=True))
        notes.append(f"outputs, one after the other: {', '.join(sizes)}")
    return notes
