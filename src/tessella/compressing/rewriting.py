"""The ONNX model that a network was read from, made smaller, read back, and compared."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tessella.compressing.convolutions import Narrowed, has_convolutions, narrowed
from tessella.compressing.result import compared
from tessella.errors import ConversionMismatch, OptionError
from tessella.files import writing
from tessella.importers.door import Wishes, existing_file, reading
from tessella.importers.onnx import with_places
from tessella.importers.onnx_file import read_model
from tessella.network import Network
from tessella.stability import Stability

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """An ONNX model without channels and units that nobody needs; its operators are those of the original.

    Parameters
    ----------
    operators
        What became of each convolution and dense layer.
    parameters, before
        How many numbers the operators have now, and had.
    network
        What the written model is, read back.
    difference, points
        The largest difference of outputs that was found when both networks were evaluated in double precision, and at how many random points of the domain.  In real arithmetic it is 0 on all
        of the domain: no weight is rounded or put together.
    """

    operators: tuple[Narrowed, ...]
    parameters: int
    before: int
    network: Network
    difference: float
    points: int

    @property
    def convolutions(self) -> tuple[Narrowed, ...]:
        """Those of the operators that are convolutions."""
        return tuple(one for one in self.operators if one.kind == "Conv")

    def to_dict(self) -> dict[str, Any]:
        """All of it but the network, as plain values."""
        fields: Mapping[str, Any] = {name: getattr(self, name) for name in ("parameters", "before", "difference", "points")}
        return {**fields, "operators": [{name: getattr(one, name) for name in Narrowed.__slots__} for one in self.operators]}

    def __repr__(self) -> str:
        """One line a person can read."""
        channels = sum(one.units for one in self.convolutions), sum(one.kept for one in self.convolutions)
        return f"Rewritten({channels[0]:,} -> {channels[1]:,} channels, {self.before:,} -> {self.parameters:,} parameters)"


def onnx_model(source: "str | os.PathLike[str] | ModelProto") -> "ModelProto":
    """A model that is in memory, or in a file.

    Parameters
    ----------
    source
        The model, or the path of its file.
    """
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "graph"):
            msg = (
                f"like is a {type(source).__name__}; give the path of the ONNX model that the network was read from, or the model"
            )
            raise OptionError(msg)
        return source
    place = existing_file(source)
    with reading(str(source), "an ONNX model"):
        return read_model(place)


def rewritten(model: "ModelProto", stability: Stability, name: str) -> "tuple[ModelProto, Rewritten]":
    """A smaller copy of a model, and what is known of it.

    Parameters
    ----------
    model
        The model.
    stability
        That of the network that was read from it.
    name
        What to call the model in messages.
    """
    source = stability.network.source
    wishes = Wishes(input_shape=source.input_shape if source and source.input_shape else None)
    original, places = with_places(model, _fitting(model, wishes), name=name)
    if original != stability.network:
        msg = f"{name} is {original!r}, but the stability is that of {stability.network!r}; give the model that the network was read from, with all its outputs"
        raise OptionError(msg)
    smaller, operators = narrowed(model, stability, places)
    network, _ = with_places(smaller, _fitting(smaller, wishes), name=name)
    difference, points, agree = compared(original, network, stability.domain, 0.0)
    if not agree:
        msg = f"{name}: outputs differ by {difference:.2g} after channels were removed; please report this model"
        raise ConversionMismatch(msg)
    return smaller, Rewritten(operators, _numbers(smaller), _numbers(model), network, difference, points)


def write_rewritten(
    source: "str | os.PathLike[str] | ModelProto", stability: Stability, path: str | os.PathLike[str]
) -> Rewritten:
    """Write a smaller copy of a model to a file.

    Parameters
    ----------
    source
        The model, or its path.
    stability
        That of the network that was read from it.
    path
        The file, under exactly this name; an existing one is replaced.
    """
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else "ModelProto"
    smaller, found = rewritten(onnx_model(source), stability, name)
    with writing(path) as file:
        file.write(smaller.SerializeToString())
    return found


def keeps_convolutions(source: "str | os.PathLike[str] | ModelProto") -> bool:
    """Whether a model has convolutions that could stay what they are.

    Parameters
    ----------
    source
        The model, or its path.
    """
    return has_convolutions(onnx_model(source))


def _fitting(model: "ModelProto", wishes: Wishes) -> Wishes:
    """An input shape only where the model leaves one open."""
    stored = {item.name for item in model.graph.initializer}
    entries = [item for item in model.graph.input if item.name not in stored]
    shapes = [item.type.tensor_type.shape.dim for item in entries]
    open_ones = any(size.dim_value < 1 for shape in shapes for size in shape[1:]) or not all(shapes)
    return wishes if len(entries) == 1 and open_ones else Wishes()


def _numbers(model: "ModelProto") -> int:
    """How many floating-point numbers a model stores."""
    tensors = [
        *model.graph.initializer,
        *(node.attribute[0].t for node in model.graph.node if node.op_type == "Constant" and node.attribute[0].name == "value"),
    ]
    sizes = 0
    for tensor in tensors:
        if tensor.data_type in {1, 10, 11}:
            size = 1
            for length in tensor.dims:
                size *= length
            sizes += size
    return sizes
