"""``rng`` means the same everywhere: a whole number from 0 on, or a generator."""

import numpy as np
import pytest

import tessella
from tessella.errors import OptionError

NET = tessella.Network.from_arrays([([[1.0], [-1.0]], [0.5, 0.5]), ([[1.0, 1.0]], [-1.5])], relu_output=True)
BOX = tessella.Box(-2, 2, dim=1)
TAKERS = {
    "estimate": lambda rng: tessella.estimate(NET, BOX, probes=20, rng=rng).mean,
    "mipbound": lambda rng: tessella.mipbound(NET, BOX, rng=rng).least,
    "sample_regions": lambda rng: [one.weight for one in tessella.sample_regions(NET, BOX, 5, rng=rng)],
    "analyze": lambda rng: tessella.analyze(NET, BOX, rng=rng).exact,
    "Box.sample": lambda rng: BOX.sample(3, rng).tolist(),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("rng", [-1, 1.5, "seed", True, None, np.nan])
def test_what_is_not_a_seed_is_refused(taker: str, rng: object) -> None:
    with pytest.raises(OptionError, match=r"rng is .*whole number from 0 on"):
        TAKERS[taker](rng)


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("rng", [0, np.int64(3), 2**70])
def test_the_same_seed_gives_the_same_answer(taker: str, rng: object) -> None:
    assert TAKERS[taker](rng) == TAKERS[taker](rng)


@pytest.mark.parametrize("taker", TAKERS)
def test_generators_in_the_same_state_give_the_same_answer(taker: str) -> None:
    assert TAKERS[taker](np.random.default_rng(5)) == TAKERS[taker](np.random.default_rng(5))
