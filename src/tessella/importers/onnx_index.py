"""All ONNX operators that can be read, by name: `OPERATORS` is whole once the modules that define them are loaded, which this one does."""

from tessella.importers import onnx_activations, onnx_arithmetic, onnx_shapes, onnx_windows
from tessella.importers.onnx_node import OPERATORS

__all__ = ["OPERATORS", "onnx_activations", "onnx_arithmetic", "onnx_shapes", "onnx_windows"]
