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
    Cube,
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

    Decisions are about rectified units: decision u is about unit unit_of[u], in layer layer_of[u].  A unit that is not active passes its preactivation times its slope on; one that
    is not rectified has the slope 1 and counts as active, or another slope and counts as inactive.

    In a folded network (`tessella.partition.folding`) weights may be wrong by ``weight_doubts``, in the same order, and biases by ``bias_doubts``; both are empty in others.
    """

    unit_of: Whole
    layer_of: Whole
    first: Whole
    width: Whole
    start: Whole
    weights: Vector
    biases: Vector
    rectified: Bytes
    slopes: Vector
    weight_doubts: Vector
    bias_doubts: Vector

    @classmethod
    def of(cls, scaled: Scaled) -> Self:
        """Lay a network out in plain arrays."""
        widths = np.array([len(bias) for bias in scaled.biases], dtype=np.int64)
        starts = np.cumsum([0, 0, *(weight.size for weight in scaled.weights[1:])])
        rectified, doubts = np.concatenate(scaled.rectified), list[Floats]()
        if any(doubt is not None for doubt in scaled.doubts):
            sizes = [(len(weight), weight.shape[1] + 1) for weight in scaled.weights]
            doubts = [np.zeros(size) if doubt is None else doubt for size, doubt in zip(sizes, scaled.doubts, strict=True)]
        return cls(
            unit_of=np.flatnonzero(rectified).astype(np.int64),
            layer_of=np.repeat(np.arange(len(widths)), widths)[rectified].astype(np.int64),
            first=np.cumsum(widths) - widths,
            width=widths,
            start=starts[:-1].astype(np.int64),
            weights=np.concatenate([np.zeros(0), *(weight.ravel() for weight in scaled.weights[1:])]),
            biases=np.concatenate(scaled.biases),
            rectified=rectified.astype(np.int8),
            slopes=np.concatenate(scaled.slopes),
            weight_doubts=np.concatenate([np.zeros(0), *(doubt[:, :-1].ravel() for doubt in doubts[1:])]),
            bias_doubts=np.concatenate([np.zeros(0), *(doubt[:, -1] for doubt in doubts)]),
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
        """All units active but linear ones with a slope of their own, and the rows of the first layer, which hold in every cell; ``errors`` are theirs."""
        first, units = len(scaled.biases[0]), sum(map(len, scaled.biases))
        combined, bounds = zeros(units, space.dimensions + 1), zeros(units)
        combined[:first, :-1], combined[:first, -1] = space.rows_of(normals)[:first], scaled.biases[0]
        bounds[:first] = errors
        active = np.concatenate(scaled.rectified) | (np.concatenate(scaled.slopes) == 1.0)
        return cls(active=active.astype(np.int8), combined=combined, errors=bounds)


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


class Bases(Record):
    """States of the dual simplex method over many inputs (`tessella.cells.dual`), one for each cell on the way to the current one.

    Invariant of state s with size[s] = k: rows tight[s, :k] are at their bounds, inputs basic[s, :k] somewhere between theirs, and inverse[s] is the inverse of the tight rows' coefficients at
    these inputs.  Costs are the start's, and multipliers[s, :k] of the tight rows; they are zero at basic inputs, and all others sit at the end that the sign of their cost asks for: in z these
    add up to base[s].  Pivots since the inverse was computed: age[s]; -1 if the state is new.
    """

    tight: WholeMatrix
    basic: WholeMatrix
    size: Whole
    age: Whole
    inverse: Cube
    base: Matrix
    multipliers: Matrix
    costs: SingleMatrix
    # memory for one iteration
    square: Matrix  # to be inverted
    misses: Vector  # what tight rows are short of their bounds without basic inputs
    values: Vector  # of basic inputs
    scores: Vector  # of basic inputs: how bad it is that they are beyond their ends
    rates: Vector  # at which multipliers change
    pivot_row: Vector  # the leaving variable's row of the inverse, or its coefficients times the inverse
    coefficients: Vector  # of the leaving row at basic inputs, or of the entering input in tight rows
    column: Vector  # the inverse times the entering input's coefficients

    @classmethod
    def of(cls, space: Space, rows: int, states: int) -> Self:
        """New states for cells of so many rows."""
        p, n, basis = space.dimensions, space.inputs, cls.places(space, rows)
        return cls(
            **{name: zeros(states, basis, kind=np.int64) for name in ("tight", "basic")},
            size=zeros(states, kind=np.int64),
            age=np.full(states, -1, dtype=np.int64),
            inverse=zeros(states, basis, basis),
            base=zeros(states, p),
            multipliers=zeros(states, basis),
            costs=zeros(states, n, kind=np.float32),
            square=zeros(basis, basis),
            **{name: zeros(basis) for name in ("misses", "values", "scores", "rates", "pivot_row", "coefficients", "column")},
        )

    @staticmethod
    def places(space: Space, rows: int) -> int:
        """How many rows may be tight, and one more."""
        return min(space.dimensions, space.inputs, rows) + 1


VALUE, LOWEST, HIGHEST, WORTH = range(4)  # numbers of each line of a tableau
END, COST, REACH, FAVOUR = range(
    4
)  # numbers of each column of a tableau; one array for all, because states are copied all the time


class Tableaus(Record):
    """States of the dual simplex method in dense tableaus (`tessella.cells.tableau`), one for each cell on the way to the current one.

    Every input, and the slack of every row, is a variable: a row is named by its number, input j -1 - j.  As many as there are inputs are *columns*, each at one of its bounds; all others, the
    *lines*, are affine functions of these.  Invariant of state s: column j is variable columns[s, j], at the value of_columns[s, END, j]; line i < held[s] is variable lines[s, i], has
    the value of_lines[s, VALUE, i], and changes by table[s, j, i] for each unit of column j.  Pivots since all was computed: age[s]; -1 if the state is new.
    """

    columns: WholeMatrix
    lines: WholeMatrix
    held: Whole
    age: Whole
    table: Cube
    of_lines: Cube  # of each line: VALUE, LOWEST and HIGHEST that it may have, WORTH of a violation of these
    of_columns: Cube  # of each column: END, its value; COST; REACH, how far it is to its other end; FAVOUR, the sign that its cost must have; an equation's last two are 0
    # memory for one iteration
    rates: Vector  # of columns, towards the leaving line's bound
    steps: Vector  # of columns: after which their costs change sign
    changes: Vector  # of lines

    @classmethod
    def of(cls, space: Space, rows: int, states: int) -> Self:
        """New states for cells of so many rows."""
        n = space.inputs
        return cls(
            columns=zeros(states, n, kind=np.int64),
            lines=zeros(states, rows, kind=np.int64),
            held=zeros(states, kind=np.int64),
            age=np.full(states, -1, dtype=np.int64),
            table=zeros(states, n, rows),
            of_lines=zeros(states, 4, rows),
            of_columns=zeros(states, 4, n),
            rates=zeros(n),
            steps=zeros(n),
            changes=zeros(rows),
        )


class Cell(Record):
    """The cell that a walk stands in, and the cells on the way to it: their rows are the first of its own, and each has a state of a linear program.

    Row r is named codes[r]; the row of decision u is row_of[u], or -1 if the decision needs none.  points[s] is the point that state s ended at.  Of ``bases`` and ``tableaus`` one is in use.
    """

    space: Space
    rows: Matrix
    codes: Whole
    row_of: Whole
    points: Matrix
    start: Singles  # costs that every linear program starts with: random, so that ties hardly ever occur
    bases: Bases
    tableaus: Tableaus
    proof: Proof  # of the last cell that was found to be empty
    pricing: Pricing
    work: Work
    tally: Tally
    solver: int  # the address of what solves linear programs: see `tessella.cells.forms`

    @classmethod
    def of(cls, space: Space, layers: Layers, *, rows: int, states: int) -> Self:
        """Room for so many rows, and as many states."""
        n, rng = space.inputs, np.random.default_rng(space.inputs)
        start = (rng.uniform(0.5, 1.0, n) * rng.choice((-1.0, 1.0), n) / n).astype(np.float32)
        return cls(
            space=space,
            rows=zeros(rows, space.dimensions + 3),
            codes=-1 - np.arange(rows, dtype=np.int64),
            row_of=np.full(len(layers.unit_of), -1, dtype=np.int64),
            points=zeros(states, space.dimensions),
            start=aligned(start),
            bases=Bases.empty() if space.in_inputs else Bases.of(space, rows, states),
            tableaus=Tableaus.of(space, rows, states) if space.in_inputs else Tableaus.empty(),
            proof=Proof.of(max(rows, n) + 2),
            pricing=Pricing.of(n),
            work=Work.of(space, int(layers.width.max())),
            tally=Tally(),
        )

    @staticmethod
    def bytes_of_state(space: Space, rows: int) -> int:
        """The memory of one state."""
        p, n, basis = space.dimensions, space.inputs, Bases.places(space, rows)
        if space.in_inputs:
            return 8 * (n * rows + 5 * rows + 6 * n + 2)
        return 8 * (basis * basis + 2 * p + 3 * basis + 2) + 4 * n
