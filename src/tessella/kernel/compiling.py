"""How compiled code is compiled: once per machine, kept on disk, and without holding other threads up."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit, typeof, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from tessella.kernel.shelf import Files


def compiler(*sources: str, **more: bool | str) -> Callable[[Any], Any]:
    """A decorator that compiles a function with Numba.

    Sums may be reordered and products fused, but numbers stay numbers: infinities and what is not a number mean what they mean.

    Parameters
    ----------
    sources
        Files of compiled functions that the decorated ones call.  What is on disk is thrown away when one of them changes; by itself, Numba only
        looks at the file of the decorated function.
    more
        Further options of `numba.njit`.  What is on disk does not notice when they change: change the decorated file, too.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz", "arcp"}, **more}

    stamps = [sha256(Path(source).read_bytes()).hexdigest() for source in sources]

    def decorate(function: Any) -> Any:
        try:
            compiled = njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the home can be written
            return njit(**options)(function)
        cache: Any = getattr(compiled, "_cache", None)  # there is no public way
        file = getattr(cache, "_cache_file", None)
        if file is None:
            return njit(**options)(function)
        cache._cache_file = Files(cache.cache_path, cache._impl.filename_base, (file._source_stamp, *stamps))  # noqa: SLF001
        return compiled

    return decorate


def address(function: Any, *given: object) -> int:
    """Compile a function, or load it, and say where it is, for `calling`.

    Parameters
    ----------
    function
        What `compiler` made.
    given
        What it will be called with: values of the same types.
    """
    kinds = tuple(typeof(value) for value in given)
    function.compile(kinds)
    made = function.overloads[kinds]
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def calling(*functions: Any) -> Any:
    """What calls a compiled function by its address, from compiled code: ``call(address, ...)``.

    What is called by name, Numba compiles once more within the caller, and again within the caller's callers.

    Parameters
    ----------
    functions
        What `compiler` made; one of these is meant.  Its `address` must have been asked for before the caller is compiled, with arguments of the same types.
    """

    @intrinsic
    def call(_: Any, place: Any, *given: Any) -> Any:
        kinds = tuple(types.unliteral(kind) for kind in given)
        made = next((function.overloads[kinds] for function in functions if kinds in function.overloads), None)
        if made is None:
            msg = f"{functions[0].__name__} is not compiled for {kinds}"
            raise TypingError(msg)

        result = made.signature.return_type

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            parts, manner = cgutils.unpack_tuple(builder, values[1]), context.call_conv
            parts = [context.cast(builder, part, one, kind) for part, one, kind in zip(parts, given, kinds, strict=True)]
            pointer = builder.inttoptr(values[0], manner.get_function_type(result, kinds).as_pointer())
            status, found = manner.call_function(builder, pointer, result, kinds, parts)
            with cgutils.if_unlikely(builder, status.is_error):
                manner.return_status_propagate(builder, status)
            return found

        return result(place, types.StarArgTuple(given)), generate

    return call


def is_compiled(function: Any) -> bool:
    """Whether a compiled function is on disk already, so that its first call starts at once."""
    place, code = function.stats.cache_path, function.py_func.__code__
    return bool(place) and any(Path(place).glob(f"{Path(code.co_filename).stem}.{code.co_name}-{code.co_firstlineno}.*.nbi"))
