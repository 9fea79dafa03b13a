"""Pictures of statistics, of three inputs, and of training: what is drawn is what was asked for."""

import itertools
import sys

import numpy as np
import pytest

import tessella
from tessella import Box, MissingPackage, Network, OptionError, plot
from tessella.summarising.statistics import Statistic, of_polygons


def random_network(sizes, seed=0):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)), 0.4 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    return Network.from_arrays(layers)


NETWORK = random_network((2, 6, 5, 3))


@pytest.mark.parametrize("name", list(Statistic))
def test_statistics_of_polygons_are_those_of_a_summary(name):
    if name is Statistic.SHARE:
        pytest.skip("a share of the area is exact here, and found by points there")
    summary = tessella.summarise(NETWORK, (-1, 1), name)
    listed = tessella.graph(NETWORK, (-1, 1)).patterns
    polygons = tessella.polygons(NETWORK, (-1, 1))
    order = {row.tobytes(): number for number, row in enumerate(listed)}
    values = summary.distribution(name).values[[order[row.tobytes()] for row in polygons.patterns]]
    np.testing.assert_allclose(of_polygons(name, polygons), values, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("colour", ["active", "rank", "spectral", "radius", "volume", "decision"])
def test_a_shade_for_any_statistic(colour):
    figure = plot.regions(NETWORK, (-1, 1), colour=colour)
    assert len(figure.axes[0].child_axes) == 1  # the bar
    assert figure.axes[0].collections[0].get_gid() == "regions"


def test_numbers_of_ones_own():
    count = len(tessella.polygons(NETWORK, (-1, 1)))
    assert plot.regions(NETWORK, (-1, 1), colour=np.arange(count)).axes[0].child_axes[0].get_ylabel() == "value"
    with pytest.raises(OptionError, match=rf"one finite number for each of the {count} regions"):
        plot.regions(NETWORK, (-1, 1), colour=np.arange(count - 1))
    with pytest.raises(OptionError, match="one of region, layer, slope, active, rank"):
        plot.regions(NETWORK, (-1, 1), colour="size")


def test_walls_of_chosen_layers():
    axes = plot.regions(NETWORK, (-1, 1), colour="active", layers=[2]).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["cut by layer 2"]
    for layers in ([0], [3], ["x"]):
        with pytest.raises(OptionError, match="the layers with ReLUs have numbers 1 to 2"):
            plot.regions(NETWORK, (-1, 1), layers=layers)


def test_a_histogram_has_all_regions():
    found = tessella.summarise(NETWORK, (-1, 1), ["active", "decision"])
    axes = plot.histogram(found, "active").axes[0]
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(100.0)
    assert axes.get_xlabel() == "active ReLUs"
    assert f"mean {found.distribution('active').mean.value:.4g}" in axes.get_legend().get_texts()[0].get_text()
    assert plot.histogram(found.distribution("decision")).axes[0].get_legend() is None
    with pytest.raises(OptionError, match="say which statistic to draw: one of active, decision"):
        plot.histogram(found)
    with pytest.raises(OptionError, match="not of an object of type int"):
        plot.histogram(3)


def test_solids():
    pytest.importorskip("plotly")
    net = random_network((3, 4, 3, 1), 1)
    count = tessella.count(net, (-1, 1)).exact
    figure = plot.space(net, (-1, 1), apart=0.0)
    mesh = figure.data[0]
    assert figure.layout.title.text.endswith(f"{count} regions")
    assert {mesh.x.min(), mesh.x.max(), mesh.z.min(), mesh.z.max()} == {-1.0, 1.0}
    corners = np.stack([mesh.x, mesh.y, mesh.z], axis=1)
    a, b, c = (corners[side] for side in (mesh.i, mesh.j, mesh.k))
    middles = {text: corners[[one == text for one in mesh.hovertext]].mean(axis=0) for text in set(mesh.hovertext)}
    tips = np.stack([middles[mesh.hovertext[corner]] for corner in mesh.i])
    volume = np.abs(np.einsum("ij,ij->i", np.cross(a - tips, b - tips), c - tips)).sum() / 6.0
    assert volume == pytest.approx(8.0)  # together they are the box
    values = tessella.summarise(net, (-1, 1), "active").distribution("active").values
    assert plot.space(net, (-1, 1), values=values).data[0].intensitymode == "cell"
    assert "1 region" in plot.space(Network.from_arrays([(np.ones((1, 3)), [0.0])]), (-1, 1)).layout.title.text


def test_what_is_no_solid(monkeypatch):
    pytest.importorskip("plotly")
    with pytest.raises(OptionError, match="solids need three free inputs, and the domain has 2"):
        plot.space(NETWORK, (-1, 1))
    net = random_network((3, 6, 1))
    for given, words in (
        ({"limit": 3}, "more than 3 regions"),
        ({"apart": 1.0}, "takes a number from 0 up to 1"),
        ({"values": [1.0]}, "one number for each"),
    ):
        with pytest.raises(OptionError, match=words):
            plot.space(net, (-1, 1), **given)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingPackage, match="pip install plotly"):
        plot.space(net, (-1, 1))


def test_an_animation_has_a_picture_for_each_time(tmp_path):
    image = pytest.importorskip("PIL.Image")
    tracker = tessella.track(NETWORK, (-1, 1), keep=True, probes=5)
    tracker.step(), tracker.step()
    assert tracker.networks == [NETWORK, NETWORK]
    with pytest.raises(OptionError, match="track with keep=True"):
        plot.animation(tessella.track(NETWORK, (-1, 1)), (-1, 1), tmp_path / "none.gif")
    plot.animation([NETWORK, random_network((2, 4, 1), 5)], (-1, 1), tmp_path / "two.gif", names=["before", "after"], seconds=0.2)
    with image.open(tmp_path / "two.gif") as made:
        assert (made.n_frames, made.info["duration"]) == (2, 200)
    whole = random_network((4, 5, 2), 6)
    points = [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 1]]
    plot.animation([whole], Box(-1, 1, dim=4), tmp_path / "slice.gif", points=points, colour="active", data=points)
    assert (tmp_path / "slice.gif").read_bytes()[:6] == b"GIF89a"
    with pytest.raises(OptionError, match="give one network at least"):
        plot.animation([], (-1, 1), tmp_path / "none.gif")
