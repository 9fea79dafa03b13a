"""However a .safetensors file is damaged, reading it ends in a network or in an error of ours, and soon."""

import json
import random
import time

import numpy as np

from helpers.damage import damage
from tessella.errors import TessellaError
from tessella.importers.safetensors import read_safetensors

WORDS = [
    b'"F32"',
    b'"BF16"',
    b"[0, 0]",
    b"[-1]",
    b"99999999999999999999",
    b"null",
    b"{" * 99,
    b"1e999",
    b"\xff" * 8,
    b"\x00" * 8,
    b'"shape"',
]
ATOMS = [None, -1, 0, 1, 2**63, 10**30, 0.5, True, "", "F64", "I8", [], {}, [1], [2**62, 2**62]]


def archive():
    rng = np.random.default_rng(0)
    header, raw = {}, b""
    for name, shape in (("0.weight", (4, 2)), ("0.bias", (4,)), ("2.weight", (1, 4)), ("2.bias", (1,))):
        data = rng.standard_normal(shape).astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(raw), len(raw) + len(data)]}
        raw += data
    return header, raw


def packed(header, raw):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + raw


def ends_well(data, path):
    """Whether there is a network; otherwise there must be an error of ours, in one line."""
    path.write_bytes(data)
    net, message, start = None, path.name, time.perf_counter()
    try:
        net = read_safetensors(path)
    except TessellaError as error:
        message = str(error)
    assert time.perf_counter() - start < 10.0
    assert path.name in message
    assert "\n" not in message
    return net is not None


def test_the_undamaged_file_is_read(tmp_path):
    assert ends_well(packed(*archive()), tmp_path / "fuzz.safetensors")


def test_damaged_bytes_end_in_a_network_or_one_line(tmp_path):
    rng, data = random.Random(1), packed(*archive())
    read = sum(ends_well(damage(data, rng, WORDS), tmp_path / "fuzz.safetensors") for _ in range(1500))
    assert 0 < read < 900


def test_damaged_headers_end_in_a_network_or_one_line(tmp_path):
    rng, read = random.Random(2), 0
    for _ in range(1500):
        header, raw = archive()
        for _ in range(rng.choice([1, 1, 2, 4])):
            holder = rng.choice([header, *header.values()])
            if isinstance(holder, dict) and holder:
                key = rng.choice(list(holder))
                if rng.random() < 0.2:
                    holder[rng.choice(["x", "0.weight", "1.weight", "shape"])] = holder.pop(key)
                elif isinstance(holder[key], list) and holder[key] and rng.random() < 0.6:
                    holder[key][rng.randrange(len(holder[key]))] = rng.choice(ATOMS)
                else:
                    holder[key] = rng.choice(ATOMS)
        read += ends_well(packed(header, raw), tmp_path / "fuzz.safetensors")
    assert read < 700
