"""What is piecewise linear in torch without being a ReLU, and what ends a module: against its own forward pass."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from helpers.torch_models import Code, decomposed, difference, exported, saved, seeded  # noqa: E402
from tessella.errors import UnsupportedModel, UnsupportedOperator  # noqa: E402
from tessella.importers import torch_graph  # noqa: E402
from tessella.importers.torch import from_exported, from_module, read_pt2  # noqa: E402
from tessella.network import COMPARISON  # noqa: E402
from tessella.result import Counted  # noqa: E402

Shape = tuple[int, ...] | None


def maxout(self: Any, x: Any) -> Any:
    return self.last(self.first(x).view(1, 3, 4).max(-1)[0])


# what is piecewise linear without being a ReLU: modules, shapes, and how many units of what kind
PIECEWISE: dict[str, tuple[nn.Module, Shape, dict[str, int]]] = {
    "leaky": (nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.2, inplace=True), nn.Linear(4, 2)), None, {"LeakyReLU": 4}),
    "prelu": (nn.Sequential(nn.Linear(3, 4), nn.PReLU(), nn.Linear(4, 2)), None, {"PReLU": 4}),
    "prelu_channels": (nn.Sequential(nn.Conv2d(1, 2, 2), nn.PReLU(2), nn.Flatten()), (1, 3, 3), {"PReLU": 8}),
    "rrelu": (nn.Sequential(nn.Linear(3, 4), nn.RReLU()), None, {"LeakyReLU": 4}),
    "abs": (Code(lambda m, x: m.l(x).abs() - x, l=nn.Linear(3, 3)), None, {"absolute value": 3}),
    "clips": (
        Code(lambda m, x: F.hardtanh(m.l(x)) + F.relu6(x * 4) + F.hardsigmoid(x * 2), l=nn.Linear(3, 3)),
        None,
        {"clip": 12, "ReLU": 6},
    ),
    "bounds": (
        Code(lambda m, x: m.l(x).clamp(min=m.c, max=x), l=nn.Linear(3, 3), c=torch.empty(3)),
        None,
        {"clip": 3, "maximum of two": 3},
    ),
    "threshold": (nn.Sequential(nn.Linear(3, 4), nn.Threshold(0.0, 0.0), nn.Linear(4, 2)), None, {"ReLU": 4}),
    "shrunk": (nn.Sequential(nn.Linear(3, 4), nn.Softshrink(0.3)), None, {"Softshrink": 8}),
    "two": (
        Code(
            lambda m, x: torch.maximum(m.a(x), m.b(x)) - torch.minimum(m.b(x), x) + torch.fmax(x, m.a(x)),
            a=nn.Linear(3, 3),
            b=nn.Linear(3, 3),
        ),
        None,
        {"maximum of two": 9},
    ),
    "maxout": (seeded(Code(maxout, first=nn.Linear(3, 12), last=nn.Linear(3, 2))), None, {COMPARISON: 9}),
    "along": (
        Code(lambda _, x: x.amax((1, 2)) - x.amin(2).sum(1) + x.max() * 2 - x.min(1, keepdim=True)[0].flatten(1).sum(1)),
        (3, 2),
        {COMPARISON: 14, "maximum of two": 3},
    ),
    "max_pool1d": (nn.Sequential(nn.Conv1d(1, 2, 2), nn.MaxPool1d(3, 1, padding=1, dilation=2, ceil_mode=True)), (1, 7), {}),
    "max_pool2d": (
        nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.MaxPool2d((2, 3), padding=(1, 0)), nn.Flatten()),
        (1, 5, 7),
        {},
    ),
    "max_pool3d": (nn.Sequential(nn.Conv3d(1, 1, 2), nn.MaxPool3d(2, ceil_mode=True)), (1, 4, 3, 4), {}),
    "with_places": (Code(lambda _, x: F.max_pool2d(x, 2, return_indices=True)[0]), (1, 4, 4), {COMPARISON: 12}),
    "global_max": (
        nn.Sequential(nn.Conv2d(1, 2, 2), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(2, 2)),
        (1, 3, 3),
        {COMPARISON: 6},
    ),
    "adaptive_max1d": (nn.AdaptiveMaxPool1d(2), (2, 4), {"maximum of two": 4}),
    "adaptive_max3d": (nn.AdaptiveMaxPool3d((1, None, 2)), (1, 2, 1, 4), {COMPARISON: 6}),
}


@pytest.mark.parametrize("name", PIECEWISE)
def test_other_piecewise_linear_modules(name: str, tmp_path: Path) -> None:
    module, shape, units = PIECEWISE[name]
    module = seeded(module)
    net = from_module(module, shape)
    assert difference(net, module, torch.float32) < 1e-5
    assert net.source is not None
    if units:
        assert dict(net.source.units) == units
        assert net.counted is (Counted.COMPARISONS if COMPARISON in units else Counted.REGIONS)
    program = exported(module, net.source.input_shape)
    assert read_pt2(saved(program, tmp_path / "model.pt2")) == net
    if name not in {"prelu", "prelu_channels", "threshold", "rrelu", "shrunk"}:  # which torch takes apart into jumps
        assert from_exported(decomposed(program), "program").relus == net.relus


def first_layers() -> nn.Module:
    return seeded(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4)))


# ends of models, and the operators that are left off
ENDINGS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "softmax": (lambda x: x.softmax(-1), ["softmax"]),
    "log_softmax": (lambda x: F.log_softmax(x, 1), ["log_softmax"]),
    "sigmoid": (torch.sigmoid, ["sigmoid"]),
    "in_place": (lambda x: x.sigmoid_(), ["sigmoid"]),
    "tanh": (lambda x: 2.0 * torch.tanh(x), ["tanh", "mul"]),
    "argmax": (lambda x: x.argmax(1), ["argmax"]),
    "max_place": (lambda x: x.max(1)[1], ["argmax"]),
    "classes": (lambda x: F.dropout(x.softmax(1).view(4)[None], training=False).argmax(1), ["softmax", "argmax"]),
    "loss": (lambda x: F.cross_entropy(x, torch.tensor([1])), ["cross_entropy_loss"]),
    "squares": (lambda x: F.mse_loss(x, torch.ones(1, 4)), ["mse_loss"]),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_ends_that_change_no_region_are_left_off(name: str, tmp_path: Path) -> None:
    function, left_off = ENDINGS[name]
    module = Code(lambda m, x: function(m.parts(x)), parts=first_layers())
    net = from_module(module, (3,))
    assert difference(net, first_layers(), torch.float32) < 1e-5
    assert net.source is not None
    assert net.source.points > 0
    assert net.source.notes == tuple(f"{one} at the end is left off: it changes no region" for one in left_off)
    program = exported(module, (3,))
    for other in (from_exported(program, "program"), read_pt2(saved(program, tmp_path / "model.pt2"))):
        assert difference(other, first_layers(), torch.float32) < 1e-5
        assert other.source is not None
        assert len(other.source.notes) == len(left_off)


def test_what_a_network_ends_in_is_as_it_was_before() -> None:
    assert from_module(nn.Sequential(first_layers(), nn.Softmax(-1))) == from_module(first_layers())


def test_what_cannot_be_read_is_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_graph, "Trace", lambda *_: pytest.fail("an operator was traced"))
    monkeypatch.setattr(
        nn.ReLU, "forward", lambda _, x: pytest.fail("the module was run") if type(x) is torch.Tensor else x.relu()
    )
    large = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3))
    with pytest.raises(
        UnsupportedModel,
        match=r"layer '2', Conv2d\) is aten.conv2d.default: a convolution's matrix would have 1.78e\+09 entries; .* make the",
    ):
        from_module(large, (3, 224, 224))
    transposed = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(64, 32, 16, stride=16))
    with pytest.raises(UnsupportedModel, match=r"conv_transpose2d.* would have 5.37e\+08 entries"):
        from_module(transposed, (64, 32, 32))
    with pytest.raises(UnsupportedOperator, match=r"aten\.gelu\.default"):
        from_module(nn.Sequential(nn.ReLU(), nn.GELU()), (2,))
