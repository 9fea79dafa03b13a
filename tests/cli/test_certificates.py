"""Certificates as a person writes and checks them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tessella


@pytest.fixture
def model(run):
    rng = np.random.default_rng(1)
    layers = [
        (rng.normal(size=(6, 3)), rng.normal(size=6)),
        (rng.normal(size=(4, 6)), rng.normal(size=4)),
        (np.ones((1, 4)), None),
    ]
    tessella.Network.from_arrays(layers).to_npz("model.npz")
    return run


def test_a_count_is_certified_and_checked_elsewhere(model):
    counted = model("count", "model.npz", "--box=-1,1", "--certificate", "count.cert.gz", "--quiet")
    assert counted.code == 0
    assert model("verify", "--checker", "verify.py").code == 0
    done = subprocess.run([sys.executable, "-I", "verify.py", "count.cert.gz"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"verified: 0 bounds, {counted.out.strip()} regions in all; network ")
    checked = model("verify", "count.cert.gz", "--processes", "2")
    assert (checked.code, checked.out) == (0, done.stdout)


def test_stable_units_are_certified(model):
    found = model("stability", "model.npz", "--box=-0.1,0.1", "--certificate", "stable.cert", "--json")
    assert (found.code, json.loads(found.out)["total"]["unstable"] < 10) == (0, True)
    checked = model("verify", "stable.cert", "--json")
    assert (json.loads(checked.out)["accepted"], json.loads(checked.out)["bounds"]) == (True, 22)


def test_a_damaged_certificate_is_refused(model):
    model("count", "model.npz", "--box=-1,1", "--certificate", "count.cert")
    Path("count.cert").write_text(Path("count.cert").read_text().replace("split", "spilt", 1))
    checked = model("verify", "count.cert")
    assert (checked.code, checked.out) == (1, "refused: 'spilt' stands where it cannot (step 3)\n")
    assert model("verify", "count.cert", "--quiet").out == "refused\n"


def test_what_cannot_be_certified_is_said_in_a_line(model):
    for arguments, said in (
        (("count", "model.npz", "--box=-inf,inf", "--certificate", "x"), "a certificate needs a bounded domain"),
        (("count", "model.npz", "--box=-1,1", "--certificate", "nowhere/x"), "there is no folder nowhere"),
        (("verify",), "give a certificate"),
        (("verify", "nothing"), "there is no such file"),
        (("verify", "model.npz", "--processes", "0"), "workers is 0"),
    ):
        ended = model(*arguments)
        assert ended.code == 2
        assert said in ended.err
        assert len(ended.err.splitlines()) == 1
    assert not Path("x").exists()


def test_a_count_that_is_not_exact_leaves_no_certificate(model):
    rng = np.random.default_rng(2)
    layers = [
        (rng.normal(size=(20, 8)), rng.normal(size=20)),
        (rng.normal(size=(20, 20)), rng.normal(size=20)),
        (np.ones((1, 20)), None),
    ]
    tessella.Network.from_arrays(layers).to_npz("large.npz")
    ended = model("count", "large.npz", "--box=-1,1", "--seconds", "0.05", "--certificate", "count.cert")
    assert ended.code == 0
    assert "the count is not exact, so count.cert was not written" in ended.err
    assert not Path("count.cert").exists()


def test_weights_near_the_smallest_numbers_are_certified_without_warnings(run, recwarn):
    weight = np.array([[0.5, 0.25], [-0.375, 0.5], [0.125, -0.5]]) * 1e-310
    tessella.load([(weight, None), ([[0.5, 1.0, -1.0]], None)]).to_npz("tiny.npz")
    assert run("count", "tiny.npz", "--box=-1,1", "--certificate", "tiny.cert").code == 0
    assert not len(recwarn)
    assert run("verify", "tiny.cert").code == 0


def test_a_certificate_is_held_against_a_model_and_a_box(model):
    model("count", "model.npz", "--box=-1,1", "--certificate", "count.cert.gz")
    fingerprint = json.loads(model("show", "model.npz", "--json").out)["fingerprint"]
    assert f"fingerprint {fingerprint}\n" in model("show", "model.npz").out
    for options in ((), ("--box=-1,1",)):
        checked = model("verify", "count.cert.gz", "model.npz", *options)
        assert (checked.code, checked.err) == (0, "")
        assert f"network {fingerprint}, domain [-1.0, 1.0]^3" in checked.out
    smaller = model("verify", "count.cert.gz", "model.npz", "--box=-1,0.5")
    assert (smaller.code, smaller.err) == (1, "")
    assert smaller.out == "refused: it is true, but on another domain: input 0 is in [-1.0, 1.0] there, and in [-1.0, 0.5] here\n"
    other = model("verify", "count.cert.gz", "model.npz", "--relu-output", "--json")
    assert (other.code, json.loads(other.out)["accepted"]) == (1, False)
    assert "of another network" in json.loads(other.out)["said"]


def test_a_box_without_a_model_is_said_in_a_line(model):
    model("count", "model.npz", "--box=-1,1", "--certificate", "count.cert")
    ended = model("verify", "count.cert", "--box=-1,1")
    assert (ended.code, "no model" in ended.err, len(ended.err.splitlines())) == (2, True, 1)
