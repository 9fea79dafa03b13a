"""The documentation in a real browser, from files: it can be searched without a server, connects to nothing, and fits a narrow screen."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    built = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-b",
        "html",
        "-d",
        tmp_path_factory.mktemp("trees"),
        ROOT / "docs",
        built,
    ]
    subprocess.run(command, check=True)
    return built


def test_search_finds_a_page_without_a_server(browser, site):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"file://{site}/search.html?q=stably+inactive")
    shown = (By.CSS_SELECTOR, "#search-results li a[href*='stability.html']")  # they come one after the other
    WebDriverWait(browser, 30).until(lambda page: page.find_elements(*shown))


@pytest.mark.parametrize(
    "page", ["index", "explanation/regions", "how-to/large", "reference/command-line", "benchmarks", "paper"]
)
@pytest.mark.parametrize("width", [400, 1400])
def test_a_page_fits_the_screen_and_loads_nothing_from_elsewhere(browser, site, page, width):
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(f"file://{site}/{page}.html")
    wide, seen = browser.execute_script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= seen
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [name for name in loaded if not name.startswith(("file:", "data:"))] == []
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
