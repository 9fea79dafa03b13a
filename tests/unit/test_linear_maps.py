"""Linear operators as matrices, against torch's own."""

import numpy as np
import pytest

from tessella.errors import UnsupportedModel
from tessella.importers import linear_maps, trace
from tessella.importers.linear_maps import interpolation
from tessella.importers.operators import Window, along_axes, convolve_transposed
from tessella.importers.trace import Trace

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

TRANSPOSED = [
    # channels and sizes, weight, stride, padding, extra, dilation, groups
    ((2, 5), (2, 3, 3), 1, 0, 0, 1, 1),
    ((2, 5), (2, 3, 3), 2, 1, 1, 1, 1),
    ((4, 3), (4, 2, 4), 3, 2, 2, 2, 2),
    ((2, 3, 4), (2, 3, 2, 3), 2, 1, 0, 1, 1),
    ((4, 3, 2), (4, 1, 3, 3), 1, 1, 0, 1, 4),
    ((1, 2, 3), (1, 2, 2, 2), 1, 0, 1, 2, 1),  # more extra than a stride
    ((2, 2, 3, 2), (2, 1, 2, 2, 2), 2, 0, 1, 1, 1),
]


@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolutions(case):
    shape, weights, stride, padding, extra, dilation, groups = case
    rng, rank = np.random.default_rng(0), len(shape) - 1
    weight, bias, value = rng.standard_normal(weights), rng.standard_normal(weights[1] * groups), rng.standard_normal((1, *shape))
    trace = Trace((1, *shape))
    window = Window([stride] * rank, [(padding, padding)] * rank, [dilation] * rank)
    found = convolve_transposed(trace, trace.input, weight, bias, window, groups, [extra] * rank)
    theirs = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1]
    expected = theirs(
        *map(torch.tensor, (value, weight, bias)),
        stride=stride,
        padding=padding,
        output_padding=extra,
        groups=groups,
        dilation=dilation,
    )
    assert found.shape == tuple(expected.shape)
    np.testing.assert_allclose(trace.network(found)(value.ravel()), expected.numpy().ravel(), atol=1e-12)


def test_transposed_convolutions_that_do_not_fit_are_refused():
    trace = Trace((1, 2, 3))
    for weights, padding in (((3, 1, 2), 0), ((2, 1, 2), 9)):
        with pytest.raises(UnsupportedModel, match="a transposed convolution"):
            convolve_transposed(trace, trace.input, np.ones(weights), None, Window([1], [(padding, padding)], [1]), 1, [0])


def test_interpolation_along_two_axes():
    value = np.random.default_rng(0).standard_normal((1, 2, 3, 4))
    maps = {2: interpolation(3, (np.arange(6) + 0.5) / 2 - 0.5), 3: interpolation(4, np.linspace(0, 3, 7))}
    trace = Trace(value.shape)
    found = trace.network(along_axes(trace, trace.input, maps))(value.ravel()).reshape(2, 6, 7)
    rows = F.interpolate(torch.tensor(value), size=(6, 4), mode="bilinear")
    expected = F.interpolate(rows, size=(6, 7), mode="bilinear", align_corners=True)
    np.testing.assert_allclose(found, expected[0].numpy(), atol=1e-12)
    assert interpolation(1, np.array([-1.0, 0.0, 5.0])).toarray().tolist() == [[1.0]] * 3


def test_a_product_that_would_be_too_large_becomes_a_layer(monkeypatch):
    made, rng = Trace((1, 6)), np.random.default_rng(0)
    weight = rng.standard_normal((6, 6))
    once = made.multiply(made.input, weight)
    assert len(made.network(made.multiply(once, weight)).layers) == 1
    monkeypatch.setattr(trace, "LARGEST_MATRIX", 100)
    monkeypatch.setattr(linear_maps, "LARGEST_MATRIX", 100)
    network = made.network(made.multiply(once, weight))
    assert len(network.layers) == 2
    point = rng.standard_normal(6)
    assert np.allclose(network(point), point @ weight @ weight)
