"""What people do with a result: JSON and back, a table in a notebook, a data frame."""

import json
import pickle
import sys
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import tessella
from helpers.onnx_models import model, node
from tessella.preactivation import PreactivationBounds
from tessella.tracking import Record

LAYERS = [([[1.0, 0.0], [1.0, 1.0], [0.5, -1.0]], [0.0, 0.5, 0.25]), ([[1.0, -1.0, 1.0]], None)]
NETWORK = tessella.load(LAYERS)
SQUARE = tessella.Box(-1, 1, dim=2)
TRIANGLE = tessella.Polytope([[1.0, 1.0]], [0.5], SQUARE)
SPACE = tessella.Box(-np.inf, np.inf, dim=2)


def _analysis(domain=SQUARE):
    return tessella.analyze(NETWORK, domain, seconds=5)


RESULTS = {
    "count": lambda: tessella.count(NETWORK, TRIANGLE),
    "count of all of space": lambda: tessella.count(NETWORK, SPACE),
    "estimate": lambda: tessella.estimate(NETWORK, SQUARE, probes=10),
    "mipbound": lambda: tessella.mipbound(NETWORK, SQUARE),
    "upper bounds": lambda: tessella.upper_bounds(NETWORK, SQUARE),
    "upper bounds anywhere": lambda: tessella.upper_bounds(NETWORK),
    "stability": lambda: tessella.stability(NETWORK, TRIANGLE),
    "stability in all of space": lambda: tessella.stability(NETWORK, SPACE),
    "compression": lambda: tessella.compress(NETWORK, TRIANGLE),
    "ranges": lambda: tessella.stability(NETWORK, SQUARE).bounds,
    "analysis": _analysis,
    "ranking": lambda: tessella.rank({"one": _analysis(), "other": _analysis()}),
    "polygons": lambda: tessella.polygons(NETWORK, SQUARE),
    "region": lambda: next(tessella.regions(NETWORK, TRIANGLE)),
    "sampled region": lambda: tessella.sample_regions(NETWORK, SQUARE, 1)[0],
    "bound": lambda: tessella.Bound(3**300, tessella.Side.LOWER, confidence=0.95),
    "record": lambda: tessella.track(LAYERS, SQUARE, probes=10).step(),
}


@pytest.mark.parametrize("name", RESULTS)
def test_json_gives_the_result_back(name):
    found = RESULTS[name]()
    again = type(found).from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert repr(again) == repr(found)
    assert str(again.rows()) == str(found.rows())
    if type(found).__eq__ is not object.__eq__ and name not in {"upper bounds", "analysis", "ranking"}:
        assert again == found
    assert pickle.loads(pickle.dumps(again)).to_json() == found.to_json()


@pytest.mark.parametrize("name", RESULTS)
def test_dictionaries_hold_plain_values_only(name):
    def check(value):
        assert type(value) in {dict, list, str, int, float, bool, type(None)}, repr(value)
        for part in value.values() if type(value) is dict else value if type(value) is list else ():
            check(part)

    check(RESULTS[name]().to_dict())


class _Page(HTMLParser):
    """The cells of the tables, and whether each element is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, _attributes):
        self.open.append(tag)
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and ({"td", "th"} & set(self.open)):
            self.cells[-1] += data


@pytest.mark.parametrize("name", RESULTS)
def test_notebooks_show_a_table_for_light_and_dark_pages(name):
    found = RESULTS[name]()
    page = found._repr_html_()
    assert "prefers-color-scheme: dark" in page
    assert 'data-jp-theme-light="false"' in page
    cells = _Page(page).cells
    assert cells[: len(found.rows()[0])] == [key.replace("_", " ") for key in found.rows()[0]]


def test_numbers_in_notebooks_are_rounded_to_their_side():
    page = tessella.Bound(2**80 + 1, tessella.Side.UPPER)._repr_html_()
    assert "2<sup>80.00</sup>" in page
    assert "2^" not in page
    few = tessella.Bound(243, tessella.Side.UPPER)
    assert _Page(few._repr_html_()).cells[5:8] == ["at most", "243", "7.93"]


def test_what_a_network_is_called_cannot_become_html():
    known = replace(_analysis(), choices="<script>alert(1)</script>")
    assert "<script>" not in known._repr_html_()


def test_long_tables_are_cut_short_in_notebooks():
    known = PreactivationBounds((np.zeros(50),), (np.ones(50),), tessella.stability(NETWORK, SQUARE).bounds.method)
    assert "and 30 more; to_frame() has all." in known._repr_html_()


def test_a_tracker_has_a_table():
    tracker = tessella.track(LAYERS, SQUARE, probes=10)
    assert "Regions while the network is trained" in tracker._repr_html_()
    tracker.step()
    tracker.step()
    assert [row["epoch"] for row in tracker.rows()] == [0, 1]
    assert "unstable" in tracker._repr_html_()


def test_a_network_that_is_known_by_name_says_what_it_lacks():
    again = tessella.Count.from_json(tessella.count(NETWORK, SQUARE).to_json())
    assert again.network == NETWORK
    assert again.network == NETWORK
    assert (again.network.shape, again.network.relus, again.network.input_dim) == (NETWORK.shape, 3, 2)
    assert again.network.fingerprint == NETWORK.fingerprint
    for use in (
        lambda: again.network([0.0, 0.0]),
        lambda: again.network.layers,
        lambda: again.network.outline,
        lambda: tessella.count(again.network, SQUARE),
        lambda: tessella.polygons(again.network, SQUARE),
    ):
        with pytest.raises(tessella.NetworkError, match="not in the JSON that it was read from"):
            use()
    assert not hasattr(again.network, "weights")


def test_the_network_may_be_handed_over():
    text = tessella.polygons(NETWORK, SQUARE).to_json()
    with pytest.raises(tessella.NetworkError):
        tessella.Polygons.from_json(text).affine_maps()
    again = tessella.Polygons.from_json(text, network=NETWORK)
    assert again.network is NETWORK
    assert np.array_equal(again.affine_maps()[0], tessella.polygons(NETWORK, SQUARE).affine_maps()[0])
    other = tessella.load([([[1.0, 2.0]], None)])
    with pytest.raises(tessella.FileError, match="give the network that it is about"):
        tessella.Polygons.from_json(text, network=other)
    ranking = RESULTS["ranking"]()
    named = tessella.Ranking.from_json(ranking.to_json(), networks={"one": NETWORK})
    assert named.analyses["one"].network is NETWORK


def test_masks_of_units_come_back():
    found = tessella.stability(NETWORK, SQUARE)
    again = tessella.Stability.from_json(found.to_json())
    for kind in ("active", "inactive", "unstable", "active_leaning", "inactive_leaning"):
        assert all(map(np.array_equal, getattr(again, kind), getattr(found, kind)))


def test_domains_come_back():
    for domain in (SQUARE, TRIANGLE, SPACE, tessella.Box([0, -np.inf], [0, 3.0])):
        assert tessella.Count.from_dict(tessella.count(NETWORK, domain).to_dict()).domain == domain


def test_integers_of_any_size_come_back():
    huge = replace(tessella.count(NETWORK, SQUARE), lower=7, upper=3**20_000)
    assert isinstance(huge.to_dict()["upper"], str)
    assert tessella.Count.from_json(huge.to_json()).upper == 3**20_000


_DAMAGES = {
    "empty": lambda _: {},
    "another schema": lambda _: {"schema": 2},
    "nothing but the schema": lambda _: {"schema": 1},
    "without lower": lambda whole: {name: value for name, value in whole.items() if name != "lower"},
    "lower is a word": lambda whole: whole | {"lower": "many"},
    "lower is a truth": lambda whole: whole | {"lower": True},
    "seconds are a word": lambda whole: whole | {"seconds": "long"},
    "unknown status": lambda whole: whole | {"status": "asleep"},
    "no network": lambda whole: whole | {"network": None},
    "half a network": lambda whole: whole | {"network": {"shape": "1-2"}},
    "half a domain": lambda whole: whole | {"domain": {"lower": [0]}},
    "an empty domain": lambda whole: whole | {"domain": {"lower": [1], "upper": [0]}},
    "a number as a domain": lambda whole: whole | {"domain": 3},
}


@pytest.mark.parametrize("name", _DAMAGES)  # the same names in every process: results hold times
def test_damaged_json_is_refused_in_one_line(name):
    record = _DAMAGES[name](tessella.count(NETWORK, SQUARE).to_dict())
    with pytest.raises(tessella.TessellaError) as error:
        tessella.Count.from_json(json.dumps(record))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in {"bound", "record", "ranges"}])
def test_anything_missing_is_an_error_of_ours_or_a_default(name):
    kind, whole = type(RESULTS[name]()), RESULTS[name]().to_dict()
    for key in whole:
        part = {other: value for other, value in whole.items() if other != key}
        for damaged in (part, {**part, key: {"odd": []}}, {**part, key: [1, "x"]}):
            try:
                kind.from_dict(damaged)
            except tessella.TessellaError as error:
                assert "\n" not in str(error)


def test_an_estimate_says_its_power_of_two_once():
    few = tessella.estimate(NETWORK, SQUARE, probes=10)
    large = replace(
        few, exact=None, maps=79.9, maps_interval=(79.8, 80.0), relative_error=0.1, lower=1, confidence=0.95, upper=None
    )
    assert repr(large).startswith("Estimate(about 2^79.90 regions, at least 1 with 95 % confidence, ")
    small = replace(large, maps=10.0)
    assert repr(small).startswith("Estimate(about 1,024 regions = 2^10.00, ")
    wide = replace(large, maps_interval=(77.0, 83.25))
    assert repr(wide).startswith("Estimate(about 2^77.0 to 2^83.2 regions, at least 1 with 95 % confidence, ")
    unknown = replace(large, maps_interval=None)
    assert repr(unknown).startswith("Estimate(at least 1 with 95 % confidence; too uncertain to estimate, ")


def test_an_interval_says_what_it_rests_on():
    few = tessella.estimate(NETWORK, SQUARE, probes=10)
    ends = replace(few, exact=None, maps=6.0, maps_interval=(4.0, 8.0), lower=16, upper=256, confidence=0.95)
    assert ends.maps_interval_kind == ends.to_dict()["maps_interval_kind"] == "guaranteed"
    assert ends.rows()[1]["sure"] == "estimated, between the probable bounds"
    narrower = replace(ends, maps_interval=(4.0, 7.5))
    assert narrower.maps_interval_kind == "measured"
    assert narrower.rows()[1]["sure"] == "estimated, from the spread of runs"
    assert replace(ends, maps_interval=None).maps_interval_kind is None
    assert type(ends).from_json(ends.to_json()).maps_interval_kind == "guaranteed"
    made = tessella.analyze(NETWORK, SQUARE, seconds=30.0)
    assert (made.maps_interval_kind, made.to_dict()["maps_interval_kind"]) == ("guaranteed", "guaranteed")  # it was counted


def test_a_data_frame_has_named_columns(monkeypatch):
    made = SimpleNamespace(DataFrame=lambda rows: rows)
    monkeypatch.setitem(sys.modules, "pandas", made)
    assert set(tessella.count(NETWORK, SQUARE).to_frame()[0]) == {"claim", "count", "maps", "sure", "method"}
    assert len(tessella.polygons(NETWORK, SQUARE).to_frame()) == tessella.count(NETWORK, SQUARE).exact
    assert {"layer", "unit", "lower", "upper"} == set(tessella.stability(NETWORK, SQUARE).bounds.to_frame()[0])


def test_a_data_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(tessella.MissingPackage, match="pip install pandas"):
        tessella.count(NETWORK, SQUARE).to_frame()


def test_a_record_of_training_comes_back():
    record = tessella.track(LAYERS, SQUARE, probes=10).step()
    assert Record.from_json(record.to_json()) == record


def test_notebooks_say_what_is_counted_where_maxima_have_more_than_two_values():
    rng = np.random.default_rng(0)
    nodes = [node("Gemm", "xw", "v"), node("MaxPool", "u", kernel_shape=[3])]
    nodes.insert(1, node("Reshape", "vs", "u"))
    net = tessella.load(model(nodes, (1, 2), {"w": rng.normal(size=(2, 6)), "s": np.array([1, 1, 6])}))
    box = tessella.Box(-1, 1, dim=2)
    found = tessella.analyze(net, box, seconds=2)
    for answer in (
        tessella.count(net, box),
        tessella.estimate(net, box, probes=2),
        tessella.upper_bounds(net, box),
        tessella.stability(net, box),
        tessella.polygons(net, box),
        tessella.mipbound(net, box, repetitions=1, confidence=0.4),
        next(tessella.regions(net, box)),
        found,
        tessella.rank({"pooled": found, "again": found}),
    ):
        page = answer._repr_html_()
        assert "told apart by every comparison of their maxima" in page, answer
    plain = tessella.load([([[1.0, 2.0]], [0.5]), ([[1.0]], [0.0])])
    assert "comparison" not in tessella.count(plain, box)._repr_html_()
