"""Damaged ``.keras`` files: each gives a network or one of our errors in one line, silently."""

import copy
import io
import json
import os
import warnings
import zipfile

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pytest

from tessella.errors import TessellaError
from tessella.importers.keras import read_keras

keras = pytest.importorskip("keras")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:keras.*")  # what Keras itself does in these tests

ODD = [
    None,
    True,
    -1,
    0,
    1,
    2,
    3.5,
    1e300,
    10**9,
    10**30,
    "",
    "relu",
    "softmax",
    "channels_first",
    [],
    {},
    [None],
    [-1, 2],
    "x" * 500,
]
CONFIG, WEIGHTS = "config.json", "model.weights.h5"


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    keras.utils.set_random_seed(0)
    entry = keras.Input((4, 4, 2))
    hidden = keras.layers.Conv2D(3, 2, padding="same", activation="relu")(entry)
    hidden = keras.layers.BatchNormalization()(hidden)
    hidden = keras.layers.Add()([hidden, keras.layers.DepthwiseConv2D(3, padding="same")(hidden)])
    hidden = keras.layers.Flatten()(keras.layers.AveragePooling2D(2)(hidden))
    model = keras.Model(entry, keras.layers.Dense(2)(keras.layers.Dense(5, activation="relu")(hidden)))
    path = tmp_path_factory.mktemp("fuzz") / "net.keras"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def damaged(content, rng):
    """Other bytes in a few places, or a piece lost or doubled."""
    data = bytearray(content)
    start, length = int(rng.integers(len(data))), int(rng.integers(1, 200))
    match rng.integers(4):
        case 0:
            for place in rng.integers(len(data), size=rng.integers(1, 8)):
                data[place] = rng.integers(256)
        case 1:
            del data[start:]
        case 2:
            del data[start : start + length]
        case _:
            data[start:start] = data[start : start + length]
    return bytes(data)


def places(value):
    """Every container with a key that leads on."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(items):
        yield value, key
        yield from places(child)


def altered(config, rng):
    """A value replaced by an odd one, taken from elsewhere, or lost."""
    config = copy.deepcopy(config)
    for _ in range(rng.integers(1, 3)):
        found = list(places(config))
        holder, key = found[rng.integers(len(found))]
        match rng.integers(4):
            case 0:
                del holder[key]
            case 1:
                other, name = found[rng.integers(len(found))]
                holder[key] = (
                    copy.deepcopy(other[name]) if name in other or (isinstance(other, list) and name < len(other)) else None
                )
            case _:
                holder[key] = ODD[rng.integers(len(ODD))]
    return config


def mutated(members, seed):
    rng = np.random.default_rng(seed)
    match seed % 3:
        case 0:
            return damaged(packed(members), rng)
        case 1:
            return packed({**members, CONFIG: json.dumps(altered(json.loads(members[CONFIG]), rng)).encode()})
        case _:
            return packed({**members, WEIGHTS: damaged(members[WEIGHTS], rng)})


def outcome(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return read_keras(path)
        except TessellaError as error:
            return error


@pytest.mark.parametrize("batch", range(10))
def test_damaged_files(members, tmp_path, batch, capfd):
    path = tmp_path / "net.keras"
    for seed in range(15 * batch, 15 * batch + 15):
        path.write_bytes(mutated(members, seed))
        result = outcome(path)
        if isinstance(result, TessellaError):
            assert str(result).startswith(str(path)), seed
            assert len(str(result)) < 2000, seed
            assert "\n" not in str(result), seed
        else:
            assert result.input_dim == 32, seed
    assert capfd.readouterr() == ("", "")


def test_the_whole_file_is_read(members, tmp_path):
    path = tmp_path / "net.keras"
    path.write_bytes(packed(members))
    assert outcome(path).widths == (48, 5)
