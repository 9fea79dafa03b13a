"""The command line as a person uses it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tessella
from tessella.importers.arrays import write_npz


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in ((3, 5), (5, 4), (4, 2))]
    path = tmp_path / "net.npz"
    write_npz(tessella.Network.from_arrays(layers), path)
    return path


@pytest.fixture
def two_boxes(tmp_path):
    text = "".join(f"(declare-const X_{i} Real)\n" for i in range(3)) + "(declare-const Y_0 Real)\n"
    one = " ".join(f"(>= X_{i} 0) (<= X_{i} 1)" for i in range(3))
    two = " ".join(f"(>= X_{i} 2) (<= X_{i} {2 + (i > 0)})" for i in range(3))
    path = tmp_path / "p.vnnlib"
    path.write_text(text + f"(assert (or (and {one}) (and {two})))\n(assert (<= Y_0 0))\n")
    return path


def test_upper_prints_a_table(run, model):
    code, out, err = run("upper", model, "--box", "0,1")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert "net.npz: 3-5-4-2, 9 ReLUs, on [0, 1]^3" in out
    assert [line[0] for line in lines[-6:-2]] == ["raghu", "montufar", "configuration", "empirical"]
    assert lines[-4][1] == f"{tessella.configuration_bound(3, [5, 4]):,}"
    assert int(lines[-3][1].replace(",", "")) <= tessella.configuration_bound(3, [5, 4])
    assert "bits under the configuration bound." in out


def test_upper_shows_the_gap_closed_where_the_count_is_known(run, model):
    _, out, _ = run("upper", model, "--box", "0,1", "--count", "5")
    assert "% of the gap to the count" in out
    record = json.loads(run("upper", model, "--box", "0,1", "--count", "5", "--json")[1])
    bounds = tessella.upper_bounds(tessella.load(model), tessella.Box.cube(0, 1, 3))
    assert record["gap_closed"] == bounds.gap_closed(5)


def test_upper_shows_the_subsets_that_were_inspected_if_asked(run, model):
    code, out, err = run("upper", model, "--box", "0,1", "--verbose")
    assert (code, err) == (0, "")
    found = tessella.upper_bounds(tessella.load(model), tessella.Box.cube(0, 1, 3)).empirical_details
    assert f"{found.inspected} subset" in out.splitlines()[-1]
    rows = [
        line.replace(" or more", "").split()
        for line in out.splitlines()
        if re.fullmatch(r"\s+\d+\s+\d+( or more)?(\s+\d+){4}", line)
    ]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert {row[0] for row in rows} == {str(number + 1) for number in range(len(found.most_active))}
    for layer, k, *cells in rows:
        parts = (found.most_active, found.inspected_active, found.most_unstable, found.inspected_unstable)
        assert [int(cell) for cell in cells] == [part[int(layer) - 1][int(k)] for part in parts]
    assert sum(int(row[3]) for row in rows) == sum(map(sum, found.inspected_active))
    assert "subsets" not in run("upper", model, "--box", "0,1")[1]
    assert "leave out --quiet" in run("upper", model, "--box", "0,1", "--verbose", "--quiet")[2]


def test_upper_without_a_domain_says_what_a_domain_would_bring(run, model):
    _, out, _ = run("upper", model)
    assert "empirical" not in out.splitlines()[-3]
    assert "Give a domain" in out


def test_stability_prints_a_line_per_layer(run, model):
    code, out, err = run("stability", model, "--box", "0,1", "--workers", "1")
    assert (code, err) == (0, "")
    found = tessella.stability(tessella.load(model), tessella.Box.cube(0, 1, 3))
    assert out.splitlines()[0] == "net.npz: 3-5-4-2 on [0, 1]^3"
    assert next(line for line in out.splitlines() if line.split()[:1] == ["all"]).split()[:5] == [
        "all",
        "9",
        *(str(found.totals()[kind]) for kind in ("active", "inactive", "unstable")),
    ]
    assert "Stable units are proved (milp" in out
    assert run("stability", model, "--box", "0,1", "--quiet")[1] == f"{found.totals()['unstable']}\n"


def test_stability_of_all_units_lists_the_outputs(run, model):
    code, out, err = run("stability", model, "--box", "0,1", "--units", "all", "--workers", "1")
    assert (code, err) == (0, "")
    lower, upper = tessella.stability(tessella.load(model), (0, 1), units="all").outputs
    lines = [line.split() for line in out[out.index("Outputs") :].splitlines()[2:4]]
    assert [line[0] for line in lines] == ["0", "1"]
    assert [float(line[1]) for line in lines] == pytest.approx(lower, rel=1e-6)
    assert [float(line[2]) for line in lines] == pytest.approx(upper, rel=1e-6)
    assert all(float(line[1]) <= low < high <= float(line[2]) for line, low, high in zip(lines, lower, upper, strict=True))
    assert "These ranges are exact, but for rounding outward." in out
    assert "Outputs" not in run("stability", model, "--box", "0,1")[1]
    assert json.loads(run("stability", model, "--box", "0,1", "--units", "all", "--json")[1])["units"] == "all"


def test_stability_with_a_time_limit_says_what_was_cut_short(run, model):
    code, out, err = run("stability", model, "--box", "0,1", "--units", "all", "--seconds", "1e-9", "--workers", "1")
    assert code == 0
    assert "need not be the smallest" in out
    assert "were cut short" in err


def test_stability_as_json(run, model):
    record = json.loads(run("stability", model, "--box", "0,1", "--method", "linear", "--json")[1])
    assert record["method"] == "linear"
    assert [row["relus"] for row in record["layers"]] == [5, 4]


def test_export_writes_a_model_that_a_solver_reads(run, model, tmp_path):
    from pyscipopt import Model

    for name in ("net.mps", "net.lp", "net.mps.gz"):
        code, out, _ = run("export", model, "--box", "0,1", "-o", tmp_path / name)
        assert code == 0
        assert "binary" in out
    solver = Model()
    solver.hideOutput()
    solver.readProblem(str(tmp_path / "net.mps"))
    solver.optimize()
    assert solver.getStatus() == "optimal"


def test_upper_of_widths(run):
    code, out, _ = run("upper", "--widths", "784,1,21,10", "--quiet")
    assert (code, out) == (0, "243\n")
    code, out, _ = run("upper", "--widths", "784,1,21,10")
    assert "784-1-21-10" in out
    assert "7.93" in out


def test_upper_as_json(run, model):
    code, out, _ = run("upper", model, "--json", "--relu-output")
    record = json.loads(out)
    assert code == 0
    assert record["upper"]["configuration"]["value"] == tessella.configuration_bound(3, [5, 4, 2])
    assert record["network"]["fingerprint"] == tessella.load(model, relu_output=True).fingerprint
    _, out, _ = run("upper", "--widths", "784,100,100,100,100", "--json")
    assert json.loads(out)["upper"]["raghu"]["value"] == tessella.raghu_bound(784, [100] * 4) > 2**64


def test_huge_answers_are_printed_as_powers(run):
    code, out, _ = run("upper", "--widths", "20000,20000", "--quiet")
    assert (code, out) == (0, "2^20000.00\n")
    code, out, _ = run("upper", "--widths", "20000,20000", "--json")
    assert tessella.Bound.from_dict(json.loads(out)["upper"]["raghu"]).value == 1 << 20_000


def test_show_lists_layers_and_the_check(run, model):
    code, out, _ = run("show", model)
    assert code == 0
    assert "net.npz: 3-5-4-2" in out
    assert "ReLUs       9 in 2 layers" in out
    assert "domain      not given" in out
    assert run("show", model, "--quiet")[1] == "Network(3-5-4-2, 9 ReLUs, 54 parameters)\n"


def test_show_with_a_property(run, model, two_boxes):
    code, out, _ = run("show", model, "--property", two_boxes)
    assert code == 0
    assert "domain 1    [0, 1]^3" in out
    assert "domain 2    [2, 2] x [2, 3] x [2, 3], 1 input fixed" in out
    record = json.loads(run("show", model, "--property", two_boxes, "--json")[1])
    assert record["domains"][1] == {"text": "[2, 2] x [2, 3] x [2, 3]", "lower": [2.0, 2.0, 2.0], "upper": [2.0, 3.0, 3.0]}
    assert record["widths"] == [5, 4]


def test_demo_tells_about_the_bundled_network(run):
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    assert "64-10-10-10" in out
    assert "26,785" in out
    assert int(run("demo", "--quiet")[1]) == 26_785
    record = json.loads(run("demo", "--json")[1])
    assert record["upper_bounds"]["upper"]["configuration"]["value"] == 616_666


def test_version_and_help(run):
    assert run("--version")[1] == f"tessella {tessella.__version__}\n"
    for command in ("upper", "show", "stability", "export", "analyze", "demo"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "Examples" in out
        assert f"tessella {command}" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["upper"], "give either a model"),
        (["upper", "MODEL", "--widths", "3,4"], "give either a model"),
        (["upper", "none.onnx"], "none.onnx: no such file"),
        (["upper", "--widths", "a,b"], "whole numbers"),
        (["upper", "--widths", "3"], "at least one layer"),
        (["upper", "--widths", "3,0"], "at least 1"),
        (["upper", "--widths", "3,4", "--box", "0,1"], "--box goes with a model"),
        (["upper", "--widths", "3,4", "--relu-output"], "--relu-output goes with a model"),
        (["upper", "MODEL", "--box", "0,1", "--count", "10000000"], "10000000"),
        (["upper", "MODEL", "--count", "5"], "domain"),
        (["upper", "MODEL", "--box", "0"], "such as 0,1"),
        (["upper", "MODEL", "--box", "1,0"], "empty"),
        (["upper", "MODEL", "--box", "x,1"], "numbers separated by commas"),
        (["upper", "MODEL", "--box", "0,nan"], "finite"),
        (["upper", "MODEL", "--box", "0,1", "--property", "PROPERTY"], "not both"),
        (["upper", "MODEL", "--property", "PROPERTY"], "2 input boxes"),
        (["upper", "MODEL", "--property", "MODEL"], "net.npz"),
        (["upper", "MODEL", "--box", "0,1", "--method", "magic"], "magic"),
        (["stability", "MODEL"], "say which inputs"),
        (
            ["stability", "MODEL", "--box", "0,1", "--seconds-per-unit", "0"],
            "seconds_per_unit is 0.0; a search for stable units takes a positive number",
        ),
        (["stability", "MODEL", "--box", "0,1", "--workers", "-1"], "at least 0"),
        (["export", "MODEL", "--box", "0,1"], "output"),
        (["export", "MODEL", "--box", "0,1", "-o", "net.txt"], "net.txt"),
        (["export", "MODEL", "--box", "0,1", "-o", "nowhere/net.mps"], "nowhere"),
        (["show", "PROPERTY"], "is a property, not a model"),
        (["show", "MODEL", "--input-shape", "0"], "at least 1"),
        (["show"], "MODEL"),
        (["show", "MODEL", "--wrong"], "--wrong"),
        (["dance"], "dance"),
    ],
)
def test_bad_input_is_one_clear_error_with_exit_code_2(run, model, two_boxes, arguments, words):
    names = {"MODEL": model, "PROPERTY": two_boxes}
    code, out, err = run(*(names.get(word, word) for word in arguments))
    assert code == 2
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(run):
    with pytest.raises(tessella.FileMissing):
        run("upper", "none.onnx", "--debug")


def test_an_internal_error_is_reported_without_a_traceback(run, model, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(tessella, "upper_bounds", broken)
    code, _, err = run("upper", model)
    assert code == 1
    assert "internal error: ZeroDivisionError" in err
    assert "--debug" in err


def test_ctrl_c_ends_without_a_traceback(run, model, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(tessella, "upper_bounds", interrupted)
    code, _, err = run("upper", model)
    assert code == 130
    assert "Traceback" not in err


_PRESSED_ON_IMPORT = """
import os, runpy, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == NAME:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["tessella", "demo"]
sys.meta_path.insert(0, Press())
runpy.run_module("tessella", run_name="__main__")
"""


@pytest.mark.parametrize("name", ["tessella.cli.pictures", "typer", "numba", "numba.core.types", "tessella.report"])
def test_ctrl_c_while_modules_are_loaded_is_one_line(run, name):
    pressed = _PRESSED_ON_IMPORT.replace("NAME", repr(name))
    assert run.apart("-c", pressed, module=None) == (130, "", "tessella: stopped by Ctrl-C\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_line(run, model, unbuffered):
    with Path("/dev/full").open("w") as full:
        code, _, err = run.apart("show", model, stdout=full, PYTHONUNBUFFERED=unbuffered)
    assert code == 1
    assert err.startswith("tessella: error: the output cannot be written: ")
    assert err.count("\n") == 1


def test_as_a_module_in_a_pipe_it_is_plain(run):
    code, out, err = run.apart("demo", "-o", "report.html")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "26,785" in out


def test_names_that_a_terminal_cannot_write_are_no_error(run, model, tmp_path):
    odd = tmp_path / "a b \u00fc.npz"
    odd.write_bytes(model.read_bytes())
    code, out, _ = run.apart("show", odd, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert code == 0
    assert "a b " in out


def test_units_cut_short_are_noted_on_stderr(run, model):
    for command in (["upper"], ["upper", "--quiet"], ["stability", "--json"], ["export", "-o", model.with_suffix(".mps")]):
        code, _, err = run(command[0], model, "--box=-1,1", "--seconds-per-unit", "1e-9", *command[1:])
        assert code == 0
        assert "cut short" in err


def test_several_outputs_are_all_read_or_one_of_them(run, tmp_path):
    from onnx import TensorProto, helper

    entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3))
    exits = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 3)) for name in ("a", "b")]
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    proto = helper.make_model(helper.make_graph(nodes, "g", [entry], exits), opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "two.onnx").write_bytes(proto.SerializeToString())
    code, out, err = run("show", tmp_path / "two.onnx")
    assert code == 0
    assert "outputs     6" in out
    assert "outputs, one after the other: a (3), b (3)" in err
    assert run("show", tmp_path / "two.onnx", "--output-name", "a", "--quiet")[1].startswith("Network(3-3,")
