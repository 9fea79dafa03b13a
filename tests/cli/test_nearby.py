"""`tessella local` and `tessella along` as a person uses them."""

import json

import numpy as np
import pytest

import tessella
from helpers.files import written


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", rng.uniform(-1, 1, 5))
    np.savetxt(tmp_path / "corners.csv", rng.uniform(-1, 1, (4, 5)), delimiter=",")
    return written(tmp_path / "net.npz", (5, 8, 7, 3), bias=0.5)


def test_a_line_between_two_inputs(run, model, tmp_path):
    found = tessella.along(model, [np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy")])
    code, out, err = run("along", model, "--from", "a.npy", "--to", "b.npy", "-o", "breaks.png")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "net.npz: 5-8-7-3 along a path of 1 segment"
    assert f"Exactly {found.regions} regions, proved." in out
    assert (tmp_path / "breaks.png").read_bytes().startswith(b"\x89PNG")
    assert run("along", model, "--from", "a.npy", "--to", "b.npy", "-q") == (0, f"{found.regions}\n", "")


def test_a_path_with_corners_as_json(run, model, tmp_path):
    code, out, err = run("along", model, "--path", "corners.csv", "--json")
    assert (code, err) == (0, "")
    record = json.loads(out)
    found = tessella.along(model, np.loadtxt(tmp_path / "corners.csv", delimiter=","))
    assert tessella.Along.from_dict(record).breaks.tolist() == found.breaks.tolist()
    assert record["regions"] == found.regions


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "a.npy"], "say which path"),
        (["--from", "a.npy", "--to", "b.npy", "--path", "corners.csv"], "say which path"),
        (["--from", "a.npy", "--to", "1,2"], "--to 1,2 has 2 numbers, but the network has 5 inputs"),
        (["--from", "a.npy", "--to", "no.npy"], "no.npy"),
        (["--from", "a.npy", "--to", "a.npy"], "are equal"),
        (["--path", "corners.csv", "--of-output", "1"], "goes with --output"),
        (["--path", "corners.csv", "-o", "picture.gif"], "its name must end in"),
        (["--path", "corners.csv", "--seconds", "0"], "positive number"),
    ],
)
def test_bad_input_ends_in_one_line(run, model, arguments, words):
    code, out, err = run("along", model, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_regions_around_points(run, model, tmp_path):
    points = np.loadtxt(tmp_path / "corners.csv", delimiter=",")
    found = tessella.local(model, points, 0.2, domain=(-1, 1))
    code, out, err = run("local", model, "--data", "corners.csv", "--radius", "0.2", "--box", "-1,1")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "net.npz: 5-8-7-3 in linf balls of radius 0.2"
    assert "4 of 4 balls counted exactly, proved" in out
    asked = "local", model, "--data", "corners.csv", "--radius", "0.2", "--box", "-1,1"
    assert run(*asked, "-q").out.split() == [str(number) for number in found.counts]
    record = json.loads(run(*asked, "--json", "--first", "2").out)
    assert tessella.Local.from_dict(record).counts == found.counts[:2]
    assert run("local", model, "--data", "corners.csv", "--radius", "0.2", "--subspace", "2", "-q").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "corners.csv"], "say which points"),
        (["--radius", "0.1"], "say which points"),
        (["--data", "corners.csv", "--radius", "0"], "radius is 0.0"),
        (["--data", "corners.csv", "--radius", "0.1,0.2"], "one number for the balls"),
        (["--data", "corners.csv", "--radius", "0.1", "--box", "5,6"], "outside of the domain"),
        (["--data", "corners.csv", "--radius", "0.1", "--around", "a.npy"], "--around does not go with --data"),
        (["--data", "corners.csv", "--radius", "0.1", "--norm", "l3"], "takes one of l1, l2, linf"),
        (["--data", "a.npy", "--radius", "0.1"], "one row of numbers per point"),
    ],
)
def test_bad_balls_end_in_one_line(run, model, arguments, words):
    code, out, err = run("local", model, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
