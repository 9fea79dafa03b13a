"""Compiled code on disk: whatever the disk does, functions can be called."""

import errno
import logging
from pathlib import Path

import numpy as np
import pytest
from numba import config
from numba.core import caching

from tessella.kernel import shelf
from tessella.kernel.functions import apart
from tessella.kernel.record import Vector


def total(values: Vector) -> float:
    found = 0.0
    for value in values:
        found += value
    return found


@pytest.fixture(autouse=True)
def told(monkeypatch):
    monkeypatch.setattr(shelf, "_told", set())


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def files(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.rglob(f"*.{ending}"))


def test_code_is_kept_and_found_again(folder):
    first = apart(total)
    assert not first.declared.is_on_disk
    assert first(np.ones(3)) == 3.0
    assert files(folder, "nbc")
    second = apart(total)
    assert second.declared.is_on_disk
    assert second(np.ones(3)) == 3.0
    assert sum(second._call.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_again(folder, caplog, ending):
    assert apart(total)(np.ones(3)) == 3.0
    for file in files(folder, ending):
        file.write_bytes(file.read_bytes()[:20])
    assert apart(total)(np.ones(3)) == 3.0
    assert "cannot be read" in caplog.text


def test_code_of_another_process_under_our_key_is_not_loaded(folder):
    mine, later = (shelf.Files(str(folder), "total", stamp) for stamp in ("now", "after a change"))
    mine.save("a key", "code")
    assert mine.load("a key") == "code"
    (code,) = files(folder, "nbc")
    mine._save_index({"another key": code.name})  # both chose this name, and the index of the one that was first is lost
    assert mine.load("another key") is None
    later._save_index({"a key": code.name})  # the index is written, its code not yet
    assert later.load("a key") is None
    later.save("a key", "new code")
    assert later.load("a key") == "new code"


def test_a_full_disk_is_no_error_and_is_told_once(folder, caplog, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    with caplog.at_level(logging.WARNING, logger="tessella"):
        assert apart(total)(np.ones(3)) == 3.0
        assert apart(total)(np.ones(4)) == 4.0
    assert caplog.text.count("No space left on device") == 1
    assert not files(folder, "nbc")


def test_an_unwritable_cache_falls_back_to_the_users_temporary_folder(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [caching.UserProvidedCacheLocator])
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(shelf.tempfile, "gettempdir", lambda: str(tmp_path))
    with caplog.at_level(logging.WARNING, logger="tessella"):
        assert apart(total)(np.ones(3)) == 3.0
    (place,) = tmp_path.iterdir()
    assert files(place, "nbc")
    assert place.stat().st_mode & 0o077 == 0
    assert str(place) in caplog.text


def test_a_temporary_folder_that_others_can_write_is_not_used(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [caching.UserProvidedCacheLocator])
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(shelf.tempfile, "gettempdir", lambda: str(tmp_path))
    place = Path(shelf._temporary())
    place.chmod(0o777)
    with caplog.at_level(logging.WARNING, logger="tessella"):
        assert apart(total)(np.ones(3)) == 3.0
        assert apart(total)(np.ones(2)) == 2.0
    assert not files(place, "nbc")
    assert caplog.text.count("memory only") == 1
