"""A graph of torch operators, run on traced tensors or by torch itself.

Exported programs and ``.pt2`` files both become a `Graph`.  `trace` runs it on affine expressions: steps that do not
depend on the input are computed by torch, the others go through the handlers in `torch_operators`.  `execute` lets
torch run every step, to compare with.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tessella.errors import NetworkError, TessellaError, UnsupportedModel, UnsupportedOperator
from tessella.importers.door import advised
from tessella.importers.linear_maps import LARGEST_MATRIX, check_size
from tessella.importers.torch_call import Call, arguments, base_name, dry_run, first_line
from tessella.importers.torch_ends import ENDS, after_end, ending
from tessella.importers.torch_moves import OF_SHAPES
from tessella.importers.torch_operators import HANDLERS
from tessella.importers.trace import Ended, Tensor, Trace
from tessella.network import Network

_SUPPORTED = (
    "linear and matmul, convolutions and transposed ones, batch_norm in evaluation mode, relu, leaky_relu, prelu, abs and clamp, maximum and "
    "minimum, max_pool, avg_pool and mean, sums of branches, + - * / with constants, cat, padding, upsampling and reshaping"
)
# checks that torch.export writes into graphs; they compute nothing
IGNORED = frozenset(
    {
        "_assert_scalar",
        "_assert_async",
        "_assert_tensor_metadata",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
        "_functional_assert_async",
        "_functional_assert_scalar",
    }
)
_LARGEST_INTEGER = 2**63

Named: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of this name, as an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class Step:
    """One operator."""

    name: str  # the node's name
    operator: str  # the operator's name, such as ``aten.relu.default``
    call: Any  # torch's own function
    # args, kwargs: its arguments, with a `Ref` for each value computed before
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: str | tuple[str, ...]  # the name of its result, or the names of its results
    layer: str = ""  # where in the module it comes from, in words; may be empty

    @property
    def aten(self) -> str:
        """The operator's name without namespace, overload and in-place mark; empty for others than aten's."""
        return base_name(self.operator)

    @property
    def in_place(self) -> bool:
        """Whether its first argument holds the result afterwards (``relu_``)."""
        mark = self.operator.split(".")[1] if self.aten else ""
        return mark.endswith("_") and not mark.endswith("__") and bool(self.args) and isinstance(self.args[0], Ref)

    def __str__(self) -> str:
        """Name the node in an error message."""
        return f"node {self.name!r}{f' ({self.layer})' if self.layer else ''}"


@dataclass(frozen=True, slots=True)
class Graph:
    """Operators in order, with one output.

    Parameters
    ----------
    name
        What to call the model in error messages.
    steps
        The operators in order.
    constants
        Weights, buffers and other values that do not depend on the input.
    inputs, output
        Names of the inputs and the output.
    input_shapes
        Shapes of the inputs, with a batch axis of length 1.
    dtype
        The torch dtype of the inputs.
    """

    name: str
    steps: Sequence[Step]
    constants: Named
    inputs: tuple[str, ...]
    output: str
    input_shapes: tuple[tuple[int, ...], ...]
    dtype: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input without its batch axis; of several, one after the other."""
        first, *others = self.input_shapes
        return (sum(prod(shape) for shape in self.input_shapes),) if others else first[1:]

    def values(self, whole: Any) -> Named:
        """The inputs by name, from all their numbers in a row: a traced tensor, or torch's."""
        ends = [0, *accumulate(prod(shape) for shape in self.input_shapes)]
        if isinstance(whole, Tensor):
            parts = [
                whole.take(np.arange(*pair)).reshape(shape) for pair, shape in zip(pairwise(ends), self.input_shapes, strict=True)
            ]
            parts = [whole.reshape(self.input_shapes[0])] if len(self.inputs) == 1 else parts
        else:
            flat = whole.reshape(-1)
            parts = [
                flat[start:end].reshape(shape) for (start, end), shape in zip(pairwise(ends), self.input_shapes, strict=True)
            ]
        return dict(zip(self.inputs, parts, strict=True))


def input_shape(name: str, sizes: Sequence[int | None]) -> tuple[int, ...]:
    """The shape to trace with: a batch axis of length 1, and everything else fixed.

    Parameters
    ----------
    name
        What to call the model in error messages.
    sizes
        The program's own input shape, None where it is dynamic.
    """
    shown = tuple("dynamic" if size is None else size for size in sizes)
    if not sizes:
        msg = f"{name}: its input is a single number without a batch axis; export it with an example input of shape (1, 1)"
        raise UnsupportedModel(msg)
    if sizes[0] not in {None, 1}:
        msg = (
            f"{name}: its input has the fixed shape {shown}, so its first axis is no batch of one; "
            "export it with an example input of batch size 1, or with a dynamic first axis"
        )
        raise UnsupportedModel(msg)
    if None in sizes[1:]:
        msg = f"{name}: its input has shape {shown}; only the first (batch) axis may be dynamic, export it with the others fixed"
        raise UnsupportedModel(msg)
    return (1, *(size for size in sizes[1:] if size is not None))


def check_ends(name: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse a program without an input, or with another number of outputs than one."""
    if not inputs:
        msg = f"{name}: has 0 inputs; a network reads a tensor"
        raise UnsupportedModel(msg)
    if len(outputs) != 1:
        what = "wrap it in a module that returns the one to count, or all of them joined by torch.cat"
        msg = f"{name}: has {len(outputs)} outputs; exactly one output tensor can be read: {what}"
        raise UnsupportedModel(msg)


def trace(graph: Graph) -> tuple[Network, Graph]:
    """The network that a graph computes, and the graph to compare it with: the same, without what is left off at its end."""
    try:
        _check_operators(graph)
        _check_sizes(graph)
        traced = Trace((1, *graph.shape))
        output = _run(graph, graph.values(traced.input), lambda step, args, kwargs: _traced_step(traced, step, args, kwargs))
        if not isinstance(output, Ended):
            return traced.network(_checked_output(output)), graph
        _checked_output(output.tensor)
        place = next(place for place, step in enumerate(graph.steps) if step.name == output.name)
        before = next(
            leaf.name for leaf in _leaves((graph.steps[place].args, graph.steps[place].kwargs)) if isinstance(leaf, Ref)
        )
        return traced.network(output), replace(graph, steps=graph.steps[:place], output=before)
    except (NetworkError, UnsupportedModel) as error:
        msg = f"{graph.name}: {error}"
        raise type(error)(msg) from error


def _check_operators(graph: Graph) -> None:
    """Refuse what cannot be read before anything is computed."""
    dependent = set(graph.inputs)
    for step in graph.steps:
        if dependent.isdisjoint(leaf.name for leaf in _leaves((step.args, step.kwargs)) if isinstance(leaf, Ref)):
            continue
        if step.aten not in HANDLERS and step.aten not in ENDS and step.aten not in IGNORED and step.call is not operator.getitem:
            raise UnsupportedOperator(unsupported(step))
        if step.aten not in OF_SHAPES:
            dependent.update([step.outputs] if isinstance(step.outputs, str) else step.outputs)


def _check_sizes(graph: Graph) -> None:
    """Refuse a convolution whose matrix would be too large before anything is computed: torch tells all shapes without numbers."""
    import torch  # noqa: PLC0415  optional, and here already imported by whoever made the graph

    inputs = zip(graph.inputs, graph.input_shapes, strict=True)
    held: Named = {name: torch.empty(shape, dtype=graph.dtype, device="meta") for name, shape in inputs}
    held.update((name, value.to("meta") if hasattr(value, "detach") else value) for name, value in graph.constants.items())
    for step in graph.steps:
        if step.aten in IGNORED:
            continue
        try:
            args = _filled(step.args, held)
            result = step.call(*args, **_filled(dict(step.kwargs), held))
            held.update(_named_results(step, result))
        except Exception:  # noqa: BLE001  the run that follows says what is wrong
            return
        if step.aten.startswith("conv") and len(args) > 1 and hasattr(args[1], "numel"):
            places = (args[0] if "transpose" in step.aten else result).shape[2:]
            try:
                check_size(prod(places) * args[1].numel(), "a convolution's matrix", LARGEST_MATRIX)
            except UnsupportedModel as error:
                msg = f"{step} is {step.operator}: {error}"
                raise UnsupportedModel(msg) from None


def _checked_output(output: Any) -> Tensor:
    if not isinstance(output, Tensor) or not output.terms:
        msg = "its output does not depend on its input, or is not a tensor"
        raise UnsupportedModel(msg)
    if not output.size:
        msg = f"its output has shape {output.shape}, so there is nothing to count"
        raise UnsupportedModel(msg)
    return output


def execute(graph: Graph, numbers: Any) -> Any:
    """The output as torch computes it, for a torch tensor of all the inputs' numbers in a row."""
    values = graph.values(numbers)
    return _run(graph, values, lambda step, args, kwargs: None if step.aten in IGNORED else step.call(*args, **kwargs))


def _run(graph: Graph, values: Named, run: Callable[[Step, tuple[Any, ...], Named], Any]) -> Any:
    held: Named = {**graph.constants, **values}
    for step in graph.steps:
        args, kwargs = _filled(step.args, held), _filled(dict(step.kwargs), held)
        try:
            result = run(step, args, kwargs)
            held.update(_named_results(step, result))
        except UnsupportedOperator:
            raise
        except TessellaError as error:
            msg = f"{step} is {step.operator}: {advised(str(error))}"
            raise UnsupportedModel(msg) from error
        except Exception as error:
            msg = f"{step} is {step.operator}, which cannot be run: {first_line(error)}"
            raise UnsupportedModel(msg) from error
        if step.in_place:
            held[step.args[0].name] = result
    return _filled(Ref(graph.output), held)


def _named_results(step: Step, result: Any) -> Named:
    if isinstance(step.outputs, str):
        return {step.outputs: result}
    if not step.outputs:
        return {}
    results = tuple(result) if isinstance(result, (list, tuple)) else (result,)
    results = results * len(step.outputs) if isinstance(result, Ended) else results
    if len(results) != len(step.outputs):
        msg = f"{len(results)} results where the graph names {len(step.outputs)}"
        raise UnsupportedModel(msg)
    return dict(zip(step.outputs, results, strict=True))


def _filled(value: Any, held: Named) -> Any:
    """Arguments with their values in place."""
    if isinstance(value, Ref):
        if value.name not in held:
            msg = f"the graph reads {value.name!r}, which nothing in it computes"
            raise UnsupportedModel(msg)
        return held[value.name]
    if isinstance(value, (list, tuple)):
        filled = [_filled(item, held) for item in value]
        return filled if isinstance(value, list) else tuple(filled)
    if isinstance(value, dict):
        return {key: _filled(item, held) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(_filled(value.start, held), _filled(value.stop, held), _filled(value.step, held))
    return value


def layer_words(path: str, kind: str) -> str:
    """A module in an error message, from its path in the model and its class."""
    title = kind.rpartition(".")[2]
    return f"layer {path!r}, {title}" if path else f"in {title}"


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _traced_step(traced: Trace, step: Step, args: tuple[Any, ...], kwargs: Named) -> Any:
    if step.aten in IGNORED:
        return None
    leaves = list(_leaves((args, kwargs)))
    if step.call is operator.getitem:
        return args[0] if isinstance(args[0], Ended) else operator.getitem(*args)
    if any(isinstance(leaf, Ended) for leaf in leaves):
        return _after_end(step, leaves)
    if not any(isinstance(leaf, Tensor) for leaf in leaves):
        return _folded(step, args, kwargs)
    return _handled(traced, step, args, kwargs)


def _handled(traced: Trace, step: Step, args: tuple[Any, ...], kwargs: Named) -> Any:
    """An operator of traced tensors."""
    if (ended := ending(step.aten, list(_leaves((args, kwargs))))) is not None:
        return replace(ended, name=step.name)
    if step.aten not in HANDLERS:
        raise UnsupportedOperator(unsupported(step))
    result = HANDLERS[step.aten](Call(traced, step.call, _bound(step.call, args, kwargs)))
    if isinstance(result, tuple):  # some operators also tell where they found their values
        return tuple(replace(part, name=step.name) if isinstance(part, Ended) else part for part in result)
    return result


def _after_end(step: Step, leaves: list[Any]) -> Ended:
    try:
        return after_end(step.aten, leaves)
    except UnsupportedOperator as error:
        msg = f"{step} is {step.operator}, which {error}"
        raise UnsupportedOperator(msg) from None


def unsupported(step: Step) -> str:
    """What to say of an operator that cannot be read."""
    return (
        f"{step} is {step.operator}, which cannot be read; replace it, or cut the model before it. "
        f"These piecewise-linear operators can be read: {_SUPPORTED}."
    )


def _folded(step: Step, args: tuple[Any, ...], kwargs: Named) -> Any:
    """A step that does not depend on the input, computed by torch."""
    tags = {str(tag) for tag in getattr(step.call, "tags", ())}
    if any("nondeterministic_seeded" in tag for tag in tags):
        msg = f"{step} is {step.operator}, which draws random numbers; a network must compute the same each time"
        raise UnsupportedOperator(msg)
    for shape in dry_run(step.call, args, kwargs):
        check_size(prod(shape), "a constant", LARGEST_MATRIX)
    result = step.call(*args, **kwargs)
    if isinstance(result, int) and abs(result) >= _LARGEST_INTEGER:
        msg = "an integer beyond 64 bits"
        raise UnsupportedModel(msg)
    return result


def _bound(call: Any, args: tuple[Any, ...], kwargs: Named) -> Named:
    """Arguments by name, defaults included."""
    bound: Named = {}
    for place, argument in enumerate(arguments(call)):
        if place < len(args):
            bound[argument.name] = args[place]
        elif argument.name in kwargs:
            bound[argument.name] = kwargs[argument.name]
        elif argument.has_default_value():
            bound[argument.name] = argument.default_value
    return bound
