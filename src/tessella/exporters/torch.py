"""Networks as PyTorch modules: Linear, and behind it ReLU or PReLU."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tessella.exporters.plain import Plain, check_outputs, fitting_shape, plain_layers, points, precision
from tessella.layer import Layer
from tessella.packages import torch_package


def make_module(layers: Sequence[Layer], *, dtype: object = "float64", input_shape: Sequence[int] | None = None) -> Any:
    """A ``torch.nn.Sequential`` that computes what layers do; it is run and compared first.  Options are those of `tessella.exporters.onnx.write_onnx`."""
    torch = torch_package("a PyTorch module")
    shape = fitting_shape(input_shape, layers[0].inputs)
    plain = plain_layers(layers, precision(dtype))
    parts = [torch.nn.Flatten()] if len(shape) > 1 else []
    for layer in plain:
        parts += _parts(torch, layer)
    module = torch.nn.Sequential(*parts).eval()
    inputs = points(layers[0].inputs)
    with torch.no_grad():
        outputs = module(torch.tensor(inputs.astype(plain[0].weight.dtype)).reshape(-1, *shape)).numpy()
    check_outputs(plain, inputs, np.asarray(outputs), "the PyTorch module")
    return module


def _parts(torch: Any, layer: Plain) -> list[Any]:
    units, inputs = layer.weight.shape
    kind = getattr(torch, layer.weight.dtype.name)
    linear = torch.nn.utils.skip_init(torch.nn.Linear, inputs, units, dtype=kind)  # draws no random numbers
    made = [(linear.weight, layer.weight), (linear.bias, layer.bias)]
    after = []
    if not layer.bare:
        after = [torch.nn.ReLU() if layer.is_relu else torch.nn.PReLU(units, dtype=kind)]
        made += [] if layer.is_relu else [(after[0].weight, layer.slope)]
    with torch.no_grad():
        for tensor, numbers in made:
            tensor.copy_(torch.tensor(numbers))
    return [linear, *after]
