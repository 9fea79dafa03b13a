"""What must hold for networks whose units have slopes on their inactive side, whatever the network."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tessella
from helpers.odd_networks import leaky_case
from tessella.importers.arrays import read_npz, write_npz

cases = st.integers(0, 2**32 - 1).map(lambda seed: leaky_case([1990, seed], largest=200))
few = settings(max_examples=20)


def count(case):
    return tessella.count(case.network, case.domain, workers=1).exact


@few
@given(cases, st.randoms(use_true_random=False))
def test_the_order_of_units_does_not_matter(case, random):
    layers, columns = [], np.arange(len(case.lower))
    for weight, bias, rectified, slope in case.layers:
        order = np.array(random.sample(range(len(bias)), len(bias)))
        layers.append((weight[order][:, columns], bias[order], rectified[order], slope[order]))
        columns = order
    assert count(case._replace(layers=layers)) == count(case)


@few
@given(cases, st.randoms(use_true_random=False))
def test_units_may_be_rescaled(case, random):
    layers, before = [], np.ones(len(case.lower))
    for weight, bias, rectified, slope in case.layers:
        factors = 2.0 ** np.array([random.randint(-6, 6) for _ in bias])  # powers of two: no rounding
        layers.append((factors[:, None] * weight / before, factors * bias, rectified, slope))
        before = factors
    assert count(case._replace(layers=layers)) == count(case)


@few
@given(cases, st.randoms(use_true_random=False))
def test_a_unit_with_a_negative_slope_may_be_turned_around(case, random):
    """f(x) = max(x, s x) is f'(-x) with f'(y) = max(-y, -s y), which is -s times a unit of slope 1 / s; only signs of patterns change."""
    layers, factors = [], np.ones(len(case.lower))
    for weight, bias, rectified, slope in case.layers:
        turned = np.array(
            [bool(on) and s in {-0.5, -1.0} and random.random() < 0.5 for on, s in zip(rectified, slope, strict=True)]
        )
        signs = np.where(turned, -1.0, 1.0)
        layers.append(
            (
                signs[:, None] * (weight * factors),
                signs * bias,
                rectified,
                np.where(turned, 1.0 / np.where(turned, slope, 1.0), slope),
            )
        )
        factors = np.where(turned, -slope, 1.0)
    assert count(case._replace(layers=layers)) == count(case)


@few
@given(cases, st.integers(0, 100), st.sampled_from([0.25, 0.5, 0.375]))
def test_a_box_and_its_halves(case, pick, share):
    case = case._replace(matrix=None, offset=None)
    free = np.flatnonzero(case.lower < case.upper)
    axis = free[pick % len(free)]
    low, high = case.lower.copy(), case.upper.copy()
    low[axis] = high[axis] = case.lower[axis] + share * (case.upper[axis] - case.lower[axis])
    below, above = count(case._replace(upper=high)), count(case._replace(lower=low))
    assert max(below, above) <= count(case) <= below + above
    (weight, bias, rectified, slope), *rest = case.layers
    first = (
        np.vstack([weight, np.eye(weight.shape[1])[axis]]),
        np.append(bias, -low[axis]),
        np.append(rectified, True),
        np.append(slope, 0.5),
    )
    if rest:
        (after, *others), *last = rest
        rest = [(np.hstack([after, np.zeros((len(after), 1))]), *others), *last]
    assert count(case._replace(layers=[first, *rest])) == below + above


@few
@given(cases)
def test_no_count_is_above_the_upper_bounds(case):
    assert count(case) <= tessella.upper_bounds(case.network, case.domain, method="linear").empirical


@settings(max_examples=4)
@given(cases)
def test_an_analysis_finds_the_count(case):
    assert tessella.analyze(case.network, case.domain, seconds=2.0, workers=1).exact in {count(case), None}


def test_files_hold_slopes(tmp_path):
    for seed in range(5):
        network = leaky_case(seed).network
        write_npz(network, tmp_path / "net.npz")
        assert read_npz(tmp_path / "net.npz") == network
