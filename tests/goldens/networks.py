"""The networks of the goldens: made from seeds, so that nothing but their names is stored.

A name says what is in it, such as ``points-140x12x6`` for 140 inputs and layers of 12 and 6 units.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tessella
from helpers.odd_networks import random_case
from tessella import Box, Domain, Layer, Network, Polytope

DIGITS = Path(tessella.__file__).parent / "data" / "digits.onnx"

FEW = frozenset({"vertices", "count", "local", "upper", "meeting", "linear"})
SOME = frozenset({"in_inputs", "in_frame", "count", "local", "upper", "meeting", "linear"})
MANY = SOME | {"points", "points_without_mixtures"}
LISTED = frozenset({"exact", "listing", "search"})
DRAWN = frozenset({"descents", "estimate", "sample"})
TIGHT = frozenset({"lp", "milp", "mipbound"})


class Made(NamedTuple):
    """A network on a domain, and the decisions below which walkers begin."""

    network: Network
    domain: Domain
    prefixes: tuple[bytes, ...] = (b"",)


class Subject:
    """One network of the goldens, made when it is asked for, and the engines that are asked about it."""

    def __init__(self, name, make, engines):
        self.name, self._make, self.engines = name, make, frozenset(engines)

    @cached_property
    def made(self) -> Made:
        return self._make()


def subjects() -> list[Subject]:
    """All of them, in the order of the record."""
    return [*_few_inputs(), *_some_inputs(), *_in_frame(), *_by_points(), *_odd(), *_trained(), *_wide()]


def _sizes(name):
    """The layers' sizes that a name ends in."""
    return [int(part) for part in name.rsplit("-", 1)[1].split("x")]


def _plain(name, *, bias=0.3, box=(-1.0, 1.0), kind="normal", linear=0.0, fixed=0, walls=0, rank=None, seed=0) -> Made:
    """Random weights, with a share of linear units, some inputs fixed, and some inequalities."""
    sizes = _sizes(name)
    rng = np.random.default_rng([21, seed, *sizes])
    layers = []
    for number, (columns, rows) in enumerate(pairwise(sizes)):
        if kind == "whole":
            weight, offset = rng.integers(-1, 2, (rows, columns)) * 1.0, rng.integers(-1, 2, rows) * 1.0
        elif number == 0 and rank:  # all but dependent rows: hyperplanes in nearly a few dimensions
            flat = sum(np.outer(rng.standard_normal(rows), rng.standard_normal(columns)) for _ in range(rank))
            weight = (flat + 0.2 * rng.standard_normal((rows, columns))) / columns
            offset = bias * rng.standard_normal(rows)
        else:
            weight, offset = rng.standard_normal((rows, columns)) / columns**0.5, bias * rng.standard_normal(rows)
        layers.append(Layer(weight, offset, rng.random(rows) >= linear))
    lower, upper = np.full(sizes[0], box[0]), np.full(sizes[0], box[1])
    lower[sizes[0] - fixed :] = upper[sizes[0] - fixed :] = 0.25
    domain = Box(lower, upper)
    if walls:
        normals = np.round(4.0 * rng.standard_normal((walls, sizes[0]))) / 4.0
        domain = Polytope(normals, rng.uniform(0.2, 1.0, walls) + 0.25 * normals[:, sizes[0] - fixed :].sum(axis=1), domain)
    return Made(Network(tuple(layers)), domain)


def _subject(name, engines, **options):
    return Subject(name, lambda: _plain(name, **options), engines)


def _few_inputs() -> Iterator[Subject]:
    """One to six inputs: cells are held by their corners."""
    yield _subject("few-1x8x8", FEW | LISTED | DRAWN | TIGHT | {"polygons"})
    yield _subject("few-2x12x12", FEW | LISTED | DRAWN | {"polygons"})
    yield _subject("few-2x6x6x6x6", FEW | LISTED | TIGHT | {"polygons"})
    yield _subject("few-3x14x12", FEW)
    yield _subject("few-3x5", FEW | LISTED | TIGHT | {"milp_count"})
    yield _subject("few-4x12x10", FEW | DRAWN)
    yield _subject("few-5x14x12x10", FEW)
    yield _subject("few-6x9x6", FEW | {"descents"})
    yield _subject("few-6x12x10", FEW)
    yield _subject("apex-3x8x8", FEW | LISTED, bias=0.0)
    yield _subject("apex-2x8x6", FEW | {"polygons"}, bias=0.0, box=(0.0, 1.0))
    yield _subject("near-2x7x6", FEW | LISTED | {"polygons"}, bias=1e-11)
    yield _subject("near-4x6x5", FEW | {"exact"}, bias=1e-12)
    yield _subject("walls-2x8x8", FEW | {"polygons", "listing"}, walls=2)
    yield _subject("walls-4x9x6", FEW | {"lp", "descents"}, walls=4)
    yield _subject("linear-3x10x8x6", FEW | LISTED | DRAWN, linear=0.4)
    yield _subject("whole-2x8x6", FEW | LISTED | {"polygons"}, kind="whole")
    yield _subject("whole-4x6x5", FEW | LISTED | DRAWN, kind="whole")
    yield _subject("fixed-8x8x6", FEW | LISTED | TIGHT, fixed=5)


def _some_inputs() -> Iterator[Subject]:
    """Seven to forty inputs: linear programs over the inputs."""
    yield _subject("some-7x8x6", SOME | LISTED | DRAWN | TIGHT)
    yield _subject("some-8x10", SOME | {"search", "milp_count"})
    yield _subject("some-10x7x6", SOME | DRAWN)
    yield _subject("some-12x6x5x4", SOME | LISTED)
    yield _subject("some-16x8x6", SOME | {"descents"}, bias=1.0)
    yield _subject("some-20x7x5", SOME | {"mipbound"})
    yield _subject("some-40x6x6", SOME | DRAWN)
    yield _subject("some-7x12x10", SOME, bias=1.0)
    yield _subject("apex-8x7x5", SOME | {"search"}, bias=0.0)
    yield _subject("walls-8x7x5", SOME | {"descents", "search"}, walls=3)
    yield _subject("walls-14x6x5", SOME | {"lp"}, walls=6, fixed=2)
    yield _subject("linear-9x8x8x4", SOME | DRAWN, linear=0.4)
    yield _subject("whole-8x6x5", SOME | LISTED | DRAWN, kind="whole")
    yield _subject("whole-10x5x4x3", SOME | {"mipbound"}, kind="whole")
    yield _subject("fixed-12x7x6", SOME | TIGHT, fixed=4)
    yield _subject("near-12x7x6", SOME | {"descents"}, bias=1e-7)


def _in_frame() -> Iterator[Subject]:
    """Many inputs and few first units, but not enough inputs for points, or inequalities: linear programs over first units."""
    yield _subject("frame-60x5x6", SOME | DRAWN)
    yield _subject("frame-100x4x5x4", SOME | {"search", "mipbound"})
    yield _subject("frame-120x7x5", SOME | {"descents"})
    yield _subject("frame-110x8x8", SOME)
    yield _subject("walls-100x5x5", SOME | DRAWN, walls=3)
    yield _subject("walls-130x6x5", SOME, walls=2)


def _by_points() -> Iterator[Subject]:
    """Boxes of 128 inputs and more: points and questions over first units, few of them, up to 18, and more."""
    yield _subject("points-128x6x6", MANY | DRAWN | {"search"})
    yield _subject("points-128x10x4", MANY | {"descents"})
    yield _subject("points-150x8x6x4", MANY | {"mipbound"}, bias=1.0)
    yield _subject("points-200x7x8", MANY, box=(0.0, 1.0))
    yield _subject("points-140x12x5", MANY | {"descents"}, rank=4)
    yield _subject("points-140x16x6", MANY | DRAWN, rank=3)
    yield _subject("points-160x22x4", MANY | {"descents"}, rank=2)
    yield _subject("points-180x18x5", MANY, rank=3)
    yield _subject("points-150x30x3", MANY, rank=2)
    yield _subject("points-784x6x8", MANY | {"descents"})
    yield _subject("points-300x9x3", MANY, bias=3.0)
    yield _subject("near-128x7x5", MANY, bias=1e-3)
    yield _subject("near-130x5x5", MANY | {"descents"}, bias=1e-7)
    yield _subject("near-130x6x6", MANY, bias=1e-7, box=(0.0, 1.0))
    yield _subject("whole-128x5x4", MANY, kind="whole")
    yield _subject("linear-128x9x6x4", MANY | DRAWN, linear=0.4)
    yield _subject("fixed-150x7x5", MANY, fixed=20)
    yield Subject("rows-140x7x60x60x12", lambda: _below("rows-140x7x60x60x12", (110, 120, 130)), MANY - {"count"})


def _below(name, lengths) -> Made:
    """Cells of many rows: below as many decisions as a random input makes."""
    made = _plain(name, bias=0.5)
    value = np.random.default_rng(len(name)).uniform(-0.2, 0.2, made.network.layers[0].inputs)
    signs = []
    for layer in made.network.layers:
        value = layer.dense() @ value + layer.bias
        signs += (value > 0.0).tolist()
        value = np.maximum(value, 0.0)
    return Made(made.network, made.domain, tuple(bytes(signs[:length]) for length in lengths))


def _odd() -> Iterator[Subject]:
    """Equal, opposite, dependent, dead or all but parallel units, in all engines."""
    for seed in (1, 55, 64, 66, 81, 83, 97):
        case = random_case([21, seed], 250, 6)
        flat = {"polygons"} if case.free <= 2 else set()
        yield Subject(
            f"odd-{seed}", lambda case=case: Made(case.network, case.domain), FEW | SOME | LISTED | TIGHT | DRAWN | flat
        )
    for seed in (21, 66, 81):
        case = random_case([21, seed], 250, 6)
        weight, bias, rectified = case.layers[0]  # on the box alone: points know no inequalities
        layers = [(np.repeat(weight, 64, axis=1) / 64, bias, rectified), *case.layers[1:]]
        network = Network(tuple(Layer(*layer) for layer in layers))
        box = Box(np.repeat(case.lower, 64), np.repeat(case.upper, 64))
        yield Subject(f"odd-{seed}-copied", lambda network=network, box=box: Made(network, box), MANY | {"descents"})


def _trained() -> Iterator[Subject]:
    """The network of digits that comes with the package, with all pixels or some of them free."""

    def with_free(number) -> Made:
        rng = np.random.default_rng(1)
        lower = rng.random(64)
        upper, free = lower.copy(), rng.permutation(64)[:number]
        lower[free], upper[free] = 0.0, 1.0
        return Made(tessella.load(DIGITS), Box(lower, upper))

    yield Subject("digits-64", lambda: with_free(64), SOME | DRAWN | {"mipbound"})
    yield Subject("digits-30", lambda: with_free(30), SOME | DRAWN | {"search"})
    yield Subject("digits-6", lambda: with_free(6), FEW | LISTED | DRAWN | TIGHT)
    yield Subject("digits-2", lambda: with_free(2), FEW | LISTED | {"polygons"})


def _wide() -> Iterator[Subject]:
    """Many inputs and many units: descents without linear programs."""
    wide = {"wide", "estimate", "sample", "local", "upper", "meeting", "linear"}
    yield _subject("wide-30x40x40", wide)
    yield _subject("wide-20x60x50", wide, box=(0.0, 1.0))
    yield _subject("wide-40x32x32x32", wide | {"lp"}, linear=0.2)
    yield _subject("wide-24x50x50", wide, walls=3)
