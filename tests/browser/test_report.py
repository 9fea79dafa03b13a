"""The report in a real browser: what a person sees when pointing, clicking, moving and zooming."""

import itertools
import os
import re

import numpy as np
import pytest

import tessella
from helpers.browsing import BROWSER, DRIVER
from tessella import Box, Network, report

NAME = "<script>document.title='hacked'</script>&\"'.onnx"


def test_the_browser_is_there_where_it_must_be():
    if os.environ.get("TESSELLA_BROWSER") != "required":
        pytest.skip("TESSELLA_BROWSER=required is not set, so a browser may be missing")
    assert BROWSER
    assert DRIVER


def random_network(sizes, seed=0):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((n, m)), 0.4 * rng.standard_normal(n)) for m, n in itertools.pairwise(sizes)]
    return layers, Network.from_arrays(layers)


def states(layers, x):
    """The pattern at an input, and how far it is from every border, by numpy alone."""
    found, near = "", np.inf
    for weight, bias in layers[:-1]:
        before = weight @ x + bias
        near = min(near, np.abs(before).min())
        found += "".join("1" if value > 0 else "0" for value in before)
        x = np.maximum(before, 0.0)
    return found, near


class Page:
    """A report that is open."""

    def __init__(self, browser, path):
        self.browser = browser
        browser.get(path.as_uri())
        self.canvas = browser.find_element("id", "plane")
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.canvas)
        self.wait()

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def wait(self):
        """Until the next frame is drawn."""
        self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def view(self):
        return self.run("return explorer.view()")

    def act(self, *steps):
        """Pointer steps: 'down', 'up', or a place on the screen."""
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        actions = ActionBuilder(self.browser, duration=20)
        for step in steps:
            if step == "down":
                actions.pointer_action.pointer_down()
            elif step == "up":
                actions.pointer_action.pointer_up()
            else:
                actions.pointer_action.move_to_location(*step)
        actions.perform()
        self.wait()

    def wheel(self, place, amount):
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

        left, top = self.run(
            "const box = arguments[0].getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]",
            self.canvas,
        )
        origin = ScrollOrigin.from_element(self.canvas, round(place[0] - left), round(place[1] - top))
        ActionChains(self.browser).scroll_from_origin(origin, 0, amount).perform()
        self.wait()

    def keys(self, *keys):
        self.canvas.send_keys(*keys)
        self.wait()

    def panel(self):
        found = self.browser.find_element("id", "panel")
        return found.get_attribute("data-pattern"), found.text

    def on_screen(self, point):
        """Whole pixels near a point of the slice, and the point that lies there."""
        x, y = self.run("return explorer.project(...arguments)", *map(float, point))
        view, place = self.view(), (round(x), round(y))
        return place, np.array([point[0] + (place[0] - x) / view["sx"], point[1] - (place[1] - y) / view["sy"]])

    def picture(self):
        return self.run("return arguments[0].toDataURL()", self.canvas)

    def log(self):
        return self.browser.get_log("browser")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A report on a slice of a network with four inputs, its weights, and the slice."""
    layers, network = random_network((4, 10, 8, 3), seed=3)
    domain = Box(-1, 1, dim=4)
    chosen = tessella.slice(network, [[0, 0, 0, 0], [1, 0.5, 0, -0.5], [0, -1, 0.5, 1]], domain)
    explorer = report.explore(network, domain, slice=chosen)
    path = tmp_path_factory.mktemp("report") / "report.html"
    past = report.Provenance(NAME, "0" * 64, ("tessella", "report", NAME))
    report.write(path, tessella.analyze(network, domain, seconds=2.0), shown=explorer, provenance=past)
    return path, layers, chosen, explorer.polygons


@pytest.fixture
def page(browser, plane):
    opened = Page(browser, plane[0])
    yield opened
    assert opened.log() == []


def largest(polygons, count):
    order = np.argsort(-polygons.areas)[:count]
    return polygons.centres[order]


def check_hover(page, layers, lift, points):
    seen = set()
    for point in points:
        place, there = page.on_screen(point)
        expected, near = states(layers, lift(there))
        assert near > 1e-4, "the point must not lie on a border"
        page.act(place)
        shown, text = page.panel()
        assert shown == expected
        assert "affine map here" in text
        assert "active unit" in text
        seen.add(shown)
    return seen


def test_the_page_opens_and_says_what_it_is_about(page):
    assert page.browser.find_element("tag name", "h1").text == NAME
    assert page.browser.title == f"{NAME}: linear regions"
    text = page.browser.find_element("tag name", "main").text
    assert "How many" in text
    assert "Which units ever change their state" in text
    assert NAME in text
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    assert page.run("return document.querySelectorAll('script').length") == 2


def test_hovering_names_the_pattern_of_the_network_there(page, plane):
    _, layers, chosen, polygons = plane
    assert len(check_hover(page, layers, chosen.lift, largest(polygons, 12))) == 12


def test_the_affine_map_is_that_of_the_network(page, plane):
    _, layers, chosen, polygons = plane
    place, there = page.on_screen(largest(polygons, 1)[0])
    page.act(place)
    _, text = page.panel()
    line = next(line for line in text.splitlines() if line.startswith("y0 ="))
    numbers = [float(word.replace("\u2212", "-").replace("+", "")) for word in line.split()[2:] if word[0] in "+\u2212"]
    value = numbers[0] * there[0] + numbers[1] * there[1] + numbers[2]
    x = chosen.lift(there)
    for weight, bias in layers[:-1]:
        x = np.maximum(weight @ x + bias, 0.0)
    expected = layers[-1][0][0] @ x + layers[-1][1][0]
    assert value == pytest.approx(expected, rel=0.02, abs=0.05)  # three digits are shown


def test_a_click_pins_and_escape_lets_go(page, plane):
    from selenium.webdriver.common.keys import Keys

    first, second = (page.on_screen(point)[0] for point in largest(plane[3], 2))
    page.act(first, "down", "up")
    pinned, text = page.panel()
    assert ", pinned" in text
    page.act(second)
    assert page.panel()[0] == pinned
    page.keys(Keys.ESCAPE)
    assert ", pinned" not in page.panel()[1]
    assert page.panel()[0] != pinned
    page.act(second, "down", "up")
    page.act(second, "down", "up")
    assert ", pinned" not in page.panel()[1]


def test_the_wheel_zooms_around_the_pointer(page, plane):
    _, layers, chosen, polygons = plane
    target = largest(polygons, 3)[2]
    place, there = page.on_screen(target)
    page.act(place)
    before = page.view()
    page.wheel(place, -400)
    after = page.view()
    assert after["sx"] > 1.5 * before["sx"]
    again, _ = page.on_screen(there)
    assert np.abs(np.subtract(again, place)).max() <= 1
    check_hover(page, layers, chosen.lift, [target])
    page.wheel(place, 400)
    assert page.view()["sx"] == pytest.approx(before["sx"], rel=1e-6)
    page.browser.find_element("id", "closer").click()
    assert page.view()["sx"] == pytest.approx(1.5 * before["sx"], rel=1e-6)
    page.browser.find_element("id", "whole").click()
    assert page.view()["sx"] == pytest.approx(before["sx"], rel=1e-6)


def test_dragging_moves_and_does_not_pin(page, plane):
    _, layers, chosen, polygons = plane
    target = largest(polygons, 1)[0]
    place, _ = page.on_screen(target)
    before = page.view()
    page.act(place, "down", (place[0] + 30, place[1] + 20), (place[0] + 60, place[1] + 40), "up")
    after = page.view()
    assert before["x"] - after["x"] == pytest.approx(60 / before["sx"], rel=0.1)
    assert after["y"] - before["y"] == pytest.approx(40 / before["sy"], rel=0.1)
    assert ", pinned" not in page.panel()[1]
    check_hover(page, layers, chosen.lift, [target])


def test_the_keyboard_suffices(page):
    from selenium.webdriver.common.keys import Keys

    page.keys(Keys.ARROW_RIGHT, Keys.ARROW_UP)
    first, _ = page.panel()
    assert first
    page.keys(Keys.ENTER)
    assert ", pinned" in page.panel()[1]
    page.keys(Keys.ESCAPE)
    seen = {first}
    for _ in range(12):
        page.keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        seen.add(page.panel()[0])
    assert len(seen) > 2
    before = page.view()["sx"]
    page.keys("+")
    assert page.view()["sx"] == pytest.approx(1.3 * before)
    page.keys("0")
    assert page.view()["sx"] == pytest.approx(before)


def test_colours_and_themes_change_the_picture(page):
    from selenium.webdriver.support.ui import Select

    pictures = {page.picture()}
    for colour in ("layer", "slope"):
        Select(page.browser.find_element("id", "colour")).select_by_value(colour)
        page.wait()
        pictures.add(page.picture())
    assert "norm of the derivatives" in page.browser.find_element("id", "legend").text
    page.browser.find_element("id", "theme").click()
    page.wait()
    pictures.add(page.picture())
    assert len(pictures) == 4
    colour = page.run("return getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in colour[4:-1].split(",")) < 64


def test_a_page_fits_a_narrow_screen(page):
    page.browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": False}
    )
    try:
        page.wait()
        assert page.run("return document.documentElement.scrollWidth") <= 390
        hidden = (
            "return [...document.querySelectorAll('.scroll')].filter((part) => part.scrollWidth > part.clientWidth + 1).length"
        )
        assert page.run(hidden) == 0  # pictures and tables fit
        shown = "return [...document.querySelectorAll('svg')].filter((part) => part.getBoundingClientRect().width > 0).map((part) => part.getAttribute('class'))"
        assert page.run(shown) == ["narrow"]  # the count is exact, which needs no drawing
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_long_numbers_stand_beside_the_drawing(browser, tmp_path):
    network, domain = Network.from_arrays([([[1.0, 0.5]], [-1_500_000.7]), ([[1.0]], None)]), Box(1e6, 1e6 + 1, dim=2)
    report.write(tmp_path / "far.html", tessella.analyze(network, domain, seconds=1.0))
    page = Page(browser, tmp_path / "far.html")
    left = page.run("return explorer.project(1e6, 1e6)[0] - arguments[0].getBoundingClientRect().left", page.canvas)
    assert left >= page.run(
        "const pen = arguments[0].getContext('2d'); pen.font = '11px system-ui, sans-serif'; return pen.measureText('1000000.2').width",
        page.canvas,
    )
    assert "[1000000, 1000001]^2" in page.browser.find_element("tag name", "header").text
    assert page.log() == []


def test_many_regions_are_found_as_surely(browser, tmp_path):
    layers, network = random_network((2, 80, 80, 60, 1), seed=1)
    domain = Box(-1, 1, dim=2)
    explorer = report.explore(network, domain)
    assert len(explorer.polygons) > 10_000
    report.write(tmp_path / "many.html", tessella.analyze(network, domain, seconds=1.0), shown=explorer)
    page = Page(browser, tmp_path / "many.html")
    check_hover(page, layers, lambda point: point, largest(explorer.polygons, 6))
    assert page.log() == []


def test_a_function_of_one_input_can_be_explored(browser, tmp_path):
    layers, network = random_network((1, 8, 6, 2), seed=2)
    report.write(tmp_path / "line.html", tessella.analyze(network, Box(-2, 2, dim=1), seconds=1.0))
    page = Page(browser, tmp_path / "line.html")
    centres = largest(tessella.polygons(network, Box(-2, 2, dim=1)), 4)
    check_hover(page, layers, lambda point: point[:1], [(centre[0], 0.0) for centre in centres])
    assert page.log() == []


CLIPPED = """
return [...document.querySelectorAll('svg')].filter((part) => part.getBoundingClientRect().width > 0).flatMap((part) => {
  const whole = part.getBoundingClientRect();
  return [...part.querySelectorAll('text')].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < whole.left - 1 || box.right > whole.right + 1;
  }).map((text) => text.textContent);
});
"""


def open_bracket(sizes, seed=4):
    """An analysis whose ends lie far apart, with wide layers."""
    network, domain = random_network(sizes, seed=seed)[1], Box(-1, 1, dim=sizes[0])
    known = tessella.stability(network, domain, method="interval")
    estimate = tessella.estimate(network, domain, probes=4)
    return tessella.Analysis(
        network, domain, 2, max(estimate.lower, 2), 1 << network.relus, stability=known, estimate=estimate, choices="2^m regions"
    )


@pytest.mark.parametrize("width", [390, 1200])
def test_no_text_of_a_drawing_is_clipped(browser, tmp_path, width):
    found = open_bracket((6, 512, 40, 2))
    explorer = report.explore(found.network, found.domain, limit=300)
    report.write(tmp_path / "wide.html", found, shown=explorer)
    page = Page(browser, tmp_path / "wide.html")
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.wait()
        assert page.run("return document.documentElement.scrollWidth") <= width
        assert page.run(CLIPPED) == []
        text = page.browser.find_element("tag name", "main").text
        assert " of 512 change" in text
        assert "2^" not in text  # powers are raised
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert page.log() == []


def test_the_panel_says_something_before_anybody_points(page, plane):
    polygons = plane[3]
    _, text = page.panel()
    assert f"All {len(polygons)} regions shown" in text
    both = polygons.patterns.any(axis=0) & ~polygons.patterns.all(axis=0)
    assert f"layer 1: {both[:10].sum()} of 10" in text
    assert f"layer 2: {both[10:].sum()} of 8" in text


def test_examples_and_the_decision_are_drawn_and_data_have_a_tab(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    _, network = random_network((2, 8, 3), seed=5)
    domain, data = Box(-1, 1, dim=2), np.random.default_rng(0).uniform(-1, 1, (30, 2))
    known = tessella.analyze(network, domain, seconds=1.0)
    pictures = set()
    for number, given in enumerate(({}, {"data": data}, {"data": data, "labels": np.arange(30) % 3})):
        path = tmp_path / f"{number}.html"
        report.write(path, known, shown=report.explore(network, domain, **given))
        page = Page(browser, path)
        pictures.add(page.picture())
        legend = page.browser.find_element("id", "legend").text
        assert ("the decision changes" in legend, "class 2" in legend) == (number > 0, number > 1)
        parts = page.browser.find_elements("id", "data-section")
        assert len(parts) == (number > 0)
        if parts:
            tabs = page.browser.find_elements("css selector", "[role=tab]")
            assert [(tab.text, tab.get_attribute("aria-selected")) for tab in tabs] == [
                ("The network", "true"),
                ("Where the data are", "false"),
            ]
            assert not parts[0].is_displayed()
            before = page.picture()
            tabs[1].click()
            page.wait()
            assert not page.canvas.is_displayed()
            regions = len({row.tobytes() for row in network.patterns(data)})
            assert f"30 examples lie in {regions} different regions" in parts[0].text
            assert len(parts[0].find_elements("css selector", "tbody tr")) == (4 if number > 1 else 1)
            around = page.browser.find_element("id", "around-section")
            rows = [row.text.split() for row in around.find_elements("css selector", "tbody tr")]
            cells = around.find_elements("css selector", "tbody tr:first-child td")
            assert len(rows) == 20
            radius = float(re.search(r"radius (\S+) in linf", around.text)[1])
            balls = tessella.local(network, data[:20], radius, domain=domain)
            shown = [cell.text for cell in cells][1 + (number > 1) :]
            breaks = tessella.along(network, data[:2]).regions - 1
            assert shown == [f"{balls.counts[0]}", f"{balls.walls[0, 2, 0]:.4g}", f"{balls.units_lower[0]}", f"{breaks}"]
            wide, seen = page.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            assert wide <= seen
            tabs[1].send_keys(Keys.ARROW_LEFT)
            page.wait()
            assert page.canvas.is_displayed()
            assert page.picture() == before
        assert page.log() == []
    assert len(pictures) == 3


def test_several_networks_have_a_picture_each(browser, tmp_path):
    domain, found, layers = Box(-1, 1, dim=4), {}, {}
    for name, sizes in (("small", (4, 5, 2)), ("large", (4, 9, 6, 2))):
        layers[name], network = random_network(sizes, seed=6)
        found[name] = tessella.analyze(network, domain, seconds=1.0)
    report.write(tmp_path / "several.html", tessella.rank(found))
    page = Page(browser, tmp_path / "several.html")
    text = page.browser.find_element("tag name", "main").text
    assert "Which has more" in text
    assert "yes, proved" in text
    page.browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        page.wait()
        hidden = (
            "return [...document.querySelectorAll('.scroll')].filter((part) => part.scrollWidth > part.clientWidth + 1).length"
        )
        assert page.run(hidden) == 0
        assert page.run(CLIPPED) == []
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert [each.text.split()[0] for each in page.browser.find_elements("css selector", "h2.model")] == ["large", "small"]
    names = page.run("return [...document.querySelectorAll('[id]')].map((part) => part.id)")
    assert len(set(names)) == len(names)
    canvases = page.browser.find_elements("tag name", "canvas")
    assert len({page.run("return arguments[0].toDataURL()", canvas) for canvas in canvases}) == 2
    for canvas, panel in zip(canvases, page.browser.find_elements("tag name", "aside"), strict=True):
        page.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
        before = panel.text
        canvas.click()
        page.wait()
        assert before != panel.text
        assert "affine map here" in panel.text
    assert page.log() == []
