"""Proofs that a unit has no other sign, kept for other cells: in a layer whose inputs come from units in the same state, one holds wherever the few units that it is made of have the same signs; compiled."""

from tessella.counting.state import Settled, Walk
from tessella.kernel.functions import compiled
from tessella.kernel.record import Bytes


@compiled
def keep(walk: Walk, key: int) -> None:
    """Keep which signs of other units prove that a unit has no other sign: they do so wherever the layers before its own are in the same state."""
    settled, proof, codes, r = walk.settled, walk.cell.proof, walk.cell.codes, walk.path.rows
    at, longest, found = settled.found[key] % settled.sizes.shape[1], settled.codes.shape[2], 0
    rows = 0
    for i in range(proof.size):
        rows += 1 if proof.rows[i] < r else 0
    if rows > longest:
        return
    settled.found[key] += 1
    for i in range(proof.size):
        row = proof.rows[i]
        if 0 <= row < r and codes[row] >= 0:
            settled.codes[key, at, found] = codes[row]
            found += 1
    settled.sizes[key, at] = found


@compiled
def sign_left(settled: Settled, u: int, signs: Bytes) -> int:
    """The sign of a unit that a proof from another cell leaves, or -1: it holds where the units it is made of have the same signs."""
    sizes, codes = settled.sizes, settled.codes
    for key in range(2 * u, min(2 * u + 2, len(sizes))):
        for at in range(min(settled.found[key], sizes.shape[1])):
            i = sizes[key, at] - 1
            while i >= 0 and signs[codes[key, at, i] >> 1] == codes[key, at, i] & 1:
                i -= 1
            if i < 0:
                return key - 2 * u
    return -1
