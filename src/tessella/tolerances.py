"""Every tolerance of the library, in one frozen value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Numerical tolerances.

    Parameters
    ----------
    conversion
        Largest difference allowed between an imported network and its source, relative to the size of
        the output (1 + its largest absolute value).  Sources mostly compute in single precision.
    interior
        Smallest radius of a ball that a polytope must hold where its box is scaled to [0, 1].  What is thinner counts as
        having no interior.
    """

    conversion: float = 1e-4
    interior: float = 1e-9


DEFAULT = Tolerances()
