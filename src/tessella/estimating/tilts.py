"""How many more regions there are behind an active unit.

An active unit leaves later layers more room, so behind it there are more regions.  How many bits more a layer's active units
bring is learned from earlier descents, one number per layer; active sides are taken with a probability to match.
"""

import math

import numpy as np

from tessella.estimating.descents import Records
from tessella.network import Floats

_PRIOR = 2.0  # a slope of 0 counts like so many descents whose active units spread by 1
_MOST = 1.5  # the largest tilt: 4.5 to 1


class Tilts:
    """How many more regions there are behind an active unit, per layer, learned as descents come in.

    A regression of the number of units with both sides on the numbers of active ones, towards 0 where little is known.

    Parameters
    ----------
    layers
        How many layers there are.
    """

    def __init__(self, layers: int) -> None:
        """Nothing is learned yet."""
        self._active, self._splits = np.zeros((0, layers)), np.zeros(0)
        self.theta = np.zeros(layers)

    def add(self, records: Records) -> None:
        """Take in what a batch of rounds noted."""
        self._active = np.vstack([self._active, records.features])
        self._splits = np.concatenate([self._splits, records.leaves])

    def learn(self) -> Floats:
        """Fit."""
        if len(self._splits) > 1:
            active, splits = self._active - self._active.mean(axis=0), self._splits - self._splits.mean()
            active[:, -1] = 0.0  # nothing is behind the last layer
            spread = splits @ splits / len(splits)
            slopes = np.linalg.solve(active.T @ active + (_PRIOR * spread + 1e-9) * np.eye(len(self.theta)), active.T @ splits)
            self.theta = np.clip(slopes * math.log(2.0), -_MOST, _MOST)
        return self.theta
