"""A part of the goldens; all of them take longer: `python -m goldens check`, see its top.

Which values are proved is the same on every machine.  What rounding may change (numbers of tests, first steps, estimates) is looked at only where
the record was made.
"""

import pytest

from goldens.record import differences, is_proved, lines, load, machine, made

ENGINES = (
    "vertices",
    "in_inputs",
    "in_frame",
    "points",
    "points_without_mixtures",
    "count",
    "search",
    "polygons",
    "linear",
    "local",
    "upper",
    "wide",
)
NETWORKS = (
    "few-2x12",
    "few-4x12",
    "apex-2",
    "walls-4x9",
    "whole-8",
    "near-12",
    "frame-60",
    "points-128x6",
    "near-130x5",
    "odd-55",
    "digits-6",
    "wide-24x50",
)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_say_what_they_said(engine):
    record, found = load(), made(lines([engine], NETWORKS))
    differing = differences(record, found, merged=True)
    same = record.machine == machine()
    assert [one for one in differing if not one.allowed and (same or is_proved(one.line, one.place))] == []
    assert found


def test_every_line_is_recorded():
    assert {line for line, _ in lines()} == load().lines.keys()


def test_differences_are_seen():
    record = load()._replace(rounding={})
    recorded = record.lines
    line = next(line for line in recorded if line.engine == "vertices")
    for place, changed in (("regions", 1), ("thin", 1), ("tests", 1)):
        found = {line: recorded[line] | {place: recorded[line][place] + changed}}
        assert [one.place for one in differences(record, found)] == [place]
        assert [one.place for one in differences(record, found, merged=True) if not one.allowed] == [place] * (place != "tests")
    line = next(line for line in recorded if line.engine == "estimate")
    for factor, seen in ((1.0 + 1e-12, []), (1.0 + 1e-7, ["log2"])):
        found = {line: recorded[line] | {"log2": recorded[line]["log2"] * factor}}
        assert [one.place for one in differences(record, found)] == seen
