"""One model read as a module, as a .pt2 file and as an ONNX file has the same patterns."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tessella  # noqa: E402


class SmallCNN(nn.Module):
    """Convolutions with stride, padding, dilation and groups; batch norm; average pooling."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 6, 2, groups=2, dilation=2)
        self.pool = nn.AvgPool2d(2)
        self.last = nn.Linear(24, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.first((x - 0.1307) / 0.3081)))
        x = self.pool(torch.relu(self.second(x)))
        return self.last(x.flatten(1))


class ResidualMLP(nn.Module):
    """Two residual blocks, one of them without a ReLU after the sum, and a concatenation."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(6, 8)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 8)) for _ in range(3))
        self.leave = nn.Linear(14, 3)

    def forward(self, x):
        h = self.enter(x).relu()
        for block in self.blocks[:2]:
            h = h + block(h)
        h = nn.functional.relu(h + self.blocks[2](h))
        return self.leave(torch.cat([h, x], dim=1))


@pytest.mark.parametrize(("make", "shape"), [(SmallCNN, (1, 12, 12)), (ResidualMLP, (6,))])
def test_module_pt2_and_onnx_have_the_same_patterns(tmp_path, make, shape):
    torch.manual_seed(0)
    module = make()
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2.0)
    module.eval()
    example = (torch.randn(1, *shape),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module, example), tmp_path / "m.pt2")
        torch.onnx.export(module, example, tmp_path / "m.onnx", verbose=False)
    networks = [tessella.load(module, input_shape=shape), tessella.load(tmp_path / "m.pt2"), tessella.load(tmp_path / "m.onnx")]
    points = np.random.default_rng(1).standard_normal((1000, networks[0].input_dim))
    first, *others = (network.patterns(points) for network in networks)
    for patterns in others:
        assert np.array_equal(first, patterns)
    assert 0.05 < first.mean() < 0.95
    expected = module(torch.tensor(points.reshape(-1, *shape), dtype=torch.float32)).detach().numpy()
    for network in networks:
        assert np.allclose(network(points), expected, atol=1e-4, rtol=1e-4)
        assert network.source.difference < 1e-5
    assert {network.shape for network in networks} == {networks[0].shape}
