"""`tessella compress`, and `tessella export` of networks: what a person types."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import tessella
from helpers.onnx_models import model, node
from tessella.cli import networks
from tessella.errors import MissingPackage

DIGITS = str(Path(tessella.__file__).parent / "data" / "digits.onnx")


def saved(path, layers):
    tessella.load(layers).to_npz(path)
    return path


def test_a_smaller_file_is_written_and_said(run, tmp_path):
    code, out, err = run("compress", DIGITS, "--box", "0,1", "-o", tmp_path / "smaller.onnx")
    assert (code, err) == (0, "")
    assert "19 of 20 ReLUs are left (5 % less): 64-9-10-10, 795 of 870 weights and biases." in out
    assert "proved: no weight was rounded." in out
    smaller, points = tessella.load(tmp_path / "smaller.onnx"), np.random.default_rng(0).random((50, 64))
    assert np.abs(smaller(points) - tessella.load(DIGITS)(points)).max() < 1e-12
    assert (tmp_path / "smaller.onnx").stat().st_size < Path(DIGITS).stat().st_size  # single precision holds it


@pytest.mark.parametrize("name", ["net.onnx", "net.npz", "net.pt2", "net.keras"])
def test_every_format_comes_back(run, tmp_path, monkeypatch, name):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    pytest.importorskip({"net.pt2": "torch", "net.keras": "keras"}.get(name, "onnx"))
    assert run("compress", DIGITS, "--box", "0,1", "-q", "-o", tmp_path / name)[:2] == (0, "19\n")
    assert tessella.load(tmp_path / name).shape == "64-9-10-10"


def test_networks_are_exported_in_other_formats(run, tmp_path):
    code, out, _ = run("export", DIGITS, "-o", tmp_path / "digits.npz")
    assert code == 0
    assert out.endswith("digits.npz: 64-10-10-10, 20 ReLUs, 870 weights and biases\n")
    assert tessella.load(tmp_path / "digits.npz") == tessella.load(DIGITS)
    assert run("export", tmp_path / "digits.npz", "--relu-output", "-o", "rectified.onnx", "--quiet")[:2] == (0, "")
    assert tessella.load(tmp_path / "rectified.onnx").relus == 30


def test_nothing_is_written_without_a_name(run, tmp_path):
    path = saved(tmp_path / "net.npz", [(np.eye(2), [-0.5, -0.5]), ([[1.0, 1.0]], None)])
    code, out, _ = run("compress", path, "--box", "0,1")
    assert code == 0
    assert "Nothing can be removed: no unit is proved to keep its state on the domain, and none is a multiple of another." in out
    assert [file.name for file in tmp_path.iterdir()] == ["net.npz"]


def test_json_has_all_of_it(run, tmp_path):
    path = saved(tmp_path / "net.npz", [(np.eye(2), [1.0, -3.0]), ([[1.0, 1.0], [0.0, 1.0]], None)])
    code, out, _ = run("compress", path, "--box", "0,1", "--json", "-o", "smaller.npz")
    record = json.loads(out)
    assert (code, record["smaller"]["relus"], record["constant_outputs"]) == (0, 0, [1])
    assert tessella.Compression.from_dict(record).network.shape == "2-2"
    assert record["file"] == "smaller.npz"


def test_kinds_are_explained_where_they_occur(run, tmp_path):
    weight = [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 0.0]]
    path = saved(
        tmp_path / "net.npz",
        [(weight, [-0.5, -1.0, 1.0, -2.0, -1.5, 1.0]), ([[1.0, 1.0, 1.0, 1.0, 0.0, 1.0], np.zeros(6)], None)],
    )
    _, out, _ = run("compress", path, "--box", "0,1")
    for kind in ("inactive: ", "active: ", "merged: ", "constant: ", "unread: ", "Constant on the domain: output 1."):
        assert kind in out


def test_single_precision_is_told(run, tmp_path):
    path = saved(tmp_path / "net.npz", [([[0.1, 0.2], [-0.3, -0.1]], [0.1, -0.1]), ([[0.7, 1.0]], None)])
    _, _, err = run("compress", path, "--box", "0,1", "-o", "net.onnx", "--float32")
    assert "weights are rounded to single precision in the file" in err


def test_weights_that_vanish_in_single_precision_are_told(run, tmp_path):
    path = saved(tmp_path / "net.npz", [([[1.0, 1e-50], [-1e-46, 1.0]], [0.0, 1e-45]), ([[1.0, 1.0]], None)])
    code, _, err = run("export", path, "-o", "net.onnx", "--float32")
    assert (code, err) == (0, "Note: 2 weights and biases are too small for single precision (below 1e-45), and 0 in the file.\n")
    path = saved(tmp_path / "large.npz", [([[1e39]], None)])
    code, _, err = run("export", path, "-o", "large.onnx", "--float32")
    assert (code, "passes the largest number of float32; write it as float64" in err, (tmp_path / "large.onnx").exists()) == (
        2,
        True,
        False,
    )


def convolutional(path):
    """A convolution of 4 channels, two of which are never active, and a dense layer."""
    pytest.importorskip("onnx")
    rng = np.random.default_rng(3)
    constants = {
        "w": rng.standard_normal((4, 1, 3, 3)),
        "b": np.array([0.1, -90.0, 0.2, -90.0]),
        "g": rng.standard_normal((64, 3)),
        "h": rng.standard_normal(3),
    }
    nodes = [
        node("Conv", ["x", "w", "b"], "c"),
        node("Relu", ["c"], "r"),
        node("Flatten", ["r"], "f"),
        node("Gemm", ["f", "g", "h"], "y"),
    ]
    path.write_bytes(model(nodes, (1, 1, 6, 6), constants).SerializeToString())
    return path


def test_convolutions_stay_convolutions(run, tmp_path):
    path = convolutional(tmp_path / "conv.onnx")
    code, out, err = run("compress", path, "--box", "0,1", "-o", "smaller.onnx")
    assert (code, err) == (0, "")
    assert "Units of a convolution are its channels. 119 of 235 numbers are left, each as it was, so outputs are the same." in out
    assert "Conv_1  Conv      4     2         2       0" in out
    assert "all stay: its units are outputs" in out
    code, out, _ = run("compress", path, "--box", "0,1", "-o", "smaller.onnx", "--json")
    record = json.loads(out)
    assert [one["kept"] for one in record["operators"]["operators"]] == [2, 3]
    packed = tmp_path / "packed.onnx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert run("compress", packed, "--box", "0,1", "-o", "smaller.onnx", "-q")[:2] == (0, "32\n")
    code, _, err = run("compress", path, "--box", "0,1", "-o", "dense.onnx", "--dense", "--float32")
    assert "weights are rounded to single precision" in err
    assert tessella.load(tmp_path / "dense.onnx").shape == "36-32-3"
    _, _, err = run("compress", path, "--box", "0,1", "-o", "smaller.onnx", "--float32")
    assert "so does the precision of the model" in err
    assert run("compress", path, "--box", "0,1", "-o", "dense.onnx", "--relu-output", "-q")[0] == 0
    assert tessella.load(tmp_path / "dense.onnx").relus == 35


def test_sparse_weights_are_told(run, tmp_path):
    weight = csr_array(np.eye(3) - 0.5 * np.eye(3, k=1))
    tessella.Network((tessella.Layer(weight, [-0.2] * 3), tessella.Layer(np.ones((1, 3)), [0.0], False))).to_npz(
        tmp_path / "net.npz"
    )
    _, _, err = run("compress", tmp_path / "net.npz", "--box", "0,1", "-o", "net.onnx")
    assert "sparse weights (of convolutions, say) are written as matrices with all their zeros" in err
    assert run("compress", tmp_path / "net.npz", "--box", "0,1", "-o", "smaller.npz")[2] == ""


def test_bounds_of_all_units_become_a_file(run, tmp_path):
    code, out, _ = run("stability", DIGITS, "--box", "0,1", "-q", "--bounds-out", tmp_path / "bounds.csv")
    assert (code, out) == (0, "19\n")
    head, *rows = (tmp_path / "bounds.csv").read_text().splitlines()
    assert head == "layer,unit,kind,state,lower,upper,output_lower,output_upper"
    assert len(rows) == 30
    assert sum(",open," in row for row in rows) == 19


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("compress", DIGITS), "say which inputs to consider: --box 0,1"),
        (
            ("compress", DIGITS, "--box", "0,1", "-o", "net.txt"),
            "net.txt: cannot be written; its name must end in .onnx, .npz, .pt2 or .keras",
        ),
        (
            ("compress", DIGITS, "--box", "0,1", "-o", "nowhere/net.npz"),
            "nowhere/net.npz: cannot be written (there is no folder nowhere)",
        ),
        (("compress", DIGITS, "--box", "0,1", "-o", "net.npz", "--float32"), ".npz files keep double precision"),
        (("compress", DIGITS, "--box", "0,1", "--float32"), "--float32 says how a file is written"),
        (("compress", DIGITS, "--box", "0,1,2,3"), "--box"),
        (("stability", DIGITS, "--box", "0,1", "--bounds-out", "b.txt"), "its name must end in .csv or .json"),
        (("export", DIGITS, "--box", "0,1", "-o", "net.onnx"), "--box goes with a .mps or .lp file"),
        (("export", DIGITS, "--box", "0,1", "-o", "net.mps", "--float32"), "--float32 goes with a network's file"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line(run, given, said):
    code, out, err = run(*given)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_missing_package_is_told_before_the_work(run, monkeypatch):
    def missing(_why):
        msg = "no torch here"
        raise MissingPackage(msg)

    monkeypatch.setattr(networks, "torch_package", missing)
    assert run("compress", DIGITS, "--box", "0,1", "-o", "net.pt2") == (2, "", "tessella: error: no torch here\n")


def test_all_of_space_is_a_domain(run):
    code, out, _ = run("compress", DIGITS, "--box=-inf,inf")
    assert code == 0
    assert (
        "Nothing can be removed: no unit is proved to keep its state, and units are put together on bounded domains only." in out
    )


def test_a_network_without_relus_is_told_so(run, tmp_path):
    path = saved(tmp_path / "net.npz", [([[1.0, 2.0]], [0.5])])
    assert "Nothing can be removed: there are no ReLUs." in run("compress", path, "--box", "0,1")[1]


def test_a_difference_larger_than_what_is_proved_is_explained(run, tmp_path):
    path = saved(tmp_path / "net.npz", [(np.eye(2) / 3.0, [5.0, 5.0]), ([[1.0, -1.0]], [0.1])])
    found = tessella.compress(path, (-1, 1))
    assert found.difference > found.error
    said = run("compress", path, "--box=-1,1")[1]
    assert (
        f"computed in double precision, they differ by {found.difference:.2g} at most, as computing outputs rounds, too." in said
    )


@pytest.mark.parametrize(
    "options", [("compress", "--box", "0,1", "-o"), ("export", "-o"), ("count", "--box", "0,1", "--certificate")]
)
def test_the_model_itself_is_never_written_over(run, tmp_path, options):
    path = saved(tmp_path / "net.npz", [(np.eye(2), [1.0, 1.0]), ([[1.0, 1.0]], None)])
    before, (command, *rest) = path.read_bytes(), options
    code, out, err = run(command, path, *rest, "net.npz")
    assert (code, out, err) == (
        2,
        "",
        "tessella: error: net.npz: cannot be written, as it is the model itself; choose another name\n",
    )
    assert path.read_bytes() == before


def test_what_overflows_ends_in_one_line(run, tmp_path, recwarn):
    huge = np.array([[1e200, 2e200], [3e200, -1e200]])
    path = saved(tmp_path / "net.npz", [(huge, [1.0, 1.0]), (huge, [0.0, 0.0]), ([[1.0, 1.0]], None)])
    code, _, err = run("stability", path, "--box=-1,1")
    assert (code, err.count("\n"), len(recwarn)) == (2, 1, 0)
    assert "pass the largest floating-point number" in err
