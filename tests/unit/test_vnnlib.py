"""VNN-LIB properties are read as the union of boxes that they are."""

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from tessella.domain import Box
from tessella.errors import DomainError, FileError, FileMissing, UnsupportedModel
from tessella.importers import vnnlib
from tessella.importers.vnnlib import parse_domains, read_domains

ACAS_XU = """; ACAS Xu property 4, with the angle to the intruder fixed
(declare-const X_0 Real)
(declare-const X_1 Real)
(declare-const X_2 Real)
(declare-const X_3 Real)
(declare-const X_4 Real)

(declare-const Y_0 Real)
(declare-const Y_1 Real)
(declare-const Y_2 Real)
(declare-const Y_3 Real)
(declare-const Y_4 Real)

; Unscaled Input 0: (1500, 1800)
(assert (<= X_0 -0.29855281193475053))
(assert (>= X_0 -0.30353115613746867))

; Unscaled Input 1: (-0.06, 0.06)
(assert (<= X_1 0.009549296585513092))
(assert (>= X_1 -0.009549296585513092))

; Unscaled Input 2: (0, 0)
(assert (<= X_2 0.0))
(assert (>= X_2 0.0))

; Unscaled Input 3: (1000, 1200)
(assert (<= X_3 0.5))
(assert (>= X_3 0.3181818181818182))

; Unscaled Input 4: (700, 800)
(assert (<= X_4 0.16666666666666666))
(assert (>= X_4 0.08333333333333333))

; unsafe if COC is minimal
(assert (<= Y_0 Y_1))
(assert (<= Y_0 Y_2))
(assert (<= Y_0 Y_3))
(assert (<= Y_0 Y_4))
"""

TWO_BOXES = """(declare-const X_0 Real)
(declare-const X_1 Real)
(declare-const Y_0 Real)
(assert (or
  (and (<= X_0 -0.25) (>= X_0 -0.5) (<= X_1 1) (>= X_1 0) (<= Y_0 0))
  (and (<= X_0 0.5) (>= X_0 0.25) (<= X_1 0) (>= X_1 (- 1)) (>= Y_0 0))
))
"""


def unit(*assertions: str, dim: int = 2) -> str:
    """A property on [0, 1]^dim, with further assertions."""
    declared = [f"(declare-const X_{i} Real) (assert (>= X_{i} 0)) (assert (<= X_{i} 1))" for i in range(dim)]
    return "\n".join([*declared, *(f"(assert {assertion})" for assertion in assertions)])


def interval(*assertions: str) -> tuple[float, float]:
    """The ends of the only input of a property with these assertions."""
    (box,) = parse_domains("(declare-const X_0 Real)" + "".join(f"(assert {a})" for a in assertions), "p")
    return float(box.lower[0]), float(box.upper[0])


def test_acas_xu_property_with_a_fixed_input() -> None:
    (box,) = parse_domains(ACAS_XU, "prop_4.vnnlib")
    assert box == Box(
        [-0.30353115613746867, -0.009549296585513092, 0.0, 0.3181818181818182, 0.08333333333333333],
        [-0.29855281193475053, 0.009549296585513092, 0.0, 0.5, 0.16666666666666666],
    )
    assert box.free.tolist() == [True, True, False, True, True]


def test_disjunction_over_inputs_gives_two_boxes_in_order() -> None:
    assert parse_domains(TWO_BOXES, "two") == (Box([-0.5, 0], [-0.25, 1]), Box([0.25, -1], [0.5, 0]))


def test_image_robustness_property_is_read_exactly_and_fast() -> None:
    rng = random.Random(3)
    image = [rng.random() for _ in range(784)]
    lines = [f"(declare-const X_{i} Real)" for i in range(784)] + [f"(declare-const Y_{i} Real)" for i in range(10)]
    for i, pixel in enumerate(image):
        lines += [f"(assert (<= X_{i} {pixel + 0.03!r}))", f"(assert (>= X_{i} {pixel - 0.03!r}))"]
    lines.append("(assert (or " + " ".join(f"(and (>= Y_{i} Y_7))" for i in range(10) if i != 7) + "))")
    (box,) = parse_domains("\n".join(lines), "mnist")
    assert box.lower.tolist() == [pixel - 0.03 for pixel in image]
    assert box.upper.tolist() == [pixel + 0.03 for pixel in image]


def test_a_megabyte_is_read() -> None:
    (box,) = parse_domains(unit(dim=16_000), "large")
    assert box == Box(0, 1, dim=16_000)


@pytest.mark.parametrize(
    ("assertions", "ends"),
    [
        (["(<= X_0 0.5)", "(>= X_0 -0.3)"], (-0.3, 0.5)),
        (["(>= 0.5 X_0)", "(<= (- 0.3) X_0)"], (-0.3, 0.5)),
        (["(< X_0 .5)", "(> X_0 -3e-1)"], (-0.3, 0.5)),
        (["(= X_0 1e-3)"], (0.001, 0.001)),
        (["(= (/ 1 3) X_0)"], (1 / 3, 1 / 3)),
        (["(<= -2. X_0 +7)"], (-2.0, 7.0)),
        (["(<= X_0 (* 2 (+ 1 1.5)))", "(>= X_0 (- 1 3))"], (-2.0, 5.0)),
        (["(and (<= X_0 5) (and (>= X_0 1) true))", "(<= X_0 3)"], (1.0, 3.0)),
        (["(<= 0 X_0 1)", "(or false (<= X_0 0.5))", "(< 0 1)"], (0.0, 0.5)),
        (
            ["(<= X_0 123456789012345678901234567890)", "(>= X_0 0.1000000000000000055511151231257827)"],
            (0.1, 1.2345678901234568e29),
        ),
    ],
)
def test_bounds_in_every_spelling(assertions: list[str], ends: tuple[float, float]) -> None:
    assert interval(*assertions) == ends


def test_negative_zero_does_not_make_a_second_box() -> None:
    boxes = parse_domains(unit("(or (= X_0 0.0) (= X_0 -0.0) (= X_0 (- 0)))"), "zeros")
    assert boxes == (Box([0, 0], [0, 1]),)


def test_declarations_as_functions_commands_without_meaning_comments_and_line_ends() -> None:
    text = '\ufeff(set-logic QF_LRA)(set-info :source |a ( b|)(set-info :notes (x ("y")))\r\n; (assert (<= X_0 0))\r(declare-fun X_0 () Real)\r\n'
    assert parse_domains(text.lstrip("\ufeff") + "(assert (<= 0 X_0 2)) ; end\n(check-sat)", "p") == (Box([0], [2]),)


@pytest.mark.parametrize(
    "outputs",
    [
        "(or (<= Y_0 Y_1) (<= Y_0 Y_2) (>= Y_3 1))",
        "(or (and (<= Y_0 Y_1)) (and (<= (+ Y_0 (* 2 Y_1)) 3) (>= Y_2 0.5)))",
        "(or (<= X_0 0.5) (<= Y_0 0))",
        "(or (and (<= 0 X_0 1) (<= Y_0 0)) (and (<= 0 X_0 1) (<= Y_1 0)))",
    ],
)
def test_outputs_never_make_boxes(outputs: str) -> None:
    assert parse_domains(unit(*[outputs] * 40), "outputs") == (Box(0, 1, dim=2),)


def test_outputs_in_a_conjunction_leave_its_inputs_alone() -> None:
    assert parse_domains(unit("(or (and (<= X_0 0.5) (<= Y_0 0)) (and (>= X_0 0.75) (<= Y_1 0)))"), "p") == (
        Box([0, 0], [0.5, 1]),
        Box([0.75, 0], [1, 1]),
    )


def test_empty_disjuncts_are_dropped_and_equal_boxes_kept_once() -> None:
    text = unit("(or (>= X_0 2) (<= X_0 0.5) (and (<= X_1 1) (<= X_0 0.5)) (and (<= X_0 0.2) (>= X_0 0.3)))")
    assert parse_domains(text, "p") == (Box([0, 0], [0.5, 1]),)


def test_disjunctions_are_multiplied_out_in_order() -> None:
    boxes = parse_domains(unit("(or (<= X_0 0.25) (>= X_0 0.75))", "(or (<= X_1 0.25) (>= X_1 0.75))"), "p")
    assert [box.lower.tolist() for box in boxes] == [[0, 0], [0, 0.75], [0.75, 0], [0.75, 0.75]]


@pytest.mark.parametrize("last", ["(>= X_1 2)", "false", "(or (>= X_0 2) (<= X_1 -1))", "(and (or (<= X_0 0) false) (>= X_0 1))"])
def test_a_property_without_inputs_names_the_assertion_that_contradicts(last: str) -> None:
    with pytest.raises(DomainError, match=r"p, line 3: .* leaves no input"):
        parse_domains(unit(last), "p")


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ("(assert (<= X_0 1))", "X_0 has no lower bound"),
        ("(assert (<= 0 X_0 1)) (assert (>= X_1 1))", "X_1 has no upper bound"),
        ("(assert (<= 0 X_0 1)) (assert (or (<= 0 X_1 1) (<= X_1 5)))", "X_1 has no lower bound"),
        ("(assert (<= -1e308 X_0 1e308)) (assert (= X_1 0))", "p: the box is wider"),
    ],
)
def test_inputs_must_be_bounded_on_both_sides(bounds: str, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        parse_domains("(declare-const X_0 Real) (declare-const X_1 Real) " + bounds, "p")


@pytest.mark.parametrize(
    "assertion",
    [
        "(<= X_0 Y_0)",
        "(<= (* X_0 X_1) 1)",
        "(<= (/ 1 X_0) 1)",
        "(<= (/ X_0 X_1) 1)",
        "(<= (* Y_0 X_1) 1)",
        "(>= Y_0 X_0)",
        "(<= (+ Y_0 (- X_0)) 1)",
        "(not (<= X_0 1))",
        "(=> (<= X_0 1) (<= Y_0 1))",
        "(ite true (<= X_0 1) (<= Y_0 1))",
    ],
)
def test_what_is_not_a_bound_is_named_with_its_line(assertion: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        parse_domains(unit(f"(or (<= Y_0 0) {assertion})"), "p.vnnlib")
    assert str(caught.value).startswith(f"p.vnnlib, line 3: {assertion} ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no inputs are declared"),
        ("; nothing\n", "no inputs are declared"),
        ("(declare-const X_1 Real)", "X_1 is declared, but X_0 is not"),
        ("(declare-const X_0 Real)\n(declare-const X_0 Real)", "line 2: X_0 is declared a second time"),
        ("(declare-const X_00 Real)", "line 1: 'X_00' is declared"),
        ("(declare-const X_0)", "line 1: .* cannot be read"),
        ("(declare-fun X_0 Real Real)", "line 1: .* cannot be read"),
        ("\n(assert (<= X_0 1))", "line 2: 'X_0' in .* is not known; declare it first"),
        ("(assert (<= Z 1))", "'Z' in .* is not known"),
        ("(assert (<= Y_0 nan))", "'nan' in .* is not known"),
        ("(assert (<= Y_0 1_0))", "'1_0' in .* is not known"),
        ("(assert (<= Y_0 1e999))", "too large"),
        ("(assert (<= Y_0 (/ 1 0)))", "divides by zero"),
        ("(assert (<= Y_0))", "compares nothing"),
        ("(assert (<= Y_0 (-)))", "too few"),
        ("(assert (<= Y_0 (<= Y_1 1)))", "a formula where a number"),
        ("(assert (and))", "joins nothing"),
        ("(assert Y_0)", "should hold a formula"),
        ("(assert true true)", "asserts 2 formulas"),
        ("(assert (<= Y_0 1)\n(assert (<= Y_0 1))", "line 2: assert inside of another"),
        ("\n\n(assert (<= Y_0 1)", "line 3: the '\\(' that opens here is never closed"),
        ("(check-sat))", "closes nothing"),
        ("\nhello", "line 2: found 'hello' outside"),
        ("(hello)", "no command of VNN-LIB 1"),
        ("()", "no command"),
        ("(())", "no command"),
        ('\n(echo "', 'line 2: the " that opens here'),
        ("(" * 100_000, "nested more than 200"),
        ("\x00\x01", "line 1: found '.x00.x01' outside"),
    ],
)
def test_malformed_text_is_one_line_with_its_place(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message) as caught:
        parse_domains(text, "p.vnnlib")
    assert str(caught.value).startswith("p.vnnlib")
    assert "\n" not in str(caught.value)


def test_other_sorts_are_unsupported() -> None:
    with pytest.raises(UnsupportedModel, match="p, line 1"):
        parse_domains("(declare-const X_0 Int)", "p")


def test_deep_but_legal_nesting_is_read() -> None:
    assert parse_domains(unit("(or false " * 190 + "(<= X_0 0.5)" + ")" * 190), "deep") == (Box([0, 0], [0.5, 1]),)


def test_too_many_boxes_are_refused() -> None:
    halves = [f"(or (<= X_{i} 0.5) (>= X_{i} 0.5))" for i in range(60)]
    for text in (unit(*halves, dim=60), unit(f"(and {' '.join(halves)})", dim=60)):
        with pytest.raises(UnsupportedModel, match="more than 10,000 boxes"):
            parse_domains(text, "p")


def test_many_boxes_below_the_limit_are_kept() -> None:
    assert len(parse_domains(unit(*(f"(or (<= X_{i} 0.5) (>= X_{i} 0.5))" for i in range(10)), dim=10), "p")) == 1024


def test_long_products_of_disjunctions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vnnlib, "MAX_STEPS", 1000)
    points = "(or " + " ".join(f"(= X_0 {i}e-3)" for i in range(100)) + ")"
    with pytest.raises(UnsupportedModel, match="too many combinations"):
        parse_domains(unit(points, points), "p")


def test_boxes_that_would_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vnnlib, "MAX_NUMBERS", 100)
    with pytest.raises(UnsupportedModel, match="2 boxes of 30 inputs"):
        parse_domains(unit("(or (<= X_0 0.25) (>= X_0 0.75))", dim=30), "p")


def test_plain_and_compressed_files_give_the_same_boxes(tmp_path: Path) -> None:
    plain, packed, unnamed = tmp_path / "p.vnnlib", tmp_path / "p.vnnlib.gz", tmp_path / "p"
    plain.write_bytes(b"\xef\xbb\xbf" + TWO_BOXES.encode())
    packed.write_bytes(gzip.compress(TWO_BOXES.encode()))
    unnamed.write_bytes(packed.read_bytes())
    assert read_domains(str(plain)) == read_domains(packed) == read_domains(unnamed) == parse_domains(TWO_BOXES, "p")


def test_files_that_are_missing_or_folders(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match=r"none\.vnnlib"):
        read_domains(tmp_path / "none.vnnlib")
    with pytest.raises(FileError, match=tmp_path.name):
        read_domains(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b"; caf\xc3\xa9\n; caf\xe9\n", "line 2: byte 0xe9"),
        (b"(\x00\xff", "line 1: byte 0xff"),
        (gzip.compress(TWO_BOXES.encode())[:-20], "EOFError"),
        (b"\x1f\x8b" + b"junk" * 10, "cannot be read as a VNN-LIB property"),
        (gzip.compress(b"\x80", mtime=0), "line 1: byte 0x80"),
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "p.vnnlib"
    path.write_bytes(data)
    with pytest.raises(FileError, match=message) as caught:
        read_domains(path)
    assert "p.vnnlib" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_unpack_to_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vnnlib, "MAX_BYTES", 2**20)
    path = tmp_path / "bomb.vnnlib.gz"
    path.write_bytes(gzip.compress(b" " * (2**20 + 1)))
    with pytest.raises(FileError, match="more than 1 MiB"):
        read_domains(path)


def test_boxes_hold_exactly_the_points_that_satisfy_the_formula() -> None:
    rng = random.Random(11)
    grid = np.array(np.meshgrid(*[np.arange(0.25, 4.0, 0.5)] * 3)).reshape(3, -1).T
    emptied = 0
    for _ in range(300):
        trees = [random_tree(rng, depth=rng.randint(1, 4)) for _ in range(rng.randint(1, 3))]
        bounds = "".join(f"(declare-const X_{i} Real)(assert (<= 0 X_{i} 4))" for i in range(3))
        text = bounds + "".join(f"(assert {written(tree, rng)})" for tree in trees)
        expected = np.array([all(holds(tree, point) for tree in trees) for point in grid])
        try:
            found = np.any([box.contains(grid) for box in parse_domains(text, "random")], axis=0)
        except DomainError:
            emptied += 1
            found = np.zeros(len(grid), dtype=bool)
        assert (found == expected).all(), text
    assert 0 < emptied < 150


Tree = tuple[str, "list[Tree]"] | tuple[str, int, int]


def random_tree(rng: random.Random, depth: int) -> Tree:
    """And, or, bounds at whole numbers (the grid lies between them), and outputs."""
    if depth == 0 or rng.random() < 0.15:
        return (
            rng.choice(["<=", ">=", "<", ">"]),
            rng.randrange(4) if rng.random() < 0.15 else rng.randrange(3),
            rng.randint(0, 4),
        )
    return rng.choice(["and", "or"]), [random_tree(rng, depth - 1) for _ in range(rng.randint(1, 3))]


def written(tree: Tree, rng: random.Random) -> str:
    """The tree as text; input 3 stands for outputs."""
    if len(tree) == 2:
        return f"({tree[0]} {' '.join(written(part, rng) for part in tree[1])})"
    relation, variable, value = tree
    name = f"X_{variable}" if variable < 3 else rng.choice(["Y_0", "(+ Y_0 Y_1)"])
    if rng.random() < 0.5:
        return f"({relation} {name} {value})"
    return f"({relation.translate(str.maketrans('<>', '><'))} {value}.0 {name})"


def holds(tree: Tree, point: np.ndarray) -> bool:
    """Whether the formula is true at a point, whatever the outputs."""
    if len(tree) == 2:
        return (all if tree[0] == "and" else any)(holds(part, point) for part in tree[1])
    relation, variable, value = tree
    return variable == 3 or (point[variable] < value if "<" in relation else point[variable] > value)
