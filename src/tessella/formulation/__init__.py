"""Networks as mixed-integer linear problems, without any solver."""

from tessella.formulation.model import Model, write_lp, write_model, write_mps
from tessella.formulation.relu import Formulation, formulate

__all__ = ["Formulation", "Model", "formulate", "write_lp", "write_model", "write_mps"]


def __dir__() -> list[str]:
    """The public names, and not what this is made of."""
    return __all__
