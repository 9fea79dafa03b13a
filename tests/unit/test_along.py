"""`along`: what it refuses, how it ends early, and what its answer can do."""

import tracemalloc

import numpy as np
import pytest

import tessella
from tessella import plot
from tessella.lines import walk
from tessella.lines.trust import Trust
from tessella.network import Network

NET = Network.from_arrays([([[1.0, 0.0], [0.0, 1.0]], None), ([[1.0, -1.0]], [0.25])], relu_output=True)
PATH = [[-1, 0.5], [1, 0.5], [1, -0.5]]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ([[0, 0]], "at least two points"),
        ([0, 1], "at least two points"),
        ([[0, 0, 0], [1, 1, 1]], "with 2 inputs"),
        ([[0, 0], [np.nan, 1]], "path holds nan at"),
        ([[0, 0], [0, 0]], "the 2 points of the path are equal"),
        ([["a", "b"], ["c", "d"]], "path holds no real numbers"),
        ([[0, 0], [1]], "path cannot be read"),
        ([[1e308, 0], [-1e308, 0]], "further apart"),
    ],
)
def test_bad_paths_end_in_one_line(path, words):
    with pytest.raises(tessella.OptionError, match=words) as raised:
        tessella.along(NET, path)
    assert "\n" not in str(raised.value)


def test_bad_options_end_in_one_line():
    with pytest.raises(tessella.OptionError, match="takes a positive number"):
        tessella.along(NET, PATH, seconds=0)
    found = tessella.along(NET, PATH)
    with pytest.raises(tessella.OptionError, match="from 0 to 2"):
        found.points(2.5)
    with pytest.raises(tessella.OptionError, match="no region 4"):
        found.pattern(4)


def test_the_answer_is_a_table_and_comes_back_from_json():
    found = tessella.along(NET, PATH)
    assert found.rows()[1] == {"break": 1, "position": 0.625, "layer": 2, "unit": 0, "active": True, "proved": True}
    again = tessella.Along.from_json(found.to_json())
    assert (again.to_json(), again.rows(), again.network) == (found.to_json(), found.rows(), NET)
    assert "4 regions of 2-2-1 along a path" in found._repr_html_()
    assert repr(found).startswith("Along(4 regions, of 2-2-1 on 2 segments, ")
    np.testing.assert_allclose(found.lengths, [1.0, 0.25, 1.25, 0.5])
    np.testing.assert_array_equal(found.points([0.5, 1.5]), [[0.0, 0.5], [1.0, 0.0]])


def test_pieces_of_one_pattern_across_a_corner_are_one_and_coming_back_is_no_new_region():
    found = tessella.along(NET, [[0.1, 0.2], [0.2, 0.2], [0.2, 0.1]])
    assert (found.regions, found.breaks.tolist()) == (1, [])
    there_and_back = tessella.along(NET, [[-1, 0.5], [-0.1, 0.5], [0.1, 0.5], [-1, 0.5]])
    assert (there_and_back.regions, there_and_back.distinct) == (3, 2)


def test_units_that_change_together_are_one_break():
    net = Network.from_arrays([([[1.0], [2.0], [-1.0]], None), ([[1.0, 1.0, 1.0]], [-0.5])], relu_output=True)
    found = tessella.along(net, [[-1], [1]])
    assert found.changes[1] == ((1, 0, True), (1, 1, True), (1, 2, False))
    assert found.breaks.tolist()[1] == 0.5
    assert found.sure.all()


def test_points_may_be_repeated_and_networks_may_have_no_relus():
    assert tessella.along(NET, [PATH[0], PATH[0], PATH[1], PATH[1], PATH[2]]).breaks.tolist() == [1.5, 1.625, 3.5]
    found = tessella.along([([[1.0, 2.0]], None)], PATH)
    assert (found.regions, found.distinct, found.reached) == (1, 1, 2.0)


def test_images_are_flattened_and_models_are_read():
    net = tessella.load([(np.eye(4), None)], relu_output=True)
    assert tessella.along(net, [[[-1, 0], [0, 0]], [[1, 0], [0, 0]]]).regions == 2


def test_time_and_ctrl_c_end_with_what_is_known(monkeypatch):
    from tessella.lines import walk

    monkeypatch.setattr(walk, "_NUMBERS", 64)
    rng = np.random.default_rng(0)
    net = Network.from_arrays([(rng.standard_normal((30, 5)), rng.standard_normal(30)) for _ in range(1)], relu_output=True)
    path = rng.standard_normal((200, 5))
    whole, told = tessella.along(net, path), []

    def press(reached, last, breaks):
        told.append((reached, last, breaks))
        if reached > 100:
            raise KeyboardInterrupt

    found = tessella.along(net, path, progress=press)
    assert found.status == "interrupted"
    assert 100 < found.reached < 199
    assert found.lower <= whole.regions <= found.upper
    assert found.breaks.tolist() == whole.breaks[whole.breaks <= found.reached].tolist()
    assert told[0][1] == 199.0
    assert "interrupted at" in repr(found)
    late = tessella.along(net, path, seconds=1e-9)
    assert (late.status, late.reached, late.lower, late.distinct) == ("time limit", 0.0, 1, None)
    assert late.upper >= whole.regions


def test_the_bound_on_singular_values_holds():
    rng = np.random.default_rng(0)
    for shape in ((5, 5), (40, 7), (3, 90), (100, 100)):
        weight = rng.standard_normal(shape) * 10.0 ** rng.integers(-5, 5)
        trust = Trust((tessella.Layer(weight, np.zeros(shape[0])),))
        bound, true = trust.largest_singular(0), np.linalg.svd(weight)[1][0]
        assert true <= bound <= 3.0 * true


def test_the_picture_has_curves_and_a_tick_for_every_break():
    found = tessella.along(NET, PATH)
    axes = plot.along(found, names=["a", "b", "c"]).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "c"]
    ticks = {one.get_gid(): len(one.get_segments()) for one in axes.collections}
    assert ticks == {"breaks 1": 2, "breaks 2": 1}
    assert axes.get_title() == "2-2-1 along a path: 4 regions"
    with pytest.raises(tessella.OptionError, match="3 corners, and there are 1"):
        plot.along(found, names=["a"])
    with pytest.raises(tessella.OptionError, match="no output 1"):
        plot.along(found, output=1)
    with pytest.raises(tessella.OptionError, match=r"what tessella\.along returned"):
        plot.along(NET)


def test_a_wide_last_layer_does_not_take_memory_for_breaks_times_units():
    rng = np.random.default_rng(0)
    weight, bias, ends = rng.standard_normal((4000, 3)), rng.standard_normal(4000), rng.standard_normal((2, 3))
    network = tessella.Network.from_arrays([(weight, bias), (np.ones((1, 4000)), [0.0])])
    tracemalloc.start()
    found = tessella.along(network, ends)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    breaks = int(((weight @ ends[0] + bias > 0.0) != (weight @ ends[1] + bias > 0.0)).sum())
    assert found.regions == breaks + 1 > 500
    assert most < 4 * breaks * 4000  # bytes: half of what one array of all values at all breaks would take


def test_a_wide_layer_before_others_is_worked_on_in_parts_that_fit_the_memory(monkeypatch):
    monkeypatch.setattr(walk, "_NUMBERS", 400_000)
    rng = np.random.default_rng(0)
    layers = [
        (rng.standard_normal((4000, 3)), rng.standard_normal(4000)),
        (rng.standard_normal((30, 4000)) / 60.0, rng.standard_normal(30)),
    ]
    network, ends = tessella.Network.from_arrays(layers, relu_output=True), rng.standard_normal((2, 3))
    tracemalloc.start()
    found = tessella.along(network, ends)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.regions > 800
    assert {layer for one in found.changes for layer, _, _ in one} == {1, 2}
    assert most < 0.4 * 8 * 4000 * found.regions  # no array has all values at all breaks
    places = np.sort(rng.random(500))
    places = places[np.abs(places[:, None] - found.breaks).min(axis=1) > 1e-9]
    seen, region = network.patterns(found.points(places)), np.searchsorted(found.breaks, places)
    assert all(np.array_equal(seen[at], found.pattern(int(number))) for at, number in enumerate(region.tolist()))
