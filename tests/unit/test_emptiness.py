"""Proofs that a cell is empty: they hold by their margin, and where their rows are; nothing less does."""

import numpy as np
import pytest

from tessella.cells.emptiness import is_empty, is_negative, proved, remember
from tessella.cells.state import Proof, Proofs, Space, Work
from tessella.numerics import MARGIN, PROOF


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("in_inputs", [True, False])
def test_what_is_negative_on_the_box(rng, in_inputs):
    space = Space.of(rng.standard_normal((3, 6)), in_inputs=in_inputs)
    work, p = Work.of(space, 1), space.dimensions
    normal = rng.standard_normal(p)
    most = np.abs(normal @ space.frame).sum()
    for constant, answer in ((-most - 5.0 * MARGIN, True), (-most - 3.0 * MARGIN, False), (-most + 1.0, False)):
        work.combination[:] = [*normal, constant, 1.0]
        assert is_negative(space, work, 0.0) is answer
        work.combination[:] = [*normal, constant, 1.0]
        assert not is_negative(space, work, 2.5 * MARGIN)


@pytest.mark.parametrize("in_inputs", [True, False])
def test_proofs_hold_where_their_rows_are(rng, in_inputs):
    """Two rows that contradict a third by a little more than room asks for."""
    space = Space.of(rng.standard_normal((3, 6)), in_inputs=in_inputs)
    p, work = space.dimensions, Work.of(space, 1)
    rows, codes = np.zeros((4, p + 3)), np.array([-1, 2 * 0 + 1, 2 * 1 + 0, 2 * 2 + 1])
    rows[1:3, : p + 1] = 0.2 * rng.uniform(-0.5, 0.5, (2, p + 1))
    rows[1:3, p] = 0.0
    rows[3, : p + 1] = -0.5 * (rows[1, : p + 1] + rows[2, : p + 1])
    rows[3, p] -= 1.5 * PROOF
    row_of, proof, proofs = np.array([1, 2, 3]), Proof.of(6), Proofs.of(8, 6)
    proof.rows[:4], proof.size = [1, 2, -1, 3], 4
    for shares in ((0.5, 0.5, 7.0, 1.0), (1.0, 1.0, 0.0, 2.0), (0.5, 0.4, 0.0, 1.0)):
        proof.shares[:4] = shares
        assert not is_empty(proof, 4, rows, space, work)
    rows[3, p] -= PROOF
    proof.rows[:4], proof.shares[:4] = [1, 2, 0, 3], [1.0, 1.0, -3.0, 2.0]
    assert is_empty(proof, 4, rows, space, work)
    assert list(proof.shares[:4]) == [1.0, 1.0, 0.0, 2.0]
    assert proof.equations == 0
    assert is_empty(proof, 2, rows, space, work)
    assert proof.equations == 0b11
    remember(proofs, 5, proof, 3, codes)
    assert list(proofs.codes[5, : proofs.sizes[5]]) == [1, 2]
    assert list(proofs.shares[5, :2]) == [0.5, 0.5]

    def holds(key=5, position=3, scale=1.0, first=1):
        return proved(proofs, key, rows[3], scale, position, rows, row_of, np.array([first, 0, 1], np.int8), space, work)

    assert holds()
    assert not holds(key=4)
    assert not holds(position=1)
    assert not holds(scale=-1.0)
    assert not holds(first=0)
