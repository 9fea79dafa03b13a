"""Networks in .npz files: what is written is read back, and what is no network is refused in one line."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import tessella
from tessella.errors import FileError, FileMissing, NetworkError, TessellaError
from tessella.importers import arrays
from tessella.importers.arrays import read_npz, write_npz
from tessella.network import Layer, Network, Source

W0 = np.array([[1.0, -2.0], [0.5, 0.0], [0.0, 3.0]])
B0 = np.array([0.25, -1.0, 0.0])
W1 = np.array([[1.0, 1.0, -1.0], [2.0, 0.0, 0.5]])


def saved(folder: Path, **content: Any) -> Path:
    path = folder / "net.npz"
    np.savez(path, **content)
    return path


def sparse_parts(matrix: csr_array, **changes: Any) -> dict[str, Any]:
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)} | changes
    return {f"W0_{part}": value for part, value in parts.items() if value is not None}


def zipped(folder: Path, members: dict[str, bytes], **options: Any) -> Path:
    path = folder / "net.npz"
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def npy(array: np.ndarray) -> bytes:
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def refusal(path: Path) -> str:
    """The message of the error, which is a single line that starts with the file."""
    with pytest.raises(TessellaError) as caught:
        read_npz(path)
    assert isinstance(caught.value, (FileError, NetworkError))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize("first", [0, 1])
def test_layers_are_numbered_from_zero_or_one(tmp_path: Path, first: int) -> None:
    path = saved(tmp_path, **{f"W{first}": W0, f"b{first}": B0, f"W{first + 1}": W1})
    net = read_npz(path)
    assert net == Network((Layer(W0, B0, np.array([True] * 3)), Layer(W1, np.zeros(2), np.array([False] * 2))))
    assert net.source == Source(kind="npz", name="net.npz", input_shape=(2,))
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(net(x), W1 @ np.maximum(W0 @ x + B0, 0.0))


def test_more_than_ten_layers_are_in_numerical_order(tmp_path: Path) -> None:
    path = saved(tmp_path, **{f"W{i}": np.full((1, 1), float(i + 1)) for i in range(12)})
    assert [float(layer.dense()[0, 0]) for layer in read_npz(path).layers] == list(range(1, 13))


def test_relu_output_and_masks(tmp_path: Path) -> None:
    path = saved(tmp_path, W0=W0, W1=W1, rectified0=np.array([True, False, True]))
    assert [layer.rectified.tolist() for layer in read_npz(path).layers] == [[True, False, True], [False, False]]
    with_relus = read_npz(path, relu_output=True)
    assert [layer.rectified.tolist() for layer in with_relus.layers] == [[True, False, True], [True, True]]
    assert with_relus.source == read_npz(path).source


@pytest.mark.parametrize("kind", ["<f4", ">f8", "f2", "i1", "u8", "?"])
def test_any_real_type_is_read(tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path, W0=np.asfortranarray(np.eye(3, 2), dtype=kind))
    np.testing.assert_array_equal(read_npz(path).layers[0].dense(), np.eye(3, 2))


@pytest.mark.parametrize("seed", range(8))
def test_what_is_written_is_read_back_equal(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers, inputs = list[Layer](), int(rng.integers(1, 6))
    for _ in range(int(rng.integers(1, 5))):
        units = int(rng.integers(1, 6))
        weight = rng.standard_normal((units, inputs)) * (rng.random((units, inputs)) < 0.6)
        layers.append(
            Layer(csr_array(weight) if rng.random() < 0.5 else weight, rng.standard_normal(units), rng.random(units) < 0.6)
        )
        inputs = units
    net, path = Network(tuple(layers)), tmp_path / "without suffix"
    write_npz(net, path)
    back = read_npz(path)
    assert back == net
    assert back.fingerprint == net.fingerprint
    assert [isinstance(layer.weight, np.ndarray) for layer in back.layers] == [
        isinstance(layer.weight, np.ndarray) for layer in layers
    ]


def test_sparse_weights_take_any_order_of_indices(tmp_path: Path) -> None:
    parts = {
        "W0_data": [2.0, 1.0, 5.0],
        "W0_indices": [1, 0, 0],
        "W0_indptr": np.array([0, 2, 3], dtype=np.uint8),
        "W0_shape": [2, 2],
    }
    assert read_npz(saved(tmp_path, **parts)) == Network((Layer([[1.0, 2.0], [5.0, 0.0]], np.zeros(2), np.array(False)),))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": None}, "a weight is either W0, or W0_data"),
        ({"shape": np.array([3, 2, 1])}, "3 numbers"),
        ({"shape": np.array([4, 2])}, "make no sparse array"),
        ({"shape": np.array([-1, 2])}, "make no sparse array"),
        ({"shape": np.array([3, 1])}, "make no sparse array"),
        ({"indices": np.array([0, 1, 0, -1])}, "make no sparse array"),
        ({"indices": np.array([0, 1, 0, 2**62])}, "make no sparse array"),
        ({"indptr": np.array([0, 3, 2, 4])}, "make no sparse array"),
        ({"indptr": np.array([1, 2, 3, 4])}, "make no sparse array"),
        ({"indptr": np.array([0, 2, 3, 5])}, "make no sparse array"),
        ({"indptr": np.array([], dtype=int)}, "make no sparse array"),
        ({"indices": np.array([0.0, 1.0, 0.0, 1.0])}, "whole numbers"),
        ({"data": np.array([1j, 1, 1, 1])}, "complex128"),
        ({"data": np.array([np.nan, 1, 1, 1])}, "finite"),
    ],
)
def test_sparse_weights_that_do_not_fit_together(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert message in refusal(saved(tmp_path, **sparse_parts(csr_array(W0), **changes)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "none at all"),
        ({"weight": W0, "bias": B0}, "'weight', 'bias'; expected W0, b0"),
        ({"W0": W0, "extra": B0}, "'W0', 'extra'; expected"),
        ({"W00": W0}, "'W00'; expected"),
        ({"b0_data": B0}, "'b0_data'; expected"),
        ({"arr_0": W0}, "'arr_0'; expected"),
        ({"b0": B0}, "no weight W0"),
        ({"W2": W0}, "no weight W1"),
        ({"W0": W0, "W2": W1}, "no weight W1"),
        ({"W1": W0, "W3": W1}, "no weight W2"),
        ({"W0": W0, "b1": B0}, "'b1' without a weight"),
        ({"W1": W0, "rectified0": B0}, "'rectified0' without a weight"),
        ({"W0": W0, "W0_data": B0}, "a weight is either"),
        ({"W0": W0, "W1": W0}, "layer 2 reads 2 inputs"),
        ({"W0": W0, "b0": B0[:2]}, "the layer of W0: weight has shape (3, 2)"),
        ({"W0": W0, "b0": B0[:, None]}, "bias has shape (3, 1)"),
        ({"W0": B0}, "weight has shape (3,)"),
        ({"W0": 1.0}, "weight has shape ()"),
        ({"W0": np.zeros((0, 3))}, "at least one"),
        ({"W0": W0 * 1j}, "complex128"),
        ({"W0": np.array([["a"]])}, "no real numbers"),
        ({"W0": np.array([[np.inf]])}, "finite"),
        ({"W0": np.array([[np.longdouble("1e4000")]])}, "finite"),
        ({"W0": W0, "rectified0": np.array([1, 0, 1])}, "rectified must be"),
        ({"W0": W0, "rectified0": np.array([True])}, "rectified must be"),
        ({"W0": np.array([[None]], dtype=object)}, "pickle"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_archives_that_hold_no_network(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    assert message in refusal(saved(tmp_path, **content))


def test_files_that_are_missing_folders_or_empty(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match=r"none\.npz"):
        read_npz(tmp_path / "none.npz")
    with pytest.raises(FileError, match=tmp_path.name):
        read_npz(tmp_path)
    empty = tmp_path / "empty.npz"
    empty.touch()
    assert "empty" in refusal(empty)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello", "not an .npz file"),
        (npy(W0), "single array"),
        (pickle.dumps([1, 2]), "not an .npz file"),
        (b"PK\x03\x04", "cut short"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "net.npz"
    path.write_bytes(data)
    assert message in refusal(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, W0=W0)
    data = path.read_bytes()
    for size in range(1, len(data), 7):
        path.write_bytes(data[:size])
        refusal(path)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"data.pkl": b"x", "version": b"3"}, "'data.pkl', 'version'"),
        ({"W0": npy(W0)}, "not of arrays"),
        ({"W0.npy": b"no array"}, "cannot be read as an .npz file"),
        ({"W0.npy": npy(W0) + b"!"}, "more data"),
        ({"W0.npy": npy(W0)[:-1]}, "cannot be read"),
        ({"W0.npy": npy(W0).replace(b"(3, 2)", b"(9**9)")}, "cannot be read"),
        ({"W0.npy": npy(W0).replace(b"{", b"(")}, "cannot be read"),
        ({f"new\nline {i}.npy": npy(W0) for i in range(50)}, "and 44 more"),
    ],
)
def test_zip_archives_of_something_else(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    assert message in refusal(zipped(tmp_path, members))


def test_flipped_numbers_are_found_by_the_checksum(tmp_path: Path) -> None:
    path = saved(tmp_path, W0=W0)
    data = path.read_bytes()
    assert data.count(W0.tobytes()) == 1
    path.write_bytes(data.replace(W0.tobytes(), (W0 + 1.0).tobytes()))
    assert "BadZipFile" in refusal(path)


def test_unusual_packing_is_refused(tmp_path: Path) -> None:
    assert "unusual" in refusal(zipped(tmp_path, {"W0.npy": npy(W0)}, compression=zipfile.ZIP_LZMA))


def test_compressed_arrays_are_read(tmp_path: Path) -> None:
    assert read_npz(zipped(tmp_path, {"W0.npy": npy(W0)}, compression=zipfile.ZIP_DEFLATED)).shape == "2-3"


def test_bombs_are_refused_before_unpacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(
        tmp_path, {"W0.npy": npy(np.zeros((512, 512))), "W1.npy": npy(np.zeros((512, 512)))}, compression=zipfile.ZIP_DEFLATED
    )
    assert path.stat().st_size < 2**14
    monkeypatch.setattr(arrays, "LARGEST_CONTENT", 3 * 2**20)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    assert "would unpack to" in refusal(path)


def test_a_header_that_promises_too_much_is_refused(tmp_path: Path) -> None:
    header = npy(W0).replace(b"(3, 2), }  ", b"(3, 2" + b"0" * 4 + b"),}")
    assert "cannot be read" in refusal(zipped(tmp_path, {"W0.npy": header}))


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    net = Network.from_arrays([(W0, B0)])
    for path in (tmp_path, tmp_path / "none" / "net.npz"):
        with pytest.raises(FileError, match="cannot be written"):
            write_npz(net, path)


def test_an_input_shape_that_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "net.npz"
    np.savez(path, W1=np.ones((3, 4)), b1=np.zeros(3))
    assert tessella.load(path, input_shape=(2, 2)).input_dim == 4
    with pytest.raises(tessella.OptionError, match="is of 6 numbers, but the network reads 4"):
        tessella.load(path, input_shape=(2, 3))


def test_slopes_survive(tmp_path):
    layers = Layer(np.eye(2), np.ones(2), np.array([True, False]), 0.1), Layer(np.ones((1, 2)), np.zeros(1), slope=-1.0)
    write_npz(Network(layers), tmp_path / "net.npz")
    assert read_npz(tmp_path / "net.npz") == Network(layers)
