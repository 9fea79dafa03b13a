"""All that a sampler can draw, one after the other, instead of drawing."""

import itertools
from math import comb
from typing import NamedTuple

from tessella.estimating.promises import SIGNS
from tessella.estimating.sampler import Sampler
from tessella.estimating.tokens import ASK, GONE, THERE, UNKNOWN, begin, enter_layer, follow


class End(NamedTuple):
    """Where a descent may end that does not fail: its signs, None if these are not known; with which probability; and whether it counts for the lower bound."""

    signs: bytes | None
    probability: float
    certain: bool


def ends(sampler: Sampler):
    """All of them; the last layer is drawn, not counted."""
    yield from _below(sampler, [], 1.0)


def _below(sampler, taken, probability):
    work, layer = sampler._work, len(taken)
    if layer == len(work.begins) - 1:
        yield End(bytes(work.walk.path.signs[: work.begins[-1]]), probability, True)
        return
    _again(work, taken)
    if not enter_layer(work, layer):
        yield from _asked(sampler, probability, ASK)
        return
    for free, each, chance in _draws(work, layer, work.dim):
        found = _again(work, [*taken, (free, each)])
        if found == THERE:
            yield from _below(sampler, [*taken, (free, each)], probability * chance * work.chance)
        elif found != GONE:
            yield from _asked(sampler, probability * chance, UNKNOWN)


def _asked(sampler, probability, why):
    """What exact arithmetic says where linear programs are unsure, or rows are lost: the regions below the part, or the cell, each as probable as the promises say."""
    work = sampler._work
    work.asked = why
    worth = sampler._worth()
    if worth is None:
        yield End(None, probability, False)
    elif worth:
        leaves = list(sampler.answers.leaves(sampler._came_to))
        kept = 1.0
        if why == UNKNOWN and work.modes[work.layer, work.entered] != SIGNS:
            part = sampler._came_to[work.begins[work.layer] : work.begins[work.layer + 1]]
            kept = work.kept[work.layer, work.entered, min(work.entered, sampler._passed(part))]
        for leaf in leaves:
            yield End(leaf, probability * kept * worth / len(leaves), True)


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
        assert enter_layer(work, layer)
        found = follow(work, layer, True)
    return found
