"""Small ONNX models, made operator by operator."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def node(kind, inputs, outputs="y", **attributes):
    """One operator; inputs given as text are single letters, an output given as text is one name."""
    outputs = [outputs] if isinstance(outputs, str) else list(outputs)
    return helper.make_node(kind, list(inputs), outputs, name=f"{kind}_1", **attributes)


def model(nodes, shape=(1, 4), constants=None, *, opset=17, element=TensorProto.DOUBLE, outputs=("y",), as_inputs=False):
    """A model in float64, so that agreement can be asked to 1e-12."""
    constants = {name: np.asarray(value) for name, value in (constants or {}).items()}
    entries = [helper.make_tensor_value_info("x", element, shape)]
    if as_inputs:  # as files of IR version 3 do
        entries += [helper.make_tensor_value_info(name, TensorProto.DOUBLE, value.shape) for name, value in constants.items()]
    exits = [helper.make_tensor_value_info(name, element, None) for name in outputs]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "g", entries, exits, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
