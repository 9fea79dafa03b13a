"""What exact arithmetic said of prefixes: a table that compiled code looks them up in, and learns from between two rounds.

A thin child, and a cell whose rows are lost in rounding, is worth what exact arithmetic says.  A round that comes to one stops and names the prefix; it is made again, from the same seed, once the
answer is in the table.
"""

import numpy as np
import numpy.typing as npt

from tessella.cells.state import Layers
from tessella.kernel.functions import compiled
from tessella.kernel.record import Bytes, KeyMatrix, Keys, Record, Vector

ASK = -1.0  # instead of a prefix's worth: it is not in the table
_EMPTY = -2.0  # instead of a worth: no prefix is here
_FIRST_SIZE = 1024


class Prefixes(Record):
    """A table of prefixes with open addressing, at least half empty: ``worth[at]`` regions lie below the prefix whose two hashes are ``keys[at]``.

    The prefix that was last asked about is ``signs[:length]``, and its hashes are ``asked``.
    """

    keys: KeyMatrix
    worth: Vector
    signs: Bytes
    asked: Keys
    length: int
    held: int

    @classmethod
    def of(cls, units: int) -> "Prefixes":
        """An empty table, for prefixes of so many units."""
        return cls(
            keys=np.zeros((_FIRST_SIZE, 2), dtype=np.uint64),
            worth=np.full(_FIRST_SIZE, _EMPTY),
            signs=np.zeros(units + 1, dtype=np.int8),
            asked=np.zeros(2, dtype=np.uint64),
        )

    @property
    def prefix(self) -> bytes:
        """The prefix that was last asked about."""
        return bytes(self.signs[: self.length])

    def learn(self, worth: int) -> None:
        """Put in how many regions lie below the prefix that was last asked about."""
        self.held += 1
        if 2 * self.held > len(self.worth):
            keys, known = self.keys, self.worth
            self.keys, self.worth = np.zeros((4 * len(known), 2), dtype=np.uint64), np.full(4 * len(known), _EMPTY)
            for key, value in zip(keys[known >= 0.0], known[known >= 0.0], strict=True):
                self._insert(key, value)
        self._insert(self.asked, float(worth))

    def _insert(self, key: npt.NDArray[np.uint64], worth: float) -> None:
        size = len(self.worth)
        at = int(key[0]) % size
        while self.worth[at] >= 0.0:
            at = (at + 1) % size
        self.keys[at], self.worth[at] = key, worth


@compiled
def known_worth(prefixes: Prefixes, layers: Layers, status: Bytes, last: int, side: int) -> float:
    """How many regions lie below the prefix that ends with unit ``last`` on a side (or before it, if the side is -1), or ASK; the prefix is put into the table's ``signs``."""
    length, one, two = 0, np.uint64(0xCBF29CE484222325), np.uint64(0x84222325CBF29CE4)
    for u in range(len(layers.unit_of)):
        unit = layers.unit_of[u]
        if unit > last or (unit == last and side < 0):
            break
        sign = side if unit == last else status[unit]
        prefixes.signs[length] = sign
        length += 1
        one = (one ^ np.uint64(sign + 1)) * np.uint64(0x100000001B3)
        two = (two + np.uint64(sign + 1)) * np.uint64(0x9E3779B97F4A7C15)
        two ^= two >> np.uint64(29)
    prefixes.length = length
    prefixes.asked[0], prefixes.asked[1] = one, two
    keys, worth = prefixes.keys, prefixes.worth
    mask = np.uint64(len(worth) - 1)
    at = np.int64(one & mask)
    while worth[at] >= 0.0:
        if keys[at, 0] == one and keys[at, 1] == two:
            return worth[at]
        at = np.int64(np.uint64(at + 1) & mask)
    return ASK
