"""A walker for networks of one input, in fractions: slow and exact, so that what is tested is who calls it, and when."""

import time
import zlib
from fractions import Fraction

import numpy as np

from tessella import Box, Network
from tessella.partition.tree import Found, Node


def line_network(seed, sizes=(6, 5)):
    """A network of one input whose units all change their state somewhere in the interval [-1, 1], and that interval."""
    rng = np.random.default_rng(seed)
    layers, before = [], 1
    for size in sizes:
        weight = rng.standard_normal((size, before))
        so_far = Network.from_arrays(layers, relu_output=True) if layers else lambda points: points
        bias = [-(row @ so_far(rng.uniform(-1, 1, (1, 1)))[0]) for row in weight]
        layers.append((weight, bias))
        before = size
    return Network.from_arrays(layers, relu_output=True), Box(-1, 1, dim=1)


class LineWalker:
    """Makes at most so many steps at a time, may rest at each, and calls every n-th cell thin if it is asked to."""

    def __init__(self, tree, steps=10, rest=0.0, thin_every=0, size=1000):
        self.tree, self.steps, self.rest, self.thin_every, self.bytes = tree, steps, rest, thin_every, size
        self.layers = [
            ([[Fraction(w) for w in row] for row in layer.dense().tolist()], [Fraction(b) for b in layer.bias.tolist()])
            for layer in tree.network.layers
        ]

    def advance(self, nodes, seconds, stop):  # noqa: ARG002  a walker's arguments
        stack, regions, thin, tests = list(nodes), 0, [], 0
        while stack:
            node = stack.pop()
            if len(node.prefix) == self.tree.units:
                regions += 1
            else:
                sides = [node.prefix + bytes([side]) for side in (0, 1)]
                lengths = [self.length(prefix) for prefix in sides]
                both = all(length > 0 for length in lengths)
                for prefix, length in zip(sides, lengths, strict=True):
                    if self.thin_every and len(prefix) > 3 and zlib.crc32(prefix) % self.thin_every == 0:
                        thin.append(prefix)
                    elif length > 0:
                        stack.append(Node(prefix, node.splits + both))
            tests += 1
            if self.rest:
                time.sleep(self.rest)
            if tests >= self.steps or stop.asked:
                break
        return Found(regions, tuple(stack), tuple(thin), tests)

    def length(self, prefix):
        """How long the interval of a prefix is."""
        low, high = (Fraction(float(end[0])) for end in (self.tree.domain.lower, self.tree.domain.upper))
        inputs, place = [(Fraction(1), Fraction(0))], 0
        for layer, (weight, bias) in zip(self.tree.network.layers, self.layers, strict=True):
            outputs = []
            for unit, (row, constant) in enumerate(zip(weight, bias, strict=True)):
                slope = sum((w * value[0] for w, value in zip(row, inputs, strict=True)), Fraction(0))
                offset = sum((w * value[1] for w, value in zip(row, inputs, strict=True)), constant)
                if not layer.rectified[unit]:
                    outputs.append((slope, offset))
                    continue
                if place == len(prefix):
                    return high - low
                active = prefix[place]
                place += 1
                if slope == 0:
                    if (offset > 0) != active:
                        return Fraction(0)
                elif (slope > 0) == active:
                    low = max(low, -offset / slope)
                else:
                    high = min(high, -offset / slope)
                if low >= high:
                    return Fraction(0)
                outputs.append((slope, offset) if active else (Fraction(0), Fraction(0)))
            inputs = outputs
        return high - low
