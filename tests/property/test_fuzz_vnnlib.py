"""However a property file is damaged, reading it ends in boxes or in an error of ours, and soon."""

import gzip
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.damage import damage
from tessella.domain import Box
from tessella.errors import TessellaError
from tessella.importers.vnnlib import parse_domains, read_domains

SEED_TEXT = """; a property with a bit of everything
(set-info :source |somewhere (else)|)
(declare-const X_0 Real)
(declare-fun X_1 () Real)
(declare-const X_2 Real)
(declare-const Y_0 Real)
(declare-const Y_1 Real)
(assert (<= X_0 0.5)) (assert (>= X_0 -0.3))
(assert (and (>= 1e-3 X_1) (<= (- 0.25) X_1)))
(assert (or (and (<= X_2 1) (>= X_2 0.5) (<= Y_0 Y_1)) (and (<= X_2 (/ 1 3)) (> X_2 0)) (= X_2 -2)))
(assert (or (<= X_0 0.1) (>= X_0 0.2)))
(assert (or (<= Y_0 0) (<= (+ Y_0 (* 2 Y_1)) 3.5)))
(check-sat)
"""
NAMES = ["X_0", "X_1", "X_9", "X_00", "X_", "Y_0", "Real", "true", "false", "assert", "declare-const", "and", "or", "not"]
NUMBERS = ["0", "1", "-1", "1e999", "1e-999", "nan", "inf", "0x1", "1_0", "\u0661"]
MARKS = ["(", ")", "()", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", ";", '"', "|", "\n", "\r", "\x00", "\ufeff"]
TOKENS = [*NAMES, *NUMBERS, *MARKS, "(", ")", "(or", "(and", "(<=", "(assert", "(not", "(-", "(/ 1 0)"]


def mutate_text(text: str, rng: random.Random) -> str:
    """Insert words, or delete, double, swap or cut slices; several times over."""
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice([1, 3, 20, 200]))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:start] + f" {rng.choice(TOKENS)} " + text[start:]
        elif kind == 1:
            text = text[:start] + text[end:]
        elif kind == 2:
            text = text[:end] + text[start:end] * rng.choice([1, 2, 50]) + text[end:]
        elif kind == 3:
            words = text.split(" ")
            words[rng.randrange(len(words))] = rng.choice(TOKENS)
            text = " ".join(words)
        elif kind == 4:
            text = text[:start] + rng.choice(TOKENS) * rng.choice([1, 5, 300]) + text[end:]
        elif rng.random() < 0.3:
            text = text[:start]
    return text


def ends_well(read: Callable[..., tuple[Box, ...]], *arguments: object) -> bool:
    """Whether there are boxes; otherwise there must be an error of ours, in one line."""
    boxes, message, start = tuple[Box, ...](), "", time.perf_counter()
    try:
        boxes = read(*arguments)
    except TessellaError as error:
        message = str(error)
    assert time.perf_counter() - start < 60.0, arguments
    assert bool(boxes) != bool(message), arguments
    assert "\n" not in message, arguments
    assert len(set(boxes)) == len(boxes), arguments
    return bool(boxes)


def test_the_undamaged_property_has_six_boxes() -> None:
    assert len(parse_domains(SEED_TEXT, "seed")) == 6


@pytest.mark.parametrize("seed", range(5))
def test_damaged_text_ends_in_boxes_or_one_line(seed: int) -> None:
    rng = random.Random(seed)
    read = sum(ends_well(parse_domains, mutate_text(SEED_TEXT, rng), "fuzz") for _ in range(300))
    assert 10 < read < 290


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_files_end_in_boxes_or_one_line(tmp_path: Path, packed: bool) -> None:
    rng, path = random.Random(packed), tmp_path / "fuzz.vnnlib"
    data = gzip.compress(SEED_TEXT.encode(), mtime=0) if packed else SEED_TEXT.encode()
    for _ in range(300):
        path.write_bytes(damage(data, rng))
        ends_well(read_domains, path)


def test_junk_ends_in_one_line(tmp_path: Path) -> None:
    rng, path = random.Random(5), tmp_path / "junk.vnnlib"
    for _ in range(200):
        path.write_bytes(rng.randbytes(rng.randrange(200)))
        assert not ends_well(read_domains, path)
        words = " ".join(rng.choice(TOKENS) for _ in range(rng.randrange(100)))
        assert not ends_well(parse_domains, words, "junk")
