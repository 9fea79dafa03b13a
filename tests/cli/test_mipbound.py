"""`tessella mipbound` as a person uses it."""

import json

import pytest

import tessella
from helpers.files import written


@pytest.fixture
def model(tmp_path):
    path = written(tmp_path / "net.npz", (5, 8, 5, 2), bias=0.3)
    tessella.mipbound(tessella.load(path), tessella.Box.cube(-1, 1, 5), repetitions=1)  # compiles, which is said on stderr
    return path


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "choose.lp"
    names = [f"x{i}" for i in range(8)]
    total = " + ".join(names)
    path.write_text(f"Minimize\n obj: {total}\nSubject To\n c: {total} <= 3\nBinaries\n {' '.join(names)}\nEnd\n")
    return path


def test_a_table_of_sizes(run, model):
    code, out, err = run("mipbound", model, "--box", "-1,1", "--parity-size", "1,2,3")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "net.npz: 5-8-5-2 on [-1, 1]^5"
    assert [line.split()[0] for line in lines[2:5]] == ["XOR-1", "XOR-2", "XOR-3"]
    assert "Each bound holds with a probability of 95 % or more (search, constraints on" in out


def test_json_says_what_python_says(run, model):
    code, out, err = run("mipbound", model, "--box", "-1,1", "--parity-size", "2,4", "--seed", 9, "--repetitions", 20, "--json")
    assert (code, err) == (0, "")
    records = json.loads(out)["bounds"]
    network, box = tessella.load(model), tessella.Box.cube(-1, 1, 5)
    for size, record in zip((2, 4), records, strict=True):
        found = tessella.mipbound(network, box, parity_size=size, rng=9, repetitions=20)
        assert record["draws"] == list(found.draws)
        assert record["lower"] == found.lower
        assert record["approximation"] == found.approximation


def test_quiet_prints_numbers(run, model, problem):
    code, out, err = run("mipbound", model, "--box", "-1,1", "--parity-size", "2,3", "-q")
    assert (code, err) == (0, "")
    assert all(int(word) >= 1 for word in out.split())
    code, out, err = run("mipbound", problem, "-q")
    assert (code, err) == (0, "")
    assert 1 < int(out) <= 93  # 1 + 8 + 28 + 56


def test_problems_and_solvers(run, problem):
    answers = []
    for solver in ("scip", "highs", "gurobi"):
        code, out, err = run("mipbound", problem, "--parity-size", 3, "--solver", solver, "--repetitions", 20, "--json")
        assert (code, err) == (0, "")
        answers.append(json.loads(out)["bounds"][0]["draws"])
    assert answers[0] == answers[1] == answers[2]
    code, out, _ = run("mipbound", problem, "--variables", "x1, x2,x3", "--parity-size", 2)
    assert code == 0
    assert "constraints on 3 binary variables" in out


def test_an_infeasible_problem_has_count_zero(run, tmp_path):
    path = tmp_path / "none.lp"
    path.write_text("Minimize\n obj: x\nSubject To\n c: x + y >= 3\nBinaries\n x y\nEnd\n")
    code, out, err = run("mipbound", path)
    assert (code, out, err) == (0, "none.lp: has no solution, as SCIP says. The count is 0.\n", "")
    assert run("mipbound", path, "-q")[1] == "0\n"
    assert json.loads(run("mipbound", path, "--json")[1])["bounds"][0]["status"] == "infeasible"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["MODEL"], "say which inputs to consider"),
        (["MODEL", "--box", "0,1", "--parity-size", "two"], "--parity-size takes whole numbers"),
        (["MODEL", "--box", "0,1", "--parity-size", "0"], "parity_size is 0"),
        (["MODEL", "--box", "0,1", "--confidence", "95"], "confidence is 95.0"),
        (["MODEL", "--box", "0,1", "--solver", "cplex"], "--solver takes one of scip, highs, gurobi"),
        (["MODEL", "--box", "0,1", "--workers", "-1"], "--workers must be at least 0"),
        (["MODEL", "--box", "0,1", "--variables", "x"], "--variables goes with a .mps or .lp file"),
        (["PROBLEM", "--box", "0,1"], "--box goes with a network"),
        (["PROBLEM", "--variables", "nobody"], "has no variable 'nobody'"),
        (["missing.mps"], "no such file"),
    ],
)
def test_errors_are_one_line(run, model, problem, arguments, said):
    places = {"MODEL": model, "PROBLEM": problem}
    code, out, err = run("mipbound", *(places.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("tessella: error: ")
    assert err.count("\n") == 1
    assert said in err


def test_help_has_examples(run):
    code, out, _ = run("mipbound", "--help")
    assert code == 0
    assert "tessella mipbound model.onnx --box 0,1 --parity-size 2,3,4,5 --confidence 0.95" in " ".join(out.split())


def test_a_time_limit_is_said(run, model):
    code, out, err = run("mipbound", model, "--box", "-1,1", "--seconds", 0.2)
    assert code == 0
    assert err.startswith("Note: XOR-3 was ended by the time limit after ")
    assert "XOR-3" in out


def test_ctrl_c_shows_what_is_known_and_a_terminal_shows_a_live_table(run, model):
    with run.begin("mipbound", model, "--box", "-1,1", "--repetitions", "100000", columns=100) as running:
        running.wait_for("bound so far")
        running.press_ctrl_c()
        code, out, shown = running.ended()
    assert code == 130
    assert "repetition" in shown
    assert "XOR-3" in shown
    assert "was ended by Ctrl-C after" in shown
    assert "XOR-3" in out
