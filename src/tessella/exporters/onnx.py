"""Networks as ONNX models: Gemm, and behind it Relu or PRelu."""

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tessella._version import __version__
from tessella.exporters.plain import Plain, check_numbers, check_outputs, fitting_shape, plain_layers, points, precision
from tessella.files import writing
from tessella.layer import Layer

_OPSET: Final = 17
_FORMAT: Final = 8  # of the file: what goes with this operator set, so that older programs read it too


def write_onnx(
    layers: Sequence[Layer],
    path: str | os.PathLike[str],
    *,
    dtype: object = "float64",
    input_shape: Sequence[int] | None = None,
) -> None:
    """Write layers to an ONNX file; what is written is run by ONNX' own evaluator first.

    Parameters
    ----------
    layers
        The layers.
    path
        The file, under exactly this name; an existing one is replaced.
    dtype
        ``"float64"``, or ``"float32"``.
    input_shape
        Shape of one input, without the batch axis.
    """
    kind, name = precision(dtype), os.fspath(path)
    shape = fitting_shape(input_shape, layers[0].inputs)
    plain = plain_layers(layers, kind)
    content = _model(plain, shape).SerializeToString()
    _check(content, plain, shape, name)
    with writing(path) as file:
        file.write(content)


def _model(layers: Sequence[Plain], shape: tuple[int, ...]) -> Any:
    from onnx import helper, numpy_helper  # noqa: PLC0415  heavy

    nodes, numbers, value = list[Any](), list[Any](), "input"
    if len(shape) > 1:
        nodes.append(helper.make_node("Flatten", [value], ["flat"], name="flatten", axis=1))
        value = "flat"
    for number, layer in enumerate(layers):
        parts = {f"W{number}": layer.weight, f"b{number}": layer.bias}
        affine = "output" if layer.bare else f"g{number}"
        nodes.append(helper.make_node("Gemm", [value, *parts], [affine], name=f"affine{number}", transB=1))
        if not layer.bare:
            value = "output" if number == len(layers) - 1 else f"h{number}"
            slopes = {} if layer.is_relu else {f"slope{number}": layer.slope}
            operator = "Relu" if layer.is_relu else "PRelu"
            nodes.append(helper.make_node(operator, [affine, *slopes], [value], name=f"unit{number}"))
            parts |= slopes
        numbers += [numpy_helper.from_array(array, name) for name, array in parts.items()]
    element = helper.np_dtype_to_tensor_dtype(layers[0].weight.dtype)
    ends = [
        helper.make_tensor_value_info("input", element, ["N", *shape]),
        helper.make_tensor_value_info("output", element, ["N", len(layers[-1].bias)]),
    ]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], numbers)
    opset = helper.make_opsetid("", _OPSET)
    return helper.make_model(
        graph, opset_imports=[opset], ir_version=_FORMAT, producer_name="tessella", producer_version=__version__
    )


def _check(content: bytes, layers: Sequence[Plain], shape: tuple[int, ...], name: str) -> None:
    """Raise unless the file holds the numbers, and ONNX' own evaluator computes what the layers do."""
    import onnx  # noqa: PLC0415  heavy
    from onnx.numpy_helper import to_array  # noqa: PLC0415
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    model = onnx.load_model_from_string(content)
    onnx.checker.check_model(model)
    found = {item.name: to_array(item) for item in model.graph.initializer}
    for number, layer in enumerate(layers):
        check_numbers(found[f"W{number}"], layer.weight, f"{name}: W{number}")
        check_numbers(found[f"b{number}"], layer.bias, f"{name}: b{number}")
    inputs = points(layers[0].weight.shape[1])
    with np.errstate(all="ignore"):
        given = inputs.astype(layers[0].weight.dtype).reshape(-1, *shape)
        (outputs,) = ReferenceEvaluator(model).run(None, {"input": given})
    check_outputs(layers, inputs, np.asarray(outputs), name)
