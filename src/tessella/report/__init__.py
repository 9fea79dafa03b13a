"""One self-contained page about a network: the bracket, its units, its regions on a slice, and how all that was found."""

from tessella.report.explorer import Explorer, explore
from tessella.report.page import Provenance, page, write

__all__ = ["Explorer", "Provenance", "explore", "page", "write"]


def __dir__() -> list[str]:
    """The public names, and not what this is made of."""
    return __all__
