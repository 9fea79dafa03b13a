"""What a person sees, as Rich draws it in a terminal of some width."""

import io

import numpy as np
import pytest
from rich.console import Console

import tessella
from tessella.cli import drawing
from tessella.counting.count import CountProgress

TITLE = "a_network_with_a_long_name.onnx: 784-9-13-10 on [0, 1]^784"


def seen(item, width):
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(item)
    return out.getvalue().splitlines()


def test_lines_above_and_below_a_live_table_are_not_broken_where_it_ends():
    lines = seen(drawing._standing(TITLE, CountProgress(10, 20, 2_366.0, 0.123, 0.39)), 80)
    assert lines[0] == TITLE
    assert lines[-1] == "12 % of the tree done, 2,366 regions/s, 0.39 s, time left unknown"
    assert len(lines) == 4
    lines = seen(drawing._standing(TITLE, CountProgress(10, 10**9, 1.0, 0.123, 0.39, expected=30.0)), 80)
    assert lines[-1] == "12 % of the tree done, 1 regions/s, 0.39 s, about 34 years left"


def test_the_same_of_a_table_that_stays():
    drawn = drawing.table(TITLE, [("regions", False), ("count", True)])
    drawn.add_row("exactly", "1")
    assert seen(drawn, 80)[0] == TITLE


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0012, "0.12 %"),
        (0.5, "50 %"),
        (0.994, "99 %"),
        (0.9999, "99 %"),
        (1.0, "99 %"),
        (4e-10, "less than 0.01 %"),
        (0.0, "0 %"),
    ],
)
def test_a_tree_that_is_not_done_is_never_done(share, words):
    assert drawing._part(share) == words


def test_what_leans_is_explained_where_something_leans(capsys):
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in ((3, 8), (8, 8))]
    deep, flat = (tessella.Network.from_arrays(some, relu_output=True) for some in (layers, layers[:1]))
    for network, explained in ((deep, True), (flat, False)):
        drawing.print_stability("title", tessella.stability(network, (-1, 1), method="linear"))
        assert ("leans active if" in capsys.readouterr().out) is explained
