"""State with names for compiled code: arrays and numbers that belong together, handed on as one pointer.

A compiled function that takes 40 arrays takes 280 machine words, and each of its calls copies them.  A `Record` is one word.  Its class lists its fields::

    class Basis(Record):
        rows: Matrix      # an array: fixed while compiled code runs, its entries change
        size: int         # a number: changes

and inside compiled code ``basis.rows[i, j]`` and ``basis.size += 1`` mean what they mean in Python.  Fields may be records themselves.

How it works: the descriptions of all arrays (Numba's own structs) and the numbers lie behind each other in one piece of memory, which the Python object keeps, as it keeps the arrays.
Compiled code does not count references to them (`_nrt=False`).  Descriptions do not change while compiled code runs, and it is told so (``invariant.load``), so that reading them
inside a loop costs nothing.
"""

from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, Self, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import boolean, float32, float64, int8, int32, int64, types, uint64
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, models, register_model, typeof_impl, unbox

Vector = Annotated[npt.NDArray[np.float64], float64[::1]]
Matrix = Annotated[npt.NDArray[np.float64], float64[:, ::1]]
Cube = Annotated[npt.NDArray[np.float64], float64[:, :, ::1]]
Singles = Annotated[npt.NDArray[np.float32], float32[::1]]
SingleMatrix = Annotated[npt.NDArray[np.float32], float32[:, ::1]]
Whole = Annotated[npt.NDArray[np.int64], int64[::1]]
WholeMatrix = Annotated[npt.NDArray[np.int64], int64[:, ::1]]
WholeCube = Annotated[npt.NDArray[np.int64], int64[:, :, ::1]]
Bytes = Annotated[npt.NDArray[np.int8], int8[::1]]
ByteMatrix = Annotated[npt.NDArray[np.int8], int8[:, ::1]]
Halves = Annotated[npt.NDArray[np.int32], int32[::1]]
HalfMatrix = Annotated[npt.NDArray[np.int32], int32[:, ::1]]
Keys = Annotated[npt.NDArray[np.uint64], uint64[::1]]
KeyMatrix = Annotated[npt.NDArray[np.uint64], uint64[:, ::1]]

_NUMBERS: dict[object, Any] = {int: int64, float: float64, bool: boolean}
_WORD = 8
_LINE = 64  # bytes of the widest registers, and of what is loaded at once


def zeros(*shape: int, kind: Any = np.float64) -> npt.NDArray[Any]:
    """Memory that begins where a vector register does: loops over it were up to a fifth faster than over what numpy gives."""
    kind = np.dtype(kind)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    memory = np.zeros(size + _LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + size].view(kind).reshape(shape)


def aligned(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy in such memory."""
    copy = zeros(*values.shape, kind=values.dtype)
    copy[...] = values
    return copy


def numba_type(hint: Any) -> Any:
    """The type that compiled code sees, for a type in an annotation: a number, an array of `Annotated` kind, or a record."""
    if hint is None or hint is type(None):
        return types.none
    if hint in _NUMBERS:
        return _NUMBERS[hint]
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.kind()
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if get_origin(hint) is tuple:
        return types.BaseTuple.from_types([numba_type(part) for part in get_args(hint)])
    msg = f"{hint!r} has no type in compiled code"
    raise TypeError(msg)


class RecordType(types.Type):
    """What Numba knows of a class of records: its name and its fields, each with a type and a place in memory."""

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        """Lay the fields out one behind the other."""
        self.fields, self.places, at = dict(fields), dict[str, int](), 0
        for field, kind in fields:
            self.places[field] = at
            at += _WORD * _words(kind)
        self.size = at
        super().__init__(name=f"Record[{name}]({', '.join(f'{field}: {kind}' for field, kind in fields)})")


def _words(kind: Any) -> int:
    return 5 + 2 * kind.ndim if isinstance(kind, types.Array) else 1


@register_model(RecordType)
class _RecordModel(models.OpaqueModel):
    pass


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, typ: Any, attr: str) -> Any:
        return typ.fields.get(attr)


def _place(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    kind = typ.fields[attr]
    at = cgutils.pointer_add(builder, value, ir.Constant(ir.IntType(64), typ.places[attr]))
    return builder.bitcast(at, context.get_data_type(kind).as_pointer())


@lower_getattr_generic(RecordType)
def _read(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    kind = typ.fields[attr]
    place = _place(context, builder, typ, value, attr)
    if isinstance(kind, types.Array):
        return _description(context, builder, kind, place)
    loaded = builder.load(place)
    if isinstance(kind, RecordType):
        _unchanging(builder, loaded)
    return context.data_model_manager[kind].from_data(builder, loaded)


def _description(context: Any, builder: Any, kind: Any, place: Any) -> Any:
    """An array's struct, member by member: whole structs are not optimised as well."""
    struct = context.get_value_type(kind)
    words = builder.bitcast(place, ir.IntType(64).as_pointer())
    result, at = ir.Constant(struct, ir.Undefined), 0
    null = ir.Constant(ir.IntType(64), 0)

    def word() -> Any:
        nonlocal at
        loaded = builder.load(builder.gep(words, [ir.Constant(ir.IntType(64), at)], inbounds=True))
        _unchanging(builder, loaded)
        at += 1
        return loaded

    for member, element in enumerate(struct.elements):
        if member < 2:  # who owns it: nobody counts
            at += 1
            value = builder.inttoptr(null, element)
        elif isinstance(element, ir.ArrayType):
            value = ir.Constant(element, ir.Undefined)
            for i in range(element.count):
                value = builder.insert_value(value, word(), i)
        elif isinstance(element, ir.PointerType):
            value = builder.inttoptr(word(), element)
        else:
            value = word()
        result = builder.insert_value(result, value, member)
    return result


def _unchanging(builder: Any, loaded: Any) -> None:
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))


@lower_setattr_generic(RecordType)
def _write(context: Any, builder: Any, sig: Any, args: Any, attr: str) -> None:
    typ, given = sig.args
    kind = typ.fields[attr]
    if isinstance(kind, types.Array | RecordType):
        msg = f"{attr} of a record is fixed while compiled code runs"
        raise TypeError(msg)
    value = context.cast(builder, args[1], given, kind)
    builder.store(context.data_model_manager[kind].as_data(builder, value), _place(context, builder, typ, args[0], attr))


@unbox(RecordType)
def _unbox(typ: Any, obj: Any, c: Any) -> Any:  # noqa: ARG001
    number = c.pyapi.object_getattr_string(obj, "_address")
    address = c.pyapi.long_as_longlong(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.inttoptr(address, ir.IntType(8).as_pointer()))


class Record:
    """State with names that compiled code takes as one pointer; see the top of this file.

    Arrays are given once, as keywords, with the right type and in C order; numbers may be given, and begin with 0.
    """

    _kind: ClassVar[Any] = None
    _layout: dict[str, "_Field"]
    _wholes: memoryview
    _floats: memoryview

    def __init__(self, **given: Any) -> None:
        """Note where the arrays lie."""
        kind, layout = self.kind(), _layout_of(type(self))
        words = np.zeros(kind.size // _WORD, dtype=np.int64)
        wholes = words.data
        self.__dict__.update(
            _words=words,
            _wholes=wholes,
            _floats=wholes.cast("B").cast("d"),
            _address=int(words.ctypes.data),
            _layout=layout,
        )
        for name, field in layout.items():
            if field.is_fixed and name not in given:
                msg = f"{type(self).__name__} needs {name}"
                raise TypeError(msg)
        for name, value in given.items():
            setattr(self, name, value)

    @classmethod
    def empty(cls) -> Self:
        """A record for what a run does not have: all arrays are of size 0, all numbers 0, all records empty."""
        given = dict[str, Any]()
        for (name, field), hint in zip(cls.kind().fields.items(), _hints(cls).values(), strict=True):
            if isinstance(field, types.Array):
                given[name] = np.zeros((0,) * field.ndim, dtype=str(field.dtype))
            elif isinstance(field, RecordType):
                given[name] = hint.empty()
        return cls(**given)

    @classmethod
    def kind(cls) -> Any:
        """Its type in compiled code; one object for each class."""
        if "_kind" not in cls.__dict__ or cls._kind is None:
            fields = tuple((name, numba_type(hint)) for name, hint in _hints(cls).items())
            cls._kind = RecordType(f"{cls.__module__}.{cls.__qualname__}", fields)
        return cls._kind

    def __setattr__(self, name: str, value: Any) -> None:
        """Change a number; or an array or a record, between two calls of compiled code."""
        field = self._layout.get(name)
        if field is None:
            msg = f"{type(self).__name__} has no field {name}"
            raise AttributeError(msg)
        at = field.at
        if field.dtype is not None:
            if value.dtype != field.dtype or value.ndim != field.kind.ndim or not value.flags.c_contiguous:
                msg = f"{name} of {type(self).__name__} is {value.dtype} with {value.ndim} dimensions; it must be {field.kind}"
                raise TypeError(msg)
            described = (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
            for i, word in enumerate(described, start=at):
                self._wholes[i] = word
            self.__dict__[name] = value
        elif field.is_fixed:
            self._wholes[at] = value._address  # noqa: SLF001
            self.__dict__[name] = value
        elif field.kind is float64:
            self._floats[at] = value
        else:
            self._wholes[at] = int(value)

    @property
    def nbytes(self) -> int:
        """The memory that its arrays hold, and those of its records; each once."""
        return sum(array.nbytes for array in self._arrays().values())

    def _arrays(self) -> dict[int, npt.NDArray[Any]]:
        found = dict[int, npt.NDArray[Any]]()
        for name, value in self.__dict__.items():
            if isinstance(value, Record):
                found.update(value._arrays())  # noqa: SLF001
            elif not name.startswith("_"):
                found[id(value)] = value
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Records stay in their process."""
        msg = f"{type(self).__name__} holds memory of this process; send what it is made from"
        raise TypeError(msg)

    def with_fields(self, **changes: Any) -> Self:
        """A copy with other fields; arrays are shared."""
        kept = {name: getattr(self, name) for name in self.kind().fields}
        return type(self)(**{**kept, **changes})


class _Field(NamedTuple):
    """A field of a record: at which word it is, its type in compiled code, what numpy calls an array's entries, and whether compiled code leaves it alone, as arrays and records."""

    at: int
    kind: Any
    dtype: Any
    is_fixed: bool


@cache
def _layout_of(cls: type[Record]) -> dict[str, _Field]:
    """The fields of a class of records; from now on, its numbers can be read by their names."""
    kind, layout = cls.kind(), dict[str, _Field]()
    for name, field in kind.fields.items():
        dtype = np.dtype(str(field.dtype)) if isinstance(field, types.Array) else None
        layout[name] = _Field(kind.places[name] // _WORD, field, dtype, isinstance(field, types.Array | RecordType))
        if not layout[name].is_fixed:
            setattr(cls, name, _number(layout[name]))
    return layout


def _number(field: _Field) -> property:
    """What reads a number of a record."""
    at = field.at
    if field.kind is float64:
        return property(lambda record: record._floats[at])  # noqa: SLF001
    if field.kind is boolean:
        return property(lambda record: bool(record._wholes[at]))  # noqa: SLF001
    return property(lambda record: record._wholes[at])  # noqa: SLF001


@cache
def _hints(cls: type[Record]) -> dict[str, Any]:
    """The annotations of a record's fields."""
    return {name: hint for name, hint in get_type_hints(cls, include_extras=True).items() if not name.startswith("_")}


@typeof_impl.register(Record)
def _typeof_record(value: Record, _context: Any) -> Any:
    return type(value).kind()
