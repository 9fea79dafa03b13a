"""Linear constraints on inputs of VNN-LIB properties, and VNN-LIB 2."""

import random
import sys
from fractions import Fraction

import numpy as np
import pytest

import tessella
from tessella.domain import Box, Polytope
from tessella.errors import DomainError, FileError, MissingPackage, UnsupportedModel
from tessella.importers.vnnlib import parse_domains

SQUARE = "".join(f"(declare-const X_{n} Real) (assert (>= X_{n} 0)) (assert (<= X_{n} 1))\n" for n in range(2))
VERSION_2 = """; a comment
(vnnlib-version <2.0>)
(declare-network net
  (declare-input A float32 [2,2])
  (declare-input B float32 [])
  (declare-output Y float32 [1,1])
)
(assert (and (<= A[0,0] 1.5) (>= A[0,0] -1.0)))
(assert (and (>= A[0,1] 0.0) (<= A[0,1] 1.0) (>= A[1,0] 0.0) (<= A[1,0] 2.0) (== A[1,1] 0.25)))
(assert (or (and (>= B 0.0) (<= B 0.5) (<= Y[0,0] 3.0)) (and (>= B 0.75) (<= B 1.0))))
"""


@pytest.mark.parametrize(
    ("assertion", "row", "offset"),
    [
        ("(<= (+ X_0 X_1) 1)", [1, 1], 1),
        ("(< (+ X_0 X_1) 1)", [1, 1], 1),
        ("(<= X_0 X_1)", [1, -1], 0),
        ("(>= X_0 X_1)", [-1, 1], 0),
        ("(>= 1 (+ X_0 (* 2 X_1)))", [1, 2], 1),
        ("(<= (- X_1 X_0 0.25) 0.5)", [-1, 1], 0.75),
        ("(<= (- (* X_0 0.5) (/ X_1 4)) (* 2 0.125))", [0.5, -0.25], 0.25),
        ("(>= (* 2 (- X_0 (+ X_1 0.25)) 2) -2)", [-4, 4], 1),
    ],
)
def test_linear_constraints_cut_a_polytope(assertion, row, offset):
    (found,) = parse_domains(f"{SQUARE}(assert {assertion})", "p")
    assert found == Polytope([row], [offset], Box(0, 1, dim=2))


@pytest.mark.parametrize(
    ("assertion", "upper"),
    [("(<= (* 2 X_0) 1)", [0.5, 1]), ("(>= 1 (- (* 4 X_1) 1))", [1, 0.5]), ("(<= (+ X_0 X_1 (- X_1)) 0.25)", [0.25, 1])],
)
def test_a_multiple_of_one_input_is_a_bound(assertion, upper):
    assert parse_domains(f"{SQUARE}(assert {assertion})", "p") == (Box([0, 0], upper),)


def test_what_holds_anyway_is_left_out():
    assert parse_domains(f"{SQUARE}(assert (<= (- X_0 X_0) 0))", "p") == (Box(0, 1, dim=2),)
    with pytest.raises(DomainError, match=r"line 3: .* leaves no input"):
        parse_domains(f"{SQUARE}(assert (>= (- X_0 X_0) 1))", "p")


def test_polytopes_and_boxes_in_a_union():
    found = parse_domains(f"{SQUARE}(assert (or (<= (+ X_0 X_1) 1) (>= X_0 0.75) (>= (+ X_0 X_1) 5)))", "p")
    assert found == (Polytope([[1, 1]], [1], Box(0, 1, dim=2)), Box([0.75, 0], [1, 1]))  # the third is empty
    with pytest.raises(DomainError, match="p: the polytope is empty"):
        parse_domains(f"{SQUARE}(assert (>= (+ X_0 X_1) 5))", "p")
    with pytest.raises(DomainError, match="all 2 of its polytopes are empty or have no interior"):
        parse_domains(f"{SQUARE}(assert (or (>= (+ X_0 X_1) 5) (<= (+ X_0 X_1) -5)))", "p")


def test_an_equation_between_inputs_has_no_interior():
    with pytest.raises(DomainError, match="p: the polytope has no interior"):
        parse_domains(f"{SQUARE}(assert (= X_0 X_1))", "p")


def test_constraints_may_bound_what_no_range_does():
    text = "(declare-const X_0 Real) (declare-const X_1 Real) (assert (>= X_0 0)) (assert (>= X_1 0))"
    (found,) = parse_domains(f"{text} (assert (<= (+ X_0 X_1) 1))", "p")
    assert isinstance(found, Polytope)
    assert found.contains([[0.25, 0.5], [0.0, 0.0]]).all()
    assert not found.contains([[0.75, 0.5], [-0.5, 0.0]]).any()
    with pytest.raises(DomainError, match="X_0 has no upper bound"):
        parse_domains(f"{text} (assert (<= (- X_0 X_1) 1))", "p")


def test_domains_hold_exactly_the_points_that_satisfy_the_formula():
    rng = random.Random(3)
    grid = [(x, y) for x in np.arange(0.0625, 1.0, 0.125) for y in np.arange(0.0625, 1.0, 0.125)]

    def comparison():
        a, b, end = (
            rng.randint(-3, 3),
            rng.randint(-3, 3),
            Fraction(16 * rng.randint(-4, 8) + 1, 64),
        )  # met by no point of the grid
        holds = rng.choice(["<=", ">="])
        text = f"({holds} (+ (* {a} X_0) (* X_1 {b})) (/ {end.numerator} {end.denominator}))"
        return text, lambda x, y: (a * Fraction(x) + b * Fraction(y) - end) * (1 if holds == "<=" else -1) <= 0

    cut = 0
    for _ in range(60):
        parts = [[comparison() for _ in range(rng.randint(1, 2))] for _ in range(rng.randint(1, 3))]
        text = " ".join("(and " + " ".join(each for each, _ in part) + ")" for part in parts)
        truth = [any(all(holds(*point) for _, holds in part) for part in parts) for point in grid]
        try:
            found = parse_domains(f"{SQUARE}(assert (or {text}))", "p")
        except DomainError:
            assert not any(truth), text
            continue
        held = np.any([each.contains(grid) for each in found], axis=0)
        assert held.tolist() == truth, text
        cut += any(isinstance(each, Polytope) for each in found)
    assert cut > 20


def test_a_polytope_is_counted(tmp_path):
    network = tessella.load([(np.array([[1.0, -1.0], [1.0, 1.0]]), [0.0, -1.5]), (np.ones((1, 2)), None)])
    (tmp_path / "p.vnnlib").write_text(f"{SQUARE}(assert (<= (+ X_0 X_1) 1))")
    assert tessella.count(network, (0, 1)).exact == 4
    assert tessella.count(network, tmp_path / "p.vnnlib").exact == 2


def test_version_2_is_read_by_its_package():
    pytest.importorskip("vnnlib")
    assert parse_domains(VERSION_2, "p") == (
        Box([-1, 0, 0, 0.25, 0], [1.5, 1, 2, 0.25, 0.5]),
        Box([-1, 0, 0, 0.25, 0.75], [1.5, 1, 2, 0.25, 1]),
    )
    with_sum = VERSION_2.replace("(<= B 0.5)", "(<= (+ B (* 2.0 A[0,1])) 0.5) (<= B 1.0)")
    assert isinstance(parse_domains(with_sum, "p")[0], Polytope)


@pytest.mark.parametrize(
    ("text", "failure", "words"),
    [
        (VERSION_2.replace("A[0,0]", "C[0,0]", 1), FileError, "p: cannot be read as VNN-LIB 2"),
        (VERSION_2.replace("1.5", "x y"), FileError, "cannot be read as VNN-LIB 2"),
        ("(vnnlib-version <2.0>)", FileError, "cannot be read as VNN-LIB 2"),
        (VERSION_2.replace("(== A[1,1] 0.25)", "(!= A[1,1] 0.25)"), UnsupportedModel, "is not read"),
    ],
)
def test_wrong_version_2_is_one_line(text, failure, words):
    pytest.importorskip("vnnlib")
    with pytest.raises(failure, match=words) as caught:
        parse_domains(text, "p")
    assert "\n" not in str(caught.value)


def test_version_2_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vnnlib", None)
    with pytest.raises(MissingPackage, match=r"pip install vnnlib"):
        parse_domains(VERSION_2, "p")
