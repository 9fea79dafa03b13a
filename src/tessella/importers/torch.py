"""PyTorch modules, exported programs and ``.pt2`` files."""

import copy
import io
import logging
import operator
import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import replace
from inspect import Parameter, signature
from math import prod
from typing import Any

from tessella.errors import ConversionMismatch, UnknownShape, UnsupportedModel, UnsupportedOperator
from tessella.importers.check import checked, naming_what_is_not_finite
from tessella.importers.door import checked_shape, existing_file, reading
from tessella.importers.linear_maps import check_size
from tessella.importers.torch_archive import read_graph
from tessella.importers.torch_call import first_line, numbers
from tessella.importers.torch_graph import Graph, Ref, Step, check_ends, execute, layer_words, trace
from tessella.importers.torch_graph import input_shape as traced_shape
from tessella.network import Floats, Network, Source
from tessella.packages import torch_package
from tessella.tolerances import DEFAULT, Tolerances

__all__ = ["from_exported", "from_module", "read_pt2"]

_ROUNDINGS = 16  # half-precision sources are granted this many of their own roundings


def from_module(module: Any, input_shape: Sequence[int] | None = None) -> Network:
    """Read a ``torch.nn.Module``, as it computes in evaluation mode.

    A copy of the module is traced by ``torch.export``; the module itself is left as it is.  Weights in half precision
    are read as they are and computed with in single precision.

    Parameters
    ----------
    module
        The module; it takes one tensor and returns one.
    input_shape
        The shape of one input without its batch axis.  Needed unless the module begins with a ``Linear``.
    """
    torch = torch_package("reading PyTorch models")
    module = _unwrapped(torch, module)
    name = type(module).__name__
    with reading(name, "a network", UnsupportedModel), _quiet(), torch.no_grad():
        ready = _ready(torch, module, name)
        shape = _inferred_shape(torch, ready, name) if input_shape is None else checked_shape(input_shape)
        check_size(prod(shape), "the model's input")
        dtype = _dtype(torch, ready)
        program = _exported(torch, ready, name, torch.randn((1, *shape), dtype=dtype, generator=torch.Generator().manual_seed(0)))
        with naming_what_is_not_finite(lambda: _arrays(torch, [*ready.named_parameters(), *ready.named_buffers()])):
            network, compared = _traced(program, name)

        def forward(point: Floats) -> Floats:
            value = torch.tensor(point, dtype=dtype)
            return numbers(_only(ready(value.reshape(1, *shape)) if compared is None else execute(compared, value)))

        return checked(network, Source("torch", name, shape), forward)


def from_exported(program: Any, name: str = "ExportedProgram") -> Network:
    """Read a ``torch.export.ExportedProgram``.

    Parameters
    ----------
    program
        The program; it takes tensors whose first axis is a batch of one or dynamic, and returns one tensor.  Of several inputs
        the network reads the numbers one after the other.
    name
        What to call it.
    """
    torch = torch_package("reading PyTorch models")
    if not isinstance(program, torch.export.ExportedProgram):
        msg = f"{name}: is a {type(program).__name__}, not a torch.export.ExportedProgram; a module is read by from_module"
        raise UnsupportedModel(msg)
    with reading(name, "a network", UnsupportedModel), _quiet(), torch.no_grad():
        graph = _graph(program, name)
        network, compared = _traced(program, name)
        forward = _program_forward(torch, program, graph) if compared is None else _forward(torch, compared)
        return checked(network, Source("torch", name, graph.shape), forward, tolerances=_tolerances(torch, graph))


def read_pt2(path: str | os.PathLike[str]) -> Network:
    """Read a ``.pt2`` file, as ``torch.export.save`` writes them.

    Nothing in the file is unpickled or run as code: the graph is read as JSON and the weights as plain numbers.

    Parameters
    ----------
    path
        The file.
    """
    place = existing_file(path)
    torch = torch_package("reading PyTorch models")
    name = place.name
    with reading(name, "a .pt2 archive"), _quiet(), torch.no_grad():
        graph = read_graph(place)
        with naming_what_is_not_finite(lambda: _arrays(torch, graph.constants.items())):
            network, compared = trace(graph)
        source = Source("pt2", name, graph.shape)
        try:
            return checked(network, source, _forward(torch, compared), tolerances=_tolerances(torch, graph))
        except ConversionMismatch as error:
            if not any(step.in_place for step in graph.steps):
                raise
            msg = (
                f"{name}: writes over tensors that it reads again; save it without, "
                "with torch.export.save(program.run_decompositions({}), 'model.pt2')"
            )
            raise UnsupportedModel(msg) from error


# ---------------------------------------------------------------------------------------------- modules


def _unwrapped(torch: Any, module: Any) -> Any:
    """The module itself, where ``torch.compile`` or ``DataParallel`` stand around it."""
    inner = module.module if isinstance(module, torch.nn.DataParallel) else getattr(module, "_orig_mod", None)
    return _unwrapped(torch, inner) if isinstance(inner, torch.nn.Module) else module


def _ready(torch: Any, module: Any, name: str) -> Any:
    """A copy in evaluation mode, on the CPU, in at least single precision."""
    if not isinstance(module, torch.nn.Module):
        hint = "; a state dict holds weights but no architecture" if isinstance(module, Mapping) else ""
        hint = "; pass an instance of it" if isinstance(module, type) else hint
        msg = f"{name}: is no torch.nn.Module{hint}"
        raise UnsupportedModel(msg)
    _check_module(torch, module, name)
    # what pruning and older weight normalisation compute from parameters is part of a graph, and cannot be copied as it is
    computed = {
        id(value): value.detach().clone()
        for part in module.modules()
        for value in vars(part).values()
        if _is_computed(torch, value)
    }
    try:
        ready = copy.deepcopy(module, computed).eval().cpu()
    except Exception as error:
        msg = f"{name}: cannot be copied ({first_line(error)}); pass a module without computed attributes or open resources"
        raise UnsupportedModel(msg) from error
    floating = [tensor for tensor in _tensors(ready) if tensor.is_floating_point()]
    return ready.float() if any(tensor.element_size() < 4 for tensor in floating) else ready


def _is_computed(torch: Any, value: Any) -> bool:
    return torch.is_tensor(value) and not value.is_leaf


def _tensors(module: Any) -> list[Any]:
    return [*module.parameters(), *module.buffers()]


def _arrays(torch: Any, named: Iterable[tuple[str, Any]]) -> list[tuple[str, Floats]]:
    return [(name, numbers(value)) for name, value in named if torch.is_tensor(value) and value.is_floating_point()]


def _check_module(torch: Any, module: Any, name: str) -> None:
    if isinstance(module, torch.jit.ScriptModule):
        msg = f"{name}: is compiled to TorchScript, which is not read; pass the module it was made from"
        raise UnsupportedModel(msg)
    for path, part in module.named_modules():
        if ".quantized." in f"{type(part).__module__}.":
            msg = f"{name}: layer {path!r} is a quantised {type(part).__name__}; pass the module before its conversion"
            raise UnsupportedModel(msg)
    for path, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if torch.nn.parameter.is_lazy(tensor):
            msg = f"{name}: {path!r} has no shape yet; run the module once, so that its lazy layers are made"
        elif tensor.is_meta:
            msg = f"{name}: {path!r} is on the meta device and has no numbers; load its weights first"
        elif tensor.is_complex() or tensor.is_quantized:
            msg = f"{name}: {path!r} is of type {tensor.dtype}; only real numbers can be read"
        else:
            continue
        raise UnsupportedModel(msg)
    needed = [item.name for item in signature(module.forward).parameters.values() if _is_needed(item)]
    if len(needed) > 1:
        msg = (
            f"{name}: its forward pass needs {len(needed)} inputs ({', '.join(needed)}), whose shapes are not known; "
            f"read tessella.load(torch.export.export(module.eval(), ({', '.join(needed)})))"
        )
        raise UnsupportedModel(msg)


def _is_needed(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty and parameter.kind not in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}


def _dtype(torch: Any, module: Any) -> Any:
    return next((tensor.dtype for tensor in _tensors(module) if tensor.is_floating_point()), torch.get_default_dtype())


def _inferred_shape(torch: Any, module: Any, name: str) -> tuple[int, ...]:
    for part in module.modules():
        if isinstance(part, torch.nn.Linear):
            return (int(part.in_features),)
        if any(True for _ in part.parameters(recurse=False)):
            break
    msg = (
        f"{name}: the shape of its input cannot be told, because it does not begin with a Linear layer; "
        "say it without the batch axis, as in tessella.load(module, input_shape=(1, 28, 28))"
    )
    raise UnknownShape(msg)


def _exported(torch: Any, module: Any, name: str, example: Any) -> Any:
    shape = tuple(example.shape)
    try:  # first, because it computes nothing: what cannot be read is found before a pass that may take long
        return torch.export.export(module, (example,), strict=False)
    except Exception as error:
        try:
            module(example.clone())
        except Exception as failure:
            msg = (
                f"{name}: its forward pass fails on an input of shape {shape} ({first_line(failure)}); "
                "input_shape must be the shape of one input without its batch axis"
            )
            raise UnsupportedModel(msg) from failure
        msg = (
            f"{name}: torch.export cannot trace its forward pass ({first_line(error)}); "
            "it must not branch on the values it computes, nor leave torch"
        )
        raise UnsupportedModel(msg) from error


# ---------------------------------------------------------------------------------------------- programs


def _traced(program: Any, name: str) -> tuple[Network, Graph | None]:
    """The network that a program computes, and what to compare it with if not with the program as it is.

    What is not read as it is may be once torch has taken it apart.
    """
    graph = _graph(program, name)
    try:
        changes = any(_changes_arguments(step) for step in graph.steps)
        graph = _graph(program.run_decompositions({}), name) if changes else graph
        network, compared = trace(graph)
    except UnsupportedOperator as error:
        try:
            graph = _graph(program.run_decompositions(), name)
            network, compared = trace(graph)
        except Exception:  # noqa: BLE001  the operator that the user wrote says more than its parts
            raise error from None
    return network, None if compared is graph else compared


def _changes_arguments(step: Step) -> bool:
    """Whether a step writes to its arguments, so that it must be undone where they are views of each other."""
    schema = getattr(step.call, "_schema", None)
    return schema is not None and schema.is_mutable and step.aten != "detach"


def _graph(program: Any, name: str) -> Graph:
    values = {**program.constants, **program.state_dict}
    constants: dict[str, Any] = {}
    inputs: list[str] = []
    for spec in program.graph_signature.input_specs:
        if spec.kind.name in {"PARAMETER", "BUFFER", "CONSTANT_TENSOR"}:
            constants[spec.arg.name] = values[spec.target]
        elif spec.kind.name == "USER_INPUT" and hasattr(spec.arg, "value"):
            constants[spec.arg.name] = spec.arg.value
        else:
            inputs.append(spec.arg.name)
    nodes = {node.name: node for node in program.graph.nodes}
    for node in program.graph.nodes:
        if node.op == "get_attr":
            constants[node.name] = operator.attrgetter(node.target)(program.graph_module)
    (returned,) = next(node for node in program.graph.nodes if node.op == "output").args
    outputs = [
        node.name
        for spec, node in zip(program.graph_signature.output_specs, returned, strict=True)
        if spec.kind.name == "USER_OUTPUT" and hasattr(node, "name")
    ]
    check_ends(name, inputs, outputs)
    examples = [nodes[item].meta["val"] for item in inputs]
    for example in examples:
        if not hasattr(example, "shape") or not example.is_floating_point() or example.device.type != "cpu":
            msg = f"{name}: its input is {str(example)[:100]}; a floating-point tensor on the CPU is needed"
            raise UnsupportedModel(msg)
        if example.dtype != examples[0].dtype:
            msg = f"{name}: its inputs are of types {examples[0].dtype} and {example.dtype}; export it with inputs of one type"
            raise UnsupportedModel(msg)
    shapes = tuple(
        traced_shape(name, [size if isinstance(size, int) else None for size in example.shape]) for example in examples
    )
    steps = [_step(node) for node in program.graph.nodes if node.op == "call_function"]
    return Graph(name, steps, constants, tuple(inputs), outputs[0], shapes, examples[0].dtype)


def _step(node: Any) -> Step:
    target = node.target
    title = str(target) if hasattr(target, "_schema") else getattr(target, "__name__", str(target))
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    layer = ""
    if stack:
        path, kind = stack[-1]
        layer = layer_words(str(path), kind.__name__ if isinstance(kind, type) else str(kind))
    return Step(node.name, title, target, _linked(node.args), _linked(node.kwargs), node.name, layer)


def _linked(value: Any) -> Any:
    """Arguments with a `Ref` in place of every node."""
    if isinstance(value, tuple):
        return tuple(_linked(item) for item in value)
    if isinstance(value, list):
        return [_linked(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _linked(item) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(_linked(value.start), _linked(value.stop), _linked(value.step))
    return Ref(value.name) if hasattr(value, "op") and hasattr(value, "target") else value


def _forward(torch: Any, graph: Graph) -> Callable[[Floats], Floats]:
    """A graph's own forward pass."""
    return lambda point: numbers(_only(execute(graph, torch.tensor(point, dtype=graph.dtype))))


def _program_forward(torch: Any, program: Any, graph: Graph) -> Callable[[Floats], Floats]:
    """The program's own forward pass, for a batch as large as the one that it was exported with."""
    module = program.module()
    args, named = program.example_inputs or (tuple(torch.zeros(shape) for shape in graph.input_shapes), {})
    rows = next((len(value) for value in (*args, *named.values()) if torch.is_tensor(value)), 1)

    def forward(point: Floats) -> Floats:
        values = iter(graph.values(torch.tensor(point, dtype=graph.dtype)).values())
        batches = (value.repeat(rows, *[1] * (value.ndim - 1)) for value in values)
        places = [next(batches) if torch.is_tensor(item) else item for item in args]
        output = module(*places, **{key: next(batches) if torch.is_tensor(item) else item for key, item in named.items()})
        values_out = numbers(_only(output))
        return values_out[0] if rows > 1 and values_out.shape[:1] == (rows,) else values_out

    return forward


# ---------------------------------------------------------------------------------------------- shared


def _only(output: Any) -> Any:
    """The tensor in what a forward pass returns, which may be wrapped."""
    while not hasattr(output, "detach"):
        items = list(output.values()) if isinstance(output, Mapping) else list(output)
        output = next(item for item in items if item is not None)
    return output


def _tolerances(torch: Any, graph: Graph) -> Tolerances:
    return replace(DEFAULT, conversion=max(DEFAULT.conversion, _ROUNDINGS * torch.finfo(graph.dtype).eps))


@contextmanager
def _quiet() -> Generator[None]:
    """Keep torch from warning, logging and printing of what an error of ours reports anyway."""
    loggers = [logging.getLogger(name) for name in [*logging.root.manager.loggerDict] if name.split(".")[0] == "torch"]
    levels = [logger.level for logger in loggers]
    stream = _Muffler()
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        with warnings.catch_warnings(), redirect_stderr(stream):
            warnings.simplefilter("ignore")
            yield
    finally:
        stream.muffled = False
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


class _Muffler(io.TextIOBase):
    """A stream that drops what is written for a while; whoever keeps it writes to the real one afterwards."""

    muffled = True

    def write(self, text: str, /) -> int:
        """Drop the text, or pass it on."""
        return len(text) if self.muffled else sys.stderr.write(text)

    def flush(self) -> None:
        """Pass it on."""
        if not self.muffled:
            sys.stderr.flush()
