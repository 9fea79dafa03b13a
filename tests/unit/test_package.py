"""The package's face: its names, and how little it loads."""

import doctest
import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tessella

ROOT = Path(__file__).parents[2]
ROOMS = ("formulation", "plot", "report", "solvers")
PUBLIC = [f"tessella.{name}" for name in tessella.__all__]
PUBLIC += [f"{room}.{name}" for room in ROOMS for name in getattr(tessella, room).__all__]


def named(name):
    """What a name with a dot stands for."""
    room, last = name.split(".")
    return getattr(tessella if room == "tessella" else getattr(tessella, room), last)


def test_public_names_exist_once():
    names = tessella.__all__  # the linter keeps them sorted
    assert len(set(names)) == len(names)
    assert all(hasattr(tessella, name) for name in names)


def test_the_user_of_the_tests_uses_every_public_name():
    text = (ROOT / "tests/helpers/user.py").read_text()
    assert [name for name in tessella.__all__ if not re.search(rf"\btessella\.{name}\b", text)] == []


def test_import_loads_no_heavy_package():
    heavy = ["numpy", "scipy", "numba", "onnx", "torch", "keras", "pyscipopt", "rich", "typer", "matplotlib"]
    code = f"import sys, json, tessella; print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_function_is_not_hidden_by_the_module_of_its_name():
    code = "import tessella.stability, tessella; from tessella.stability import Stability; print(tessella.stability.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "stability"
    assert callable(tessella.stability)
    assert set(tessella.__all__) <= set(dir(tessella))
    with pytest.raises(AttributeError, match="no attribute 'regoins'"):
        _ = tessella.regoins


def test_dir_and_completion_show_the_public_names_and_no_others():
    code = """
import json, rlcompleter, tessella
completer, found = rlcompleter.Completer({"tessella": tessella}), []
while (text := completer.complete("tessella.", len(found))):
    found.append(text.removeprefix("tessella.").rstrip("()"))
print(json.dumps([dir(tessella), found]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    public = {*tessella.__all__, *ROOMS, "optimise"}
    shown, completed = json.loads(done.stdout)
    assert {name for name in shown if not name.startswith("__")} == public - {"__version__"}
    assert set(completed) == public - {"__version__"}


def test_help_shows_the_public_names():
    text = pydoc.plain(pydoc.render_doc(tessella))
    shown = set(re.findall(r"^    (?:class )?(\w+)(?:\(| = )", text, re.MULTILINE))
    assert set(tessella.__all__) - {"__version__"} <= shown
    assert not {"Any", "TYPE_CHECKING", "import_module", "ModuleType"} & shown


@pytest.mark.parametrize("room", ROOMS)
def test_completion_in_a_public_module_shows_its_public_names_and_no_others(room):
    module = getattr(tessella, room)
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_the_user_of_our_type_checks_uses_every_public_name():
    text = (ROOT / "tests/helpers/user.py").read_text()
    assert [name for name in PUBLIC if not re.search(rf"\b{re.escape(name)}\b", text)] == []


@pytest.mark.parametrize("name", [name for name in PUBLIC if ">>>" in (inspect.getdoc(named(name)) or "")])
def test_an_example_of_a_docstring_can_be_copied(name):
    """It imports what it uses, by the names that users have."""
    text = inspect.getdoc(named(name))
    examples = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, None, None)
    said = []
    doctest.DocTestRunner(verbose=False).run(examples, out=said.append)
    assert said == []


def test_every_public_function_has_an_example_in_its_docstring():
    functions = [name for name in PUBLIC if inspect.isfunction(named(name))]
    assert [name for name in functions if ">>>" not in (inspect.getdoc(named(name)) or "")] == []


def test_errors_have_builtin_parents():
    assert issubclass(tessella.FileMissing, FileNotFoundError)
    assert issubclass(tessella.NetworkError, ValueError)
    assert issubclass(tessella.MissingPackage, ImportError)
    for name in tessella.__all__:
        item = getattr(tessella, name)
        if isinstance(item, type) and issubclass(item, Exception):
            assert issubclass(item, tessella.TessellaError)


def test_version_is_the_same_everywhere():
    assert f"## [{tessella.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {tessella.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_what_is_no_network_is_refused():
    with pytest.raises(tessella.UnsupportedModel, match="type dict is no network"):
        tessella.load({"a": 1})
    with pytest.raises(tessella.UnsupportedModel, match="type NoneType is no network"):
        tessella.load(None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("m.pt", "never opened"),
        ("m.pth", r"tessella\.load\(module\)"),
        ("m.pkl", "never opened"),
        ("m.h5", r"save it again as \.keras"),
        ("m.vnnlib", "load_domain"),
        ("m.txt", r"read from \.onnx"),
    ],
)
def test_other_files_say_what_to_do(tmp_path, name, words):
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(tessella.FileError, match=words):
        tessella.load(tmp_path / name)


def test_options_are_checked_at_the_door(tmp_path):
    with pytest.raises(tessella.OptionError, match="whole numbers"):
        tessella.load([([[1.0]], None)], input_shape="ab")
    with pytest.raises(tessella.OptionError, match="at least 1"):
        tessella.load([([[1.0]], None)], input_shape=(0, 3))
    with pytest.raises(tessella.OptionError, match="ONNX"):
        tessella.load([([[1.0]], None)], output="y")
    with pytest.raises(tessella.OptionError, match="ONNX"):
        tessella.load(tmp_path / "m.npz", output="y")


def test_messages_name_packages_that_can_be_had():
    """Not ``pip install 'tessella[plot]'``, which finds nothing, or another package, where Tessella was installed from a folder."""
    for path in (ROOT / "src").rglob("*.py"):
        assert "tessella[" not in path.read_text(), path
