"""Tessella: how many linear regions does a ReLU network have?

>>> import tessella
>>> net = tessella.load([([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0])])
>>> tessella.configuration_bound(net)
4
"""

import sys
from importlib import import_module
from types import ModuleType

from tessella._version import __version__
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
    UnknownShape,
    UnsupportedModel,
    UnsupportedOperator,
    WorkerLost,
)

TYPE_CHECKING = False  # that of `typing`, which takes longer to load than all of this
if TYPE_CHECKING:
    from tessella.analysis.plan import analyze
    from tessella.analysis.ranking import Ranking, rank
    from tessella.analysis.result import Analysis
    from tessella.bounding import UpperBounds, upper_bounds
    from tessella.certificates.certify import Certificate, certify
    from tessella.certificates.verification import Verdict, verify
    from tessella.compressing.compress import compress
    from tessella.compressing.result import Compression
    from tessella.counting.count import Count, CountProgress, count
    from tessella.domain import Box, Domain, Polytope
    from tessella.door import DomainLike, NetworkLike
    from tessella.estimating.estimate import Estimate, EstimateProgress, estimate
    from tessella.estimating.sampling import SampledRegion, sample_regions
    from tessella.importers import load, load_domain, load_domains
    from tessella.lines.along import Along, along
    from tessella.listing.graph import Graph, graph
    from tessella.listing.listing import regions
    from tessella.listing.polygons import Polygons, polygons
    from tessella.nearby.local import Local, local
    from tessella.network import Layer, Network, Source
    from tessella.partition.region import Neighbours, Region
    from tessella.preactivation import PreactivationBounds
    from tessella.probable.models import mipbound_model
    from tessella.probable.networks import mipbound
    from tessella.probable.result import MIPBound
    from tessella.result import Bound, Counted, Side
    from tessella.slicing import Slice, slice  # noqa: A004  a verb like the others
    from tessella.solvers import SCIP, Gurobi, HiGHS
    from tessella.stability import Stability, stability
    from tessella.summarising.statistics import Statistic
    from tessella.summarising.summarise import summarise
    from tessella.summarising.summary import Distribution, Summary
    from tessella.tolerances import Tolerances
    from tessella.tracking import Tracker, track
    from tessella.upper import configuration_bound, empirical_bound, montufar_bound, raghu_bound

__all__ = [
    "SCIP",
    "Along",
    "Analysis",
    "Bound",
    "Box",
    "Certificate",
    "Compression",
    "ConversionMismatch",
    "Count",
    "CountProgress",
    "Counted",
    "Distribution",
    "Domain",
    "DomainError",
    "DomainLike",
    "Estimate",
    "EstimateProgress",
    "FileError",
    "FileMissing",
    "Graph",
    "Gurobi",
    "HiGHS",
    "Layer",
    "Local",
    "MIPBound",
    "MissingPackage",
    "Neighbours",
    "Network",
    "NetworkError",
    "NetworkLike",
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
    "Statistic",
    "Summary",
    "TessellaError",
    "Tolerances",
    "Tracker",
    "UnknownShape",
    "UnsupportedModel",
    "UnsupportedOperator",
    "UpperBounds",
    "Verdict",
    "WorkerLost",
    "__version__",
    "along",
    "analyze",
    "certify",
    "compress",
    "configuration_bound",
    "count",
    "empirical_bound",
    "estimate",
    "graph",
    "load",
    "load_domain",
    "load_domains",
    "local",
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
    "summarise",
    "track",
    "upper_bounds",
    "verify",
]


_NAMES = {
    "analysis.plan": ("analyze",),
    "analysis.ranking": ("Ranking", "rank"),
    "analysis.result": ("Analysis",),
    "bounding": ("UpperBounds", "upper_bounds"),
    "certificates.certify": ("Certificate", "certify"),
    "certificates.verification": ("Verdict", "verify"),
    "compressing.compress": ("compress",),
    "compressing.result": ("Compression",),
    "counting.count": ("Count", "CountProgress", "count"),
    "domain": ("Box", "Domain", "Polytope"),
    "door": ("DomainLike", "NetworkLike"),
    "estimating.estimate": ("Estimate", "EstimateProgress", "estimate"),
    "estimating.sampling": ("SampledRegion", "sample_regions"),
    "importers": ("load", "load_domain", "load_domains"),
    "listing.graph": ("Graph", "graph"),
    "lines.along": ("Along", "along"),
    "listing.listing": ("regions",),
    "listing.polygons": ("Polygons", "polygons"),
    "nearby.local": ("Local", "local"),
    "network": ("Layer", "Network", "Source"),
    "partition.region": ("Neighbours", "Region"),
    "preactivation": ("PreactivationBounds",),
    "probable.models": ("mipbound_model",),
    "probable.networks": ("mipbound",),
    "probable.result": ("MIPBound",),
    "result": ("Bound", "Counted", "Side"),
    "slicing": ("Slice", "slice"),
    "solvers": ("SCIP", "Gurobi", "HiGHS"),
    "stability": ("Stability", "stability"),
    "summarising.statistics": ("Statistic",),
    "summarising.summarise": ("summarise",),
    "summarising.summary": ("Distribution", "Summary"),
    "tolerances": ("Tolerances",),
    "tracking": ("Tracker", "track"),
    "upper": ("configuration_bound", "empirical_bound", "montufar_bound", "raghu_bound"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_PUBLIC_MODULES = frozenset({"formulation", "optimise", "plot", "report", "solvers"})
_MODULES = _PUBLIC_MODULES | {"domain", "importers", "network", "preactivation", "result", "tightening", "tolerances", "upper"}


if not TYPE_CHECKING:  # else every misspelt name would pass for one of ours

    def __getattr__(name: str) -> object:
        """Load what is named when it is named: numpy, solvers and the compiler take their time."""
        if name in _MODULE_OF:
            return getattr(import_module(f"tessella.{_MODULE_OF[name]}"), name)
        if name in _MODULES:
            return import_module(f"tessella.{name}")
        msg = f"module 'tessella' has no attribute {name!r}"
        raise AttributeError(msg)


def __dir__() -> list[str]:
    """All public names, loaded or not, and what Python itself calls its modules' things; nothing else."""
    return sorted({*__all__, *_PUBLIC_MODULES, *(name for name in globals() if name.startswith("__"))})


class _Face(ModuleType):
    """The package, whose function `stability` is not replaced by the module of the same name when that is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set a name, unless a module would hide a function."""
        if not (name in _MODULE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
