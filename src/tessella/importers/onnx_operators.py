"""What each ONNX operator does to traced tensors: all of them, by name."""

from tessella.importers import onnx_arithmetic, onnx_shapes, onnx_windows
from tessella.importers.onnx_node import OPERATORS

__all__ = ["OPERATORS", "onnx_arithmetic", "onnx_shapes", "onnx_windows"]
