"""A call of one of torch's functions, with arguments that may be traced."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tessella.errors import UnsupportedModel
from tessella.importers.trace import Tensor, Trace
from tessella.network import Floats


def first_line(error: BaseException) -> str:
    """An error of another library, short enough for a message of ours."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else "no further details"
    return f"{type(error).__name__}: {text[:200]}"


def base_name(operator: str) -> str:
    """``relu`` for ``aten.relu_.default``; empty if it is none of aten's."""
    parts = operator.split(".")
    if len(parts) < 2 or parts[0] != "aten":
        return ""
    name = parts[1]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def numbers(value: Any) -> Floats:
    """A constant (torch tensor, number or list) in double precision."""
    if hasattr(value, "detach"):
        import torch  # noqa: PLC0415  optional, and here already imported by whoever made the value

        if value.is_complex():
            msg = "complex numbers cannot be read"
            raise UnsupportedModel(msg)
        return value.detach().cpu().to(torch.float64).numpy()
    if isinstance(value, complex):
        msg = "complex numbers cannot be read"
        raise UnsupportedModel(msg)
    return np.asarray(value, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator and its arguments."""

    trace: Trace  # where new signals are made
    function: Any  # torch's own function
    given: Mapping[str, Any]  # the arguments by name, defaults included: traced tensors, torch tensors, numbers, lists

    def tensor(self, name: str) -> Tensor:
        """An argument as a traced tensor; a constant becomes one too."""
        return lifted(self.given[name])

    def constant(self, name: str) -> Floats:
        """An argument that must not depend on the input."""
        value = self.given[name]
        if isinstance(value, Tensor):
            msg = f"its {name!r} depends on the input, which is not piecewise linear"
            raise UnsupportedModel(msg)
        return numbers(value)

    def optional(self, name: str) -> Floats | None:
        """The same, where there may be none."""
        return None if self.given.get(name) is None else self.constant(name)

    def integers(self, name: str, count: int) -> list[int]:
        """A list of integers; a single one stands for all."""
        value = self.given[name]
        items = [int(item) for item in value] if isinstance(value, (list, tuple)) else [int(value)]
        return items * count if len(items) == 1 else items


Handler: TypeAlias = Callable[[Call], Any]  # what an operator does to traced tensors


def lifted(value: Any) -> Tensor:
    """A constant as a tensor that depends on nothing."""
    if isinstance(value, Tensor):
        return value
    array = numbers(value)
    return Tensor(array.shape, {}, np.array(array).ravel())


def arguments(function: Any) -> list[Any]:
    """What torch's function says of its arguments: names, defaults, and whether they are passed by name."""
    schema = getattr(function, "_schema", None)
    return [] if schema is None else list(schema.arguments)


def arranged(function: Any, given: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Named arguments in places and by name, as torch's function wants them; defaults fill the gaps."""
    places: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in arguments(function):
        value = given.get(argument.name, argument.default_value)
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            places.append(value)
    return tuple(places), keywords


def apply(function: Any, given: Mapping[str, Any]) -> Any:
    """Call torch's function with arguments by name."""
    places, keywords = arranged(function, given)
    return function(*places, **keywords)


def dry_run(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Shapes of what a function would return, without computing it; none where torch cannot tell."""
    schema = getattr(function, "_schema", None)
    if schema is None or schema.is_mutable:
        return []
    keywords = {name: _without_data(value) for name, value in kwargs.items()}
    if any(argument.name == "device" for argument in schema.arguments):
        keywords["device"] = "meta"
    try:
        result = function(*_without_data(args), **keywords)
    except Exception:  # noqa: BLE001  a real run follows and says what is wrong
        return []
    return [tuple(part.shape) for part in (result if isinstance(result, (list, tuple)) else [result]) if hasattr(part, "shape")]


def _without_data(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_without_data(item) for item in value)
    return value.to("meta") if hasattr(value, "detach") else value
