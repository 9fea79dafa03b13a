"""What is published: the wheel, the sdist, and the types that a user's type checker sees in a clean environment."""

import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import tessella

ROOT = Path(__file__).parents[2]
USER = ROOT / "tests/helpers/user.py"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The folder with wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", folder], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def python(published, tmp_path_factory):
    """The Python of an environment with the wheel, and what it needs from here; nothing of this checkout."""
    place = tmp_path_factory.mktemp("clean")
    venv.create(place, with_pip=False, symlinks=True)
    packages = next(place.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(next(published.glob("*.whl"))) as wheel:
        wheel.extractall(packages)
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    return place / "bin/python"


def test_the_wheel_has_types_and_data_and_no_tests(published):
    with zipfile.ZipFile(next(published.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    assert {"tessella/py.typed", "tessella/data/digits.onnx", "tessella/report/assets/page.html"} <= set(names)
    assert {name.split("/")[0] for name in names} == {"tessella", f"tessella-{tessella.__version__}.dist-info"}
    assert not [name for name in names if name.endswith((".nbi", ".nbc", ".pyc"))]


def test_the_sdist_has_docs_examples_and_tests(published):
    with tarfile.open(next(published.glob("*.tar.gz"))) as archive:
        names = archive.getnames()
    held = {name.split("/")[1] for name in names if "/" in name}
    assert {"src", "docs", "examples", "tests", "CITATION.cff", "LICENSE", "README.md", "CHANGELOG.md"} <= held
    assert any(name.endswith("docs/index.md") for name in names)


def test_a_strict_type_checker_is_content_with_what_a_user_writes(python, tmp_path):
    (tmp_path / "user.py").write_text(USER.read_text())
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "--cache-dir", "cache", "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_misspelt_name_and_a_wrong_type_are_seen(python, tmp_path):
    text = "import tessella\ntessella.cuont\nx: str = tessella.count('m.onnx', (0, 1)).lower\ntessella.count('m.onnx', (0, 1), sceonds=3)\n"
    (tmp_path / "wrong.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "--cache-dir", "cache", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert [int(line.split(":")[1]) for line in done.stdout.splitlines() if "error:" in line] == [2, 3, 4]


def test_what_a_user_writes_runs(python, tmp_path):
    done = subprocess.run([python, USER], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()
