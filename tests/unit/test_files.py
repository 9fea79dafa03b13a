"""Files that are whole or not there."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

import tessella
from helpers.full_disk import small_files
from tessella.files import unwritable, writing
from tessella.formulation import formulate, write_model
from tessella.importers.arrays import write_npz


def put(path, content=b"new"):
    with writing(path) as file:
        file.write(content)


def test_a_file_takes_its_place_when_all_is_written(tmp_path):
    place = tmp_path / "a.txt"
    with writing(place) as file:
        file.write(b"new")
        assert not place.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert place.read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), ValueError("wrong")])
def test_what_fails_on_the_way_leaves_what_was_there(tmp_path, error):
    place = tmp_path / "a.txt"
    place.write_bytes(b"old")

    def fails():
        with writing(place) as file:
            file.write(b"new")
            raise error

    with pytest.raises(tessella.FileError if isinstance(error, OSError) else type(error)):
        fails()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert place.read_bytes() == b"old"


@pytest.mark.parametrize("old", [None, b"old"])
def test_no_file_is_left_half_written_where_the_disk_ends(tmp_path, old):
    """By every function that writes a file."""
    network = tessella.load([(np.eye(8, 2) - 0.5, np.zeros(8)), (np.ones((1, 8)), None)])
    box = tessella.Box(-1, 1, dim=2)
    model = formulate(network, box, tessella.stability(network, box, method="linear").bounds).model
    page, writers = tessella.Analysis(network, box, 1, 1, 2**8), {}
    writers["a.mps"] = writers["a.lp"] = lambda path: write_model(model, path)
    writers["a.npz"] = lambda path: write_npz(network, path)
    writers["a.html"] = lambda path: tessella.report.write(path, page)
    for name, write in writers.items():
        if old:
            (tmp_path / name).write_bytes(old)
        with small_files(200), pytest.raises(tessella.FileError, match="cannot be written"):
            write(tmp_path / name)
        assert [path.name for path in tmp_path.iterdir()] == ([name] if old else [])
        if old:
            assert (tmp_path / name).read_bytes() == old
            (tmp_path / name).unlink()


def test_a_device_is_written_to_and_stays_one():
    put("/dev/null")
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_device_is_named():
    with pytest.raises(tessella.FileError, match=r"/dev/full: cannot be written \(No space left on device\); free some space"):
        put("/dev/full")


def test_a_link_stays_a_link_and_permissions_stay(tmp_path):
    place, link = tmp_path / "a.txt", tmp_path / "link.txt"
    place.write_bytes(b"old")
    place.chmod(0o640)
    link.symlink_to(place)
    put(link)
    assert link.is_symlink()
    assert place.read_bytes() == b"new"
    assert place.stat().st_mode & 0o777 == 0o640


def test_a_file_that_may_be_written_is_written_though_its_folder_may_not(tmp_path, monkeypatch):
    place = tmp_path / "a.txt"
    place.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) == place)
    put(place)
    assert place.read_bytes() == b"new"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "(No space left on device); free some space, or choose another place"),
        (errno.EACCES, "(Permission denied); choose a folder that you may write to"),
        (errno.ENOENT, "(there is no folder there); make it first"),
        (errno.EISDIR, "(it is a folder); add the name of a file"),
        (errno.EIO, "(Input/output error); choose another place"),
    ],
)
def test_advice_is_that_for_what_went_wrong(number, words):
    said = str(unwritable("there/a.txt", OSError(number, os.strerror(number))))
    assert said.startswith("there/a.txt: cannot be written " + words)
