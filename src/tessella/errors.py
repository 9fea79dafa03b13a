"""Everything Tessella raises on purpose.

::

    TessellaError
    ├── NetworkError          (ValueError)           layers that make no network
    ├── DomainError           (ValueError)           empty, unbounded or mismatched domains
    ├── OptionError           (ValueError)           an argument outside its range
    ├── FileError             (ValueError, OSError)  a file that cannot be read as what it should be
    │   └── FileMissing       (FileNotFoundError)
    ├── UnsupportedModel      (ValueError)           readable, but not a network of ReLUs
    │   ├── UnsupportedOperator
    │   └── UnknownShape      (OptionError too)      the shape of an input must be given
    ├── ConversionMismatch    (ArithmeticError)      the network read differs from its source
    ├── SolverError           (RuntimeError)         an LP or MILP solver failed
    │   └── WorkerLost                               an executor lost a worker, or takes no tasks
    └── MissingPackage        (ImportError)          an optional package is not installed

A message says what was found, where, and what to do.  Each class also has a builtin parent, so that
``except ValueError`` works where a caller does not want to know of Tessella.
"""


class TessellaError(Exception):
    """The root of all errors raised on purpose."""


class NetworkError(TessellaError, ValueError):
    """Layers whose shapes or numbers make no network."""


class DomainError(TessellaError, ValueError):
    """A domain that is empty, unbounded, not finite, or of another dimension."""


class OptionError(TessellaError, ValueError):
    """An argument outside its range."""


class FileError(TessellaError, ValueError, OSError):
    """A file that cannot be read as what it should be."""


class FileMissing(FileError, FileNotFoundError):
    """A file that is not there."""


class UnsupportedModel(TessellaError, ValueError):
    """A model that was understood but is not a feedforward network of ReLUs."""


class UnsupportedOperator(UnsupportedModel):
    """An operator that is not piecewise linear, or not yet read."""


class UnknownShape(UnsupportedModel, OptionError):
    """A model that does not tell the shape of its input, which must be given."""


class ConversionMismatch(TessellaError, ArithmeticError):
    """The network that was read computes something else than its source."""


class SolverError(TessellaError, RuntimeError):
    """An LP or MILP solver failed, or its licence does not allow the problem."""


class WorkerLost(SolverError):
    """An executor that lost a worker, or takes no tasks, before it brought anything."""


class MissingPackage(TessellaError, ImportError):
    """An optional package is not installed."""
