"""One ONNX operator with its inputs at hand, and the register of those that can be read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tessella.errors import UnsupportedModel
from tessella.importers.trace import Tensor, Trace

if TYPE_CHECKING:
    from onnx import NodeProto

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Indicator:
    """Truth values that depend on the input: whether a difference is positive."""

    difference: Tensor  # what is compared with zero
    positive: bool = True  # what the truth value is where the difference is positive; elsewhere it is the opposite


Value = Tensor | Indicator | Array


@dataclass(frozen=True, slots=True)
class Node:
    """One operator with its inputs at hand."""

    proto: "NodeProto"
    trace: Trace
    inputs: Sequence[Value | None]
    opset: int

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value."""
        return attribute(self.proto, name, default)

    def optional(self, position: int) -> Value | None:
        """An input that may be left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def value(self, position: int) -> Tensor | Array:
        """An input that must be there."""
        found = self.optional(position)
        if found is None:
            msg = f"input {position} is missing"
            raise UnsupportedModel(msg)
        if isinstance(found, Indicator):
            msg = f"input {position} is a comparison, where numbers were expected"
            raise UnsupportedModel(msg)
        return found

    def tensor(self, position: int = 0) -> Tensor:
        """An input that depends on the network's input."""
        found = self.value(position)
        if not isinstance(found, Tensor):
            msg = f"input {position} is a constant where a tensor was expected"
            raise UnsupportedModel(msg)
        return found

    def constant(self, position: int, default: Array | None = None) -> Array:
        """An input that must not depend on the network's input."""
        found = self.optional(position)
        if found is None and default is not None:
            return default
        if not isinstance(found, np.ndarray):
            what = "is missing" if found is None else "depends on the network's input; a constant was expected"
            msg = f"input {position} {what}"
            raise UnsupportedModel(msg)
        return found

    def integers(self, name: str, position: int) -> list[int] | None:
        """Whole numbers that are an attribute in old operator sets and an input in new ones."""
        given = self.attribute(name)
        if given is None and self.optional(position) is not None:
            given = self.constant(position).ravel().tolist()
        return None if given is None else [int(number) for number in np.atleast_1d(given)]

    def axes(self, position: int = 1) -> list[int]:
        """The axes to reduce, counted from the front; all of them if none are named."""
        rank, named = len(self.tensor().shape), self.integers("axes", position)
        if not named and self.attribute("noop_with_empty_axes", 0):
            return []
        return checked_axes(named, rank) if named else list(range(rank))


def attribute(proto: "NodeProto", name: str, default: Any = None) -> Any:
    """An attribute's value."""
    from onnx.helper import get_attribute_value  # noqa: PLC0415  heavy

    for item in proto.attribute:
        if item.name == name:
            value = get_attribute_value(item)
            return value.decode() if isinstance(value, bytes) else value
    return default


def checked_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front, each at most once."""
    found = [axis + rank if axis < 0 else axis for axis in axes]
    if any(not 0 <= axis < rank for axis in found) or len(set(found)) != len(found):
        msg = f"names axes {list(axes)} of a tensor with {rank}"
        raise UnsupportedModel(msg)
    return found


def as_tensor(value: Tensor | Array) -> Tensor:
    """Constants as a tensor that depends on nothing."""
    return value if isinstance(value, Tensor) else Tensor(value.shape, {}, np.asarray(value, dtype=np.float64).ravel())


@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator does, and what it asks of its inputs."""

    run: Callable[[Node], Sequence[Value]]  # from a node to its outputs
    constants: tuple[int, ...] | slice = ()  # inputs that must not depend on the network's input
    factors: tuple[int, ...] = ()  # inputs of which at most one may depend on it

    def fixed(self, count: int) -> tuple[int, ...]:
        """The inputs that must be constants, of an operator with so many."""
        return tuple(range(count)[self.constants]) if isinstance(self.constants, slice) else self.constants


OPERATORS: dict[str, Operator] = {}


def operator(
    *names: str, constants: tuple[int, ...] | slice = (), factors: tuple[int, ...] = ()
) -> Callable[[Callable[[Node], Sequence[Value]]], Callable[[Node], Sequence[Value]]]:
    """Register what operators do."""

    def register(function: Callable[[Node], Sequence[Value]]) -> Callable[[Node], Sequence[Value]]:
        OPERATORS.update(dict.fromkeys(names, Operator(function, constants, factors)))
        return function

    return register
