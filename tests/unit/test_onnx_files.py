"""ONNX files as people have them: packed, with weights elsewhere, or not the file at all; one line says what to do."""

import gzip

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from helpers.onnx_models import model, node
from tessella.errors import FileError, NetworkError, TessellaError, UnsupportedModel
from tessella.importers import load

WEIGHTS = np.random.default_rng(0).normal(size=(4, 30))


def plain():
    return model([node("MatMul", "xw")], (1, 4), {"w": WEIGHTS})


def refusal(source, error=FileError):
    with pytest.raises(error) as caught:
        load(source)
    assert isinstance(caught.value, TessellaError)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("name", "pack"), [("m.onnx", gzip.compress), ("m.onnx.gz", bytes), ("m.onnx.gz", gzip.compress)])
def test_the_first_bytes_say_whether_a_file_is_packed(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(plain().SerializeToString()))
    assert load(tmp_path / name) == load(plain())


def test_weights_in_another_file_that_is_cut_short_or_elsewhere(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(plain(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    unloaded = onnx.load(path, load_external_data=False)
    assert "were not loaded; load it with onnx.load(path), or pass the path" in refusal(unloaded)
    (tmp_path / "weights.bin").write_bytes(bytes(100))
    assert "its weights 'w' cannot be read from 'weights.bin'" in refusal(path)
    beside = tmp_path.with_name(f"{tmp_path.name}-elsewhere.bin")
    beside.write_bytes(bytes(10_000))
    unloaded.graph.initializer[0].external_data[0].value = f"../{beside.name}"
    path.write_bytes(unloaded.SerializeToString())
    assert "inside the model's folder" in refusal(path)


@pytest.mark.parametrize("name", ["m.onnx", "m.npz", "m.pt2", "m.safetensors", "m.pt"])
def test_a_pointer_of_git_lfs_is_told(tmp_path, name):
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    assert refusal(tmp_path / name).endswith("fetch the file itself with git lfs pull")


def test_weights_that_are_not_finite_are_named():
    broken = WEIGHTS.copy()
    broken[1, 2] = np.nan
    assert "its weights 'w' hold nan; every number must be finite" in refusal(
        model([node("MatMul", "xw")], (1, 4), {"w": broken}), NetworkError
    )


def test_a_constant_of_a_million_million_numbers_is_never_spelled_out():
    constants = {"a": np.int64(0), "l": np.int64(10**12), "d": np.int64(1)}
    nodes = [node("Range", "ald", "r"), node("Cast", "r", "c", to=TensorProto.DOUBLE), node("Add", "xc")]
    assert "'Range_1' (Range): a constant would have 1e+12 entries" in refusal(model(nodes, (1, 1), constants), UnsupportedModel)
    constants["l"] = np.int64(4)
    assert load(model(nodes, (1, 4), constants)).output_dim == 4


def test_operators_without_what_they_need_are_named():
    assert "node 'Relu_1' (Relu): cannot be evaluated on its constants" in refusal(
        model([node("Relu", "", "r"), node("Add", "xr")]), UnsupportedModel
    )
    assert "'axis'" in refusal(model([node("Concat", "xx")]), UnsupportedModel)
