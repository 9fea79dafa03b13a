"""The report's page without a browser: what it holds, what it says, and that names cannot break it."""

import base64
import dataclasses
import itertools
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np
import pytest

import tessella
from tessella import Box, Network, OptionError, Polytope, report
from tessella.examples import boundary
from tessella.report.data import distances


def random_network(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return Network.from_arrays(
        [(rng.standard_normal((n, m)), 0.5 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    )


NETWORK, CUBE = random_network((5, 8, 7, 3)), Box(-1, 1, dim=5)


def analysed(network, domain, **ends):
    return tessella.Analysis(network, domain, **ends, stability=tessella.stability(network, domain, method="linear"))


FOUND = analysed(NETWORK, CUBE, proved_lower=2, probable_lower=500, upper=2**60 + 7)


class Reader(HTMLParser):
    """Elements, and the text of each kind of them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1))


def test_the_page_has_all_its_parts():
    past = report.Provenance("model.onnx", "ab" * 32, ("tessella", "report", "my model.onnx"), datetime(2026, 1, 2, tzinfo=UTC))
    text = report.page(FOUND, provenance=past)
    assert "{{" not in text
    for words in (
        "model.onnx",
        "ab" * 32,
        "tessella report &#x27;my model.onnx&#x27;",
        "2026-01-02 00:00 UTC",
        NETWORK.fingerprint,
    ):
        assert words in text
    assert "with 95 % confidence" in text
    assert tessella.__version__ in text


def test_nothing_is_loaded_from_anywhere():
    text = report.page(FOUND)
    reader = Reader(text)
    for tag, attributes in reader.elements:
        assert tag not in {"img", "iframe", "object", "embed", "base"}
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
    assert "@import" not in text
    assert "url(" not in text
    assert {found.group() for found in re.finditer(r"https?://[^\"' ]+", text)} == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\" onload='x' &amp; {{data}}"]
)
def test_names_are_shown_and_never_run(name):
    past = report.Provenance(name, "", ("tessella", name))
    reader = Reader(report.page(FOUND, provenance=past))
    assert sum(tag == "script" for tag, _ in reader.elements) == 2
    assert not any(tag == "img" or "onload" in attributes for tag, attributes in reader.elements)
    assert "".join(reader.texts["h1"]) == name


def test_the_data_are_the_regions():
    explorer = report.explore(NETWORK, CUBE)
    data = data_of(report.page(FOUND, shown=explorer))
    found = explorer.polygons
    assert data["count"] == len(found) == tessella.count(explorer.slice.network, explorer.slice.domain).exact
    bits = np.frombuffer(base64.b64decode(data["patterns"]), dtype=np.uint8).reshape(len(found), -1)
    np.testing.assert_array_equal(np.unpackbits(bits, axis=1)[:, :15], found.patterns)
    corners = np.frombuffer(base64.b64decode(data["corners"]), dtype="<f4").reshape(-1, 2) + data["base"]
    np.testing.assert_allclose(corners, found.corners, atol=1e-5)
    assert data["layers"] == [8, 7]
    assert (data["outputs"], data["listed"]) == (3, 3)


def test_regions_on_the_slice_raise_the_proved_bound():
    explorer = report.explore(NETWORK, CUBE)
    assert len(explorer.polygons) > 2
    text = report.page(FOUND, shown=explorer)
    assert f"Between <strong>{len(explorer.polygons):,}</strong>" in text
    assert "regions on the slice that is shown are a proved lower bound" in text


def test_the_default_slice_goes_through_the_centre():
    explorer = report.explore(NETWORK, CUBE)
    assert explorer.slice.origin.tolist() == [0.0] * 5
    assert "drawn with seed 0" in explorer.where
    assert report.explore(random_network((2, 5, 1)), Box(-1, 1, dim=2)).slice is None
    assert report.explore(random_network((1, 5, 1)), Box(-1, 1, dim=1)).polygons.dim == 1
    within = Polytope([[1.0, 1.0, 0, 0, 0]], [0.5], CUBE)
    assert within.contains(report.explore(NETWORK, within).slice.origin)
    assert len(report.explore(random_network((3, 5, 1)), Box(-1, [1, 1, -1])).polygons) > 1  # one input is fixed


@pytest.mark.parametrize("kind", ["box", "polytope"])
def test_a_rich_slice_is_shown_in_part_and_says_so(kind):
    network = random_network((2, 30, 30, 1))
    domain = Box(-1, 1, dim=2) if kind == "box" else Polytope([[1.0, 1.0]], [1.0], Box(-1, 1, dim=2))
    explorer = report.explore(network, domain, limit=100)
    assert 60 <= len(explorer.polygons) <= 100  # not much smaller than it must be
    assert explorer.share < 1.0
    assert f"{100 * explorer.share:.3g} % as wide" in explorer.note
    assert domain.contains(explorer.polygons.corners * (1 - 1e-12)).all()
    assert explorer.note in report.page(analysed(network, domain, proved_lower=1, probable_lower=1, upper=10**6), shown=explorer)


def test_an_interrupted_analysis_says_so_beside_its_answer():
    stopped = dataclasses.replace(FOUND, status="interrupted", seconds=3.0)
    card = report.page(stopped).split("</section>")[0]
    assert "Stopped early: the analysis was interrupted after 3.0 s." in card
    assert "Stopped early" not in report.page(FOUND)
    exact = analysed(NETWORK, CUBE, proved_lower=10**6, probable_lower=10**6, upper=10**6, status="interrupted")
    assert "Stopped early" not in report.page(exact)


def test_it_says_what_is_counted_where_maxima_have_more_than_two_values():
    source = tessella.Source("onnx", "m.onnx", units=(("comparison in a larger maximum", 15),))
    compared = dataclasses.replace(NETWORK, source=source)
    ends = {"proved_lower": 2, "probable_lower": 500, "upper": 2**60}
    words = "told apart by every comparison of their maxima, also where the same value wins"
    for found in (analysed(compared, CUBE, **ends), analysed(compared, CUBE, **dict.fromkeys(ends, 10**6))):
        assert words in report.page(found).split("</section>")[0]
    assert words not in report.page(FOUND)


def test_a_slice_that_was_asked_for_is_named_so():
    chosen = tessella.slice(NETWORK, domain=CUBE, axes=(3, 1))
    assert report.explore(NETWORK, CUBE, slice=chosen).where == "Inputs 3 and 1, as asked."


def test_what_does_not_belong_together_is_refused():
    other = Box(0, 1, dim=5)
    with pytest.raises(OptionError, match="another network or domain"):
        report.explore(NETWORK, other, slice=tessella.slice(NETWORK, domain=CUBE, axes=(0, 1)))
    with pytest.raises(OptionError, match="another network or domain than what was analysed"):
        report.page(FOUND, shown=report.explore(NETWORK, other))
    with pytest.raises(OptionError, match=r"limit is 0; .* takes a whole number of regions, at least 1"):
        report.explore(NETWORK, CUBE, limit=0)


def test_files_that_cannot_be_written_or_read_are_named(tmp_path):
    with pytest.raises(tessella.FileError, match="cannot be written"):
        report.write(tmp_path / "no" / "report.html", FOUND)
    with pytest.raises(tessella.FileError, match="cannot be read"):
        report.Provenance.of(tmp_path / "none.onnx")


def test_the_page_says_what_a_region_is():
    text = " ".join(report.page(FOUND).split())
    assert "Such a tile is a <em>linear region</em>" in text


def test_an_exact_count_is_a_sentence():
    small = random_network((2, 3, 1))
    found = tessella.analyze(small, (-1, 1), seconds=5)
    drawings = [attributes for tag, attributes in Reader(report.page(found)).elements if tag == "svg"]
    assert [drawing["class"] for drawing in drawings] == ["wide", "narrow"]  # of the units alone
    assert f"Exactly <strong>{found.exact}</strong> linear regions, proved." in report.page(found)


def _at(network, point):
    return int(np.argmax(network(point)))


@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_the_decision_changes_where_the_largest_output_does(outputs):
    network = random_network((2, 7, outputs), seed=outputs)
    found = tessella.polygons(network, Box(-1, 1, dim=2))
    pieces = boundary(found)
    assert len(pieces)
    decide = (lambda point: bool(network(point)[0] > 0)) if outputs == 1 else (lambda point: _at(network, point))
    for start, end in pieces:  # across each piece the decision is another one
        across = np.array([start[1] - end[1], end[0] - start[0]])
        if np.hypot(*across) > 1e-3:
            step, middle = 1e-6 * across / np.hypot(*across), (start + end) / 2
            assert decide(middle + step) != decide(middle - step)
    rng = np.random.default_rng(1)
    for start, end in rng.uniform(-1, 1, (200, 2, 2)):  # and whoever walks from one decision to another crosses one
        if decide(start) != decide(end):
            assert any(_cross(start, end, *piece) for piece in pieces)


def _cross(a, b, c, d):
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) <= 1e-9 and side(c, d, a) * side(c, d, b) <= 1e-9


def test_the_decision_on_a_line():
    network = random_network((1, 6, 3), seed=9)
    places = boundary(tessella.polygons(network, Box(-3, 3, dim=1))).reshape(-1)
    x = np.linspace(-3, 3, 20_001)
    changes = np.flatnonzero(np.diff(np.argmax(network(x[:, None]), axis=1)))
    assert len(places) == len(changes)
    np.testing.assert_allclose(np.sort(places), x[changes], atol=1e-3)


def test_the_plane_goes_through_three_of_the_data_of_different_classes():
    rng = np.random.default_rng(0)
    data = rng.uniform(-1, 1, (20, 5))
    labels = [0] * 8 + [1] * 8 + [2] * 4
    explorer = report.explore(NETWORK, CUBE, data=data, labels=labels)
    assert explorer.where == "The plane through examples 0 (class 0), 8 (class 1) and 16 (class 2) of the data."
    np.testing.assert_allclose(explorer.slice.lift(explorer.places), data[[0, 8, 16]], atol=1e-12)
    record = data_of(report.page(analysed(NETWORK, CUBE, proved_lower=1, probable_lower=1, upper=2**15), shown=explorer))
    assert record["classes"] == ["0", "1", "2"]
    places = np.frombuffer(base64.b64decode(record["points"]), dtype="<f4").reshape(-1, 2) + record["base"]
    np.testing.assert_allclose(places, explorer.places, atol=1e-6)
    unlabelled = report.explore(NETWORK, CUBE, data=data)
    assert unlabelled.where == "The plane through examples 0, 1 and 2 of the data."
    assert unlabelled.boundary is not None
    assert report.explore(NETWORK, CUBE).boundary is None


def test_points_of_a_slice_that_was_asked_for_are_marked():
    points = np.array([[0.0] * 5, [0.5] * 5, [0.5, 0, 0, 0, 0.0]])
    explorer = report.explore(NETWORK, CUBE, slice=tessella.slice(NETWORK, points, CUBE))
    np.testing.assert_allclose(explorer.slice.lift(explorer.places), points, atol=1e-12)
    assert report.explore(NETWORK, CUBE).examples is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"labels": [1]}, "labels are those of data"),
        ({"data": [[0.0] * 4]}, "with 5 inputs each"),
        ({"data": [[0.0] * 5], "labels": [1, 2]}, "1 examples and 2 labels"),
        ({"data": [[np.nan] * 5]}, "not finite"),
        ({"data": [["x"] * 5]}, "cannot be read as numbers"),
        ({"data": [[0.0] * 5] * 3}, "span no plane"),
        ({"data": np.zeros((60, 5)), "labels": range(60)}, "at most 50 classes"),
    ],
)
def test_data_that_cannot_be_shown_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        report.explore(NETWORK, CUBE, **given)


def test_several_networks_are_compared():
    found = {
        name: analysed(random_network((5, width, 3)), CUBE, proved_lower=1, probable_lower=1, upper=2**width)
        for name, width in (("<b>", 4), ("other", 6))
    }
    ranking = tessella.rank(found)
    text = report.page(ranking, provenance={"other": report.Provenance("other.onnx", "ab" * 32)})
    reader = Reader(text)
    assert sum(tag == "script" for tag, _ in reader.elements) == 3
    assert "".join(reader.texts["h1"]) == "2 networks compared"
    assert not any(tag == "b" for tag, _ in reader.elements)
    assert "ab" * 32 in text
    names = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(names) == len(set(names))
    with pytest.raises(OptionError, match="there is no 'third' in this ranking"):
        report.page(ranking, provenance={"third": report.Provenance()})
    with pytest.raises(OptionError, match="give a dictionary"):
        report.page(ranking, provenance=report.Provenance())


def test_data_have_a_part_of_their_own():
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1.2, 1.2, (40, 5))
    shown = report.explore(NETWORK, CUBE, data=inputs, labels=[0, 1] * 20)
    text = report.page(FOUND, shown=shown)
    part = text.partition('id="data-section"')[2].partition("</section>")[0]
    regions = len({row.tobytes() for row in NETWORK.patterns(inputs)})
    assert f"40 examples lie in {regions} different regions" in part
    outside = int((np.abs(inputs) > 1).any(axis=1).sum())
    assert f"{outside} of the examples lie outside of the domain." in part
    assert part.count("<tr>") == 4  # the heads, all, and two classes
    assert "data-section" not in report.page(FOUND)
    few = report.page(FOUND, shown=report.explore(NETWORK, CUBE, data=inputs))
    assert few.partition('id="data-section"')[2].partition("</section>")[0].count("<tr>") == 2


def test_distances_to_walls_are_those_of_the_region():
    """No step shorter than the distance leaves the region, and one a little longer does."""
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-1, 1, (25, 5))
    patterns = NETWORK.patterns(inputs)
    found = distances(NETWORK, CUBE.box.free, inputs, patterns)
    for point, pattern, away in zip(inputs, patterns, found, strict=True):
        steps = rng.standard_normal((200, 5))
        steps *= 0.999 * away / np.linalg.norm(steps, axis=1, keepdims=True)
        assert (NETWORK.patterns(point + steps) == pattern).all()
        rows, limits = tessella.Region(NETWORK, CUBE, pattern).inequalities()
        rows, limits = rows[: NETWORK.relus], limits[: NETWORK.relus]
        sizes = np.linalg.norm(rows, axis=1)
        place = np.argmin((limits - rows @ point) / sizes)
        across = point + 1.001 * away * rows[place] / sizes[place]
        assert (NETWORK.patterns(across) != pattern).any()
    late = distances(NETWORK, CUBE.box.free, inputs, patterns, seconds=1e-9)
    assert np.isnan(late).any()
