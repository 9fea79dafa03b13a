"""Pictures: as many polygons as regions, the colours they claim, and what is refused."""

import builtins
import importlib.util
import io
import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.path import Path

import tessella
from tessella import Box, MissingPackage, Network, OptionError, charts, plot
from tessella.mosaic import tile_colours, tiles


def random_network(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return Network.from_arrays(
        [(rng.standard_normal((n, m)), 0.5 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    )


NETWORK, BOX = random_network((2, 9, 8, 3)), Box(-1, 1, dim=2)


def drawn_polygons(figure):
    """The closed parts of all paths that are filled."""
    paths = [path for shapes in figure.axes[0].collections for path in shapes.get_paths()]
    return sum(int((path.codes == Path.CLOSEPOLY).sum()) for path in paths)


@pytest.mark.parametrize("colour", ["region", "slope"])
def test_there_are_as_many_polygons_as_regions(colour):
    figure = plot.regions(NETWORK, BOX, colour=colour)
    counted = tessella.count(NETWORK, BOX).exact
    assert drawn_polygons(figure) == counted
    assert figure.axes[0].get_title() == f"2-9-8-3 on [-1, 1]^2: {counted:,} regions"


@pytest.mark.parametrize("kind", ["axes", "points"])
def test_a_slice_is_drawn_with_as_many_polygons_as_regions(kind):
    network, domain = random_network((6, 9, 8, 3)), Box(-1, 1, dim=6)
    given = {"axes": (4, 1)} if kind == "axes" else {"points": np.random.default_rng(0).uniform(-1, 1, (3, 6))}
    chosen = tessella.slice(network, domain=domain, **given)
    figure = plot.regions(chosen)
    assert drawn_polygons(figure) == tessella.count(chosen.network, chosen.domain).exact
    labels = [figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()]
    assert labels == (["input 4", "input 1"] if kind == "axes" else [f"distance along direction {n}" for n in (1, 2)])


def test_walls_have_the_colours_of_layers():
    figure = plot.regions(NETWORK, BOX, colour="layer")
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts == ["cut by layer 1", "cut by layer 2"]
    first = figure.axes[0].collections[0].get_paths()[0].vertices.reshape(-1, 2, 2)
    values = NETWORK.preactivations(first.mean(axis=1))[0]
    assert np.abs(values).min(axis=1).max() < 1e-12


def test_slopes_are_those_of_the_output():
    found = tessella.polygons(NETWORK, BOX)
    bar = plot.regions(NETWORK, BOX, polygons=found, colour="slope", output=1).axes[0].child_axes[0]
    expected = [np.linalg.norm(NETWORK.affine_map(pattern)[0][1]) for pattern in found.patterns]
    assert bar.get_ylim() == pytest.approx((min(expected), max(expected)))
    assert bar.get_ylabel() == "slope of output 1"


def test_a_function_of_one_input_is_drawn_through_its_break_points():
    network, domain = random_network((1, 6, 5, 2)), Box(-2, 2, dim=1)
    figure = plot.regions(network, domain)
    lines = figure.axes[0].get_lines()
    assert len(lines) == 2
    places = lines[0].get_xdata()
    assert len(places) == tessella.count(network, domain).exact + 1
    between = np.linspace(-2, 2, 501)
    np.testing.assert_allclose(np.interp(between, places, lines[1].get_ydata()), network(between[:, None])[:, 1], atol=1e-9)
    assert len(plot.regions(network, domain, output=0).axes[0].get_lines()) == 1


def test_patterns_have_their_colours_whatever_else_is_drawn():
    whole, part = tessella.polygons(NETWORK, BOX), tessella.polygons(NETWORK, Box(0, 0.5, dim=2))
    colours = {tuple(pattern): tile for pattern, tile in zip(whole.patterns.tolist(), tiles(whole).tolist(), strict=True)}
    assert len(set(colours.values())) > 8
    for pattern, tile in zip(part.patterns.tolist(), tiles(part).tolist(), strict=True):
        assert colours[tuple(pattern)] == tile
    assert max(colours.values()) < len(tile_colours())


def beyond_walls(found):
    """For each wall, the region on its one side and the one that the network itself finds a little beyond it."""
    numbers = {tuple(pattern): number for number, pattern in enumerate(found.patterns.tolist())}
    size = np.ptp(found.corners, axis=0).max()
    for number in range(len(found)):
        corners = found[number]
        for begin, end in itertools.pairwise([*corners, corners[0]]):
            along = end - begin
            if np.hypot(*along) < 1e-6 * size:
                continue
            outward = np.array([along[1], -along[0]]) / np.hypot(*along)
            there = (begin + end) / 2 + 1e-8 * size * outward
            if found.domain.contains(there):
                pattern = tuple(np.concatenate(states(found.network, there)).tolist())
                if numbers.get(pattern, number) != number:
                    yield number, numbers[pattern]


def states(network, point):
    return [(value > 0)[layer.rectified] for layer, value in zip(network.layers, network.preactivations(point), strict=True)]


def twins():
    """Units in pairs that share their walls: patterns of neighbours differ in two."""
    rng = np.random.default_rng(3)
    weight, bias = rng.standard_normal((10, 2)), 0.4 * rng.standard_normal(10)
    return Network.from_arrays([(np.vstack([weight, -weight]), np.concatenate([bias, -bias])), (np.ones((1, 20)), None)])


@pytest.mark.parametrize(
    ("network", "box"),
    [
        (random_network((2, 16, 16, 1)), BOX),
        (random_network((2, 16, 16, 1), seed=1), Box(-3, 1, dim=2)),
        (random_network((2, 6, 6, 6, 6, 1), seed=2), BOX),
        (random_network((2, 60, 1), seed=3), BOX),
        (twins(), BOX),
    ],
)
def test_neighbours_have_different_tiles(network, box):
    found = tessella.polygons(network, box)
    colours, pairs = tiles(found), list(beyond_walls(found))
    assert len(pairs) > len(found)
    kinds = [tile % 8 for tile in colours.tolist()]  # shades of one tile do not count as different
    assert [pair for pair in pairs if kinds[pair[0]] == kinds[pair[1]]] == []


def test_neighbours_on_a_line_have_different_tiles():
    found = tessella.polygons(random_network((1, 12, 12, 1)), Box(-2, 2, dim=1))
    kinds = tiles(found)[np.argsort(found.centres[:, 0])] % 8
    assert len(kinds) > 8
    assert (kinds[1:] != kinds[:-1]).all()


def analysed(network, domain, **ends):
    return tessella.Analysis(network, domain, **ends, stability=tessella.stability(network, domain, method="linear"))


def test_a_bracket_shows_what_is_claimed():
    exact = analysed(NETWORK, BOX, proved_lower=200, probable_lower=200, upper=200)
    open_ended = analysed(NETWORK, BOX, proved_lower=16, probable_lower=64, upper=1024)
    figure = plot.bracket([exact, open_ended], names=["a", "b"])
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    words = {text.get_text() for text in axes.get_legend().get_texts()}
    assert words == {"exact count, proved", "proved bounds", "at least, with 95 % confidence"}
    bar = axes.patches[0]
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == (4.0, 10.0)
    assert {text.get_text() for text in axes.texts} == {"200", "16", "1,024"}
    assert len(plot.bracket(exact).axes) == 1


def test_the_heat_map_has_a_row_per_layer():
    found = tessella.stability(NETWORK, BOX, method="linear")
    figure = plot.stability(found)
    image = figure.axes[0].collections[0].get_array()
    assert image.shape == (2, 9)
    assert int(np.sum(image[0] == 1.0)) == int(found.active[0].sum())
    assert int(np.sum(image[1, :8] == 0.0)) == int(found.inactive[1].sum())
    assert (np.diff(image[0]) >= 0).all()
    texts = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert texts[0] == f"layer 1: {int(found.unstable[0].sum())} of 9 unstable"


def test_polygons_are_a_sequence():
    found = tessella.polygons(NETWORK, BOX)
    last = len(found) - 1
    np.testing.assert_array_equal(found[-1], found[last])
    np.testing.assert_array_equal(found[-len(found)], found[np.int64(0)])
    assert [part.tolist() for part in found[0:2]] == [found[0].tolist(), found[1].tolist()]
    assert [part.tolist() for part in found[:-3:-1]] == [found[last].tolist(), found[last - 1].tolist()]
    assert len(list(found)) == len(found)
    for number in (len(found), -len(found) - 1):
        with pytest.raises(IndexError, match=f"no region {number}; they have numbers 0 to {last}"):
            found[number]
    for wrong in (1.0, "a", None, (0, 1)):
        with pytest.raises(TypeError, match="a region is chosen by its number"):
            found[wrong]


def test_it_draws_where_it_is_told_to():
    figure = Figure()
    axes = figure.add_subplot()
    assert plot.regions(NETWORK, BOX, ax=axes) is figure
    assert drawn_polygons(figure) > 0


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_pictures_can_be_saved(kind):
    buffer = io.BytesIO()
    plot.regions(NETWORK, BOX, colour="layer").savefig(buffer, format=kind)
    assert len(buffer.getvalue()) > 1000


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"colour": "red"}, "one of region, layer, slope"),
        ({"output": 3}, "no output 3: the network has outputs 0 to 2"),
        ({"limit": 3}, "more than 3 regions"),
        ({"polygons": tessella.polygons(NETWORK, Box(0, 1, dim=2))}, "another network or domain"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        plot.regions(NETWORK, BOX, **given)


def test_what_is_too_narrow_to_draw_is_refused():
    with pytest.raises(OptionError, match=r"input 0 goes from 1\.0 to 1\.000000000000001, which is too narrow to draw"):
        plot.regions(NETWORK, Box(1, 1.000000000000001, dim=2))


def test_a_picture_far_from_zero_is_not_empty():
    figure = plot.regions(NETWORK, Box(1, 1 + 1e-11, dim=2))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=50)
    pixels = np.frombuffer(buffer.getvalue(), dtype=np.uint8).reshape(-1, 4)
    assert (pixels[:, :3] < 250).any(axis=1).mean() > 0.4
    assert figure.axes[0].get_title().startswith("2-9-8-3 on [1, 1.00000000001]^2: ")


def test_wrong_subjects_are_refused():
    with pytest.raises(OptionError, match="say which inputs"):
        plot.regions(NETWORK)
    with pytest.raises(OptionError, match="a domain of its own"):
        plot.regions(tessella.slice(NETWORK, domain=BOX, axes=(0, 1)), BOX)
    with pytest.raises(OptionError, match=r"tessella\.slice makes a plane"):
        plot.regions(random_network((3, 4, 1)), Box(-1, 1, dim=3))
    with pytest.raises(OptionError, match=r"what tessella\.analyze returned"):
        plot.bracket([])
    with pytest.raises(OptionError, match="1 analyses and 2 names"):
        plot.bracket(analysed(NETWORK, BOX, proved_lower=1, probable_lower=1, upper=2), names=["a", "b"])
    with pytest.raises(OptionError, match=r"what tessella\.stability returned"):
        plot.stability(NETWORK)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(charts, "find_spec", lambda name: None if name == "matplotlib" else found(name))
    with pytest.raises(MissingPackage, match=r"pip install matplotlib"):
        plot.regions(NETWORK, BOX)


def test_no_window_is_opened(monkeypatch):
    """Pyplot would look for a display."""
    really = builtins.__import__

    def refuse(name, *rest, **more):
        assert not name.startswith("matplotlib.pyplot")
        return really(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    plot.regions(NETWORK, BOX, colour="slope").savefig(io.BytesIO(), format="png")


def _boxes(figure):
    """Where things are, once they are drawn: of the axes, of what the axis is called, and of the legend."""
    figure.draw_without_rendering()
    axes = figure.axes[0]
    legend = axes.get_legend()
    return axes.get_window_extent(), axes.xaxis.label.get_window_extent(), legend and legend.get_window_extent()


def test_planes_have_axes_of_one_size_and_nothing_covers_another():
    data, labels = np.random.default_rng(0).uniform(-1, 1, (20, 2)), np.arange(20) % 2
    sizes = set()
    for colour in plot.Colour:
        for given in ({}, {"data": data, "labels": labels}):
            figure = plot.regions(NETWORK, BOX, colour=colour, **given)
            axes, label, legend = _boxes(figure)
            sizes.add((round(axes.width), round(axes.height)))
            assert label.y1 < axes.y0
            if legend:
                assert legend.y1 <= label.y0
                assert legend.x0 >= 0
                assert legend.x1 <= figure.bbox.width
            assert figure.get_tightbbox().x0 >= 0
            assert figure.get_tightbbox().y0 >= 0
    assert len(sizes) == 1


def test_the_colour_bar_is_as_tall_as_the_axes():
    wide = tessella.Box([-1, -1], [1, -0.2])
    figure = plot.regions(NETWORK, wide, colour="slope")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    bar = axes.child_axes[0]
    assert bar.get_window_extent().height == pytest.approx(axes.get_window_extent().height, rel=1e-3)


def test_examples_are_where_they_are_in_the_colours_of_their_classes():
    data, labels = np.random.default_rng(0).uniform(-1, 1, (9, 2)), ["b", "a", "a"] * 3
    axes = plot.regions(NETWORK, BOX, data=data, labels=labels).axes[0]
    drawn = {line.get_label(): line.get_xydata() for line in axes.lines if line.get_marker() == "o"}
    np.testing.assert_allclose(drawn["class b"], data[::3])
    np.testing.assert_allclose(drawn["class a"], data[[1, 2, 4, 5, 7, 8]])
    assert "the decision changes" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_points_of_a_slice_are_marked():
    network = random_network((4, 8, 2))
    points = [[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0]]
    chosen = tessella.slice(network, points, Box(-1, 1, dim=4))
    axes = plot.regions(chosen).axes[0]
    (marks,) = [line.get_xydata() for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(chosen.lift(marks), points, atol=1e-12)
    assert axes.get_legend() is None
    assert not plot.regions(tessella.slice(network, domain=Box(-1, 1, dim=4), axes=(0, 1))).axes[0].lines


def test_examples_on_a_line():
    network = random_network((1, 8, 2))
    axes = plot.regions(network, Box(-2, 2, dim=1), data=[[-1.0], [1.0]], labels=[0, 1]).axes[0]
    assert {"class 0", "class 1", "the decision changes"} <= {text.get_text() for text in axes.get_legend().get_texts()}


def test_units_that_are_not_stable_do_not_look_so():
    layers = [([[1.0], [1.0], [1.0], [1.0]], [-1.1, -0.999, 0.999, 1.1]), ([[1.0] * 4], None)]
    known = tessella.stability(layers, (-1, 1))
    assert [int(mask.sum()) for mask in (known.inactive[0], known.active[0], known.unstable[0])] == [1, 1, 2]
    figure = plot.stability(known)
    (mesh,) = figure.axes[0].collections
    colours = mesh.cmap(mesh.norm(np.asarray(mesh.get_array()).reshape(-1)))[:, :3]
    steps = np.abs(np.diff(colours, axis=0)).max(axis=1)
    assert steps[0] > 0.2
    assert steps[2] > 0.2
