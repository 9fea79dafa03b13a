"""Tessella: how many linear regions does a ReLU network have?

>>> import tessella
>>> net = tessella.load([([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0])])
>>> tessella.configuration_bound(net)
4
"""

from typing import TYPE_CHECKING, Any

from tessella._version import __version__
from tessella.domain import Box, Domain, Polytope
from tessella.errors import (
    ConversionMismatch,
    DomainError,
    FileError,
    FileMissing,
    MissingPackage,
    NetworkError,
    OptionError,
    SolverError,
    TessellaError,
    UnsupportedModel,
    UnsupportedOperator,
)
from tessella.importers import load, load_domain, load_domains
from tessella.network import Layer, Network, Source
from tessella.preactivation import PreactivationBounds
from tessella.result import Bound, Counted, Side
from tessella.stability import Stability, stability
from tessella.tolerances import Tolerances
from tessella.upper import UpperBounds, configuration_bound, empirical_bound, montufar_bound, raghu_bound, upper_bounds

if TYPE_CHECKING:
    from tessella.regions.count import Count, count
    from tessella.solvers import SCIP, Gurobi, HiGHS

__all__ = [
    "SCIP",
    "Bound",
    "Box",
    "ConversionMismatch",
    "Count",
    "Counted",
    "Domain",
    "DomainError",
    "FileError",
    "FileMissing",
    "Gurobi",
    "HiGHS",
    "Layer",
    "MissingPackage",
    "Network",
    "NetworkError",
    "OptionError",
    "Polytope",
    "PreactivationBounds",
    "Side",
    "SolverError",
    "Source",
    "Stability",
    "TessellaError",
    "Tolerances",
    "UnsupportedModel",
    "UnsupportedOperator",
    "UpperBounds",
    "__version__",
    "configuration_bound",
    "count",
    "empirical_bound",
    "load",
    "load_domain",
    "load_domains",
    "montufar_bound",
    "raghu_bound",
    "stability",
    "upper_bounds",
]


def __getattr__(name: str) -> Any:
    """Load the solvers and the counter when one is named: most users never do."""
    if name in {"Count", "count"}:
        from tessella.regions import count as counting  # noqa: PLC0415

        return getattr(counting, name)
    if name in {"SCIP", "Gurobi", "HiGHS"}:
        from tessella import solvers  # noqa: PLC0415

        return getattr(solvers, name)
    msg = f"module 'tessella' has no attribute {name!r}"
    raise AttributeError(msg)
