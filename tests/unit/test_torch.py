"""PyTorch modules, exported programs and .pt2 files: every kind of layer against its own forward pass, and clear refusals."""

import copy
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import prune  # noqa: E402

from helpers.torch_models import Code, decomposed, difference, exported, refusal, saved, seeded  # noqa: E402
from tessella.errors import (  # noqa: E402
    MissingPackage,
    NetworkError,
    OptionError,
    TessellaError,
    UnsupportedModel,
    UnsupportedOperator,
)
from tessella.importers.torch import from_exported, from_module, read_pt2  # noqa: E402

Shape = tuple[int, ...] | None


def mlp() -> nn.Module:
    return seeded(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2)))


def residual() -> nn.Module:
    def forward(self: Any, x: Any) -> Any:
        return self.last(F.relu(self.two(F.relu(self.one(x))) + x))

    return seeded(Code(forward, one=nn.Linear(5, 7), two=nn.Linear(7, 5), last=nn.Linear(5, 2)))


def small_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 3, 2, padding="same", dilation=2),
        nn.ReLU(),
        nn.AvgPool2d(2, padding=1, count_include_pad=False, ceil_mode=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Dropout2d(),
        nn.Flatten(),
        nn.Linear(3, 2),
    )


def over_views(self: Any, x: Any) -> Any:
    hidden = self.l(x)
    hidden.view(2, 2).relu_()
    hidden += 1.0
    return hidden


def shapes_galore(self: Any, x: Any) -> Any:
    parts = [
        x.permute(0, 2, 1).reshape(x.size(0), -1).unsqueeze(1).squeeze(1),
        x.flatten(1)[:, 1:-1:2],
        x.transpose(1, 2).mean(dim=1),
        x.sum(-1).view(x.shape[0], 3),
        torch.stack(list(x.unbind(1))[:2], dim=-1).flatten(1),
        x.expand(-1, 3, 4)[:, 0].flip(1),
        torch.cat(list(x.chunk(2, dim=2)), dim=1).select(1, 4),
    ]
    return self.l(torch.cat(parts, dim=1)).relu()


SHARED = nn.Linear(4, 4)
MODULES: dict[str, tuple[nn.Module, Shape]] = {
    "sequential": (nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(), nn.Identity(), nn.Linear(6, 2, bias=False)), None),
    "nested": (nn.Sequential(nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True)), nn.ModuleList([nn.Linear(3, 2)])[0]), None),
    "shared": (nn.Sequential(SHARED, nn.ReLU(), SHARED, nn.ReLU(), SHARED), None),
    "functional": (
        Code(
            lambda m, x: (F.linear(torch.relu(m.a(x)).clamp(min=0).relu(), m.w) * 2 - m.b / 3 + 1).clamp_min(0.5),
            a=nn.Linear(3, 5),
            w=torch.empty(4, 5),
            b=torch.empty(4),
        ),
        None,
    ),
    "residual": (residual(), None),
    "normalised": (
        Code(
            lambda m, x: m.l(((x - m.mean) / torch.tensor([[[0.5]], [[2.0]]], dtype=x.dtype)).flatten(1)),
            mean=torch.empty(1, 2, 1, 1),
            l=nn.Sequential(nn.Linear(8, 3), nn.ReLU()),
        ),
        (2, 2, 2),
    ),
    "cnn": (small_cnn(), (2, 7, 7)),
    "conv1d": (
        nn.Sequential(nn.Conv1d(2, 4, 3, dilation=2), nn.BatchNorm1d(4, affine=False), nn.ReLU(), nn.AvgPool1d(2), nn.Flatten()),
        (2, 8),
    ),
    "conv3d": (
        nn.Sequential(nn.Conv3d(1, 2, 2), nn.BatchNorm3d(2), nn.ReLU(), nn.AvgPool3d(2, divisor_override=3)),
        (1, 3, 4, 4),
    ),
    "batch_norm": (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU()), None),
    "circular": (nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), nn.ReLU()), (1, 4, 4)),
    "reflect": (nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), nn.ReLU()), (1, 4, 4)),
    "padded": (nn.Sequential(nn.ConstantPad2d((1, 2, 0, 1), 1.5), nn.ZeroPad2d(1), nn.Conv2d(1, 2, 3), nn.ReLU()), (1, 4, 4)),
    "adaptive": (nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d((2, None))), (1, 4, 4)),
    "shapes": (Code(shapes_galore, l=nn.Linear(12 + 5 + 3 + 3 + 8 + 4 + 2, 4)), (3, 4)),
    "moved": (
        nn.Sequential(nn.PixelShuffle(2), nn.Upsample(scale_factor=2), nn.Conv2d(1, 1, 3), nn.ReLU(), nn.Unfold(2)),
        (4, 2, 2),
    ),
    "matrices": (
        Code(lambda m, x: torch.addmm(m.b, (m.w @ x)[0].t(), m.w, alpha=2.0).relu(), w=torch.empty(3, 4), b=torch.empty(4)),
        (4, 2),
    ),
    "einsum": (Code(lambda m, x: torch.einsum("bi,oi->bo", x, m.w).relu(), w=torch.empty(3, 4)), (4,)),
    "clamped": (nn.Sequential(nn.Linear(3, 9), nn.ReLU6(), nn.Linear(9, 3), nn.Hardtanh(-0.25, 0.5)), None),
    "extrema": (
        Code(
            lambda m, x: torch.maximum(m.l(x), torch.zeros_like(x)) - torch.minimum(m.l(x), m.c).clamp(max=0.5),
            l=nn.Linear(3, 3),
            c=torch.empty(3),
        ),
        None,
    ),
    "transposed": (
        nn.Sequential(nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1, groups=2), nn.ReLU(), nn.Flatten()),
        (2, 3, 2),
    ),
    "transposed1d": (nn.Sequential(nn.ConvTranspose1d(2, 3, 2, dilation=2, bias=False), nn.ReLU()), (2, 4)),
    "transposed3d": (nn.Sequential(nn.ConvTranspose3d(1, 2, 2, stride=2), nn.ReLU()), (1, 2, 1, 2)),
    "upsampled": (nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(1, 2, 2), nn.ReLU()), (1, 3, 2)),
    "resized": (
        Code(
            lambda _, x: F.interpolate(
                F.interpolate(x, size=7, mode="linear", align_corners=True), scale_factor=1.6, mode="linear"
            )
        ),
        (2, 4),
    ),
    "bicubic": (nn.Upsample(scale_factor=2, mode="bicubic"), (1, 3, 3)),
    "trilinear": (nn.Upsample(size=(3, 2, 5), mode="trilinear"), (1, 2, 2, 2)),
    "exact": (nn.Upsample(scale_factor=1.5, mode="nearest-exact"), (1, 4, 4)),
    "in_place_input": (nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3)), (3,)),
    "in_place_views": (Code(over_views, l=nn.Linear(4, 4)), None),
    "one_example": (Code(lambda m, x: m.c(x[0]).relu(), c=nn.Conv2d(1, 2, 2)), (1, 3, 3)),
    "tuple": (Code(lambda m, x: (m.l(x), None), l=nn.Linear(4, 4)), None),
    "dict": (Code(lambda m, x: {"logits": m.l(x)}, l=nn.Linear(4, 4)), None),
    "weight_norm": (nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.ReLU()), None),
    "identity": (nn.Identity(), (3,)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_compute_the_same(name: str) -> None:
    module, shape = MODULES[name]
    net = from_module(seeded(module), shape)
    assert difference(net, module, torch.float32) < 1e-5
    assert net.source is not None
    assert net.source.kind == "torch"
    assert net.source.name == type(module).__name__
    assert net.source.points > 0
    assert net.source.difference < 1e-5


@pytest.mark.parametrize("name", ["functional", "cnn", "shapes", "in_place_input"])
def test_double_precision_is_kept(name: str) -> None:
    module, shape = MODULES[name]
    module = seeded(copy.deepcopy(module).double())
    assert difference(from_module(module, shape), module, torch.float64) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_read_as_they_are(dtype: Any) -> None:
    module = mlp().to(dtype)
    net = from_module(module)
    assert np.array_equal(net.layers[0].dense(), module[0].weight.detach().double().numpy())
    assert difference(net, module, torch.float64) < 1e-12


def test_operators_are_refused_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessella.importers.torch_graph.Call", lambda *_: pytest.fail("something was computed"))
    refusal(UnsupportedOperator, lambda: from_module(nn.Sequential(nn.Linear(3, 5), nn.GELU())))


def relu_patterns(module: nn.Module, points: Any, shape: tuple[int, ...]) -> Any:
    """Which ReLU modules' inputs are positive, by hooks."""
    seen: list[Any] = []
    hooks = [
        part.register_forward_pre_hook(lambda _, args: seen.append((args[0] > 0).reshape(len(points), -1)))
        for part in module.modules()
        if isinstance(part, nn.ReLU)
    ]
    with torch.no_grad():
        module.eval()(torch.tensor(points).reshape(-1, *shape))
    for hook in hooks:
        hook.remove()
    return torch.cat(seen, dim=1).numpy()


@pytest.mark.parametrize("name", ["mlp", "cnn", "conv3d"])
def test_patterns_are_those_of_the_relus(name: str) -> None:
    module, shape = (mlp(), (3,)) if name == "mlp" else MODULES[name]
    module = seeded(copy.deepcopy(module).double())
    net = from_module(module, shape)
    points = np.random.default_rng(3).standard_normal((50, net.input_dim))
    assert np.array_equal(net.patterns(points), relu_patterns(module, points, shape or ()))


def test_a_skip_connection_is_carried_by_linear_units() -> None:
    net = from_module(residual())
    assert net.shape == "5-7+5-5-2"
    assert net.widths == (7, 5)
    assert [layer.linear_units for layer in net.layers] == [5, 0, 2]


def test_a_final_relu_needs_no_further_layer() -> None:
    assert from_module(nn.Sequential(nn.Linear(3, 4), nn.ReLU())).shape == "3-4"


def test_the_module_is_left_as_it_is() -> None:
    module = seeded(small_cnn()).train()
    module[0].weight.requires_grad_(False)
    before = copy.deepcopy(module.state_dict())
    flags = [parameter.requires_grad for parameter in module.parameters()]
    state = torch.random.get_rng_state()
    net = from_module(module, (2, 7, 7))
    assert all(part.training for part in module.modules())
    assert [parameter.requires_grad for parameter in module.parameters()] == flags
    assert all(torch.equal(before[key], value) and before[key].dtype == value.dtype for key, value in module.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.is_grad_enabled()
    assert difference(net, module, torch.float32) < 1e-5  # the running statistics, not the batch's


def test_wrapped_modules_are_unwrapped() -> None:
    for wrapped in (torch.compile(mlp()), nn.DataParallel(mlp())):
        net = from_module(wrapped)
        assert net == from_module(mlp())
        assert net.source is not None
        assert net.source.name == "Sequential"


def test_nothing_is_printed_and_loggers_are_restored(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("torch.export")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refusal(UnsupportedModel, lambda: from_module(Code(lambda _, x: x if x.sum() > 0 else -x), (3,)))
    assert logger.level == level
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


REFUSED: dict[str, tuple[Callable[[], nn.Module], Shape, type[TessellaError], str]] = {
    "sigmoid": (
        lambda: nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 2)),
        None,
        UnsupportedOperator,
        "'linear_1' (layer '2', Linear) is aten.linear.default, which reads the result of sigmoid",
    ),
    "softmax": (lambda: Code(lambda _, x: x + x.softmax(1)), (2,), UnsupportedOperator, "reads the result of softmax"),
    "places": (lambda: Code(lambda _, x: x.gather(1, x.max(1, keepdim=True)[1])), (2,), UnsupportedOperator, "result of argmax"),
    "gelu": (
        lambda: nn.Sequential(nn.Linear(2, 2), nn.GELU()),
        None,
        UnsupportedOperator,
        "'gelu' (layer '1', GELU) is aten.gelu.default, which cannot be read; replace it, or cut the model before it",
    ),
    "jump": (lambda: nn.Threshold(0.0, 1.0), (2,), UnsupportedModel, "jumps"),
    "random_slopes": (lambda: Code(lambda _, x: F.rrelu(x, training=True)), (2,), UnsupportedModel, "random"),
    "layer_norm": (lambda: nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), None, UnsupportedOperator, "layer_norm"),
    "random": (lambda: Code(lambda _, x: x + torch.randn(2)), (2,), UnsupportedOperator, "random"),
    "product": (lambda: Code(lambda _, x: x * x), (2,), UnsupportedModel, "both depend on the input"),
    "quotient": (lambda: Code(lambda m, x: m.c / x, c=torch.ones(2)), (2,), UnsupportedModel, "depends on the input"),
    "rounded": (lambda: Code(lambda _, x: torch.div(x, 2, rounding_mode="floor")), (2,), UnsupportedModel, "rounds"),
    "integers": (lambda: Code(lambda _, x: x.int().float()), (2,), UnsupportedModel, "int32"),
    "dropout": (lambda: Code(lambda _, x: F.dropout(x)), (2,), UnsupportedModel, "training=self.training"),
    "batch_statistics": (lambda: nn.BatchNorm2d(2, track_running_stats=False), (2, 3, 3), UnsupportedModel, "statistics"),
    "product_of_two": (
        lambda: Code(lambda _, x: x * x.relu()),
        (2,),
        UnsupportedModel,
        "is not piecewise linear; replace it, or cut the model before it",
    ),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d(2), (1, 3, 3), UnsupportedModel, "multiples"),
    "adaptive_max": (lambda: nn.AdaptiveMaxPool2d(2), (1, 3, 3), UnsupportedModel, "multiples"),
    "control_flow": (lambda: Code(lambda _, x: x if x.sum() > 0 else -x), (2,), UnsupportedModel, "must not branch"),
    "left_torch": (lambda: Code(lambda _, x: torch.tensor(x.numpy() * 2)), (2,), UnsupportedModel, "leave torch"),
    "outputs": (lambda: Code(lambda _, x: (x, 2 * x)), (2,), UnsupportedModel, "joined by torch.cat"),
    "no_output": (lambda: Code(lambda *_: None), (2,), UnsupportedModel, "0 outputs"),
    "constant": (lambda: Code(lambda *_: torch.ones(2)), (2,), UnsupportedModel, "does not depend on its input"),
    "inputs": (lambda: nn.Bilinear(2, 2, 2), (2,), UnsupportedModel, "torch.export.export(module.eval(), (input1, input2))"),
    "no_shape": (lambda: nn.Conv2d(1, 1, 2), None, OptionError, "input_shape=(1, 28, 28)"),
    "with_batch": (lambda: nn.Conv2d(1, 1, 2), (1, 1, 5, 5), UnsupportedModel, "without its batch axis"),
    "wrong_shape": (lambda: nn.Linear(3, 2), (5,), UnsupportedModel, "(1, 5)"),
    "no_size": (lambda: nn.Linear(3, 2), (0,), OptionError, "below 1"),
    "no_number": (lambda: nn.Linear(3, 2), "3", OptionError, "whole numbers"),  # type: ignore[dict-item]
    "huge": (nn.Identity, (10**9,), UnsupportedModel, "1e+09"),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(3)), None, UnsupportedModel, "lazy"),
    "meta": (lambda: nn.Linear(2, 2, device="meta"), None, UnsupportedModel, "meta device"),
    "complex": (lambda: nn.Linear(2, 2, dtype=torch.complex64), None, UnsupportedModel, "complex64"),
    "not_finite": (lambda: Code(lambda _, x: x / 0.0), (2,), NetworkError, "inf"),
    "empty": (lambda: Code(lambda _, x: x[:, :0]), (2,), UnsupportedModel, "(1, 0)"),
    "a_class": (lambda: nn.Linear, None, UnsupportedModel, "an instance"),  # type: ignore[dict-item]
    "state_dict": (lambda: nn.Linear(2, 2).state_dict(), None, UnsupportedModel, "no architecture"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_line(name: str) -> None:
    make, shape, kind, words = REFUSED[name]
    assert words in refusal(kind, lambda: from_module(make(), shape))


def test_compiled_and_quantised_modules_are_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script, quantised = (
            torch.jit.script(nn.Linear(2, 2)),
            torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(2, 2))),
        )
    assert "TorchScript" in refusal(UnsupportedModel, lambda: from_module(script))
    assert "quantised" in refusal(UnsupportedModel, lambda: from_module(quantised))


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    assert "pip install torch" in refusal(MissingPackage, lambda: from_module(None))


# ---------------------------------------------------------------------------------------------- programs and files

PROGRAMS = [
    "sequential",
    "functional",
    "residual",
    "normalised",
    "cnn",
    "conv1d",
    "padded",
    "shapes",
    "extrema",
    "in_place_input",
    "weight_norm",
]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_programs_and_files_are_read_like_modules(name: str, dynamic: bool, tmp_path: Path) -> None:
    module, shape = MODULES[name]
    expected = from_module(seeded(module), shape)
    assert expected.source is not None
    program = exported(module, expected.source.input_shape, batch=3 if dynamic else 1, dynamic=dynamic)
    for net in (from_exported(program, "program"), read_pt2(saved(program, tmp_path / "model.pt2"))):
        assert net == expected
        assert net.source is not None
        assert net.source.input_shape == expected.source.input_shape
        assert net.source.difference < 1e-5
    assert net.source.kind == "pt2"
    assert net.source.name == "model.pt2"


@pytest.mark.parametrize("name", ["cnn", "functional", "einsum", "in_place_views"])
def test_decomposed_programs_are_read(name: str, tmp_path: Path) -> None:
    module, shape = MODULES[name]
    expected = from_module(seeded(module), shape)
    assert expected.source is not None
    program = decomposed(exported(module, expected.source.input_shape))
    for net in (from_exported(program, "program"), read_pt2(saved(program, tmp_path / "model.pt2"))):
        assert difference(net, module, torch.float32) < 1e-5
        assert net.shape == expected.shape


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_programs_in_other_precisions_are_read(dtype: Any, tmp_path: Path) -> None:
    module = mlp().to(dtype)
    program = exported(module, (3,), dtype=dtype)
    for net in (from_exported(program, "program"), read_pt2(saved(program, tmp_path / "model.pt2"))):
        assert difference(net, module, torch.float64) < 1e-12


def test_weights_that_share_memory_are_read_from_files(tmp_path: Path) -> None:
    first, second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
    first.weight = nn.Parameter(second.weight.t())
    module = seeded(nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), first))
    net = read_pt2(saved(exported(module, (4,)), tmp_path / "model.pt2"))
    assert difference(net, module, torch.float32) < 1e-5


def test_batches_and_dynamic_axes_are_explained(tmp_path: Path) -> None:
    program = exported(nn.Linear(2, 2), (2,), batch=4)
    path = saved(program, tmp_path / "model.pt2")
    for read in (lambda: from_exported(program, "program"), lambda: read_pt2(path)):
        assert "batch size 1" in refusal(UnsupportedModel, read)
    dims = ({0: torch.export.Dim("rows"), 1: torch.export.Dim("columns")},)
    program = torch.export.export(nn.ReLU(), (torch.ones(2, 3),), dynamic_shapes=dims)
    path = saved(program, tmp_path / "model.pt2")
    for read in (lambda: from_exported(program, "program"), lambda: read_pt2(path)):
        assert "only the first (batch) axis may be dynamic" in refusal(UnsupportedModel, read)


def test_programs_with_several_inputs_read_them_in_a_row(tmp_path: Path) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(2, 3), nn.Conv1d(1, 3, 2)

        def forward(self, x: Any, y: Any) -> Any:
            return self.one(x).relu() - self.two(y).flatten(1).relu()

    module = seeded(Two())
    program = torch.export.export(module, (torch.ones(1, 2), torch.ones(1, 1, 2)))
    points = np.random.default_rng(0).standard_normal((9, 4))
    with torch.no_grad():
        values = torch.tensor(points, dtype=torch.float32)
        expected = module(values[:, :2], values[:, 2:].unsqueeze(1)).numpy()
    for net in (from_exported(program, "program"), read_pt2(saved(program, tmp_path / "model.pt2"))):
        assert net.relus == 6
        np.testing.assert_allclose(net(points), expected, atol=1e-5)
    assert "from_module" in refusal(UnsupportedModel, lambda: from_exported(mlp(), "program"))
    program = torch.export.export(nn.Bilinear(2, 2, 2), (torch.ones(1, 2), torch.ones(1, 2)))
    path = saved(program, tmp_path / "model.pt2")
    for read in (lambda: from_exported(program, "program"), lambda: read_pt2(path)):
        assert "aten.bilinear.default" in refusal(UnsupportedOperator, read)


def test_files_with_other_operators_are_refused(tmp_path: Path) -> None:
    path = saved(exported(nn.Sequential(nn.Linear(2, 2), nn.GELU()), (2,)), tmp_path / "model.pt2")
    message = refusal(UnsupportedOperator, lambda: read_pt2(path))
    assert message.startswith("model.pt2: node 'gelu' (layer '1', GELU) is aten.gelu.default")
    path = saved(exported(MODULES["in_place_views"][0], (4,)), tmp_path / "model.pt2")
    assert "run_decompositions" in refusal(UnsupportedModel, lambda: read_pt2(path))


def test_pruned_and_normalised_modules_are_read_after_training() -> None:
    pruned = nn.Sequential(prune.random_unstructured(nn.Linear(4, 5), "weight", 0.5), nn.ReLU(), nn.Linear(5, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        normed = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 5)), nn.ReLU(), nn.Linear(5, 2))
    for module in (pruned, normed):
        module(torch.zeros(1, 4)).sum().backward()  # leaves a weight that is part of a graph
        assert module[0].weight.grad_fn is not None
        net = from_module(module)
        assert net.source is not None
        assert net.source.difference < 1e-6
        points = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
        with torch.no_grad():
            np.testing.assert_allclose(net(points), module.eval()(torch.tensor(points)).numpy(), atol=1e-5)


def test_weights_that_are_not_finite_are_named() -> None:
    module = mlp()
    module[2].weight.data[0, 0] = torch.inf
    with pytest.raises(NetworkError, match=r"its weights '2\.weight' hold inf; every number must be finite"):
        from_module(module)
