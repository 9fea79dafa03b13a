"""However an .npz file is damaged, reading it ends in a network or in an error of ours, and soon."""

import io
import random
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from helpers.damage import damage
from tessella.errors import TessellaError
from tessella.importers.arrays import read_npz, write_npz
from tessella.network import Layer, Network

WORDS = [
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"\x93NUMPY\x01\x00",
    b"{'descr': '|O', ",
    b"<f8",
    b">c16",
    b"V0",
    b"(9999999999, 9)",
]
WORDS += [b"\xff" * 8, b"\x00" * 8, b"W0.npy", b"((((" * 99, b"'shape': (-1, 2)", b"\n", b"'fortran_order': True", b"2L", b"\\N{"]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """A dense network, one with sparse weights, and a compressed one."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("seeds") / "net.npz"
    dense = Network.from_arrays([(rng.standard_normal((3, 2)), rng.standard_normal(3)), (rng.standard_normal((1, 3)), None)])
    sparse = Network((Layer(csr_array(np.eye(3)), np.zeros(3)), Layer(csr_array(np.eye(3)[:2]), np.ones(2))))
    made = list[bytes]()
    for net in (dense, sparse):
        write_npz(net, path)
        made.append(path.read_bytes())
    np.savez_compressed(path, W1=np.ones((2, 2), dtype=np.float32), W2=np.ones((1, 2)))
    return [*made, path.read_bytes()]


def mutate_members(data: bytes, rng: random.Random) -> bytes:
    """Damage the arrays but keep the archive around them sound, so that no checksum hides what comes after."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(packed, "w") as damaged:
        chosen = rng.choice(archive.namelist())
        for name in archive.namelist():
            content = archive.read(name)
            damaged.writestr(name, damage(content, rng, WORDS) if name == chosen else content)
    return packed.getvalue()


def ends_well(data: bytes, path: Path) -> bool:
    """Whether there is a network; otherwise there must be an error of ours, in one line."""
    path.write_bytes(data)
    net, message, start = None, path.name, time.perf_counter()
    try:
        net = read_npz(path, relu_output=True)
    except TessellaError as error:
        message = str(error)
    assert time.perf_counter() - start < 60.0, data
    assert path.name in message, data
    assert "\n" not in message, data
    assert net is None or len(net.fingerprint) == 64, data
    return net is not None


@pytest.mark.parametrize("which", range(3))
def test_undamaged_archives_are_read(archives: list[bytes], which: int, tmp_path: Path) -> None:
    assert ends_well(archives[which], tmp_path / "fuzz.npz")


@pytest.mark.parametrize("which", range(3))
def test_damaged_archives_end_in_a_network_or_one_line(archives: list[bytes], which: int, tmp_path: Path) -> None:
    rng = random.Random(which)
    read = sum(ends_well(damage(archives[which], rng, WORDS), tmp_path / "fuzz.npz") for _ in range(300))
    assert read < 150


@pytest.mark.parametrize("which", range(3))
def test_damaged_arrays_in_sound_archives_end_in_a_network_or_one_line(archives: list[bytes], which: int, tmp_path: Path) -> None:
    rng = random.Random(10 + which)
    read = sum(ends_well(mutate_members(archives[which], rng), tmp_path / "fuzz.npz") for _ in range(300))
    assert 0 < read < 250


def test_junk_ends_in_one_line(tmp_path: Path) -> None:
    rng = random.Random(5)
    for _ in range(100):
        junk = rng.choice([b"", *WORDS]) + rng.randbytes(rng.randrange(200))
        assert not ends_well(junk, tmp_path / "junk.npz")
