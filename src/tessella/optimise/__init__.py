"""Neuron bounds for those who optimise over networks: a module for each package, and one for files.

Nothing is imported before it is used.  `plain` needs nothing; the others need the package that they are named after: ``pip install gurobi-machinelearning pyscipopt-ml omlt``.
"""

from importlib import import_module

TYPE_CHECKING = False  # that of `typing`, as in tessella itself
if TYPE_CHECKING:
    from tessella.optimise import gurobi_ml, omlt, plain, pyscipopt_ml

__all__ = ["gurobi_ml", "omlt", "plain", "pyscipopt_ml"]


def __dir__() -> list[str]:
    """The public names, and not what this is made of."""
    return __all__


def __getattr__(name: str) -> object:
    """A module, when it is asked for."""
    if name in __all__:
        return import_module(f"tessella.optimise.{name}")
    msg = f"module 'tessella.optimise' has no attribute {name!r}"
    raise AttributeError(msg)
