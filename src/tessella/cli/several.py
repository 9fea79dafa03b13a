"""One model or several: read, checked to belong together, and analysed one after the other."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import tessella
from tessella.cli.groups import Reading
from tessella.cli.later import brackets
from tessella.cli.meanings import titled
from tessella.errors import OptionError
from tessella.result import Status

if TYPE_CHECKING:
    from tessella.domain import Domain
    from tessella.network import Network


class One(NamedTuple):
    """A model that was analysed."""

    name: str
    domain: "Domain"
    title: str
    found: "tessella.Analysis"


def read_models(models: list[str], reading: Reading) -> "dict[str, Network]":
    """The networks in some files, which must be different files, and read the same number of inputs."""
    _check_once(models)
    networks = {name: reading.network(name) for name in models}
    _check_inputs(networks)
    return networks


def analysed(  # noqa: PLR0913  what is asked
    networks: "Mapping[str, Network]",
    domain_of: "Callable[[Network], Domain]",
    *,
    seconds: float,
    confidence: float,
    shown: bool,
    **options: Any,
) -> Iterator[One]:
    """Analyse one after the other in a given time for all; Ctrl-C, or the loss of the workers, ends with the one that it came in."""
    sure = 1.0 - (1.0 - confidence) / len(networks)  # so that all bounds hold at once with the confidence asked for
    left = seconds
    for number, (name, network) in enumerate(networks.items()):
        domain = domain_of(network)
        title = titled(name, network, domain)
        share = left / (len(networks) - number) if seconds > 0.0 else seconds
        with brackets.live_analysis(title, share, shown=shown) as tick:
            found = tessella.analyze(network, domain, seconds=share, confidence=sure, progress=tick, **options)
        left = max(left - found.seconds, 1e-3)
        yield One(name, domain, title, found)
        if found.status is not Status.FINISHED:
            return


def ranking_of(found: "Mapping[str, tessella.Analysis]", *, short: bool) -> "tessella.Ranking":
    """Which has more; files are called by their names alone, if these differ and that is wanted."""
    bare = [os.path.basename(name) for name in found]
    return tessella.rank(found if not short or len(set(bare)) < len(bare) else dict(zip(bare, found.values(), strict=True)))


def compared(found: "tessella.Ranking") -> dict[str, Any]:
    """A ranking as JSON, beside its analyses."""
    return {name: part for name, part in found.to_dict().items() if name != "analyses"}


def _check_inputs(networks: "dict[str, Network]") -> None:
    (first, one), *others = networks.items()
    for name, other in others:
        if other.input_dim != one.input_dim:
            msg = (
                f"{first} has {one.input_dim} inputs and {name} has {other.input_dim}; "
                "numbers of regions compare on the same domain only: analyse them one by one"
            )
            raise OptionError(msg)


def _check_once(models: list[str]) -> None:
    """Refuse a file that is given twice, also under two names."""
    seen = dict[str, str]()
    for name in models:
        place = os.path.realpath(name)
        if place in seen:
            other = "" if seen[place] == name else f", once as {seen[place]}"
            msg = f"{name} is given twice{other}; each model once"
            raise OptionError(msg)
        seen[place] = name
