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
    from tessella.analysis.plan import analyze
    from tessella.analysis.ranking import Ranking, rank
    from tessella.analysis.result import Analysis
    from tessella.counting.count import Count, CountProgress, count
    from tessella.estimating.estimate import Estimate, EstimateProgress, estimate
    from tessella.estimating.sampling import SampledRegion, sample_regions
    from tessella.listing.listing import regions
    from tessella.listing.polygons import Polygons, polygons
    from tessella.partition.region import Region
    from tessella.probable.models import mipbound_model
    from tessella.probable.networks import mipbound
    from tessella.probable.result import MIPBound
    from tessella.slicing import Slice, slice  # noqa: A004  a verb like the others
    from tessella.solvers import SCIP, Gurobi, HiGHS
    from tessella.tracking import Tracker, track

__all__ = [
    "SCIP",
    "Analysis",
    "Bound",
    "Box",
    "ConversionMismatch",
    "Count",
    "CountProgress",
    "Counted",
    "Domain",
    "DomainError",
    "Estimate",
    "EstimateProgress",
    "FileError",
    "FileMissing",
    "Gurobi",
    "HiGHS",
    "Layer",
    "MIPBound",
    "MissingPackage",
    "Network",
    "NetworkError",
    "OptionError",
    "Polygons",
    "Polytope",
    "PreactivationBounds",
    "Ranking",
    "Region",
    "SampledRegion",
    "Side",
    "Slice",
    "SolverError",
    "Source",
    "Stability",
    "TessellaError",
    "Tolerances",
    "Tracker",
    "UnsupportedModel",
    "UnsupportedOperator",
    "UpperBounds",
    "__version__",
    "analyze",
    "configuration_bound",
    "count",
    "empirical_bound",
    "estimate",
    "load",
    "load_domain",
    "load_domains",
    "mipbound",
    "mipbound_model",
    "montufar_bound",
    "polygons",
    "raghu_bound",
    "rank",
    "regions",
    "sample_regions",
    "slice",
    "stability",
    "track",
    "upper_bounds",
]


_LAZY = {
    "Analysis": "analysis.result",
    "Count": "counting.count",
    "CountProgress": "counting.count",
    "Estimate": "estimating.estimate",
    "EstimateProgress": "estimating.estimate",
    "MIPBound": "probable.result",
    "Polygons": "listing.polygons",
    "Ranking": "analysis.ranking",
    "Region": "partition.region",
    "SampledRegion": "estimating.sampling",
    "analyze": "analysis.plan",
    "count": "counting.count",
    "estimate": "estimating.estimate",
    "mipbound": "probable.networks",
    "mipbound_model": "probable.models",
    "polygons": "listing.polygons",
    "rank": "analysis.ranking",
    "regions": "listing.listing",
    "sample_regions": "estimating.sampling",
    "Slice": "slicing",
    "slice": "slicing",
    "Tracker": "tracking",
    "track": "tracking",
    "SCIP": "solvers",
    "Gurobi": "solvers",
    "HiGHS": "solvers",
}
_MODULES = ("plot", "report")


def __getattr__(name: str) -> Any:
    """Load the counter and the solvers when one is named: they load a compiler, and other packages."""
    if name not in _LAZY and name not in _MODULES:
        msg = f"module 'tessella' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module  # noqa: PLC0415

    if name in _MODULES:
        return import_module(f"tessella.{name}")
    return getattr(import_module(f"tessella.{_LAZY[name]}"), name)
