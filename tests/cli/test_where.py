"""Which inputs a command considers: every way to say it, and what is said of the rest."""

import json
from fractions import Fraction

import numpy as np
import pytest

import tessella
from tessella.importers.arrays import write_npz

RNG = np.random.default_rng(0)
NETWORK = tessella.load([(RNG.normal(size=(6, 2)), RNG.normal(size=6)), (RNG.normal(size=(1, 6)), [0.5])])
EVERY = ("upper", "show", "stability", "count", "estimate", "mipbound", "export", "analyze", "plot", "report", "compress")
TWO_BOXES = """
(declare-const X_0 Real) (declare-const X_1 Real) (declare-const Y_0 Real)
(assert (or (and (>= X_0 0) (<= X_0 1) (>= X_1 0) (<= X_1 1)) (and (>= X_0 0.5) (<= X_0 2) (>= X_1 0) (<= X_1 1))))
"""


@pytest.fixture
def model(tmp_path):
    write_npz(NETWORK, tmp_path / "net.npz")
    (tmp_path / "two.vnnlib").write_text(TWO_BOXES)
    np.save(tmp_path / "x.npy", [[0.5, 0.25]])
    (tmp_path / "box.csv").write_text("lower,upper\n0,1\n-2,2\n")
    return tmp_path / "net.npz"


def shown(run, *arguments):
    """The domain that `show` understands, and what it says on stderr."""
    code, out, err = run("show", "net.npz", *arguments, "--json")
    assert code == 0, err
    (domain,) = json.loads(out)["domains"]
    return tessella.Box(domain["lower"], domain["upper"]), err


@pytest.mark.parametrize(
    ("arguments", "lower", "upper"),
    [
        (["--box", "0,1"], [0, 0], [1, 1]),
        (["--box", "0,1,-2,2"], [0, -2], [1, 2]),
        (["--box", "0,1", "--box", "-2,2"], [0, -2], [1, 2]),
        (["--box", "box.csv"], [0, -2], [1, 2]),
        (["--around", "x.npy", "--radius", "0.5"], [0, -0.25], [1, 0.75]),
        (["--around", "0.5,0.25", "--radius", "0.5,1"], [0, -0.75], [1, 1.25]),
        (["--around", "x.npy", "--radius", "0.5", "--box", "0,1"], [0, 0], [1, 0.75]),
        (["--box", "0,1", "--mean", "0.5", "--std", "0.25"], [-2, -2], [2, 2]),
        (["--box", "0,1", "--mean", "0.5,0.25"], [-0.5, -0.25], [0.5, 0.75]),
        (["--box", "0,1", "--std", "0.5,2"], [0, 0], [2, 0.5]),
        (["--property", "two.vnnlib", "--property-box", "2"], [0.5, 0], [2, 1]),
    ],
)
def test_every_way_to_say_it(run, model, arguments, lower, upper):
    assert shown(run, *arguments)[0] == tessella.Box(lower, upper)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--box", "0"], "got 1 number: 0"),
        (["--box", "0,1,2"], "or of one for each of the 2 inputs; got 3 numbers: 0,1,2"),
        (["--box", "a,b"], "--box takes numbers separated by commas"),
        (["--box", "1,0"], "the box is empty"),
        (
            ["--box", "0,1e400"],
            "--box has '1e400', which passes the largest floating-point number; write inf for an end that is none",
        ),
        (["--box", "nan,1"], "lower holds nan; ends of a box are finite numbers"),
        (["--box", "0,1", "--box", "0,1", "--box", "0,1"], "--box is given 3 times, but the network has 2 inputs"),
        (["--box", "0,1,2,3", "--box", "0,1"], "each takes the ends of an interval"),
        (["--box", "box.csv", "--box", "0,1"], "--box takes numbers"),
        (["--box", "none.csv"], "none.csv: no such file"),
        (["--box", "x.npy"], "x.npy: holds one input, which is no box"),
        (["--box", "0,1", "--property", "two.vnnlib"], "either --box or --property"),
        (["--around", "x.npy"], "--around and --radius go together"),
        (["--radius", "1"], "--around and --radius go together"),
        (["--around", "x.npy", "--radius", "-1"], "the radius must be at least 0"),
        (["--around", "x.npy", "--radius", "1,2,3"], "give one radius, or one per input"),
        (["--around", "1,2,3", "--radius", "1"], "has 3 numbers, but the network has 2 inputs"),
        (["--around", "net.npz", "--radius", "1"], "--around takes a file with one input"),
        (["--around", "x.npy", "--radius", "1", "--box", "5,6"], "the box is empty"),
        (["--mean", "0.5"], "say which with --box or --around"),
        (["--box", "0,1", "--mean", "1,2,3"], "--mean has 3 numbers"),
        (["--box", "0,1", "--std", "0"], "it takes numbers above 0"),
        (["--box", "0,1", "--std", "nan"], "finite numbers"),
        (["--box", "0,1", "--std", "x"], "--std takes numbers"),
        (["--box", "0,1", "--std", "1e-320"], "largest floating-point number"),
        (["--property", "two.vnnlib", "--mean", "1"], "--mean goes with --box and --around"),
        (["--property", "two.vnnlib", "--property-box", "3"], "--property-box is 3, but two.vnnlib has 2 input boxes"),
        (["--property-box", "1"], "which is not given"),
        (["--property", "two.vnnlib"], "choose one with --property-box 1 to 2"),
        ([], "say which inputs to consider: --box 0,1"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(run, model, arguments, words):
    code, out, err = run("estimate", "net.npz", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("tessella: error: ")
    assert err.count("\n") == 1
    assert words in err


def test_a_file_with_several_inputs_is_no_centre(run, model, tmp_path):
    np.save(tmp_path / "many.npy", np.zeros((5, 2)))
    code, _, err = run("count", "net.npz", "--around", "many.npy", "--radius", "1")
    assert code == 2
    assert "many.npy: holds 5 inputs; --around takes one" in err


def test_files_are_said_to_be_what_they_were_read_as(run, model, tmp_path):
    np.save(tmp_path / "many.npy", [[0.0, 0.0], [1.0, 2.0], [0.5, -1.0]])
    box, err = shown(run, "--box", "many.npy")
    assert box == tessella.Box([0, -1], [1, 2])
    assert "Note: many.npy has 3 rows of data: the smallest box around them." in err


def test_normalised_ends_are_rounded_once(run, model):
    box, err = shown(run, "--box", "0,1", "--mean", "0.1307", "--std", "0.3081")
    mean, std = Fraction("0.1307"), Fraction("0.3081")
    assert box.lower[0] == float(-mean / std)
    assert box.upper[0] == float((1 - mean) / std)
    assert "before normalisation inputs lie in [0, 1]^2" in err


@pytest.mark.parametrize("channels", ["first", "last"])
def test_channels_are_those_of_the_model(run, tmp_path, channels):
    onnx = pytest.importorskip("onnx")
    shape = (3, 2, 2) if channels == "first" else (2, 2, 3)
    weight = onnx.numpy_helper.from_array(np.ones((12, 1), dtype=np.float32), "w")
    nodes = [onnx.helper.make_node("Flatten", ["x"], ["f"]), onnx.helper.make_node("MatMul", ["f", "w"], ["y"])]
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "g", [tensor("x", 1, (1, *shape))], [tensor("y", 1, (1, 1))], [weight])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "net.onnx")
    code, out, err = run("show", "net.onnx", "--box", "0,1", "--mean", "1,2,3", "--json")
    assert code == 0, err
    lower = np.array(json.loads(out)["domains"][0]["lower"]).reshape(shape)
    assert (lower == -np.array([1, 2, 3]).reshape((3, 1, 1) if channels == "first" else 3)).all()
    np.save(tmp_path / "image.npy", np.zeros((4, 3)))  # neither channels first nor last
    code, _, err = run("show", "net.onnx", "--around", "image.npy", "--radius", "1")
    assert code == 2
    assert "transpose it, or flatten it row by row" in err


def test_boxes_of_a_property_are_counted_one_by_one(run, model):
    code, out, err = run("count", "net.npz", "--property", "two.vnnlib")
    assert code == 0, err
    parts = [tessella.count(NETWORK, box).exact for box in tessella.load_domains(model.parent / "two.vnnlib")]
    whole = tessella.count(NETWORK, ([0, 0], [2, 1])).exact
    assert max(parts) <= whole <= sum(parts)
    assert f"All 2 boxes together: exactly {sum(parts)} regions" in out
    assert f"On the union of the boxes: at least {max(parts)} and at most {sum(parts)} regions." in out
    assert "1 pair of the boxes overlaps: 1 and 2." in out
    assert run("count", "net.npz", "--property", "two.vnnlib", "-q")[1].split() == [str(n) for n in [*parts, sum(parts)]]
    record = json.loads(run("count", "net.npz", "--property", "two.vnnlib", "--json")[1])
    assert [box["exact"] for box in record["boxes"]] == parts
    assert record["total"] == {"lower": sum(parts), "upper": sum(parts)}
    assert record["union"] == {"lower": max(parts), "upper": sum(parts)}
    assert (record["overlapping"], record["left_out"]) == ([[1, 2]], 0)
    code, _, err = run("count", "net.npz", "--property", "two.vnnlib", "--checkpoint", "run.db")
    assert code == 2
    assert "--checkpoint goes with one box, and there are 2" in err


def test_nothing_is_said_of_the_union_of_different_faces(run, model, tmp_path):
    text = TWO_BOXES.replace("(>= X_0 0.5) (<= X_0 2)", "(= X_0 3)")
    (tmp_path / "faces.vnnlib").write_text(text)
    code, out, _ = run("count", "net.npz", "--property", "faces.vnnlib")
    assert code == 0
    assert "All 2 boxes together: exactly" in out
    assert "union" not in out
    assert "No two of the boxes overlap." in out


@pytest.mark.parametrize("command", EVERY)
def test_every_command_explains_domains(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    for option in ("--box", "--around", "--radius", "--mean", "--std", "--property", "--property-box"):
        assert option in out


def test_pictures_say_which_inputs_they_assume(run, model):
    pytest.importorskip("matplotlib")
    words = "No domain was given: inputs are taken from [0, 1]^2; --box chooses another."
    assert words in run("plot", "net.npz")[1]
    assert words in run("report", "net.npz")[1]
    assert words not in run("plot", "net.npz", "--box", "0,1")[1]
