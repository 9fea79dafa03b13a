"""The gallery: every picture is there, small, and used; and the programs of its findings measure what they say."""

import re
import runpy
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tessella

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def program(name):
    """The names that an example defines."""
    for package in ("torch", "sklearn", "matplotlib"):
        pytest.importorskip(package)
    return runpy.run_path(str(ROOT / "examples" / name))


def test_pictures_are_there_small_and_used():
    named = re.findall(r"!\[[^\]]+\]\((gallery/[^)]+)\)", (DOCS / "gallery.md").read_text())
    assert len(named) == len(set(named)) >= 7
    assert {f"gallery/{path.name}" for path in (DOCS / "gallery").iterdir()} == set(named)
    for name in named:
        content = (DOCS / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 300_000


def test_every_program_is_shown():
    shown = (DOCS / "gallery-code.md").read_text()
    named = re.findall(r"`python examples/(\w+\.py)", (DOCS / "gallery.md").read_text())
    assert len(named) >= 4
    assert [name for name in named if f"```{{literalinclude}} ../examples/{name}\n" not in shown] == []


def test_breaks_of_one_layer_are_units_with_both_signs_at_the_ends_of_a_line():
    lines = program("random_lines.py")
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    model = lines["network"](40, 1)
    images = np.random.default_rng(0).random((6, 64))
    ends = lines["random_lines"](images, 6, seed=1)
    assert np.allclose(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1), 1.0)
    values = model[0](torch.tensor(ends, dtype=torch.float32)).detach().numpy()
    assert lines["breaks"](model, ends) == (values[:, 0] * values[:, 1] < 0.0).sum(axis=1).mean()


def test_the_proxy_sees_what_differs_at_the_corners():
    local = program("local_complexity.py")
    rng = np.random.default_rng(0)
    layers = [(rng.standard_normal((n, m)), rng.standard_normal(n)) for m, n in pairwise((6, 8, 8, 1))]
    network = tessella.Network.from_arrays(layers)
    points, basis = rng.standard_normal((5, 6)), np.linalg.qr(rng.standard_normal((6, 2)))[0]
    expected = []
    for point in points:
        corners = [point + sign * local["RADIUS"] * basis[:, k] for k in range(2) for sign in (-1.0, 1.0)]
        seen = []
        for corner in corners:
            first = layers[0][0] @ corner + layers[0][1]
            seen.append(np.concatenate([first, layers[1][0] @ np.maximum(first, 0.0) + layers[1][1]]) > 0.0)
        expected.append(sum(len(set(unit)) == 2 for unit in zip(*seen, strict=True)))
    assert local["proxy"](network, points, basis).tolist() == expected
    assert sum(expected) > 0


@pytest.mark.parametrize("name", ["random_lines.py", "local_complexity.py"])
def test_findings_are_drawn_quickly(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "--quick", str(tmp_path / "drawn.png")])
    program(name)["main"]()
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
    assert len(capsys.readouterr().out.splitlines()) >= 4
