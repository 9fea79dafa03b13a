"""How compiled functions are declared, compiled, kept on disk, and found to be ready.

A compiled function's annotations are its signature, so each is compiled in one version, and whether it is on disk can be asked before anything is called::

    @compiled
    def scaled(row: Vector, factor: float) -> None: ...

    @apart
    def solve(program: Program, rows: int) -> int: ...

`compiled` is for small functions: the optimiser may put their code into each of their callers.  `apart` is for large ones: they are compiled once, and callers jump there.
`inlined` puts a function's code into its callers before types are known; that is for a few small functions in the innermost loops where it was measured to be faster,
or where callers differ in their kinds of numbers: what is annotated as Any may be of any type.

What is on disk is stamped with the code of the function and of all functions whose code may have been put into it, with the values of the constants that they read, and with the fields of
their records.  So it is thrown away when one of these changes, and only then.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from types import ModuleType
from typing import Any, get_type_hints

import llvmlite.binding as llvm
from numba import config, njit, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.extending import intrinsic

from tessella.kernel.meter import making_ready
from tessella.kernel.record import RecordType, numba_type
from tessella.kernel.shelf import Nowhere, Shelf, shelf_for

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {
        "reassoc",
        "contract",
        "nsz",
        "arcp",
    },  # sums may be reordered; infinities and what is no number keep their meaning
    "_nrt": False,  # nothing is allocated, and references are not counted
}
_NOWHERE = 8  # an address that is never called: see `Linking`


class Linking:
    """How functions apart are found while their callers are compiled.

    Parameters
    ----------
    for_others
        Whether this process compiles for others and calls nothing: then a function apart need not be compiled before its callers.
    """

    for_others = False


@dataclass(eq=False)
class Function:
    """A compiled function as it is declared."""

    python: Any  # the function
    dispatcher: Any  # what Numba made of it
    is_apart: bool  # whether callers jump to it

    @property
    def name(self) -> str:
        """Where it is defined."""
        return f"{self.python.__module__}:{self.python.__name__}"

    @cached_property
    def signature(self) -> Any:
        """Numba's signature, from the annotations; None if these leave types to the callers, as code may that is put into them."""
        hints = get_type_hints(self.python, include_extras=True)
        if Any in hints.values():
            return None
        result = numba_type(hints.pop("return"))
        return result(*(numba_type(hint) for hint in hints.values()))

    @cached_property
    def callees(self) -> tuple["Function", ...]:
        """The compiled functions that its code names."""
        named = (getattr(value, "declared", None) for value in _globals(self.python))
        return tuple(dict.fromkeys(one for one in named if isinstance(one, Function)))

    @cached_property
    def merged(self) -> tuple["Function", ...]:
        """Itself and the functions whose code may be part of its own: those called, and called by them, up to those that are apart."""
        found, waiting = dict[Function, None](), [self]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found[one] = None
                waiting += [callee for callee in one.callees if not callee.is_apart]
        return tuple(found)

    @cached_property
    def needed(self) -> tuple["Function", ...]:
        """The functions apart that must be loaded before it, innermost first, and at the end itself."""
        found = dict[Function, None]()
        for part in self.merged:
            for callee in part.callees:
                if callee.is_apart and callee is not self:
                    found.update(dict.fromkeys(callee.needed))
        found[self] = None
        return tuple(found)

    @cached_property
    def stamp(self) -> str:
        """What the compiled code depends on."""
        digest = sha256(repr((sorted(_OPTIONS["fastmath"]), bool(config.BOUNDSCHECK))).encode())  # pyright: ignore[reportAttributeAccessIssue]
        for part in sorted(self.merged, key=lambda part: part.name):
            code = part.python.__code__
            digest.update(repr((part.name, part.signature, code.co_code.hex(), code.co_consts, code.co_names)).encode())
            digest.update(repr(part.dispatcher.targetoptions.get("inline", "")).encode())
            for value in _globals(part.python):
                if isinstance(declared := getattr(value, "declared", getattr(value, "shape", None)), Function):
                    digest.update(repr((declared.name, declared.signature)).encode())
                elif isinstance(value, int | float | tuple | str) or type(value).__module__ == "numpy":
                    digest.update(repr(value).encode())
        return digest.hexdigest()

    @property
    def is_loaded(self) -> bool:
        """Whether it can be called at once."""
        return self.signature.args in self.dispatcher.overloads

    @property
    def is_on_disk(self) -> bool:
        """Whether it was compiled for this signature and this machine before."""
        return self.is_loaded or self._shelf().holds(self.signature)

    def load(self) -> None:
        """Load it, and what it jumps to; compile what is not on disk."""
        with making_ready():
            for one in self.needed:
                one.compile()

    def compile(self, asked: Any = None) -> Any:
        """Compile it, or take it from the disk, for its one signature; what Numba calls whatever signature it has in mind."""
        for given, kind in zip(getattr(asked, "args", asked) or (), self.signature.args, strict=False):
            if isinstance(kind, types.Array | RecordType) and given != kind and not _is_copy(given, kind):
                msg = f"{self.name} takes {kind}, not {given}"
                raise TypingError(msg)
        self._shelf()
        for part in self.merged:
            for callee in part.callees:
                if callee.is_apart:
                    callee.link()
        made = type(self.dispatcher).compile(self.dispatcher, self.signature)
        if self.is_apart:
            llvm.add_symbol(self.symbol, self._place())
        return made

    def link(self) -> None:
        """Let code that jumps to it find it."""
        if Linking.for_others:
            llvm.add_symbol(self.symbol, _NOWHERE)
        elif not self.is_loaded:
            self.load()

    @property
    def folder(self) -> str:
        """Where it is kept; empty if it is not."""
        return str(getattr(self._shelf(), "cache_path", "") or "")

    @property
    def symbol(self) -> str:
        """The name by which callers jump to it."""
        return f"tessella.{self.name}"

    @property
    def address(self) -> int:
        """Where it is, for `one_of`."""
        if not self.is_loaded:
            self.load()
        return self._place()

    def _place(self) -> int:
        found = self.dispatcher.overloads[self.signature.args]
        return found.library.get_pointer_to_function(found.fndesc.llvm_func_name)

    def _shelf(self) -> Shelf | Nowhere:
        if not isinstance(self.dispatcher._cache, Shelf | Nowhere):  # noqa: SLF001  there is no public way
            self.dispatcher._cache = shelf_for(self.python, self.stamp)  # noqa: SLF001
        return self.dispatcher._cache  # noqa: SLF001


def _is_copy(given: Any, kind: Any) -> bool:
    """Whether an array may be taken for one of another type: it may only be one that must not be written."""
    return isinstance(given, types.Array) and isinstance(kind, types.Array) and given.copy(readonly=False) == kind


def _globals(function: Any) -> Iterator[Any]:
    """The values of the global names in a function's code, and of those of modules that it names."""
    names = function.__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from (
                getattr(value, other) for other in names if hasattr(value, other) and value.__name__.startswith("tessella")
            )
        elif value is not None:
            yield value


def _declare(python: Any, *, is_apart: bool, **more: Any) -> Any:
    dispatcher: Any = njit(**_OPTIONS, **more)(python)
    declared = Function(python, dispatcher, is_apart)
    dispatcher.compile = declared.compile
    dispatcher.declared = declared
    return dispatcher


def compiled(python: Any) -> Any:
    """Declare a small compiled function: its code may become part of its callers'."""
    return _declare(python, is_apart=False)


def inlined(python: Any) -> Any:
    """Declare a compiled function whose code always becomes part of its callers'."""
    return _declare(python, is_apart=False, inline="always")


registered = list["Apart"]()
"""The package's functions apart, as its modules are loaded."""


class Apart:
    """A compiled function that compiled callers jump to; from Python it is called like any other."""

    def __init__(self, python: Any) -> None:
        """Tell Numba how to call it."""
        dispatcher = _declare(python, is_apart=True)
        self.declared: Function = dispatcher.declared
        self.__doc__, self.__name__ = python.__doc__, python.__name__
        self._call = dispatcher
        if python.__module__.partition(".")[0] == __name__.partition(".")[0]:
            registered.append(self)

        def typed(_: Any, *given: Any) -> Any:
            self.declared.link()
            return _jump(self.declared, given)

        template = make_intrinsic_template(self, typed, python.__name__)
        infer(template)
        infer_global(self, types.Function(template))

    def __call__(self, *given: Any) -> Any:
        """Load it and what it jumps to, and call it."""
        if not self.declared.is_loaded:
            self.declared.load()
        return self._call(*given)

    @property
    def address(self) -> int:
        """Where it is, for `one_of`."""
        return self.declared.address


def apart(python: Any) -> Apart:
    """Declare a large compiled function: it is compiled once, and callers jump to it."""
    return Apart(python)


def by_address(python: Any) -> Any:
    """Declare how a step is called that a run chooses: a function of annotations alone, whose docstring says what the step has to do.

    Compiled code calls ``step(address, ...)``, where the address is `address_of` (step, function apart) that does it, and only that one needs to be compiled.
    """
    shape = Function(python, None, is_apart=True)

    @intrinsic
    def call(_: Any, place: Any, *given: Any) -> Any:
        result, write = _jump(shape, given, by_address=True)
        return result.return_type(place, *result.args), write

    step: Any = call
    step.shape = shape
    return step


def address_of(step: Any, function: Apart) -> int:
    """Where a function is that does a step declared by `by_address`; it is loaded, compiled if need be."""
    if function.declared.signature != step.shape.signature:
        msg = f"{function.declared.name} has another signature than {step.shape.name}"
        raise TypeError(msg)
    return function.address


def one_of(*functions: Apart) -> Any:
    """What calls one of some functions apart, from compiled code, by the `address` of the one that is meant: ``call(address, ...)``.

    Only that one needs to be compiled.  All have the same signature.
    """
    first = functions[0].declared

    @intrinsic
    def call(_: Any, place: Any, *given: Any) -> Any:
        if any(one.declared.signature != first.signature for one in functions):
            msg = f"{', '.join(one.declared.name for one in functions)} have different signatures"
            raise TypeError(msg)
        result, write = _jump(first, given, by_address=True)
        return result.return_type(place, *result.args), write

    return call


def _jump(declared: Function, given: tuple[Any, ...], *, by_address: bool = False) -> tuple[Any, Callable[..., Any]]:
    """How compiled code calls a function apart: the types of the call, and what writes it down."""
    kinds, result = declared.signature.args, declared.signature.return_type

    def write(context: Any, builder: Any, _: Any, values: Any) -> Any:
        parts, manner = cgutils.unpack_tuple(builder, values[-1]), context.call_conv
        parts = [context.cast(builder, part, one, kind) for part, one, kind in zip(parts, given, kinds, strict=True)]
        shape = manner.get_function_type(result, kinds)
        if by_address:
            place = builder.inttoptr(values[0], shape.as_pointer())
        else:
            place = cgutils.get_or_insert_function(builder.module, shape, declared.symbol)
        status, found = manner.call_function(builder, place, result, kinds, parts)
        with cgutils.if_unlikely(builder, status.is_error):
            manner.return_status_propagate(builder, status)
        return found

    return result(types.StarArgTuple(given)), write
