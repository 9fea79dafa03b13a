"""What each engine says of a network, as plain values: the only file of the goldens that knows where engines live and how they are called.

Every function takes a `networks.Made` and returns a dictionary.  All run in one thread and without a deadline.  How two values are compared is
in `record`: what is a floating-point number up to rounding, everything else exactly.
"""

import math
from functools import cache
from hashlib import sha256
from unittest.mock import patch

import numpy as np

import tessella
from goldens.networks import Made
from tessella.counting import schedule
from tessella.counting.by_milp import count_by_milp
from tessella.counting.by_points import ByPoints
from tessella.counting.by_programs import ByPrograms
from tessella.counting.meeting import meeting_units
from tessella.counting.search import Search
from tessella.estimating.descents import Descents
from tessella.estimating.tilts import Tilts
from tessella.estimating.values import Values
from tessella.estimating.wide import WideDescents
from tessella.kernel.threads import single_threaded
from tessella.parallel import Stop
from tessella.partition.exact import Exact
from tessella.partition.local import LocalBound
from tessella.partition.tree import Node, Tree
from tessella.probable.networks import tails
from tessella.probable.search import Seeker
from tessella.vertices.walker import Vertices

FOREVER = 1e9  # seconds
STEPS = 3  # first steps of a walk, each by a new walker


@cache
def known(made: Made):
    """The units that are stable by linear bounds, which every count begins with."""
    return tessella.stability(made.network, made.domain, method="linear")


def tree_of(made: Made) -> Tree:
    return Tree.of(known(made))


def digest(prefixes) -> str:
    """A short name for a set of patterns, whatever their order."""
    return sha256(b"\n".join(sorted(prefixes))).hexdigest()[:12]


def nodes_of(made: Made) -> list[Node]:
    return [Node(prefix) for prefix in made.prefixes]


def walked(make, made: Made) -> dict:
    """A whole walk, and the first steps of another one, which are as long as a new walker's first look at the clock allows: not a matter of time."""
    whole = make().advance(nodes_of(made), FOREVER, Stop())
    decide = Exact(tree_of(made))
    found = {
        "total": whole.regions + sum(decide.count(prefix) for prefix in whole.thin),
        "regions": whole.regions,
        "tests": whole.tests,
    }
    found |= {"thin": len(whole.thin), "thin_digest": digest(whole.thin)}
    nodes, steps = nodes_of(made), []
    for _ in range(STEPS):
        part = make().advance(nodes, 0.0, Stop())
        nodes = list(part.open)
        opened = digest(node.prefix + bytes([node.splits]) for node in nodes)
        steps.append([part.regions, part.tests, len(part.thin), len(nodes), opened])
        if not nodes:
            break
    return found | {"steps": steps}


def vertices(made):
    tree = tree_of(made)
    return walked(lambda: Vertices(tree), made)


def in_inputs(made):
    tree = tree_of(made)
    return walked(lambda: ByPrograms(tree, in_frame=False), made)


def in_frame(made):
    tree = tree_of(made)
    return walked(lambda: ByPrograms(tree, in_frame=True), made)


def points(made):
    tree = tree_of(made)
    return walked(lambda: ByPoints(tree), made)


def points_without_mixtures(made):
    tree = tree_of(made)
    return walked(lambda: ByPoints(tree, mixtures=False), made)


def count(made):
    """In one slice of time: another number of slices takes another number of tests."""
    with patch.object(schedule, "_SLICE", FOREVER):
        found = tessella.count(made.network, made.domain, workers=1)
    return {"regions": found.exact, "borderline": found.borderline, "tests": found.tests}


def milp_count(made):
    regions, finished = count_by_milp(tree_of(made))
    return {"regions": regions, "finished": finished}


def exact(made):
    leaves = list(Exact(tree_of(made)).leaves(b""))
    return {"regions": len(leaves), "digest": digest(leaves)}


def listing(made):
    patterns = [region.pattern.astype(np.uint8).tobytes() for region in tessella.regions(made.network, made.domain)]
    return {"regions": len(patterns), "digest": digest(patterns)}


def polygons(made):
    found = tessella.polygons(made.network, made.domain)
    areas = found.areas
    return {
        "regions": len(found),
        "digest": digest(row.tobytes() for row in found.patterns.astype(np.uint8)),
        "corners": len(found.corners),
        "borders": digest([np.sort(found.borders).tobytes()]),
        "area": float(areas.sum()),
        "squares": float((areas**2).sum()),
    }


def search(made):
    """All regions, one after the other, and a search that leaves each behind at its middle unit."""
    searching, found = Search(tree_of(made)), []
    while (prefix := searching.next(lambda: False)) is not None:
        found.append(prefix)
    answer = {"regions": len(found), "digest": digest(found), "tests": searching.tests, "thin": len(searching.thin)}
    searching.begin()
    left, unit = [], searching.units // 2
    searching.add(unit, range(unit), 1)
    while (prefix := searching.next(lambda: False)) is not None:
        left.append(prefix)
        searching.leave(unit)
    return answer | {"odd": len(left), "odd_digest": digest(left), "odd_tests": searching.tests}


def mipbound(made):
    found = tessella.mipbound(made.network, made.domain, repetitions=8, rng=3, workers=1, stability=known(made))
    seeker = Seeker(tree_of(made), tuple(tails(known(made))))
    two = [seeker.repeat(2, np.random.SeedSequence([7, number]), lambda: False) for number in range(6)]
    return {
        "draws": list(found.draws),
        "given_up": found.given_up,
        "lower": found.lower,
        "two": [one.draws for one in two],
        "tests": sum(one.tests for one in two),
    }


def local(made):
    """Bounds on the regions below some prefixes."""
    tree = tree_of(made)
    rng, bound = np.random.default_rng(5), LocalBound(tree)
    signs = rng.integers(0, 2, (6, tree.units)).astype(np.uint8)
    lengths = [0, *np.linspace(0, tree.units, 6).astype(int)]
    return {"bounds": [str(bound(row.tobytes()[:length])) for row, length in zip(signs, lengths, strict=False)]}


def upper(made):
    found = tessella.upper_bounds(made.network, made.domain, stability=known(made))
    return {"bounds": [str(bound.value) for bound in found.bounds]}


def meeting(made):
    return {"units": meeting_units(tree_of(made))}


def bounds(made, method) -> dict:
    found = tessella.stability(made.network, made.domain, method=method, seconds_per_unit=FOREVER)
    sums = [[float(np.sum(side)) for side in pair] for pair in zip(found.bounds.lower, found.bounds.upper, strict=True)]
    squares = [float(np.sum(np.square(high - low))) for low, high in zip(found.bounds.lower, found.bounds.upper, strict=True)]
    return {"totals": list(found.totals().values()), "sums": sums, "squares": squares}


def linear(made):
    return bounds(made, "interval") | {"linear": bounds(made, "linear")}


def lp(made):
    return bounds(made, "lp")


def milp(made):
    return bounds(made, "milp")


def rounds(descents, values) -> dict:
    """Rounds before anything is learned, and rounds steered by what these have seen."""
    found = {}
    for number, name in enumerate(("unsteered", "steered")):
        batch = descents.rounds(12 * number, 12, 17, values.theta.copy())
        values.add(batch.records)
        values.learn()
        found[name] = logarithms(batch.logarithms)
    found["learned"] = float(np.abs(values.theta).sum())
    return found | {"asked": len(descents.answers), "given_up": descents.answers.given_up}


def logarithms(values) -> list:
    """Twelve at most, -1 for those of nothing."""
    return [float(value) if math.isfinite(value) else -1.0 for value in values]


def descents(made):
    """Descents that keep one node or two, and that run programs at once or late."""
    tree, found = tree_of(made), {}
    for population, lazy in ((1, False), (2, False), (1, True)):
        walker = Descents(tree, population=population, lazy=lazy)
        found[f"{population}{' lazy' if lazy else ''}"] = rounds(walker, Values(walker.shape)) | {"tests": walker.tests}
    leaves = Descents(tree, population=1)
    drawn = [leaves.leaf(number, 23, leaves.shape.start()) for number in range(6)]
    found["leaves"] = {
        "weights": logarithms(weight for weight, _, _ in drawn),
        "digest": digest(prefix for _, prefix, _ in drawn),
        "behind": [behind for _, _, behind in drawn],
    }
    return found


def wide(made):
    tree = tree_of(made)
    return rounds(WideDescents(tree), Tilts(len(tree.network.layers)))


def estimate(made):
    found = tessella.estimate(made.network, made.domain, probes=20, rng=11, workers=1)
    return {
        "log2": float(found.maps) if math.isfinite(found.maps) else -1.0,
        "error": found.relative_error if math.isfinite(found.relative_error) else -1.0,
        "lower": found.lower,
        "markov": found.markov,
        "probes": found.probes,
        "thin": found.thin,
        "undecided": found.undecided,
    }


def sample(made):
    drawn = tessella.sample_regions(made.network, made.domain, 8, rng=13)
    return {
        "weights": [float(one.log2_weight) for one in drawn],
        "digest": digest(one.region.pattern.astype(np.uint8).tobytes() for one in drawn),
    }


ENGINES = {
    engine.__name__: engine
    for engine in (
        vertices,
        in_inputs,
        in_frame,
        points,
        points_without_mixtures,
        count,
        milp_count,
        exact,
        listing,
        polygons,
        search,
        mipbound,
        local,
        upper,
        meeting,
        linear,
        lp,
        milp,
        descents,
        wide,
        estimate,
        sample,
    )
}


def ask(engine: str, made: Made) -> dict:
    """What an engine says of a network; nothing where no unit is unstable, or no input free, unless it is a public verb."""
    with single_threaded():
        return ENGINES[engine](made)
