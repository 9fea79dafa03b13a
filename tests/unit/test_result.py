"""Results: claims with their numbers intact."""

import json

import numpy as np
import pytest

from tessella import Bound, Counted, FileError, OptionError, Side
from tessella.result import decode_int, encode_int, format_count, format_maps, maps


@pytest.mark.parametrize(
    "value", [0, 1, 243, 2**53 + 1, 2**64, 2**64 + 1, 3**300, 7**40_000], ids=lambda value: f"{value.bit_length()} bits"
)
def test_json_keeps_every_digit(value):
    bound = Bound(value, Side.LOWER, Counted.PATTERNS, method="test", confidence=0.95, seconds=1.25)
    again = Bound.from_json(bound.to_json())
    assert again == bound
    assert again.value == value


def test_json_is_plain_and_carries_maps():
    record = json.loads(Bound(243, Side.UPPER, method="configuration").to_json())
    assert record["value"] == 243
    assert record["maps"] == pytest.approx(7.924812503605781)
    assert record["side"] == "upper"
    assert json.loads(Bound(0, Side.EXACT).to_json())["maps"] is None


def test_numpy_integers_become_python_integers():
    assert type(Bound(np.int64(3), Side.EXACT).value) is int


def test_maps_of_huge_counts():
    assert maps(2**100_000) == 100_000.0
    assert maps(3 * 2**5000) == pytest.approx(5001.584962500721)


def test_upper_bounds_are_written_rounded_up_and_lower_bounds_down():
    assert format_maps(2**20 + 1, Side.UPPER) == "20.01"
    assert format_maps(2**20 - 1, Side.LOWER) == "19.99"
    assert format_maps(2**20, Side.UPPER) == format_maps(2**20, Side.LOWER) == "20.00"
    assert format_count(10**15 - 1) == "999,999,999,999,999"
    assert format_count(2**60 + 1, Side.UPPER) == "2^60.00"  # the difference of 1e-18 bit is far below what is shown


def test_repr_says_what_is_claimed():
    assert (
        repr(Bound(8, Side.LOWER, confidence=0.95)) == "Bound(at least 8 = 2^3.00 full-dimensional regions, with 95 % confidence)"
    )
    assert "estimated" in repr(Bound(8, Side.ESTIMATE, confidence=0.0))
    assert "exactly 0 full" in repr(Bound(0, Side.EXACT))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bound(-1, Side.LOWER),
        lambda: Bound(1.5, Side.LOWER),
        lambda: Bound(True, Side.LOWER),
        lambda: Bound(1, "sideways"),
        lambda: Bound(1, Side.LOWER, "apples"),
        lambda: Bound(1, Side.LOWER, confidence=1.5),
        lambda: maps(-1),
    ],
)
def test_impossible_claims_are_refused(make):
    with pytest.raises(OptionError):
        make()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"schema": 99, "value": 1, "side": "upper"}',
        '{"schema": 1}',
        '{"schema": 1, "value": "zz", "side": "upper"}',
    ],
)
def test_foreign_json_is_refused(text):
    with pytest.raises(FileError):
        Bound.from_json(text)


def test_long_integers_are_written_in_hexadecimal():
    assert encode_int(2**64) == 2**64
    assert encode_int(1 << 20_000) == hex(1 << 20_000)
    assert decode_int(hex(1 << 20_000)) == 1 << 20_000
