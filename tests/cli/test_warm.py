"""`tessella warm`: everything is compiled before anybody needs it."""

import json
import os
from pathlib import Path

import pytest

import tessella
from helpers.files import written
from tessella.cli.warm import COMPILED

SOURCE = Path(tessella.__file__).parent


def test_all_compiled_code_is_in_rooms_that_it_knows():
    others = [
        file
        for file in SOURCE.rglob("*.py")
        if "@apart" in file.read_text() and f"tessella.{file.relative_to(SOURCE).parts[0]}" not in COMPILED
    ]
    assert others == []


@pytest.fixture
def two(monkeypatch):
    """Two functions instead of all."""
    from tessella.kernel import warming
    from tessella.kernel.simplex.point import find_leaving, find_multipliers

    monkeypatch.setattr(warming, "everything", lambda *_: (find_leaving, find_multipliers))


def test_a_second_run_says_that_all_is_there(run, two):
    run("warm")
    code, out, err = run("warm")
    assert (code, err) == (0, "")
    assert out.startswith("All 2 functions are compiled already. They are kept in ")
    assert Path(out.split("kept in ")[1].strip().removesuffix(".")).is_dir()
    assert run("warm", "--quiet").out == "0\n"
    record = json.loads(run("warm", "--json").out)
    assert (record["functions"], record["compiled"], record["seconds"]) == (2, 0, 0.0)
    assert Path(record["folder"]).is_dir()


def test_what_is_not_there_is_compiled_and_kept(run, tmp_path):
    """In another cache; two functions, by a program that says so."""
    code = (
        "import sys; sys.argv = ['tessella', 'warm'];"
        "from tessella.kernel import warming; from tessella.kernel.simplex.point import find_leaving as f, find_multipliers as g;"
        "warming.everything = lambda *_: (f, g);"
        "from tessella.cli import main; main()"
    )
    found = run.apart("-c", code, module=None, NUMBA_CACHE_DIR=str(tmp_path))
    assert found.code == 0
    assert found.out.startswith("2 of 2 functions were compiled in ")
    assert str(tmp_path) in found.out
    assert "Compiling 2 functions" in found.err
    assert any(name.endswith(".nbc") for _, _, names in os.walk(tmp_path) for name in names)


@pytest.mark.slow
def test_after_it_nothing_is_compiled(run, tmp_path):
    cache, box = tmp_path / "cache", ["--box=-1,1"]
    small, large = (written(tmp_path / f"{name}.npz", sizes) for name, sizes in (("small", [3, 6, 4]), ("large", [130, 8, 6])))
    assert run.apart("warm", "--quiet", NUMBA_CACHE_DIR=str(cache)).code == 0
    kept = sorted(cache.rglob("*.nb?"))
    for model in (small, large):
        for command in (
            ["count"],
            ["estimate", "--probes", "20"],
            ["mipbound", "--repetitions", "2"],
            ["stability"],
            ["analyze"],
        ):
            found = run.apart(command[0], model, *box, *command[1:], NUMBA_CACHE_DIR=str(cache))
            assert found.code == 0
            assert "ompiling" not in found.err
    assert sorted(cache.rglob("*.nb?")) == kept
