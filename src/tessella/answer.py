"""Answers about a network on a domain: written as JSON, and read back by the fields of their class.

The network itself is not in the JSON, which would grow by all its weights.  What is read back has a network that knows its shape, its hash and what else was written,
and equals the network that it was; whoever needs the weights hands the network over, and it is checked to be the one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from enum import Enum
from types import UnionType
from typing import Any, NoReturn, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from tessella._version import __version__
from tessella.domain import Box, Domain, Polytope
from tessella.errors import FileError, NetworkError, TessellaError
from tessella.network import Mask, Network, Outline
from tessella.result import SCHEMA, Counted, Result, check_schema, decode_int, from_text, told_apart

Kind = TypeVar("Kind")
_PAST = ("schema", "tessella", "network", "domain", "counted")  # what a part of an answer shares with the whole


class NamedNetwork(Network):
    """A network of which a result knows the name only: its shape, its hash, and how many units it has.

    It equals the network that it names.  It computes nothing: its weights are not there.

    Parameters
    ----------
    known
        What `named` wrote.
    counted
        What tells its regions apart.
    outline
        What is known of its layers, if the result says.
    """

    __slots__ = ("_counted", "_known", "_outline")
    _known: Mapping[str, Any]
    _counted: Counted
    _outline: tuple[Outline, ...]

    def __init__(self, known: Mapping[str, Any], counted: Counted, outline: tuple[Outline, ...] = ()) -> None:
        """Keep what is known."""
        try:
            read: dict[str, Any] = {name: kind(known[name]) for name, kind in _NAMED.items()}
        except (KeyError, TypeError, ValueError) as error:
            msg = f"the network of a result needs {', '.join(_NAMED)}; found {known!r:.80}"
            raise FileError(msg) from error
        for name, value in (("_known", read), ("_counted", counted), ("_outline", outline), ("source", None)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> NoReturn:
        """Layers are asked for, which are not there."""
        if name == "layers":
            msg = f"the weights of {self!r} are not in the JSON that it was read from; hand it over: from_json(text, network=network)"
            raise NetworkError(msg)
        msg = f"a network has no attribute {name!r}"
        raise AttributeError(msg)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickling."""
        return NamedNetwork, (self._known, self._counted, self._outline)

    @property
    def shape(self) -> str:
        """Inputs and units per layer."""
        return self._known["shape"]

    @property
    def fingerprint(self) -> str:
        """The hash of the network's content."""
        return self._known["fingerprint"]

    @property
    def input_dim(self) -> int:
        """Number of inputs."""
        return self._known["inputs"]

    @property
    def relus(self) -> int:
        """Number of ReLUs."""
        return self._known["relus"]

    @property
    def counted(self) -> Counted:
        """What tells its regions apart."""
        return self._counted

    @property
    def outline(self) -> tuple[Outline, ...]:
        """Which units of each layer have a ReLU, and a positive bias."""
        if not self._outline:
            msg = f"the layers of {self!r} are not in the JSON that it was read from; hand the network over: from_json(text, network=network)"
            raise NetworkError(msg)
        return self._outline

    def __repr__(self) -> str:
        """One line a person can read."""
        return f"NamedNetwork({self.shape}, {self.relus:,} ReLUs, {self.fingerprint[:12]})"


_NAMED = {"shape": str, "fingerprint": str, "inputs": int, "relus": int}


def named(network: Network) -> dict[str, Any]:
    """What is written of a network."""
    return {
        "shape": network.shape,
        "fingerprint": network.fingerprint,
        "inputs": network.input_dim,
        "relus": network.relus,
    }


def past(network: Network, domain: Domain | None) -> dict[str, Any]:
    """The past of an answer: which version counted what, of which network, and where."""
    written = None if domain is None else domain.to_dict()
    return {"schema": SCHEMA, "tessella": __version__, "network": named(network), "domain": written, "counted": network.counted}


def part(answer: "Answer | None", *without: str) -> dict[str, Any] | None:
    """An answer inside another one on the same network and domain, whose past is not repeated."""
    if answer is None:
        return None
    left_out = {*_PAST, *without}
    return {name: value for name, value in answer.to_dict().items() if name not in left_out}


def whole(record: Mapping[str, Any], inner: object) -> Mapping[str, Any] | None:
    """The opposite of `part`: a part of a record, with its past."""
    if inner is None:
        return None
    return {name: record.get(name) for name in _PAST} | dict(_object(inner, "a part of an answer"))


class Answer(Result):
    """What is known of a network on a domain."""

    __slots__ = ()

    def _told_apart(self) -> str:
        network = getattr(self, "network", None)
        return told_apart(network.counted) if isinstance(network, (Network, NamedNetwork)) else ""

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], *, network: Network | None = None) -> Self:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        record
            Plain values.
        network
            The network that the answer is about, if its weights are needed; else it is known by name.
        """
        what = f"a {cls.__name__}"
        check_schema(_object(record, what), what)
        try:
            return made(cls, cls._placed(record, network), what)
        except (TypeError, ValueError, KeyError, OverflowError, AttributeError) as error:
            if isinstance(error, TessellaError):
                raise
            msg = f"{what} cannot be read from this JSON: {error!s:.120}; expected what its to_json() wrote"
            raise FileError(msg) from error

    @classmethod
    def from_json(cls, text: str, *, network: Network | None = None) -> Self:
        """Read what `to_json` wrote; the parameters are those of `from_dict`."""
        return cls.from_dict(from_text(text, f"a {cls.__name__}"), network=network)

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        """A record in which each field has its own name, and network and domain are values."""
        return {**record, "network": read_network(record, network), "domain": read_domain(record.get("domain"))}


class Noted(Result):
    """A result whose fields are all that is written; it is about no network that is at hand."""

    __slots__ = ()

    def rows(self) -> list[dict[str, Any]]:
        """One row: the fields."""
        return [asdict(cast("Any", self))]

    def _record(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(cast("Any", self))}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        what = f"a {cls.__name__}"
        check_schema(record, what)
        return made(cls, record, what)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_dict(from_text(text, f"a {cls.__name__}"))


def made(kind: type[Kind], record: Mapping[str, Any], what: str) -> Kind:
    """Make a dataclass of a record by the types of its fields; what is not there has its default."""
    hints = get_type_hints(kind)
    given = dict[str, Any]()
    for field in fields(cast("Any", kind)):
        if field.name in record:
            given[field.name] = _value(hints[field.name], record[field.name], f"{field.name} of {what}")
        elif field.default is MISSING:
            msg = f"{what} needs {field.name!r}; found {', '.join(sorted(record)):.200}"
            raise FileError(msg)
    return kind(**given)


def _value(hint: Any, value: Any, what: str) -> Any:
    """A plain value as the type that a field has."""
    origin, kinds = get_origin(hint), [kind for kind in get_args(hint) if kind is not type(None)]
    if origin in {Union, UnionType}:
        plain_types = (get_origin(kind) or kind for kind in kinds)
        types = tuple(kind for kind in plain_types if isinstance(kind, type))  # NDArray is a name for a type from numpy 2.5 on
        return value if value is None or isinstance(value, types) else _value(kinds[0], value, what)
    if origin is tuple:
        return tuple(_value(kinds[0], one, what) for one in _list(value, what))
    if not isinstance(hint, type) or (isinstance(value, hint) and not isinstance(value, bool)):
        return value
    if hint in _READERS:
        return _READERS[hint](value, what)
    if issubclass(hint, Enum):
        return hint(value)
    return made(hint, _object(value, what), what)


def _float(value: object, what: str) -> float:
    """A number; None is infinity, which JSON does not have."""
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        msg = f"{what} is {value!r:.40}; expected a number"
        raise FileError(msg)
    return float(value)


def _bool(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        msg = f"{what} is {value!r:.40}; expected true or false"
        raise FileError(msg)
    return value


_READERS: Mapping[type, Callable[[object, str], Any]] = {int: lambda value, _: decode_int(value), float: _float, bool: _bool}


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        msg = f"{what} is a {type(value).__name__}; expected a JSON object"
        raise FileError(msg)
    return cast("Mapping[str, Any]", value)


def _list(value: object, what: str) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        msg = f"{what} is a {type(value).__name__}; expected a JSON list"
        raise FileError(msg)
    return cast("Sequence[Any]", value)


def read_network(record: Mapping[str, Any], given: Network | None, outline: tuple[Outline, ...] = ()) -> Network:
    """The network of an answer: the one given, if it is the one, or one that is known by name."""
    counted = Counted(record.get("counted", Counted.REGIONS))
    known = NamedNetwork(_object(record.get("network"), "the network of a result"), counted, outline)
    if given is None:
        return known
    if given != known:
        msg = f"the result is one of {known!r}, not of {given!r} ({given.fingerprint[:12]}); give the network that it is about"
        raise FileError(msg)
    return given


def bits(pattern: Mask) -> str:
    """A pattern as text: 1 for an active ReLU, 0 for one that is not.

    Examples
    --------
    >>> bits(np.array([True, False])), read_bits("10").tolist()
    ('10', [True, False])
    """
    return "".join("1" if one else "0" for one in pattern.tolist())


def read_bits(text: str) -> Mask:
    """What `bits` wrote."""
    if set(text) - {"0", "1"}:
        msg = f"a pattern is {text!r:.40}; expected a 0 or a 1 for each ReLU"
        raise FileError(msg)
    return np.array([one == "1" for one in text], dtype=np.bool_)


def read_domain(written: object) -> Domain | None:
    """What `to_dict` of a domain wrote; None for None."""
    if written is None:
        return None
    record = _object(written, "the domain of a result")
    try:
        lower, upper = (
            np.array([side if end is None else end for end in record[name]], dtype=np.float64)
            for name, side in (("lower", -math.inf), ("upper", math.inf))
        )
        box = Box(lower, upper)
        if "matrix" not in record:
            return box
        return Polytope(np.array(record["matrix"], dtype=np.float64).reshape(-1, box.dim), record["offset"], box)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, TessellaError):
            raise
        msg = f"the domain of a result cannot be read: {error!s:.80}; expected what Domain.to_dict() wrote"
        raise FileError(msg) from error
