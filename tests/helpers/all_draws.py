"""All that a sampler can draw, one after the other, instead of drawing."""

import itertools
from math import comb
from typing import NamedTuple

from tessella.estimating.promises import SIGNS
from tessella.estimating.sampler import Sampler
from tessella.estimating.tokens import GONE, THERE, UNSURE, begin, enter_layer, follow


class End(NamedTuple):
    """Where a descent may end that does not fail: its signs, None if these are not known; with which probability; and whether it counts for the lower bound."""

    signs: bytes | None
    probability: float
    certain: bool


def ends(sampler: Sampler):
    """All of them; the last layer is drawn, not counted."""
    yield from _below(sampler._work, [], 1.0)


def _below(work, taken, probability):
    layer = len(taken)
    if layer == len(work.begins) - 1:
        yield End(bytes(work.walk.path.signs[: work.begins[-1]]), probability, bool(work.certain))
        return
    _again(work, taken)
    for free, each, chance in _draws(work, layer, work.dim):
        found = _again(work, [*taken, (free, each)])
        if found == THERE:
            yield from _below(work, [*taken, (free, each)], probability * chance * work.chance)
        elif found != GONE:
            yield End(None, probability * chance, False)


def _draws(work, layer, dim):
    """Everything that can be drawn in a layer, as one number per deciding unit, with its probability."""
    free = [u for u in range(work.begins[layer], work.begins[layer + 1]) if work.first_of[u] < 0]
    shares, signs = work.shares[layer, dim].tolist(), work.modes[layer, dim] == SIGNS
    loses = [bool(work.loses[u]) for u in free]
    for each in itertools.product((0, 1), repeat=len(free)):
        if signs:
            kind, ways = sum(lost and not one for lost, one in zip(loses, each, strict=True)), sum(loses)
            ways = comb(ways, kind) * 2 ** (len(free) - ways)
        else:
            kind, ways = sum(each), comb(len(free), sum(each))
        chance = shares[kind] - (shares[kind - 1] if kind else 0.0)
        if chance > 0.0:
            yield free, each, chance / ways


def _again(work, taken):
    """Descend from the root along what was drawn."""
    begin(work)
    found = THERE
    for layer, (free, each) in enumerate(taken):
        for u, one in zip(free, each, strict=True):
            work.drawn[u] = one
        work.spot = 0.0
        found = follow(work, layer, True) if enter_layer(work, layer) else UNSURE
    return found
