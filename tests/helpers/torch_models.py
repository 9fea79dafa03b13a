"""Torch modules with random weights, what is exported of them, and the comparison with what is read."""

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tessella.errors import TessellaError  # noqa: E402
from tessella.network import Network  # noqa: E402


class Code(nn.Module):
    """A module from a function and its parts."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, nn.Module):
                setattr(self, name, part)
            else:
                self.register_buffer(name, part)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


def seeded(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module with random weights and statistics."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape, generator=generator) / max(tensor.shape[-1:] or (1,)) ** 0.5)
                if name.endswith("running_var"):
                    tensor.abs_().add_(0.5)
    return module


def difference(net: Network, module: nn.Module, dtype: Any) -> float:
    """The largest relative difference of network and module at random points."""
    points = np.random.default_rng(7).standard_normal((20, net.input_dim)) * 2.0
    module = copy.deepcopy(module).eval().to(dtype)
    shape = net.source.input_shape if net.source else ()
    with torch.no_grad():
        outputs = [module(torch.tensor(point, dtype=dtype).reshape(1, *shape)) for point in points]
    outputs = [
        next(iter(out.values())) if isinstance(out, dict) else out[0] if isinstance(out, tuple) else out for out in outputs
    ]
    expected = np.stack([out.double().numpy().ravel() for out in outputs])
    return float((np.abs(net(points) - expected) / (1.0 + np.abs(expected).max(axis=1, keepdims=True))).max())


def exported(module: nn.Module, shape: tuple[int, ...], *, batch: int = 1, dynamic: bool = False, dtype: Any = None) -> Any:
    example = torch.randn(batch, *shape, generator=torch.Generator().manual_seed(1), dtype=dtype or torch.float32)
    shapes = ({0: torch.export.Dim("batch", min=2)},) if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(module.eval(), (example,), dynamic_shapes=shapes, strict=False)


def saved(program: Any, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, path)
    return path


def decomposed(program: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.run_decompositions()


def refusal(kind: type[TessellaError], read: Callable[[], Any]) -> str:
    """The message of the error, in a single line."""
    with pytest.raises(kind) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)
