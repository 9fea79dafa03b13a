"""From layers to files and models of other packages: ONNX, PyTorch, Keras and numpy's ``.npz``.

`plain` says what is written: for each layer an affine map, and what follows it.  Every format has a file of its own.  What is written is read back and compared.
"""
