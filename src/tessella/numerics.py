"""Unit roundoff, and every margin of the linear programs over cells; `tests/unit/test_numerics.py` asserts how they relate.

**Scale.**  A row of a cell is scaled so that its numbers add up to 1 in absolute value, and inputs lie in [-1, 1].  So values of rows lie in [-1, 1], and all margins are absolute.

**Points.**  A linear program asks rows to be at least MARGIN, and inputs to stay MARGIN inside their ends, at most EDGE.  It may miss that by CLOSE, a tenth of MARGIN.  The walk by points works closer to walls:
its points stay SLACK inside their cell, and a point SEEN on one side of a row shows that the side exists.

**Rows.**  A row is trusted up to a relative rounding error.  In walks that is TRUSTED_ROW, a fifth of SLACK, because points may lie so close to walls.  Descents have no such points: theirs lie 8 MARGIN
inside, so TRUSTED_ROW_OF_DESCENTS, a tenth of MARGIN, suffices.  Nothing is composed of inequalities of the domain, which therefore may be as wrong as UNHARMFUL.

**Proofs.**  A proof of emptiness is a combination of rows that is negative on the whole box, with every row relaxed by PROOF.  It is tried where a bound falls below -SURE.

**Underflow.**  Relative errors say nothing of products that underflow.  So every bound on the error of a computed row has LOST_OF_PRODUCTS added; rows that are not clearly larger are
lost in rounding, and exact arithmetic decides.

So what a point shows and what a proof shows contradict each other by more than 3 MARGIN, while rows are wrong by a tenth of MARGIN at most.
"""

ROUNDOFF = 2.0**-53  # the largest relative error of one operation
EPS = 2.0**-52  # from 1 to the next number; twice ROUNDOFF

MARGIN = 1e-9  # of a row's size
EDGE = 1.0 - MARGIN  # inputs stay this far inside their ends
CLOSE = 1e-10  # how far from its bound a row or an input may end
PROOF = 4.0 * MARGIN  # by how much the rows of a proof are relaxed
SHOWN = 4.0 * MARGIN  # what a row's value at a point of a linear program must be to show the row's sign
GOAL = 8.0 * MARGIN  # what a descent's point must reach to show a sign
SURE = 1e-8  # a bound this far below zero is worth a proof

TRUSTED_ROW = 2e-12  # the largest relative error of a row in walks
TRUSTED_ROW_OF_DESCENTS = 1e-10  # the same in descents
UNHARMFUL = 1e-10  # the same of an inequality of the domain

SLACK = 1e-11  # points of the walk by points stay this far inside their cell
SEEN = 1e-10  # such a point this far on a side shows that the side exists
CLEAR = 1e-10  # by how much values at such points may be wrong for the points to still surround zero
FAR = 1e-9  # how far from all walls the middle of a cell must be for points to be pulled there
SHALLOW = 1e-6  # how close to a wall the middle may be before a deeper one is looked for

PIVOT = 1e-9  # smaller pivots are rounding
SINGULAR = 1e-14  # the same while a basis is inverted
NOTHING = 1e-13  # smaller multipliers are rounding

THIN = 0.125  # walk over corners: the largest error of a wall, relative to its distance from the middle of the cell
COARSE = 2.0**-16  # errors of rows, relative to what they are sums of, that are bounded again for a whole layer
MODERATE = 1e100  # networks whose rows may be larger are left to exact arithmetic: squares would overflow
LOST_OF_PRODUCTS = 1e-290  # more than all products that underflow can have lost
LOST_OF_NORMS = 1e-150  # more than all squares that underflow can have lost from the root of their sum
