"""Regions drawn at random with known weights: averages over all regions from a few of them."""

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

import numpy as np

from tessella.answer import Answer
from tessella.door import DomainLike, NetworkLike, enter
from tessella.errors import OptionError
from tessella.estimating.contest import descents_with_leaves
from tessella.estimating.descents import Descents
from tessella.estimating.rounds import Rounds
from tessella.estimating.sampler import Sampler
from tessella.estimating.uniform import is_hopeful
from tessella.executors import ExecutorLike, hiring
from tessella.kernel.threads import single_threaded
from tessella.methods import Method
from tessella.network import Network
from tessella.options import check_executor, check_whole
from tessella.partition.region import Region
from tessella.partition.tree import Tree
from tessella.partition.witness import Patterns, Proof
from tessella.seeds import generator
from tessella.stability import Stability, check_stability, stability_to_go_on_with

_PATIENCE = 1_000_000  # descents for one region that is drawn uniformly: a minute or two
_LEARN = (8, 256)  # rounds to learn from before regions are drawn: a quarter of their number, within these


@dataclass(frozen=True, slots=True)
class SampledRegion(Answer):
    """A region and what it stands for.

    Parameters
    ----------
    region
        The region.
    log2_weight
        Log2 of its weight: how many regions it stands for.
    """

    region: Region
    log2_weight: float

    @property
    def weight(self) -> float:
        """One over the probability with which the descent ended in this region; infinite beyond floating-point numbers."""
        return 2.0**self.log2_weight if self.log2_weight < 1023.0 else math.inf

    def rows(self) -> list[dict[str, Any]]:
        """One row: the region's, and its weight."""
        return [{**row, "log2_weight": self.log2_weight} for row in self.region.rows()]

    def _title(self) -> str:
        return f"A region that was drawn; it stands for 2^{self.log2_weight:.2f} regions"

    def _record(self) -> dict[str, Any]:
        return {**self.region.to_dict(), "log2_weight": self.log2_weight}

    @classmethod
    def _placed(cls, record: Mapping[str, Any], network: Network | None) -> dict[str, Any]:
        return {"region": Region.from_dict(record, network=network), "log2_weight": record["log2_weight"]}


@hiring
def sample_regions(  # noqa: PLR0913  one keyword per option
    network: NetworkLike,
    domain: DomainLike,
    n: int = 100,
    rng: int | np.random.Generator = 0,
    *,
    executor: ExecutorLike | None = None,
    stability: Stability | None = None,
    uniform: bool = False,
) -> list[SampledRegion]:
    """Draw regions by random descents, each with its weight.

    For any function f of regions, the mean of weight times f over what is drawn is an unbiased estimate of the sum of f over all regions: with f = 1 their
    number, and the ratio of two such means an estimate of an average.  Descents are steered by what a few rounds before them have learned, so
    regions are drawn nearly evenly; the weights make up for the rest.

    Parameters
    ----------
    network, domain
        Of what, and where: what `tessella.load` takes, and a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    n
        How many; the same region may come twice.
    rng
        A seed, or a generator that one is drawn from.
    executor
        Where the rounds to learn from are made; None for threads.
    stability
        The units that never change their state on the domain, if they are known; else they are found by linear bounds.
    uniform
        Draw n regions with exactly the same probability each, so that averages need no weights: all are 1.  It takes U / N descents to draw one of N regions, where U is about
        `tessella.configuration_bound`; where that is too many, an error says so.  Regions in cells that nobody can decide in reasonable time are not drawn.

    Returns
    -------
    At most n: a descent that ends in a cell too thin to be decided in reasonable time brings nothing, and counts as 0 (divide by n).  If uniform, n.

    Examples
    --------
    >>> import tessella
    >>> net = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [-1.5])], relu_output=True)
    >>> drawn = tessella.sample_regions(net, tessella.Box(-2, 2, dim=1), 400)
    >>> abs(sum(one.weight for one in drawn) / 400 - 5) < 0.5
    True
    >>> share = sum(one.weight * one.region.pattern.mean() for one in drawn) / sum(one.weight for one in drawn)
    >>> bool(abs(share - 8 / 15) < 0.05)  # the share of active units, on average over the 5 regions
    True
    """
    network, domain = enter(network, domain)
    check_whole(n, "n", "a sample", of="regions")
    check_stability(stability, network, domain, "a sample")
    executor = check_executor(executor, "a sample")
    base = generator(rng).integers(2**63, size=2)
    known = stability or stability_to_go_on_with(network, domain, method=Method.LINEAR)
    if uniform:
        return list(islice(drawn_evenly(known, int(base[1])), int(n)))
    return list(_drawn(known, int(n), int(base[0]), int(base[1]), executor))


def _maker(known: Stability) -> Callable[[bytes], Region]:
    """Makes regions of the decisions on unstable units."""
    network, domain = known.network, known.domain
    patterns, prove = Patterns.of(known), Proof(network, domain)

    def region(prefix: bytes) -> Region:
        pattern = patterns(prefix)
        found = prove(pattern)
        return Region(network, domain, *(found or (pattern, None)))

    return region


def _never() -> bool:
    return False


def drawn_evenly(known: Stability, base: int, late: Callable[[], bool] = _never) -> Iterator[SampledRegion]:
    """Regions drawn with the same probability each, without an end but that it is late.

    Parameters
    ----------
    known
        The network, where, and which units are stable.
    base
        What seeds are made from.
    late
        Asked after each descent whether to end.
    """
    region, tree = _maker(known), Tree.of(known)
    if not tree.units or not tree.domain.free_dim:
        yield from repeat(SampledRegion(region(bytes(tree.units)), 0.0))
        return
    if not is_hopeful(tree, 0.0):
        msg = "uniform=True is for networks whose configuration_bound is below 2^120, with layers of at most 256 ReLUs; leave it out to draw regions with weights"
        raise OptionError(msg)
    sampler, number, last = Sampler(tree), 0, 0
    with single_threaded():
        while True:
            while (prefix := sampler.leaf(number, base)) is None:
                number += 1
                if late():
                    return
                if number - last > _PATIENCE:
                    msg = f"uniform=True: none of {_PATIENCE:,} descents reached a region; leave it out to draw regions with weights"
                    raise OptionError(msg)
            number += 1
            last = number
            yield SampledRegion(region(prefix), 0.0)


def _drawn(known: Stability, n: int, learning: int, drawing: int, executor: Executor | None) -> Iterator[SampledRegion]:
    domain, tree, region = known.domain, Tree.of(known), _maker(known)
    if not tree.units or not domain.free_dim:
        yield from [
            SampledRegion(region(bytes(tree.units)), 0.0)
        ] * n  # without a free input units are constant, and settled by the proof
        return
    rounds = Rounds(tree, learning, lambda _: None)
    rounds.go(min(max(n // 4, _LEARN[0]), _LEARN[1]), math.inf, executor, None)
    best = rounds.best
    descents = descents_with_leaves(tree, best.kind, population=1)
    choice, behind_of = np.random.default_rng(drawing), dict[bytes, list[bytes]]()
    for number in range(n):
        with single_threaded():
            logarithm, prefix, behind = descents.leaf(number, drawing, best.theta)
        if behind and math.isfinite(logarithm):
            if isinstance(descents, Descents) and len(prefix) < tree.units:
                if prefix not in behind_of:
                    behind_of[prefix] = list(descents.answers.leaves(prefix))
                prefix = behind_of[prefix][choice.integers(len(behind_of[prefix]))]
            yield SampledRegion(region(prefix), logarithm / math.log(2.0))
