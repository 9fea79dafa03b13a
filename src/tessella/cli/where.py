"""Which inputs a command considers: the options that say it, and what they say of a network."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import tessella
from tessella.cli import options
from tessella.cli.meanings import check_both, note, numbers
from tessella.errors import DomainError, OptionError

if TYPE_CHECKING:
    from tessella.domain import Box, Domain
    from tessella.network import Floats, Network

_FILES = (".csv", ".npy", ".npz")


@dataclass(frozen=True, slots=True)
class Where:
    """The options that describe a domain."""

    box: options.Box = None
    around: options.Around = None
    radius: options.Radius = None
    mean: options.Mean = None
    std: options.Std = None
    property_file: options.Property = None
    property_box: options.PropertyBox = None

    def given(self) -> dict[str, object]:
        """What was said, by the names of the options."""
        named = {"box": self.box, "around": self.around, "radius": self.radius, "mean": self.mean, "std": self.std}
        return {**named, "property": self.property_file, "property_box": self.property_box}

    @property
    def is_given(self) -> bool:
        """Whether anything was said."""
        return any(value is not None for value in self.given().values())

    def domains(self, network: "Network") -> "tuple[Domain, ...]":
        """Every domain that is described; none if nothing is said."""
        from tessella.domain import check_fit  # noqa: PLC0415  loads numpy

        why = "--property-box chooses one of the boxes of --property, which is not given"
        check_both(self.property_box, self.property_file, why)
        if self.property_file is not None:
            found = self._of_property(self.property_file)
        else:
            made = self._box(network)
            found = () if made is None else (made,)
        for domain in found:
            check_fit(network, domain)
        return found

    def domain(self, network: "Network") -> "Domain | None":
        """The one domain that is described, if any."""
        domains = self.domains(network)
        if len(domains) > 1:
            msg = (
                f"{self.property_file}: has {len(domains)} input boxes ('tessella show' lists them); "
                f"choose one with --property-box 1 to {len(domains)} ('tessella count' counts on all of them)"
            )
            raise OptionError(msg)
        return domains[0] if domains else None

    def needed(self, network: "Network") -> "Domain":
        """The one domain that is described; there must be one."""
        domain = self.domain(network)
        return _needed(() if domain is None else (domain,))[0]

    def or_unit_cube(self, network: "Network") -> "Domain":
        """The one domain that is described, or the unit cube."""
        return self.domain(network) or tessella.Box.cube(0.0, 1.0, network.input_dim)

    def all_needed(self, network: "Network") -> "tuple[Domain, ...]":
        """Every domain that is described; there must be one."""
        return _needed(self.domains(network))

    def _of_property(self, path: str) -> "tuple[Domain, ...]":
        if self.box is not None:
            msg = "give either --box or --property, not both"
            raise OptionError(msg)
        others = [name for name, value in self.given().items() if value is not None and not name.startswith("property")]
        if others:
            msg = f"--{others[0]} goes with --box and --around; a property says itself which inputs the network reads"
            raise OptionError(msg)
        found = tessella.load_domains(path)
        if self.property_box is None:
            return found
        if not 1 <= self.property_box <= len(found):
            msg = f"--property-box is {self.property_box}, but {path} has {len(found)} input box{'' if len(found) == 1 else 'es'}"
            raise OptionError(msg)
        return (found[self.property_box - 1],)

    def _box(self, network: "Network") -> "Box | None":
        """The box of --box, --around and --radius, as the network reads it."""
        made = None if self.box is None else _box(self.box, network)
        if (self.around is None) != (self.radius is None):
            msg = "--around and --radius go together, as in --around image.npy --radius 0.03"
            raise OptionError(msg)
        if self.around is not None and self.radius is not None:
            radius = numbers(self.radius, "--radius")
            made = tessella.Box.around(read_input(self.around, "--around", network), radius, within=made)
        if self.mean is None and self.std is None:
            return made
        if made is None:
            msg = "--mean and --std say what becomes of images before the network reads them; say which with --box or --around, as in --box 0,1"
            raise OptionError(msg)
        normalised = _normalised(made, self.mean, self.std, network)
        note(f"before normalisation inputs lie in {made.describe()}")
        return normalised


def _needed(domains: "tuple[Domain, ...]") -> "tuple[Domain, ...]":
    if not domains:
        msg = "say which inputs to consider: --box 0,1 or --property file.vnnlib (or --around image.npy --radius 0.1)"
        raise OptionError(msg)
    return domains


def _is_file(text: str) -> bool:
    return Path(text).suffix.lower() in _FILES


def _box(texts: list[str], network: "Network") -> "Box":
    dim = network.input_dim
    if len(texts) == 1 and _is_file(texts[0]):
        from tessella.importers.boxes import read_box  # noqa: PLC0415  loads numpy

        box, words = read_box(texts[0], dim)
        note(f"{texts[0]} has {words}")
        return box
    if len(texts) > 1 and len(texts) != dim:
        msg = f"--box is given {len(texts)} times, but the network has {dim:,} inputs; give it once for all of them, or once for each"
        raise OptionError(msg)
    ends = [number for text in texts for number in numbers(text, "--box")]
    if len(texts) > 1 and any(len(text.split(",")) != 2 for text in texts):
        msg = f"--box is given {len(texts)} times, once per input; each takes the ends of an interval, such as 0,1"
        raise OptionError(msg)
    if len(ends) == 2:
        return tessella.Box.cube(ends[0], ends[1], dim)
    if len(ends) != 2 * dim:
        every = f", or of one for each of the {dim:,} inputs" if dim > 1 else ""
        msg = f"--box takes the ends of an interval, such as 0,1{every}; got {len(ends)} number{'' if len(ends) == 1 else 's'}: {','.join(texts):.60}"
        raise OptionError(msg)
    return tessella.Box(ends[0::2], ends[1::2])  # pyright: ignore[reportArgumentType]  lists are read as arrays


def read_input(text: str, name: str, network: "Network") -> "Floats":
    """One input, from a file or from numbers, for the option of this name."""
    import numpy as np  # noqa: PLC0415  takes its time

    from tessella.door import flattened  # noqa: PLC0415
    from tessella.importers.points import read_arrays  # noqa: PLC0415

    dim = network.input_dim
    if not _is_file(text):
        point = np.array(numbers(text, name))
    else:
        arrays = read_arrays(text)
        if len(arrays) != 1:
            msg = f"{text}: holds the arrays {', '.join(arrays)[:80]}; {name} takes a file with one input"
            raise OptionError(msg)
        (point,) = arrays.values()
        if point.size != dim and point.ndim > 1 and point[0].size == dim:
            msg = f"{text}: holds {len(point):,} inputs; {name} takes one: write it to a file of its own"
            raise OptionError(msg)
    if point.size != dim:
        msg = f"{name} {text:.60} has {point.size:,} number{'' if point.size == 1 else 's'}, but the network has {dim:,} inputs"
        raise OptionError(msg)
    return flattened(point, network, name)


def _normalised(box: "Box", mean: str | None, std: str | None, network: "Network") -> "Box":
    """The box of (x - mean) / std: each end is computed exactly and rounded once, to the nearest number.

    What is proved afterwards is proved on that box, whose ends are what is shown and written.
    """
    means, stds = _per_input(mean or "0", "--mean", network), _per_input(std or "1", "--std", network)
    if min(stds) <= 0:
        msg = f"--std is {std}; it takes numbers above 0"
        raise OptionError(msg)
    ends = list[list[float]]()
    for corner in (box.lower.tolist(), box.upper.tolist()):
        try:
            ends.append(
                [
                    x if abs(x) == float("inf") else float((Fraction(x) - m) / s)
                    for x, m, s in zip(corner, means, stds, strict=True)
                ]
            )
        except OverflowError as error:
            msg = "normalised inputs pass the largest floating-point number; look at --mean, --std and --box"
            raise DomainError(msg) from error
    return tessella.Box(ends[0], ends[1])  # pyright: ignore[reportArgumentType]  lists are read as arrays


def _per_input(text: str, name: str, network: "Network") -> list[Fraction]:
    """One number for each input, of what is given for all, for each channel, or for each input."""
    numbers(text, name)  # says what is wrong with it
    try:
        values = [Fraction(part.strip()) for part in text.split(",")]
    except ValueError as error:
        msg = f"{name} takes finite numbers separated by commas; got {text!r:.80}"
        raise OptionError(msg) from error
    dim = network.input_dim
    if len(values) in {1, dim}:
        return values if len(values) == dim else values * dim
    source = network.source
    shape = [size for size in source.input_shape if size > 1] if source else []
    first, last = bool(shape) and shape[0] == len(values), bool(shape) and shape[-1] == len(values)
    if not (first or last):
        where = f"inputs of shape {source.input_shape}" if source and shape else f"{dim:,} numbers"
        msg = f"{name} has {len(values)} numbers, but the network reads {where}; give one number, or one per channel"
        raise OptionError(msg)
    if first and not (last and source and source.kind == "keras"):
        return [value for value in values for _ in range(dim // len(values))]
    return values * (dim // len(values))
