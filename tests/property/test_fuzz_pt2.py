"""However a .pt2 file is damaged, reading it ends in a network or in an error of ours, and soon."""

import io
import json
import random
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

from helpers.damage import damage

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tessella.errors import TessellaError  # noqa: E402
from tessella.importers.torch import read_pt2  # noqa: E402

WORDS = [b"PK\x03\x04", b"PK\x05\x06", b"\xff" * 8, b"\x00" * 8, b"{" * 99, b"[" * 9999, b"1e999", b"null", b'"as_int": -1']
WORDS += [b"9" * 30, b"torch.ops.aten.mm.default", b'"as_tensor"', b"true", b"\\ud800", b"\n"]
ATOMS: list[Any] = [
    None,
    -1,
    0,
    1,
    2,
    3,
    7,
    10**9,
    10**30,
    0.5,
    float("inf"),
    True,
    "",
    "input",
    "relu",
    [],
    {},
    [1],
    {"as_int": 2},
]
ATOMS += [
    f"torch.ops.aten.{name}"
    for name in ("relu_.default", "mm.default", "expand.default", "index.Tensor", "full.default", "cat.default")
]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small network with a convolution, a view and constants."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv1d(1, 2, 2), nn.BatchNorm1d(2), nn.ReLU(), nn.Flatten(), nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 1)
    )
    path = tmp_path_factory.mktemp("seeds") / "net.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dynamic = ({0: torch.export.Dim("batch")},)
        torch.export.save(torch.export.export(module.eval(), (torch.ones(2, 1, 4),), dynamic_shapes=dynamic), path)
    return path.read_bytes()


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key in a JSON value."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """Change, drop, double or swap parts of a JSON value; the result is JSON still."""
    value = json.loads(data)
    for _ in range(rng.choice([1, 1, 2, 3])):
        found = places(value)
        if not found:
            break
        holder, key = rng.choice(found)
        kind = rng.randrange(4)
        if kind == 0:
            holder[key] = rng.choice(ATOMS)
        elif kind == 1:
            del holder[key]
        elif kind == 2:
            other, place = rng.choice(found)
            holder[key] = json.loads(json.dumps(other[place]))
        elif isinstance(holder, list):
            holder.insert(key, json.loads(json.dumps(holder[key])))
    return json.dumps(value).encode()


def mutate_records(data: bytes, rng: random.Random) -> bytes:
    """Damage one record but keep the archive around it sound, so that no checksum hides what comes after."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(packed, "w") as damaged:
        names = archive.namelist()
        chosen = rng.choice(
            [name for name in names if name.endswith(".json")] + [name for name in names if name.endswith("model.json")] * 6
        )
        for name in names:
            content = archive.read(name)
            if name == chosen:
                content = mutate_json(content, rng) if rng.random() < 0.8 else damage(content, rng, WORDS)
            damaged.writestr(name, content)
    return packed.getvalue()


def ends_well(data: bytes, path: Path) -> bool:
    """Whether there is a network; otherwise there must be an error of ours, in one line."""
    path.write_bytes(data)
    net, message, start = None, path.name, time.perf_counter()
    try:
        net = read_pt2(path)
    except TessellaError as error:
        message = str(error)
    assert time.perf_counter() - start < 60.0
    assert path.name in message
    assert "\n" not in message
    return net is not None


def test_the_undamaged_archive_is_read(archive: bytes, tmp_path: Path) -> None:
    assert ends_well(archive, tmp_path / "fuzz.pt2")


def test_damaged_archives_end_in_a_network_or_one_line(archive: bytes, tmp_path: Path) -> None:
    rng = random.Random(1)
    read = sum(ends_well(damage(archive, rng, WORDS), tmp_path / "fuzz.pt2") for _ in range(60))
    assert read < 40


@pytest.mark.slow
def test_damaged_records_end_in_a_network_or_one_line(archive: bytes, tmp_path: Path) -> None:
    rng = random.Random(2)
    read = sum(ends_well(mutate_records(archive, rng), tmp_path / "fuzz.pt2") for _ in range(150))
    assert 0 < read < 140
