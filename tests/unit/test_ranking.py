"""Which network has more regions, and how sure that is."""

import json

import numpy as np
import pytest
from scipy import stats

import tessella
from tessella.analysis.ranking import Verdict, rank
from tessella.analysis.result import Analysis
from tessella.estimating.estimate import Estimate

NET = tessella.Network.from_arrays([(np.eye(2), np.zeros(2))], relu_output=True)
BOX = tessella.Box.cube(-1, 1, 2)


def known(lower, upper, probable=None, mean=None, error=0.1, probes=50):
    guess = None if mean is None else Estimate(NET, BOX, np.log2(mean), error, 1, 0.975, probes=probes)
    return Analysis(NET, BOX, lower, probable or lower, upper, confidence=0.975, estimate=guess)


def verdict(one, other):
    (pair,) = rank({"a": one, "b": other}).comparisons
    return pair.verdict, pair.more


def test_proofs_come_first():
    assert verdict(known(11, 20), known(5, 10)) == (Verdict.PROVED, "a")
    assert verdict(known(5, 10), known(11, 20)) == (Verdict.PROVED, "b")
    assert verdict(known(7, 7), known(7, 7))[0] is Verdict.EQUAL
    assert verdict(known(7, 7), known(8, 8)) == (Verdict.PROVED, "b")
    assert verdict(known(5, 10), known(10, 20))[0] is Verdict.UNDECIDED


def test_a_pair_says_its_verdict_in_plain_words():
    (pair,) = rank({"a": known(11, 20), "b": known(5, 10)}).comparisons
    assert [type(value) for value in pair.to_dict().values()] == [str, str, str, type(None)]
    assert pair.to_dict()["verdict"] == "proved"


def test_probable_bounds_stand_against_proved_ones():
    found = rank({"a": known(5, 99, probable=30, mean=40), "b": known(5, 20, probable=6, mean=7)})
    assert found.comparisons[0].verdict is Verdict.PROBABLE
    assert found.confidence == pytest.approx(0.95)
    assert found.names == ("a", "b")


def test_estimates_are_tested_as_welch_does():
    one, other = known(1, 10**6, mean=1000.0, error=0.05, probes=12), known(1, 10**6, mean=800.0, error=0.08, probes=30)
    (pair,) = rank({"a": one, "b": other}).comparisons
    expected = stats.ttest_ind_from_stats(
        np.log(1000.0), 0.05 * np.sqrt(12), 12, np.log(800.0), 0.08 * np.sqrt(30), 30, equal_var=False
    ).pvalue
    assert pair.p_value == pytest.approx(expected)
    assert pair.verdict is (Verdict.ESTIMATED if expected < 0.05 else Verdict.UNDECIDED)


def test_an_exact_count_stands_against_an_estimate():
    (pair,) = rank({"a": known(500, 500), "b": known(1, 10**6, mean=1000.0, error=0.05, probes=20)}).comparisons
    assert (pair.verdict, pair.more) == (Verdict.ESTIMATED, "b")
    assert pair.p_value == pytest.approx(2 * stats.t.sf(np.log(2.0) / 0.05, 19))


def test_many_pairs_are_corrected():
    nets = {name: known(1, 10**6, mean=mean, error=0.1, probes=40) for name, mean in (("a", 130.0), ("b", 100.0), ("c", 99.0))}
    alone = {pair: rank(dict(pair)).comparisons[0].p_value for pair in (tuple(nets.items())[:2], tuple(nets.items())[1:])}
    found = rank(nets)
    values = sorted(each.p_value for each in found.comparisons)
    raw = sorted([*alone.values(), rank({"a": nets["a"], "c": nets["c"]}).comparisons[0].p_value])
    assert values[0] == pytest.approx(3 * raw[0])
    assert values[1] == pytest.approx(max(3 * raw[0], 2 * raw[1]))
    assert all(each.verdict is Verdict.UNDECIDED for each in found.comparisons if each.p_value >= 0.05)


@pytest.mark.parametrize("other", [known(1, 10**6), known(1, 10**6, mean=5000.0, error=np.inf, probes=1)])
def test_without_an_error_nothing_is_said(other):
    (pair,) = rank({"a": known(1, 10**6, mean=100.0), "b": other}).comparisons
    assert (pair.verdict, pair.p_value) == (Verdict.UNDECIDED, None)


def test_misuse_is_refused():
    with pytest.raises(tessella.OptionError, match="at least two"):
        rank({"a": known(1, 2)})
    elsewhere = Analysis(NET, tessella.Box.cube(0, 1, 2), 1, 1, 2)
    with pytest.raises(tessella.OptionError, match="different domains"):
        rank({"a": known(1, 2), "b": elsewhere})
    with pytest.raises(tessella.OptionError, match="no pair"):
        rank({"a": known(1, 2), "b": known(1, 3)}).between("a", "z")


def test_json():
    record = json.loads(rank({"a": known(1, 2), "b": known(3, 4)}).to_json())
    assert record["order"] == ["b", "a"]
    assert record["comparisons"] == [{"more": "b", "fewer": "a", "verdict": "proved", "p_value": None}]


def test_no_false_alarms_where_networks_are_alike():
    """Under the null hypothesis the test speaks about as often as its level says."""
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(400):
        drawn = []
        for _ in range(2):
            values = rng.gamma(4.0, 25.0, size=40)  # like probes: positive and skewed
            error = values.std(ddof=1) / np.sqrt(len(values)) / values.mean()
            drawn.append(known(1, 10**6, mean=values.mean(), error=error, probes=len(values)))
        alarms += rank({"a": drawn[0], "b": drawn[1]}).comparisons[0].verdict is Verdict.ESTIMATED
    assert 4 <= alarms <= 40  # 20 are expected


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 2, float("nan"), True, "0.05"])
def test_a_level_is_a_p_value(level):
    with pytest.raises(tessella.OptionError, match="level is"):
        rank({"a": known(1, 2), "b": known(3, 4)}, level=level)


def test_a_ranking_takes_names():
    with pytest.raises(tessella.OptionError, match="takes a dictionary"):
        rank([known(1, 2), known(3, 4)])


def test_a_ranking_reads_as_what_is_known():
    """Never one of two equal ones before the other."""
    found = rank({"a": known(7, 7), "b": known(7, 7), "c": known(1, 7), "d": known(1, 1)})
    assert repr(found).startswith("Ranking(")
    assert "a = b (proved)" in repr(found)
    assert repr(rank({"one": known(2, 2), "two": known(3, 3)})) == "Ranking(two > one (proved))"
