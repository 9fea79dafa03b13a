"""Activations written as units with slopes, ReLUs and linear values compute what they should, with as many units as they should have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tessella
from tessella.errors import UnsupportedModel
from tessella.importers.activations import (
    absolute,
    at_most,
    clip,
    largest,
    largest_along,
    leaky,
    maximum,
    minimum,
    smallest,
)
from tessella.importers.operators import Window, pool_maximum
from tessella.importers.trace import Tensor, Trace

POINTS = np.random.default_rng(5).standard_normal((50, 12)) * 3.0


def traced(shape, build):
    trace = Trace(shape)
    return trace.network(build(trace, trace.input))


def dense(trace, tensor, rows, seed=0):
    rng = np.random.default_rng(seed)
    return trace.multiply(rng.standard_normal((rows, tensor.size)), tensor).shift(rng.standard_normal(rows))


@pytest.mark.parametrize("slope", [0.0, 0.1, 1.5, -0.5, -1.0, np.linspace(-1, 1, 12)])
def test_leaky(slope):
    net = traced((12,), lambda trace, x: leaky(trace, x, slope))
    np.testing.assert_allclose(net(POINTS), np.where(POINTS > 0, POINTS, slope * POINTS), rtol=1e-12, atol=1e-12)
    assert net.relus == np.broadcast_to(np.asarray(slope) != 1.0, 12).sum()  # an element with a slope of one is linear
    assert net.layers[0].slope.tolist() == np.broadcast_to(slope, 12).tolist()


def test_a_slope_of_one_is_no_unit():
    net = traced((3,), lambda trace, x: dense(trace, leaky(trace, dense(trace, x, 4), 1.0), 2))
    assert net.relus == 0


def test_a_leaky_layer_carries_nothing():
    net = traced((3,), lambda trace, x: dense(trace, leaky(trace, dense(trace, x, 5), 0.1), 7))
    assert [(layer.relus, layer.linear_units) for layer in net.layers] == [(5, 0), (0, 7)]
    assert net.leaky_units == 5


def test_what_reads_a_leaky_value_later_is_carried():
    def build(trace, x):
        first = leaky(trace, dense(trace, x, 4), np.array([0.1, -1.0, 1.0, 0.0]), "PReLU")
        return trace.add(trace.relu(dense(trace, first, 4, seed=1)), first)

    net, points = traced((12,), build), POINTS
    values = dense(Trace((12,)), Trace((12,)).input, 4)
    before = points @ values.terms[next(iter(values.terms))].toarray().T + values.constant
    first = np.where(before > 0.0, before, before * [0.1, -1.0, 1.0, 0.0])
    rng = np.random.default_rng(1)
    expected = np.maximum(first @ rng.standard_normal((4, 4)).T + rng.standard_normal(4), 0.0) + first
    np.testing.assert_allclose(net(points), expected, rtol=1e-12, atol=1e-12)
    assert [(layer.relus, layer.linear_units) for layer in net.layers] == [(3, 1), (4, 4), (0, 4)]
    assert dict(net.source.units) == {"PReLU": 3, "ReLU": 4}


def test_the_rest():
    p = POINTS
    for build, expected, relus in (
        (absolute, np.abs(p), 12),
        (lambda t, x: clip(t, x, -1.0, 0.5), np.clip(p, -1.0, 0.5), 24),
        (lambda t, x: clip(t, x, 0.0, 6.0), np.clip(p, 0.0, 6.0), 24),
        (lambda t, x: clip(t, x, None, 6.0), np.minimum(p, 6.0), 12),
        (lambda t, x: at_most(t, x, np.inf), p, 0),
        (lambda t, x: maximum(t, x, x.take(np.arange(12)[::-1])), np.maximum(p, p[:, ::-1]), 12),
        (lambda t, x: minimum(t, x, x.take(np.arange(12)[::-1])), np.minimum(p, p[:, ::-1]), 12),
        (lambda t, x: maximum(t, np.full(12, 0.3), x), np.maximum(p, 0.3), 12),
        (lambda t, x: maximum(t, Tensor((12,), {}, np.full(12, 0.3)), x), np.maximum(p, 0.3), 12),
        (lambda t, x: largest(t, x, np.arange(12).reshape(3, 4)), p.reshape(-1, 3, 4).max(axis=2), 9),
        (lambda t, x: largest(t, x, np.arange(12).reshape(4, 3)), p.reshape(-1, 4, 3).max(axis=2), 8),
        (lambda t, x: smallest(t, x, np.arange(12).reshape(3, 4)), p.reshape(-1, 3, 4).min(axis=2), 9),
        (
            lambda t, x: largest_along(t, x.reshape((2, 3, 2)), [0, 2], keepdims=False),
            p.reshape(-1, 2, 3, 2).max(axis=(1, 3)),
            9,
        ),
    ):
        net = traced((12,), build)
        np.testing.assert_allclose(net(p), expected, rtol=1e-12, atol=1e-12)
        assert net.relus == relus


def test_constants_alone_and_empty_groups_are_refused():
    with pytest.raises(UnsupportedModel, match="constants alone"):
        traced((2,), lambda t, _: maximum(t, np.ones(2), np.ones(2)))
    with pytest.raises(UnsupportedModel, match="no elements"):
        traced((2,), lambda t, x: largest(t, x, np.array([[0, 1], [-1, -1]])))
    with pytest.raises(UnsupportedModel, match="slope nan"):
        traced((2,), lambda t, x: leaky(t, x, np.nan))


@given(st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.integers(0, 1), st.integers(1, 2), st.booleans())
def test_pooling_in_one_dimension(size, kernel, stride, pad, dilation, ceil_mode):
    """Against windows written out, with padding, dilation and ceiling."""
    if size + 2 * pad < dilation * (kernel - 1) + 1 or pad > kernel // 2:
        return
    padded = np.pad(POINTS[:, :size], ((0, 0), (pad, pad + 9)), constant_values=-np.inf)
    room = size + 2 * pad - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    count -= ceil_mode and (count - 1) * stride >= size + pad
    expected = np.stack(
        [padded[:, k * stride : k * stride + dilation * kernel : dilation].max(axis=1) for k in range(count)], axis=1
    )

    def pooled():
        return traced(
            (1, 1, size),
            lambda t, x: pool_maximum(t, x, [kernel], Window([stride], [(pad, pad)], [dilation]), ceil_mode=ceil_mode),
        )

    if np.isinf(expected).any():
        with pytest.raises(UnsupportedModel, match="no elements"):
            pooled()
        return
    np.testing.assert_allclose(pooled()(POINTS[:, :size]), expected, rtol=1e-12, atol=1e-12)


def test_comparisons_that_windows_share_are_made_once():
    net = traced((1, 1, 8), lambda t, x: pool_maximum(t, x, [4], Window([2], [(0, 0)], [1])))
    assert net.relus == 4 + 3  # of the first round (01) (23) (45) (67), and one for each window


def test_what_is_counted_is_said():
    two = traced((1, 1, 4), lambda t, x: pool_maximum(t, x, [2], Window([2], [(0, 0)], [1])))
    four = traced((1, 1, 4), lambda t, x: pool_maximum(t, x, [4], Window([4], [(0, 0)], [1])))
    assert two.counted is tessella.Counted.REGIONS
    assert four.counted is tessella.Counted.COMPARISONS
    box = tessella.Box(-1, 1, dim=4)
    for found in (tessella.count(four, box), tessella.upper_bounds(four, box)):
        assert all(bound.counted is tessella.Counted.COMPARISONS for bound in found.bounds)
    # (a ? b), (c ? d), and which of the two winners is larger: 2 * 2 * 2
    assert tessella.count(four, box).exact == 8
    assert tessella.count(two, box).exact == 4
