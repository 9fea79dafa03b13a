"""The state of a question about one cell: where cells live, the network's rows, linear programs begun, proofs, and memory for steps.

**Space.**  A cell is a stack of rows a.z + b >= 0 in z = F.u, where u are inputs in [-1, 1]^n and F, the frame, has p rows.  Either z is the inputs themselves (F is the identity), or z are the rows of
the first layer and of the domain, each scaled to sum(|F_i|) = 1: all other rows are combinations of these.

**Rows.**  A row is p numbers, then the constant, all scaled so that they add up to 1 in absolute value.  Behind these p + 1 numbers stand the square of its length in the space of inputs, and
in walks a bound on its rounding error.

**Codes** name a cell's rows in a way that other cells understand: 2 u + sign for the row of unit u (or decision u) with that sign, -1 - i for row i of the domain.
"""

from typing import Self

import numpy as np

from tessella.kernel.record import (
    Bytes,
    Halves,
    Matrix,
    Record,
    SingleMatrix,
    Singles,
    Vector,
    Whole,
    WholeMatrix,
    aligned,
    zeros,
)
from tessella.network import Floats
from tessella.partition.tree import Scaled

FEASIBLE, INFEASIBLE, UNCLEAR = range(3)  # what a question is answered with


class Space(Record):
    """Where cells live.

    Invariant: ``columns`` is the frame transposed, ``light`` the frame in single precision, ``gram`` the frame times its transpose.
    """

    frame: Matrix
    columns: Matrix
    light: SingleMatrix
    gram: Matrix
    in_inputs: bool  # whether the frame is the identity: z is the inputs

    @classmethod
    def of(cls, normals: Floats, *, in_inputs: bool) -> Self:
        """The space of the inputs, or of these normals of the first layer's rows and the domain's."""
        sizes = np.abs(normals).sum(axis=1)
        frame = np.eye(normals.shape[1]) if in_inputs else normals / np.where(sizes > 0.0, sizes, 1.0)[:, None]
        return cls(
            frame=aligned(frame),
            columns=aligned(frame.T),
            light=aligned(frame.astype(np.float32)),
            gram=aligned(frame @ frame.T),
            in_inputs=in_inputs,
        )

    def rows_of(self, normals: Floats) -> Floats:
        """The normals that the space was made of, as rows in z."""
        return normals if self.in_inputs else np.diag(np.abs(normals).sum(axis=1))

    @property
    def dimensions(self) -> int:
        """How many numbers z has."""
        return self.frame.shape[0]

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return self.frame.shape[1]


class Layers(Record):
    """The network.  Layer l has units first[l] to first[l] + width[l] - 1; its weights, if it is not the first, stand from start[l] on, row by row.

    Decisions are about rectified units: decision u is about unit unit_of[u], in layer layer_of[u].
    """

    unit_of: Whole
    layer_of: Whole
    first: Whole
    width: Whole
    start: Whole
    weights: Vector
    biases: Vector
    rectified: Bytes

    @classmethod
    def of(cls, scaled: Scaled) -> Self:
        """Lay a network out in plain arrays."""
        widths = np.array([len(bias) for bias in scaled.biases], dtype=np.int64)
        starts = np.cumsum([0, 0, *(weight.size for weight in scaled.weights[1:])])
        rectified = np.concatenate(scaled.rectified)
        return cls(
            unit_of=np.flatnonzero(rectified).astype(np.int64),
            layer_of=np.repeat(np.arange(len(widths)), widths)[rectified].astype(np.int64),
            first=np.cumsum(widths) - widths,
            width=widths,
            start=starts[:-1].astype(np.int64),
            weights=np.concatenate([np.zeros(0), *(weight.ravel() for weight in scaled.weights[1:])]),
            biases=np.concatenate(scaled.biases),
            rectified=rectified.astype(np.int8),
        )


class Units(Record):
    """The rows of the network's units in one cell: combined[g] is unit g's preactivation there, in p + 1 numbers, and wrong by errors[g] at most.

    Rows of a layer hold where the units of the layers before are ``active`` or not as noted.
    """

    active: Bytes
    combined: Matrix
    errors: Vector

    @classmethod
    def of(cls, space: Space, scaled: Scaled, normals: Floats, errors: Floats) -> Self:
        """All units active, and the rows of the first layer, which hold in every cell; ``errors`` are theirs."""
        first, units = len(scaled.biases[0]), sum(map(len, scaled.biases))
        combined, bounds = zeros(units, space.dimensions + 1), zeros(units)
        combined[:first, :-1], combined[:first, -1] = space.rows_of(normals)[:first], scaled.biases[0]
        bounds[:first] = errors
        return cls(active=np.ones(units, dtype=np.int8), combined=combined, errors=bounds)


class Tally(Record):
    """What was done."""

    tests: int  # questions asked of linear programs
    iterations: int  # pivots


class Proof(Record):
    """Why a cell is empty: rows[:size], shares[i] times each, add up to something negative on the whole box.

    Shares of inequalities are not negative.  Row -1 stands for none.
    """

    rows: Whole
    shares: Vector
    size: int
    equations: int  # those that take part, as bits

    @classmethod
    def of(cls, longest: int) -> Self:
        """Room for this many rows."""
        return cls(rows=zeros(longest, kind=np.int64), shares=zeros(longest))


class Proofs(Record):
    """Proofs that are tried again in other cells, one for each key: codes[key, :sizes[key]] are its rows besides the one asked about, with their shares; size -1: there is none."""

    sizes: Whole
    codes: WholeMatrix
    shares: Matrix

    @classmethod
    def of(cls, keys: int, longest: int) -> Self:
        """Room for a proof of so many rows for each of so many keys."""
        return cls(
            sizes=np.full(keys, -1, dtype=np.int64),
            codes=zeros(keys, longest, kind=np.int64),
            shares=zeros(keys, longest),
        )


class Work(Record):
    """Memory for steps that know rows and space alone."""

    combination: Vector  # a combination of rows: p numbers and the constant; behind these, how much was added up
    slopes: Vector  # a combination's slope in each input
    sizes: Vector  # of the rows of one layer's units

    @classmethod
    def of(cls, space: Space, widest: int) -> Self:
        """Room for layers that are so wide."""
        return cls(combination=zeros(space.dimensions + 2), slopes=zeros(space.inputs), sizes=zeros(widest))


class Pricing(Record):
    """Memory for the long-step ratio test, in single precision: one number for each input."""

    rates: Singles  # at which costs change
    steps: Singles  # after which costs change their sign; infinite where they never do
    step_bits: Halves  # the same memory, as integers
    weights: Singles  # what the dual function's slope changes by there
    cut: Singles  # one number
    cut_bits: Halves  # the same memory, as an integer
    order: Whole  # inputs whose costs change their sign, and their number in place n; then memory for sorting

    @classmethod
    def of(cls, inputs: int) -> Self:
        """Room for so many inputs."""
        steps, cut = zeros(inputs, kind=np.float32), zeros(1, kind=np.float32)
        return cls(
            rates=zeros(inputs, kind=np.float32),
            steps=steps,
            step_bits=steps.view(np.int32),
            weights=zeros(inputs, kind=np.float32),
            cut=cut,
            cut_bits=cut.view(np.int32),
            order=zeros(2 * inputs + 2, kind=np.int64),
        )
