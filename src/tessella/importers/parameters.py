"""Weights without an architecture: torch's state dicts, parameters of Flax and Haiku, lists as scikit-learn has them.

They are read as what they say if they say it clearly: linear layers in a row, with a ReLU after each but the last.  Everything else is refused with
the line that says it clearly.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from tessella.errors import UnsupportedModel
from tessella.network import Network, Source

Array = npt.NDArray[Any]

_WEIGHTS: Final = {"weight": "state_dict", "kernel": "flax", "w": "haiku"}  # who calls them so
_BIASES: Final = {"weight": "bias", "kernel": "bias", "w": "b"}
_PAIRS: Final = "write the layers down in order, as in tessella.load([(W, b), ...]) with weights of shape (units, inputs)"
_MODULE: Final = "build the module, module.load_state_dict(state), and pass it: tessella.load(module); or " + _PAIRS
_DEEPEST: Final = 100  # dictionaries in each other
_LONGEST: Final = 12  # layers without numbers whose order is looked for
_NESTED: Final = ("state_dict", "model_state_dict", "model", "params_ema")


@dataclass(frozen=True, slots=True)
class _Linear:
    """One layer, with its weight as (units, inputs)."""

    name: str
    weight: Array
    bias: Array | None


def numbers(value: Any) -> Array:
    """An array, whoever holds it: torch's parameters may take part in training, or have half precision."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.double().numpy() if value.is_floating_point() else value.numpy()
    return np.asarray(value)


def is_parameters(source: object) -> bool:
    """Whether a dictionary looks like one of parameters: what its innermost dictionaries hold are arrays under their usual names."""
    return isinstance(source, Mapping) and any(
        path.rpartition("/")[2].rpartition(".")[2] in _WEIGHTS for path, _ in _leaves(source)
    )


def from_parameters(source: Mapping[str, Any], name: str | None = None, *, ordered: bool = True) -> Network:
    """Read a dictionary of a plain MLP's parameters: torch's ``state_dict``, or what Flax or Haiku give.

    Parameters
    ----------
    source
        ``{"0.weight": ..., "0.bias": ..., ...}``, ``{"params": {"Dense_0": {"kernel": ..., "bias": ...}, ...}}`` or
        ``{"mlp/~/linear_0": {"w": ..., "b": ...}, ...}``.
    name
        What to call it; what it is, if there is no name.
    ordered
        Whether a state dict has its entries in the order of its layers, as torch makes them.
    """
    leaves = _leaves(source)
    held = next((key for key in _NESTED if isinstance(source.get(key), Mapping) and len(source) > 1), None)
    if held is not None:
        msg = f"{name or 'a checkpoint'}: holds {_listed(source)}; pass the parameters alone: tessella.load(checkpoint[{held!r}])"
        raise UnsupportedModel(msg)
    kind, layers = _layers(leaves, name)
    title = name or {"state_dict": "state_dict", "flax": "Flax parameters", "haiku": "Haiku parameters"}[kind]
    in_row = _in_order(title, layers, ordered=ordered and kind == "state_dict")
    network = Network.from_arrays([(layer.weight, layer.bias) for layer in in_row])
    note = f"read as the layers {', '.join(layer.name for layer in in_row)} with a ReLU after each but the last, which weights alone do not say"
    return replace(network, source=_source(network, kind, title, (note,) if len(in_row) > 1 else ()))


def _source(network: Network, kind: str, name: str, notes: tuple[str, ...] = ()) -> Source:
    units = (("ReLU", network.relus),) if network.relus else ()
    return Source(kind, name, input_shape=(network.input_dim,), units=units, notes=notes)


def _leaves(source: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> list[tuple[str, Any]]:
    """What is no dictionary itself, with the path to it."""
    if depth > _DEEPEST:
        msg = f"a dictionary in which others are nested more than {_DEEPEST} deep, or which holds itself, is no network; {_PAIRS}"
        raise UnsupportedModel(msg)
    found: list[tuple[str, Any]] = []
    for key, value in source.items():
        path = f"{prefix}{key}"
        found += _leaves(value, f"{path}/", depth + 1) if isinstance(value, Mapping) else [(path, value)]
    return found


def refuse_mapping(source: Mapping[Any, Any]) -> NoReturn:
    """Say of a dictionary without weights of linear layers what it holds instead."""
    what = f"it holds {_listed(source)}, and" if source else "it is empty, and holds"
    msg = f"an object of type {type(source).__name__} is no network: {what} no weights of linear layers, called 'weight', 'kernel' or 'w'; {_MODULE}"
    raise UnsupportedModel(msg)


def _listed(names: Iterable[object]) -> str:
    shown = [repr(str(name)[:40]) for name in names]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")


def _layers(leaves: list[tuple[str, Any]], name: str | None) -> tuple[str, list[_Linear]]:
    """What kind of parameters these are, and their layers as they come."""
    title = name or "the parameters"
    found: dict[str, dict[str, Any]] = {}
    for path, value in leaves:
        mark = max(path.rfind("/"), path.rfind("."))
        found.setdefault(path[: max(mark, 0)], {})[path[mark + 1 :]] = value
    weights = {mark for parts in found.values() for mark in parts if mark in _WEIGHTS}
    if len(weights) != 1:
        what = (
            f"weights called {_listed(sorted(weights))}, which are not of one kind" if weights else "no weights of linear layers"
        )
        msg = f"{title}: there are {what}; {_PAIRS}"
        raise UnsupportedModel(msg)
    mark = weights.pop()
    layers: list[_Linear] = []
    for path, parts in found.items():
        strange = set(parts) - {mark, _BIASES[mark]}
        if strange or mark not in parts:
            what = f"{path}.{min(strange)}" if strange else path
            msg = f"{title}: hold {what!r:.80}, which belongs to no linear layer; {_otherwise(mark)}"
            raise UnsupportedModel(msg)
        weight, bias = numbers(parts[mark]), parts.get(_BIASES[mark])
        if weight.ndim != 2:
            msg = f"{title}: {path!r:.60} has a weight of shape {weight.shape}, so it is no linear layer; {_otherwise(mark)}"
            raise UnsupportedModel(msg)
        layers.append(
            _Linear(
                path.removeprefix("params/") or mark,
                weight if mark == "weight" else weight.T,
                None if bias is None else numbers(bias),
            )
        )
    return _WEIGHTS[mark], layers


def _otherwise(mark: str) -> str:
    """How to hand over what is no plain MLP, in the framework that calls its weights so."""
    return _MODULE if mark == "weight" else f"export the model to ONNX; or {_PAIRS}"


def _follows(before: _Linear, after: _Linear) -> bool:
    """Whether a layer reads as many values as the one before it has units."""
    return len(before.weight) == after.weight.shape[1]


def _fits(layers: Sequence[_Linear]) -> bool:
    return all(_follows(*pair) for pair in pairwise(layers))


def _in_order(title: str, layers: list[_Linear], *, ordered: bool) -> list[_Linear]:
    """The layers in a row: as they come, as they are numbered, or as they fit, if that leaves no choice."""
    numbered = _by_numbers(layers)
    if ordered and (numbered is None or numbered == layers):
        chosen, how = layers, "in the order in which they come"
    elif ordered:
        msg = f"{title}: has the layers {_listed(one.name for one in layers)}, whose numbers are in another order; {_PAIRS}"
        raise UnsupportedModel(msg)
    elif numbered is not None:
        chosen, how = numbered, "in the order of their numbers"
    else:
        orders = _orders(layers) if len(layers) <= _LONGEST else []
        if len(orders) != 1:
            what = "fit in several orders" if orders else "fit in no order"
            msg = f"{title}: has the layers {_listed(one.name for one in layers)}, which have no numbers and {what}; {_PAIRS}"
            raise UnsupportedModel(msg)
        return orders[0]
    if not _fits(chosen):
        before, after = next(pair for pair in pairwise(chosen) if not _fits(pair))
        msg = (
            f"{title}: the layers do not fit {how}: {before.name!r} has {len(before.weight)} units, {after.name!r} reads {after.weight.shape[1]} inputs; "
            f"{_MODULE}"
        )
        raise UnsupportedModel(msg)
    return chosen


def _by_numbers(layers: list[_Linear]) -> list[_Linear] | None:
    """The layers in the order of the numbers in their names, if these differ in nothing else."""
    names = {layer.name for layer in layers}
    keys: list[tuple[str, tuple[int, ...]]] = []
    for layer in layers:
        # Haiku calls its layers linear, linear_1, linear_2, ...
        name = f"{layer.name}_0" if f"{layer.name}_1" in names and f"{layer.name}_0" not in names else layer.name
        keys.append((re.sub(r"\d+", "#", name), tuple(int(number[-9:]) for number in re.findall(r"\d+", name))))
    if len({pattern for pattern, _ in keys}) > 1 or len({numbers for _, numbers in keys}) < len(keys):
        return None
    order = sorted(range(len(layers)), key=lambda place: keys[place][1])
    return [layers[place] for place in order]


def _orders(layers: list[_Linear]) -> list[list[_Linear]]:
    """Up to two orders in which layers fit each other."""
    found: list[list[_Linear]] = []
    pending: list[list[int]] = [[]]
    while pending and len(found) < 2:
        row = pending.pop()
        if len(row) == len(layers):
            found.append([layers[place] for place in row])
        free = [place for place in range(len(layers)) if place not in row]
        pending += [[*row, place] for place in free if not row or _follows(layers[row[-1]], layers[place])]
    return found


# ---------------------------------------------------------------------------------------------- lists


def is_lists(source: Sequence[Any]) -> bool:
    """Whether this is ``(coefs_, intercepts_)``: a list of weights beside a list of as many biases."""
    if (
        len(source) != 2
        or not all(isinstance(part, (list, tuple)) and part for part in source)
        or len(source[0]) != len(source[1])
    ):
        return False
    dimensions = [[np.ndim(item) for item in part] for part in source]
    return set(dimensions[0]) == {2} and set(dimensions[1]) == {1}


def from_lists(weights: Sequence[Any], biases: Sequence[Any], name: str = "coefs_, intercepts_") -> Network:
    """Read two lists, of weights and biases; their shapes tell whether weights are (inputs, units) or (units, inputs)."""
    arrays = [(numbers(weight), numbers(bias)) for weight, bias in zip(weights, biases, strict=True)]
    ways = [
        [_Linear(f"layer {number}", turned(weight), bias) for number, (weight, bias) in enumerate(arrays, 1)] for turned in _TURNS
    ]
    fitting = [
        way for way in ways if _fits(way) and all(len(layer.weight) == len(layer.bias) for layer in way if layer.bias is not None)
    ]
    if len(fitting) != 1:
        shapes = ", ".join(f"{weight.shape} and {bias.size}" for weight, bias in arrays[:4])
        what = (
            "both as (inputs, units) and as (units, inputs)" if fitting else "neither as (inputs, units) nor as (units, inputs)"
        )
        msg = f"{name}: weights and biases of shapes {shapes} fit {what}; {_PAIRS}: W.T if yours are (inputs, units)"
        raise UnsupportedModel(msg)
    network = Network.from_arrays([(layer.weight, layer.bias) for layer in fitting[0]])
    return replace(network, source=_source(network, "arrays", name))


_TURNS = (np.transpose, np.asarray)
