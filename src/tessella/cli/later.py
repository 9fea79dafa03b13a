"""Modules that are loaded when they are used, so that help is there at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Later", "brackets", "certificates", "compressions", "drawing", "networks", "outputs", "places", "unions"]
__all__ = ["Later", "brackets", "certificates", "compressions", "drawing", "networks", "outputs", "places", "unions"]


class Later:
    """Stands for a module: whoever asks it for a name loads the module.

    Parameters
    ----------
    name
        The module's full name.

    Examples
    --------
    >>> Later("tessella.cli.drawing").percent(0.95)
    '95 %'
    """

    def __init__(self, name: str) -> None:
        """Nothing is loaded yet."""
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """A name of the module."""
        return getattr(import_module(self._name), name)


if TYPE_CHECKING:
    from tessella.cli import brackets, certificates, compressions, drawing, networks, outputs, places, unions
else:
    # these load rich, numpy and the compiler
    brackets, certificates, compressions, drawing, networks, outputs, places, unions = (
        Later(f"tessella.cli.{name}")
        for name in ("brackets", "certificates", "compressions", "drawing", "networks", "outputs", "places", "unions")
    )
